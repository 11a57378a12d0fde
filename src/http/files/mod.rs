//! `/api/files`: list, search, store (form or `sourceUrl`), show or download, change, delete.
//!
//! Any bytes are taken; an upload streams to the disk and is answered once bytes and rows are safe there.

mod bulk;
mod lineage;
mod preview;
mod zip;

use actix_web::{
    FromRequest as _, HttpRequest, HttpResponse,
    http::header::{self, HeaderValue},
    web,
};
use sluice_store::{files, storage};
use utoipa::ToSchema;
use uuid::Uuid;

pub use bulk::{__path_bulk, bulk};
pub use lineage::{__path_lineage, lineage};
pub use preview::{__path_preview, preview};
pub use zip::{__path_zip, zip};

use super::{
    bytes::{self, StoredBytes},
    downloads::CACHE,
    extract::{Body, is_json},
    multipart::{Form, FormLimits},
};
use crate::application::{
    answer::Success,
    caller::{Caller, Read, Write},
    context::FileContext,
    error::ApiError,
    files::{
        answer, changes,
        detail::{FileDetailAnswer, detailed},
        fetch,
        list::{FileList, listed, page_of},
        list_query::ListQuery,
        record::FileAnswer,
        request::{ChangeFile, FileToFetch, id_or_top},
        size_limit, store,
    },
    part::Part,
    reached::Reached,
};

/// Allowance for the form around a file when its declared length is checked beforehand.
const FORM_OVERHEAD_BYTES: u64 = 1 << 20;

/// The bytes of a file.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[allow(dead_code, reason = "describes the answer for the OpenAPI document")]
pub struct FileBytes(Vec<u8>);

/// A form with one file, or with its address.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes the form for the OpenAPI document")]
pub struct FileForm {
    #[schema(value_type = Option<String>, format = Binary)]
    file: Option<Vec<u8>>,
    /// In place of `file`: the address (http or https) that the service fetches it from.
    #[schema(rename = "sourceUrl")]
    source_url: Option<String>,
    /// Folder of the file; the top level without one.
    #[schema(rename = "folderId")]
    folder_id: Option<Uuid>,
}

/// List files
#[utoipa::path(get, path = "/api/files", tag = "files", params(
    ("q" = Option<String>, Query, description = "The name contains this, in any case"),
    ("folderId" = Option<String>, Query, description = "Only those of this folder; `null`: only those at the top"),
    ("recursive" = Option<bool>, Query, description = "With `folderId`: also everything below it (false)"),
    ("type" = Option<String>, Query, description = "`image`, `video`, `audio`, `document`, `archive`, `other`; several separated by commas"),
    ("mimePrefix" = Option<String>, Query, description = "The media type begins so, as `image/`"),
    ("tag" = Option<String>, Query, description = "The file has this tag; given several times: all of them"),
    ("createdAfter" = Option<String>, Query, description = "Stored at this time or later: `2026-12-24T18:00:00Z` or `2026-12-24`"),
    ("createdBefore" = Option<String>, Query, description = "Stored before this time"),
    ("sort" = Option<String>, Query, description = "`created` (default), `name` (without regard to case, numbers by their value) or `size`"),
    ("order" = Option<String>, Query, description = "`asc` or `desc`; by default newest first, names from a to z, largest first"),
    ("limit" = Option<u32>, Query, description = "1 to 100, 50 without one"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before, with the same `sort`"),
    ("offset" = Option<u32>, Query, description = "Files to skip, instead of a cursor"),
    ("total" = Option<bool>, Query, description = "False: the files that match are not counted, and `total` is null (true)"),
), responses((status = 200, description = "Files, newest first by default", body = FileList)))]
pub async fn list(
    request: HttpRequest,
    context: web::Data<FileContext>,
    caller: Caller<Read>,
    reached: Reached,
) -> Result<HttpResponse, ApiError> {
    let query = request.query_string();
    let listed = listed(&context, caller.account_id(), &reached, query).await?;
    Ok(HttpResponse::Ok().json(listed))
}

