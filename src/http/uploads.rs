//! `/api/uploads`: list of unfinished uploads; direct uploads: make a signed address, `PUT …/content` without a credential,
//! `complete`, cancel; CORS preflight.
//!
//! Making one is a call of the API, the PUT needs only the address, and completing it makes the file. A PUT that died is
//! taken over by the next one.

use actix_web::{
    HttpRequest, HttpResponse, ResponseError as _,
    dev::Payload,
    http::header::{self, HeaderValue},
    web,
};
use futures_util::StreamExt as _;
use serde::Serialize;
use sluice_store::{
    Listed, accounts,
    blob::Spool,
    blobs, now_ms, storage,
    unfinished_uploads::{self, UnfinishedUpload, UploadKind},
    uploads, write_tx,
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    cors::allow_origin,
    extract::{Body, PageQuery},
    multipart::{next_piece, upload_permit},
};
use crate::application::{
    answer::Timestamp,
    caller::{Caller, Read, Write},
    context::FileContext,
    error::ApiError,
    files::kind::mime_type,
    page::next_cursor,
    reached::Reached,
    uploads::{
        CompleteUpload, NewUploadRequest, UploadCompleted, UploadMade, check_signature,
        complete::complete as complete_upload, make,
    },
};

/// Uploads in one answer when the client names no `limit`.
const DEFAULT_LIMIT: u32 = 50;

#[derive(Serialize, ToSchema)]
pub struct UploadReceived {
    upload: ReceivedUpload,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceivedUpload {
    id: Uuid,
    size_bytes: u64,
}

/// An upload that is no file yet.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadRecord {
    id: Uuid,
    /// `direct`, or `tus` for a resumable one.
    kind: &'static str,
    filename: String,
    /// Null: at the top.
    folder_id: Option<Uuid>,
    /// Null: not declared yet.
    size_bytes: Option<u64>,
    /// Bytes that are on the disk; those of a direct upload count once all are.
    offset_bytes: u64,
    /// `receiving`, or `received` for a direct upload with all its bytes that was not completed.
    status: &'static str,
    created_at: Timestamp,
    /// Time of expiry; of a resumable upload later with every byte that comes.
    expires_at: Timestamp,
}

impl From<UnfinishedUpload> for UploadRecord {
    fn from(upload: UnfinishedUpload) -> Self {
        Self {
            id: upload.id,
            kind: match upload.kind {
                UploadKind::Tus => "tus",
                UploadKind::Direct => "direct",
            },
            filename: upload.filename,
            folder_id: upload.folder_id,
            size_bytes: upload.size_bytes.map(i64::unsigned_abs),
            offset_bytes: upload.offset_bytes.unsigned_abs(),
            status: match upload.is_received {
                true => "received",
                false => "receiving",
            },
            created_at: Timestamp(upload.created_at),
            expires_at: Timestamp(upload.expires_at),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadList {
    uploads: Vec<UploadRecord>,
    next_cursor: Option<String>,
}

/// List unfinished uploads
///
/// Direct and resumable ones that are no files yet and have not expired.
#[utoipa::path(get, path = "/api/uploads", tag = "uploads", params(
    ("limit" = Option<u32>, Query, description = "1 to 100, 50 without one"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before"),
), responses((status = 200, description = "Newest first", body = UploadList)))]
pub async fn list(
    context: web::Data<FileContext>,
    caller: Caller<Read>,
    PageQuery(page): PageQuery<DEFAULT_LIMIT>,
) -> Result<HttpResponse, ApiError> {
    let mut db = context.store.read().await?;
    let rows = unfinished_uploads::list(&mut db, caller.account_id(), page, now_ms()).await?;
    let next_cursor = next_cursor(&rows, page, Listed::cursor);
    Ok(HttpResponse::Ok().json(UploadList {
        uploads: rows.into_iter().map(UploadRecord::from).collect(),
        next_cursor,
    }))
}

/// Cancel a direct upload
///
/// Its bytes are deleted, and its address is refused from now on.
#[utoipa::path(delete, path = "/api/uploads/{id}", tag = "uploads",
    params(("id" = Uuid, Path, description = "The upload's id")),
    responses(
        (status = 204, description = "Deleted"),
        (status = 404, description = "Unknown or expired", body = crate::application::error::ErrorBody),
        (status = 409, description = "Completed already", body = crate::application::error::ErrorBody)))]
