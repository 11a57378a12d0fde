//! `GET /api/folders/{id}/zip` and archives of selections: entity tag, ranges, `Cache-Control` of a ZIP that is computed and never
//! stored.
//!
//! Every request lists them again, and sends that list. The same files under the same names give the same bytes
//! and the same entity tag, so that a download continues where it stopped, at any offset and after a restart. A file
//! that is deleted meanwhile ends the answer short of its length, and the next request gets another archive. So does a
//! reader that takes nothing for long, to free what its archive holds.

mod body;
mod stall;

use actix_web::{HttpRequest, HttpResponse, body::SizedStream, http::header, web};
use sluice_store::{folders, selections::Selection};
use uuid::Uuid;

use super::{
    bytes::{if_range_holds, is_known, sandbox, unchanged},
    range::RangeRequest,
};
use crate::application::{
    archive::{limiter::ArchivePermit, listing::Listing},
    caller::{Caller, Read},
    context::FileContext,
    error::ApiError,
};

/// `Cache-Control` of archives, which are made again for each request: caches revalidate them before use.
const CACHE: &str = "private, no-cache";

/// Download a folder
///
/// A ZIP archive of the folder and everything below it, not compressed, with a length, an entity tag and ranges: a
/// download that broke off continues where it stopped (`curl -C -`). Every system can extract its names.
#[utoipa::path(get, path = "/api/folders/{id}/zip", tag = "folders",
    params(("id" = Uuid, Path, description = "The folder's id")),
    responses(
        (status = 200, description = "The archive", content_type = "application/zip", body = Vec<u8>),
        (status = 206, description = "The range asked for", content_type = "application/zip", body = Vec<u8>),
        (status = 304, description = "Unchanged"),
        (status = 413, description = "Too many files and folders for one archive", body = crate::application::error::ErrorBody),
        (status = 416, description = "No such range", body = crate::application::error::ErrorBody),
        (status = 503, description = "Too many archives at a time", body = crate::application::error::ErrorBody)))]
pub async fn download(
    request: HttpRequest,
    context: web::Data<FileContext>,
    caller: Caller<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let account_id = caller.account_id();
    let folder = folders::get(&mut context.store.read().await?, account_id, *id).await?;
    respond(&request, &context, account_id, folder.id, &folder.name).await
}

/// Answers 200, 206, 304 or 416 with the folder's archive. The caller may have all that is in the folder.
pub(super) async fn respond(
    request: &HttpRequest,
    context: &FileContext,
    account_id: Uuid,
    folder_id: Uuid,
    name: &str,
) -> Result<HttpResponse, ApiError> {
    let permit = context.archives.place(account_id)?;
    let listing = Listing::of(context, account_id, folder_id).await?;
    send(request, context, listing, permit, name)
}

/// Answers 200, 206, 304 or 416 with the archive of a selection, for the holder of its address.
pub(super) async fn respond_selected(
    request: &HttpRequest,
    context: &FileContext,
    selection: &Selection,
) -> Result<HttpResponse, ApiError> {
    let Selection {
        account_id,
        name,
        files,
        folders,
        ..
    } = selection;
    let permit = context.archives.place(*account_id)?;
    let listing = Listing::of_chosen(context, *account_id, files, folders).await?;
    send(request, context, listing, permit, name)
}

fn send(
    request: &HttpRequest,
    context: &FileContext,
    listing: Listing,
    permit: ArchivePermit,
    name: &str,
) -> Result<HttpResponse, ApiError> {
    let (tag, total) = (listing.tag.clone(), listing.layout.len());
    if is_known(request, &tag) == Some(true) {
        return Ok(unchanged(&tag, CACHE));
    }
    let asked = match if_range_holds(request, &tag, &tag) {
        true => RangeRequest::of(request, total),
        false => RangeRequest::Whole,
    };
    let mut response = HttpResponse::Ok();
    let (start, len) = asked.begin(&mut response, total)?;
    response
        .insert_header((header::CONTENT_TYPE, "application/zip"))
        .insert_header((header::ETAG, tag))
        .insert_header((header::CACHE_CONTROL, CACHE));
    sandbox(&mut response, "attachment", &format!("{name}.zip"));
    let pieces = body::pieces(context.store.clone(), listing, start, len, permit);
    let pieces = stall::Watched::new(pieces, context.config.archive.stall_timeout);
    Ok(response.body(SizedStream::new(len, pieces)))
}