/// Search files
///
/// Those whose name contains `q`, without regard to case, in every script; no character of it is a wildcard.
#[utoipa::path(get, path = "/api/files/search", tag = "files", params(
    ("q" = String, Query, description = "1 to 255 bytes that the name contains"),
    ("folderId" = Option<String>, Query, description = "Only those of this folder; `null`: only those at the top"),
    ("recursive" = Option<bool>, Query, description = "With `folderId`: also everything below it (false)"),
    ("type" = Option<String>, Query, description = "`image`, `video`, `audio`, `document`, `archive`, `other`; several separated by commas"),
    ("mimePrefix" = Option<String>, Query, description = "The media type begins so, as `image/`"),
    ("tag" = Option<String>, Query, description = "The file has this tag; given several times: all of them"),
    ("createdAfter" = Option<String>, Query, description = "Stored at this time or later: `2026-12-24T18:00:00Z` or `2026-12-24`"),
    ("createdBefore" = Option<String>, Query, description = "Stored before this time"),
    ("sort" = Option<String>, Query, description = "`created` (default), `name` (without regard to case, numbers by their value) or `size`"),
    ("order" = Option<String>, Query, description = "`asc` or `desc`; by default newest first, names from a to z, largest first"),
    ("limit" = Option<u32>, Query, description = "1 to 100, 50 without one"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before, with the same `sort`"),
    ("offset" = Option<u32>, Query, description = "Files to skip, instead of a cursor"),
    ("total" = Option<bool>, Query, description = "False: the files that match are not counted, and `total` is null (true)"),
), responses((status = 200, description = "Files, in pages as `/api/files`", body = FileList)))]
pub async fn search(
    request: HttpRequest,
    context: web::Data<FileContext>,
    caller: Caller<Read>,
    reached: Reached,
) -> Result<HttpResponse, ApiError> {
    let query = ListQuery::parse(request.query_string())?;
    if query.filter.text.is_none() {
        return Err(ApiError::Invalid(
            "q is missing: give a part of the name to search for, as in ?q=holiday".to_owned(),
        ));
    }
    let found = page_of(&context, caller.account_id(), &reached, query).await?;
    Ok(HttpResponse::Ok().json(found))
}

/// Store a file
///
/// Any bytes, in a form with the field `file`, or fetched from a `sourceUrl`, which JSON may name too. The answer comes when
/// they are safe on the disk. Workflows that are bound to the folder run on the file.
#[utoipa::path(post, path = "/api/files", tag = "files",
    request_body(content((FileForm = "multipart/form-data"), (FileToFetch = "application/json"))),
    responses(
        (status = 201, description = "The file", body = FileAnswer),
        (status = 404, description = "There is no such folder", body = crate::application::error::ErrorBody),
        (status = 408, description = "The client fell silent", body = crate::application::error::ErrorBody),
        (status = 422, description = "The file cannot be fetched (`source_failed`)", body = crate::application::error::ErrorBody),
        (status = 507, description = "The disk is full", body = crate::application::error::ErrorBody)))]
pub async fn create(
    request: HttpRequest,
    context: web::Data<FileContext>,
    caller: Caller<Write>,
    reached: Reached,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let plan = caller.plan(&context);
    let storage_limit = plan.storage.as_u64();
    let account_id = caller.account_id();
    let stored = async {
        reject_in_advance(&request, &context, account_id, storage_limit).await?;
        let (origin, folder_id) = match is_json(&request) {
            true => named_file(&request, payload).await?,
            false => sent_file(&request, &context, payload).await?,
        };
        let part = match origin {
            Origin::Sent(part) => *part,
            Origin::Named(address) => {
                fetch(&context, account_id, folder_id, address, storage_limit).await?
            }
        };
        store(&context, account_id, folder_id, part, plan).await
    };
    let file = stored
        .await
        .map_err(|error| error.offering(|| reached.upgrade_url(&context)))?;
    let answer = answer(&context, &reached, file).await?;
    Ok(HttpResponse::Created().json(answer))
}

/// Rejects by the declared length, so that a client does not send what cannot be kept.
async fn reject_in_advance(
    request: &HttpRequest,
    context: &FileContext,
    account_id: Uuid,
    storage_limit: u64,
) -> Result<(), ApiError> {
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let at_least = declared
        .unwrap_or_default()
        .saturating_sub(FORM_OVERHEAD_BYTES);
    size_limit(context).check("the file", at_least)?;
    let mut db = context.store.read().await?;
    Ok(storage::check(&mut db, account_id, at_least, storage_limit).await?)
}