pub async fn cancel(
    context: web::Data<FileContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let account_id = caller.account_id();
    write_tx!(context.store, account_id, |tx| {
        uploads::cancel(tx, account_id, *id).await
    })?;
    Ok(HttpResponse::NoContent().finish())
}

/// Make a direct upload
///
/// Put the bytes to `signedUrl` (no credential needed), then post `complete.body` to `complete.url`.
#[utoipa::path(post, path = "/api/uploads", tag = "uploads", request_body = NewUploadRequest, responses(
    (status = 200, description = "The address for the bytes", body = UploadMade),
    (status = 404, description = "There is no such folder", body = crate::application::error::ErrorBody),
    (status = 413, description = "Larger than uploads.max_file or the plan's storage", body = crate::application::error::ErrorBody),
))]
pub async fn create(
    context: web::Data<FileContext>,
    caller: Caller<Write>,
    reached: Reached,
    Body(request): Body<NewUploadRequest>,
) -> Result<HttpResponse, ApiError> {
    let made = make(&context, &caller, &reached, request).await?;
    Ok(HttpResponse::Ok().json(made))
}

/// Put the bytes of a direct upload
///
/// The address carries its own permission. Exactly `sizeBytes` bytes; a later request takes over an earlier one.
#[utoipa::path(put, path = "/api/uploads/{id}/content", tag = "uploads", security(()),
    params(("id" = Uuid, Path, description = "The value in the address"),
        ("expires" = i64, Query, description = "The value in the address"),
        ("signature" = String, Query, description = "The value in the address")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "The bytes are safe", body = UploadReceived),
        (status = 403, description = "The address is wrong or has expired", body = crate::application::error::ErrorBody),
        (status = 408, description = "The client fell silent", body = crate::application::error::ErrorBody),
        (status = 409, description = "Taken over by a later request, or completed", body = crate::application::error::ErrorBody),
        (status = 413, description = "More bytes than sizeBytes, or the plan's storage is used up", body = crate::application::error::ErrorBody),
        (status = 507, description = "The disk is full", body = crate::application::error::ErrorBody)))]
pub async fn put(
    request: HttpRequest,
    context: web::Data<FileContext>,
    id: web::Path<Uuid>,
    payload: web::Payload,
) -> HttpResponse {
    let received = receive(&request, &context, *id, payload.into_inner()).await;
    let mut response = match received {
        Ok(upload) => HttpResponse::Ok().json(UploadReceived { upload }),
        Err(error) => error.error_response(),
    };
    // A rejection must be readable for the page, too.
    allow_origin(&request, &context, &mut response);
    response
}

/// Answer a preflight of an upload
///
/// The browser's request before a PUT from a page of `http.cors_origins`.
#[utoipa::path(options, path = "/api/uploads/{id}/content", tag = "uploads", security(()),
    params(("id" = Uuid, Path, description = "The value in the address")),
    responses((status = 204, description = "The allowed pages: `Access-Control-Allow-*`")))]
