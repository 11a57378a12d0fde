//! `POST /api/files/bulk`: move, delete or tag many files in one request.

use actix_web::{HttpResponse, web};

use crate::{
    application::{
        caller::{Caller, Write},
        context::FileContext,
        error::ApiError,
        files::bulk::{BulkAnswer, BulkRequest, change},
    },
    http::extract::Body,
};

/// Move, delete or tag many files
///
/// The answer has a result for each file, also when there is no such file or the work stopped halfway. The same request
/// again does no harm: it changes what is left.
#[utoipa::path(post, path = "/api/files/bulk", tag = "files", request_body = BulkRequest, responses(
    (status = 200, description = "A result for each file", body = BulkAnswer),
    (status = 404, description = "There is no such folder; nothing was changed", body = crate::application::error::ErrorBody),
    (status = 503, description = "The database is busy; nothing was changed", body = crate::application::error::ErrorBody)))]
pub async fn bulk(
    context: web::Data<FileContext>,
    caller: Caller<Write>,
    Body(request): Body<BulkRequest>,
) -> Result<HttpResponse, ApiError> {
    let changed = change(context.into_inner(), caller.account_id(), request).await?;
    Ok(HttpResponse::Ok().json(changed))
}
