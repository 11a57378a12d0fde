//! `GET /api/files/{id}/preview`: an image of a file for its owner, width `w`, `Cache-Control`.

use actix_web::{HttpRequest, HttpResponse, http::header::HeaderValue, web};
use sluice_store::files;
use uuid::Uuid;

use crate::{
    application::{
        caller::{Caller, Read},
        context::{DeliveryContext, FileContext},
        error::ApiError,
        files::previews::{DEFAULT_WIDTH, delivery_query, may_have_preview, rounded_width},
    },
    http::{cdn, extract::query_value},
};

/// `Cache-Control` of previews: the bytes of a file never change under its id, and the address in its record changes with them.
const CACHE: HeaderValue = HeaderValue::from_static("private, max-age=86400, immutable");

/// Preview a file
///
/// An image of an image, of a PDF's first page, of a video's beginning, or the cover of a song. Is no delivery: the plan does not
/// count it. `files.previews_per_account` are rendered at a time for one account, and others wait.
#[utoipa::path(get, path = "/api/files/{id}/preview", tag = "files", params(
    ("id" = Uuid, Path, description = "The file's id"),
    ("w" = Option<u32>, Query, description = "Width of the square that it fits in, 1 to 2560; rounded up to 320, 640, 1280 or 2560 (640)"),
    ("v" = Option<String>, Query, description = "Anything: as the record's `preview_url` has it"),
), responses(
    (status = 200, description = "WebP where the client takes it, else JPEG or PNG", content_type = "image/*", body = Vec<u8>),
    (status = 206, description = "The range asked for", content_type = "image/*", body = Vec<u8>),
    (status = 304, description = "Unchanged"),
    (status = 404, description = "There is no such file", body = crate::application::error::ErrorBody),
    (status = 413, description = "The file is too large for a preview", body = crate::application::error::ErrorBody),
    (status = 415, description = "There are no previews of this type, or the song has no cover", body = crate::application::error::ErrorBody),
    (status = 422, description = "There is no preview of this file", body = crate::application::error::ErrorBody),
    (status = 503, description = "Too many previews of the account wait", body = crate::application::error::ErrorBody)))]
pub async fn preview(
    request: HttpRequest,
    context: web::Data<FileContext>,
    delivery: web::Data<DeliveryContext>,
    caller: Caller<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let width = match query_value(&request, "w") {
        Some(text) => rounded_width(&text)?,
        None => DEFAULT_WIDTH,
    };
    let file = files::get(&mut context.store.read().await?, caller.account_id(), *id).await?;
    if !may_have_preview(&file.mime_type) {
        return Err(ApiError::UnsupportedType(format!(
            "there are no previews of {}",
            file.mime_type
        )));
    }
    let query = delivery_query(width);
    cdn::own_preview(&delivery, &context.previews, &request, &file, &query, CACHE).await
}