pub async fn preflight(request: HttpRequest, context: web::Data<FileContext>) -> HttpResponse {
    let mut response = HttpResponse::NoContent().finish();
    if allow_origin(&request, &context, &mut response) {
        let headers = response.headers_mut();
        for (name, value) in [
            (header::ACCESS_CONTROL_ALLOW_METHODS, "PUT"),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, "content-type"),
            (header::ACCESS_CONTROL_MAX_AGE, "600"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    response
}

async fn receive(
    request: &HttpRequest,
    context: &FileContext,
    id: Uuid,
    payload: Payload,
) -> Result<ReceivedUpload, ApiError> {
    let _permit = upload_permit(context)?;
    check_signature(request.query_string(), context, id).await?;
    let mut db = context.store.read().await?;
    let upload = uploads::by_id(&mut db, id).await?;
    let account = accounts::get(&mut db, upload.account_id).await?;
    drop(db);
    if account.is_suspended() {
        return Err(ApiError::AccountSuspended);
    }
    let (account_id, limit) = (
        account.id,
        context.config.plan(&account.plan).storage.as_u64(),
    );
    let size_bytes = upload.size_bytes.unsigned_abs();
    check_declared_length(request, size_bytes)?;
    let claimed = write_tx!(context.store, account_id, |tx| {
        let claimed = uploads::claim(tx, id).await?;
        let now = now_ms();
        storage::check_beside_uploads(tx, account_id, Some(id), size_bytes, limit, now).await?;
        Ok(claimed)
    })?;
    let spool = fill(context, payload, size_bytes).await?;
    let mime_type = mime_type(spool.head(), &upload.filename);
    let sealed = spool.seal().await?;
    write_tx!(context.store, account_id, |tx| {
        let now = now_ms();
        blobs::record(tx, &sealed, now).await?;
        let hash = sealed.blob().hash;
        uploads::receive(tx, id, claimed.attempt, hash, mime_type).await?;
        storage::check_beside_uploads(tx, account_id, None, 0, limit, now)
            .await
            .map(drop)
    })?;
    Ok(ReceivedUpload { id, size_bytes })
}

/// Reads the body into a temporary file; exactly `size_bytes`.
async fn fill(
    context: &FileContext,
    mut payload: Payload,
    size_bytes: u64,
) -> Result<Spool, ApiError> {
    let mut spool = context.store.blobs().spool().await?;
    let timeout = context.config.uploads.idle_timeout;
    let mut body = payload.by_ref();
    while let Some(piece) = next_piece(&mut body, timeout).await? {
        let piece = piece.map_err(|error| invalid!("the body could not be read: {error}"))?;
        if spool.len() + piece.len() as u64 > size_bytes {
            return Err(too_long(size_bytes));
        }
        spool.write(piece).await?;
    }
    match spool.len() == size_bytes {
        true => Ok(spool),
        false => Err(wrong_length(size_bytes, spool.len())),
    }
}

fn check_declared_length(request: &HttpRequest, size_bytes: u64) -> Result<(), ApiError> {
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    match declared {
        Some(length) if length > size_bytes => Err(too_long(size_bytes)),
        Some(length) if length < size_bytes => Err(wrong_length(size_bytes, length)),
        _ => Ok(()),
    }
}

fn too_long(size_bytes: u64) -> ApiError {
    ApiError::TooLarge(format!(
        "the body has more than the {size_bytes} bytes of this upload (sizeBytes)"
    ))
}

fn wrong_length(size_bytes: u64, length: u64) -> ApiError {
    invalid!("the body has {length} bytes, expected {size_bytes} (sizeBytes)")
}

/// Complete a direct upload
///
/// Makes the file, once; a repeat answers the same file with `idempotent` true. Workflows that are bound to the folder run on
/// it.
#[utoipa::path(post, path = "/api/uploads/complete", tag = "uploads", request_body = CompleteUpload, responses(
    (status = 200, description = "The file", body = UploadCompleted),
    (status = 404, description = "Unknown or expired", body = crate::application::error::ErrorBody),
    (status = 409, description = "The bytes have not arrived", body = crate::application::error::ErrorBody),
    (status = 413, description = "The plan's storage is used up", body = crate::application::error::ErrorBody),
))]
pub async fn complete(
    context: web::Data<FileContext>,
    caller: Caller<Write>,
    reached: Reached,
    Body(request): Body<CompleteUpload>,
) -> Result<HttpResponse, ApiError> {
    let completed = complete_upload(&context, &caller, &reached, request.upload_id).await?;
    Ok(HttpResponse::Ok().json(completed))
}
