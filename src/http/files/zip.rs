//! `POST /api/files/zip`: an address at which chosen files and folders are downloaded as one ZIP.

use actix_web::{HttpResponse, web};

use crate::{
    application::{
        archive::selection::{SelectionAnswer, SelectionRequest, select},
        caller::{Caller, Read},
        context::FileContext,
        error::ApiError,
        reached::Reached,
    },
    http::extract::Body,
};

/// Download many files as one archive
///
/// Answers an address that needs no credential for a day: a ZIP archive, not compressed, with a length, an entity tag and ranges.
/// Files lie at its top, folders under their names.
#[utoipa::path(post, path = "/api/files/zip", tag = "files", request_body = SelectionRequest, responses(
    (status = 201, description = "The archive's address", body = SelectionAnswer),
    (status = 404, description = "None of the files and folders exists", body = crate::application::error::ErrorBody),
    (status = 413, description = "Too many files and folders for one archive", body = crate::application::error::ErrorBody),
    (status = 503, description = "Too many archives at a time", body = crate::application::error::ErrorBody)))]
pub async fn zip(
    context: web::Data<FileContext>,
    caller: Caller<Read>,
    reached: Reached,
    Body(request): Body<SelectionRequest>,
) -> Result<HttpResponse, ApiError> {
    let selected = select(&context, caller.account_id(), &reached, request).await?;
    Ok(HttpResponse::Created().json(selected))
}
