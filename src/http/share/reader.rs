//! `/api/share/folder/{token}`: browse, download, zip, preview and unlock for readers of a share link; `Cache-Control`.

use actix_web::{
    FromRequest as _, HttpRequest, HttpResponse,
    http::{
        StatusCode,
        header::{self, HeaderValue},
    },
    web,
};
use serde::Deserialize;
use sluice_store::{Secret, files::File, folders, shares};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    access::{Entered, ShareAccess, enter},
    listing::{Listing, listing},
    password,
};
use crate::{
    application::{
        answer::Success,
        context::ShareContext,
        error::ApiError,
        files::previews::{DEFAULT_WIDTH, WIDTHS, delivery_query, has_preview},
    },
    http::{
        archive,
        bytes::{self, ShownAs, StoredBytes},
        cdn,
        extract::{Body, query_value},
    },
};

/// `Cache-Control` of files: only the reader's own browser keeps what a link shows, and not for long: a link may be revoked.
const FILE_CACHE: &str = "private, max-age=300";

/// Password that a reader types.
#[derive(Deserialize, ToSchema)]
pub struct SharePassword {
    password: String,
}

/// Look through a shared folder
///
/// Needs no credential but the link. Whatever is wrong with a link is answered with the same 404.
#[utoipa::path(get, path = "/api/share/folder/{token}", tag = "shares", security(()), params(
    ("token" = String, Path, description = "The link's token"),
    ("folderId" = Option<Uuid>, Query, description = "A folder below the shared one; without it that"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before"),
), responses(
    (status = 200, description = "A page of 50 folders and files", body = Listing),
    (status = 403, description = "The link needs its password (`password_required`)", body = crate::application::error::ErrorBody),
    (status = 404, description = "The link is not available, or the folder is not in it", body = crate::application::error::ErrorBody)))]
pub async fn browse(
    request: HttpRequest,
    context: web::Data<ShareContext>,
    access: ShareAccess,
) -> Result<HttpResponse, ApiError> {
    let folder = query_value(&request, "folderId").filter(|id| !id.is_empty());
    let folder = folder
        .map(|id| Uuid::try_parse(&id).map_err(|_| ApiError::NotFound("folder")))
        .transpose()?;
    let cursor = query_value(&request, "cursor");
    let listing = listing(&context, &access, folder, cursor.as_deref()).await?;
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CACHE_CONTROL, "no-store"));
    Ok(access.bound(response.json(listing)))
}

/// Download a shared file
///
/// An attachment, with ranges. `inline=1` shows audio, video, PDF and, where originals may be taken away without a bound, images
/// in place; that is not counted as a download.
#[utoipa::path(get, path = "/api/share/folder/{token}/files/{fileId}", tag = "shares", security(()), params(
    ("token" = String, Path, description = "The link's token"),
    ("fileId" = Uuid, Path, description = "The id in the listing"),
    ("inline" = Option<bool>, Query, description = "To be shown in place (false)"),
), responses(
    (status = 200, description = "The bytes", content_type = "application/octet-stream", body = Vec<u8>),
    (status = 206, description = "The range asked for", content_type = "application/octet-stream", body = Vec<u8>),
    (status = 304, description = "Unchanged"),
    (status = 403, description = "The link needs its password (`password_required`), or is for looking only (`downloads_off`)",
        body = crate::application::error::ErrorBody),
    (status = 404, description = "The link is not available, or the file is not in it", body = crate::application::error::ErrorBody),
    (status = 410, description = "As many downloads have begun as the link allows (`download_limit_reached`)",
        body = crate::application::error::ErrorBody),
    (status = 416, description = "No such range", body = crate::application::error::ErrorBody)))]
pub async fn download(
    request: HttpRequest,
    context: web::Data<ShareContext>,
    access: ShareAccess,
) -> Result<HttpResponse, ApiError> {
    let file = find(&request, &context, &access).await?;
    let file_id = file.id;
    let is_inline = flag(&request, "inline")? && access.shows(&file.mime_type);
    let shown_as = match is_inline {
        true => ShownAs::Inline,
        false => ShownAs::Attachment,
    };
    let stored = StoredBytes::from(file);
    let response = bytes::respond_as(&request, &context, &stored, FILE_CACHE, shown_as).await?;
    if !is_inline {
        let start = starts_at(&response);
        access.admit_download(&context, file_id, start).await?;
    }
    Ok(access.bound(response))
}

/// Download a shared folder
///
/// A ZIP archive of the folder and everything below it, not compressed, with a length, an entity tag and ranges: a
/// download that broke off continues where it stopped.
#[utoipa::path(get, path = "/api/share/folder/{token}/zip", tag = "shares", security(()), params(
    ("token" = String, Path, description = "The link's token"),
), responses(
    (status = 200, description = "The archive", content_type = "application/zip", body = Vec<u8>),
    (status = 206, description = "The range asked for", content_type = "application/zip", body = Vec<u8>),
    (status = 304, description = "Unchanged"),
    (status = 403, description = "The link needs its password (`password_required`), or is for looking only (`downloads_off`)",
        body = crate::application::error::ErrorBody),
    (status = 404, description = "The link is not available", body = crate::application::error::ErrorBody),
    (status = 410, description = "As many downloads have begun as the link allows (`download_limit_reached`)",
        body = crate::application::error::ErrorBody),
    (status = 413, description = "Too many files and folders for one archive", body = crate::application::error::ErrorBody),
    (status = 416, description = "No such range", body = crate::application::error::ErrorBody),
    (status = 503, description = "Too many archives at a time", body = crate::application::error::ErrorBody)))]