/// Reads a form; the file or its address, and the folder.
async fn sent_file(
    request: &HttpRequest,
    context: &FileContext,
    payload: web::Payload,
) -> Result<(Origin, Option<Uuid>), ApiError> {
    let limits = FormLimits {
        files: 1,
        size: size_limit(context).into(),
    };
    let mut form = Form::read(request, payload.into_inner(), context, limits).await?;
    let folder_id = id_or_top("folderId", form.text("folderId").unwrap_or_default())?;
    let origin = Origin::only(form.take_files(), form.sources()?)?;
    Ok((origin, folder_id))
}

/// Reads JSON; the file's address, and the folder.
async fn named_file(
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<(Origin, Option<Uuid>), ApiError> {
    let Body(asked) = Body::<FileToFetch>::from_request(request, &mut payload.into_inner()).await?;
    Ok((Origin::Named(asked.source_url), asked.folder_id))
}

/// Source of the bytes of a new file.
enum Origin {
    Sent(Box<Part>),
    /// Its address.
    Named(String),
}

impl Origin {
    fn only(mut files: Vec<Part>, mut sources: Vec<String>) -> Result<Self, ApiError> {
        match (files.pop(), sources.pop()) {
            (Some(part), None) => Ok(Self::Sent(Box::new(part))),
            (None, Some(address)) if sources.is_empty() => Ok(Self::Named(address)),
            (None, None) => Err(ApiError::Invalid(
                "file is missing: send it as the form's field `file`, or name its address in `sourceUrl`"
                    .to_owned(),
            )),
            _ => Err(ApiError::Invalid(
                "one file is stored at a time: send `file` or one `sourceUrl`".to_owned(),
            )),
        }
    }
}

/// Show or download a file
///
/// JSON when `Accept` names `application/json`: the record with its folders, its hash and what its bytes hold. Otherwise the bytes,
/// with ranges.
#[utoipa::path(get, path = "/api/files/{id}", tag = "files", params(("id" = Uuid, Path, description = "The file's id")),
    responses(
        (status = 200, description = "The record as JSON, or the bytes with the file's own media type and name", content(
            (FileDetailAnswer = "application/json"), (FileBytes = "application/octet-stream"))),
        (status = 206, description = "The range asked for", content_type = "application/octet-stream", body = FileBytes),
        (status = 304, description = "Unchanged"),
        (status = 416, description = "No such range", body = crate::application::error::ErrorBody)))]
pub async fn show(
    request: HttpRequest,
    context: web::Data<FileContext>,
    caller: Caller<Read>,
    reached: Reached,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let file = files::get(&mut context.store.read().await?, caller.account_id(), *id).await?;
    let mut response = if wants_json(&request) {
        HttpResponse::Ok().json(detailed(&context, &reached, file).await?)
    } else {
        bytes::respond(&request, &context, &StoredBytes::from(file), CACHE).await?
    };
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

fn wants_json(request: &HttpRequest) -> bool {
    let accepted = request.headers().get_all(header::ACCEPT);
    accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|range| range.split(';').next())
        .any(|range| range.trim().eq_ignore_ascii_case("application/json"))
}

/// Change a file
///
/// Only the fields given change; the bytes never do.
#[utoipa::path(patch, path = "/api/files/{id}", tag = "files", request_body = ChangeFile,
    params(("id" = Uuid, Path, description = "The file's id")),
    responses((status = 200, description = "The file as it is now", body = FileAnswer)))]
pub async fn change(
    context: web::Data<FileContext>,
    caller: Caller<Write>,
    reached: Reached,
    id: web::Path<Uuid>,
    Body(request): Body<ChangeFile>,
) -> Result<HttpResponse, ApiError> {
    let file = changes::change(&context, caller.account_id(), *id, request).await?;
    let answer = answer(&context, &reached, file).await?;
    Ok(HttpResponse::Ok().json(answer))
}

/// Delete a file
///
/// Its delivered variants go everywhere; what was stored of conversions of it stays.
#[utoipa::path(delete, path = "/api/files/{id}", tag = "files", params(("id" = Uuid, Path, description = "The file's id")),
    responses((status = 200, description = "Deleted", body = Success)))]
pub async fn delete(
    context: web::Data<FileContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    changes::delete(context.into_inner(), caller.account_id(), *id).await?;
    Ok(HttpResponse::Ok().json(Success::default()))
}