pub async fn zip(
    request: HttpRequest,
    context: web::Data<ShareContext>,
    access: ShareAccess,
) -> Result<HttpResponse, ApiError> {
    let (account_id, folder_id) = (access.account_id(), access.folder_id());
    // A link that allows no download lists no folder for one.
    access.admit_download(&context, folder_id, None).await?;
    let folder = folders::get(&mut context.store.read().await?, account_id, folder_id).await;
    let folder = folder.map_err(|error| match error {
        // Deleted after the link's look-up.
        sluice_store::Error::NotFound(_) => ApiError::ShareUnavailable,
        other => other.into(),
    })?;
    let response = archive::respond(
        &request,
        &context.files,
        account_id,
        folder_id,
        &folder.name,
    )
    .await?;
    let start = starts_at(&response);
    access.admit_download(&context, folder_id, start).await?;
    Ok(access.bound(response))
}

/// Preview a shared file
///
/// An image of an image, of a PDF's first page, or of a video's beginning. Counts as a delivery of the folder's owner.
#[utoipa::path(get, path = "/api/share/folder/{token}/files/{fileId}/preview", tag = "shares", security(()), params(
    ("token" = String, Path, description = "The link's token"),
    ("fileId" = Uuid, Path, description = "The id in the listing"),
    ("w" = Option<u32>, Query, description = "Width of the square that it fits in: 320, 640, 1280 or 2560 (640)"),
), responses(
    (status = 200, description = "WebP where the client takes it, else JPEG or PNG", content_type = "image/*", body = Vec<u8>),
    (status = 206, description = "The range asked for", content_type = "image/*", body = Vec<u8>),
    (status = 304, description = "Unchanged"),
    (status = 403, description = "The link needs its password (`password_required`)", body = crate::application::error::ErrorBody),
    (status = 404, description = "The link is not available, or the file is not in it", body = crate::application::error::ErrorBody),
    (status = 413, description = "The file is too large for a preview", body = crate::application::error::ErrorBody),
    (status = 415, description = "There are no previews of this type", body = crate::application::error::ErrorBody),
    (status = 422, description = "There is no preview of this file", body = crate::application::error::ErrorBody),
    (status = 429, description = "The owner's deliveries of the month are used up", body = crate::application::error::ErrorBody)))]
pub async fn preview(
    request: HttpRequest,
    context: web::Data<ShareContext>,
    access: ShareAccess,
) -> Result<HttpResponse, ApiError> {
    let file = find(&request, &context, &access).await?;
    let width = match query_value(&request, "w") {
        Some(text) => width(&text)?,
        None => DEFAULT_WIDTH,
    };
    if !has_preview(&file.mime_type) {
        return Err(ApiError::UnsupportedType(format!(
            "there are no previews of {}",
            file.mime_type
        )));
    }
    let query = delivery_query(width);
    let cache = HeaderValue::from_static(FILE_CACHE);
    let response = cdn::preview(&context.delivery, &request, &file, &query, cache).await?;
    Ok(access.bound(response))
}

/// Show a link's password
///
/// Answers with a cookie that replaces the password for some hours, on this link alone. After too many wrong ones: 429.
#[utoipa::path(post, path = "/api/share/folder/{token}/unlock", tag = "shares", security(()), request_body = SharePassword,
    params(("token" = String, Path, description = "The link's token")),
    responses(
        (status = 200, description = "The link is open", body = Success, headers(("Set-Cookie" = String, description = "For this link"))),
        (status = 403, description = "Not the password (`wrong_password`)", body = crate::application::error::ErrorBody),
        (status = 404, description = "The link is not available", body = crate::application::error::ErrorBody)))]
pub async fn unlock(
    request: HttpRequest,
    context: web::Data<ShareContext>,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let entered = enter(&request).await?;
    let body = Body::<SharePassword>::from_request(&request, &mut payload.into_inner()).await?;
    let shown = Secret::new(body.0.password);
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CACHE_CONTROL, "no-store"));
    if let Entered::Locked(locked) = entered {
        for cookie in password::unlock(&context, &locked, shown).await? {
            response.cookie(cookie);
        }
    }
    Ok(response.json(Success::default()))
}

/// Finds the file of the path, if it is in the shared folder or below.
async fn find(
    request: &HttpRequest,
    context: &ShareContext,
    access: &ShareAccess,
) -> Result<File, ApiError> {
    let missing = || ApiError::NotFound("file");
    let id = request.match_info().get("fileId").unwrap_or_default();
    let id = Uuid::try_parse(id).map_err(|_| missing())?;
    let file = shares::file(&mut context.store.read().await?, access.share(), id).await?;
    file.ok_or_else(missing)
}

/// Returns the offset at which a GET's bytes begin; `None`: none are sent.
fn starts_at(response: &HttpResponse) -> Option<u64> {
    match response.status() {
        StatusCode::OK => Some(0),
        StatusCode::PARTIAL_CONTENT => {
            let range = response.headers().get(header::CONTENT_RANGE)?.to_str();
            let (start, _) = range.ok()?.strip_prefix("bytes ")?.split_once('-')?;
            start.parse().ok()
        }
        _ => None,
    }
}

fn width(text: &str) -> Result<u32, ApiError> {
    let width = text.parse().ok();
    width
        .filter(|width| WIDTHS.contains(width))
        .ok_or_else(|| invalid!("w must be one of {WIDTHS:?}"))
}

fn flag(request: &HttpRequest, name: &str) -> Result<bool, ApiError> {
    match query_value(request, name).as_deref() {
        None | Some("" | "0" | "false") => Ok(false),
        Some("1" | "true") => Ok(true),
        Some(_) => Err(invalid!("{name} must be true or false")),
    }
}
