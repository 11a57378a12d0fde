//! `/api/uploads`: direct uploads, in which a page sends bytes to a signed address without a credential of its own
//! (decisions.md §4).
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
use serde::{Deserialize, Serialize};
use sluice_store::{
    accounts,
    blob::Spool,
    blobs,
    files::Facts,
    now_ms, storage,
    uploads::{self, NewUpload, State, Upload},
};
use url::{Url, form_urlencoded};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    context::AppState,
    cors::allow_origin,
    error::ApiError,
    extract::{Body, Caller, Reached, Write},
    filename,
    files::{FileRecord, Record, find_facts, mime_type},
    multipart::{next_piece, upload_permit},
    signing::{self, Purpose, Signer},
    workflows,
};

const MAX_CONTENT_TYPE: usize = 255;

/// A file to be sent.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewUploadRequest {
    filename: String,
    /// Exactly so many bytes must be put.
    size_bytes: u64,
    /// As the client thinks; the file's type is decided by its bytes.
    content_type: Option<String>,
    /// Null: at the top.
    folder_id: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
pub struct UploadMade {
    pub(crate) upload: UploadAddress,
    complete: Completion,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadAddress {
    id: Uuid,
    /// Where the bytes go, without a credential.
    pub(crate) signed_url: String,
    /// `PUT`
    method: &'static str,
    pub(crate) expires_in_seconds: u64,
}

/// What to post, and where, once the bytes are there.
#[derive(Serialize, ToSchema)]
pub struct Completion {
    url: String,
    body: CompleteUpload,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompleteUpload {
    upload_id: Uuid,
}

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

#[derive(Serialize, ToSchema)]
pub struct UploadCompleted {
    file: FileRecord,
    /// An earlier call has made the file.
    idempotent: bool,
}

/// Make a direct upload
///
/// Put the bytes to `signedUrl` (no credential needed), then post `complete.body` to `complete.url`.
#[utoipa::path(post, path = "/api/uploads", tag = "uploads", request_body = NewUploadRequest, responses(
    (status = 200, description = "Where to put the bytes", body = UploadMade),
    (status = 404, description = "There is no such folder", body = super::error::ErrorBody),
    (status = 413, description = "Larger than uploads.max_file or the plan's storage", body = super::error::ErrorBody),
))]
pub async fn create(
    state: web::Data<AppState>,
    caller: Caller<Write>,
    reached: Reached,
    Body(request): Body<NewUploadRequest>,
) -> Result<HttpResponse, ApiError> {
    let made = make(&state, &caller, &reached, request).await?;
    Ok(HttpResponse::Ok().json(made))
}

/// Makes a direct upload for the caller.
pub(crate) async fn make(
    state: &AppState,
    caller: &Caller<Write>,
    reached: &Reached,
    request: NewUploadRequest,
) -> Result<UploadMade, ApiError> {
    let (account_id, settings) = (caller.account_id(), &state.config.uploads);
    if request.size_bytes > settings.max_file.as_u64() {
        return Err(ApiError::TooLarge(format!(
            "sizeBytes must be at most {} (uploads.max_file), got {}",
            settings.max_file.as_u64(),
            request.size_bytes
        )));
    }
    let storage_limit = caller.plan(state).storage.as_u64();
    let lifetime_s = settings.keep_unfinished.as_secs();
    let new = NewUpload {
        folder_id: request.folder_id,
        filename: filename::clean(&request.filename),
        content_type: checked_content_type(request.content_type)?,
        size_bytes: request.size_bytes,
        expires_at: now_ms() + lifetime_s as i64 * 1000,
    };
    let made = state.store.write(move |tx| {
        Box::pin(async move {
            let (now, size) = (now_ms(), new.size_bytes);
            storage::check_beside_uploads(tx, account_id, None, size, storage_limit, now).await?;
            uploads::create(tx, account_id, new, now).await
        })
    });
    let upload = made
        .await
        .map_err(|error| ApiError::from(error).offering(|| reached.upgrade_url(state)))?;
    let signer = Signer::of(&mut state.store.read().await?).await?;
    let base = &reached.address.base;
    Ok(UploadMade {
        upload: UploadAddress {
            id: upload.id,
            signed_url: signed_url(&signer, base, upload.id, upload.expires_at),
            method: "PUT",
            expires_in_seconds: lifetime_s,
        },
        complete: Completion {
            url: format!("{base}/api/uploads/complete"),
            body: CompleteUpload {
                upload_id: upload.id,
            },
        },
    })
}

fn checked_content_type(given: Option<String>) -> Result<String, ApiError> {
    let content_type = given.unwrap_or_else(|| "application/octet-stream".to_owned());
    match content_type.len() <= MAX_CONTENT_TYPE && content_type.is_ascii() {
        true => Ok(content_type),
        false => Err(ApiError::Invalid(format!(
            "contentType must be at most {MAX_CONTENT_TYPE} ASCII characters"
        ))),
    }
}

/// Put the bytes of a direct upload
///
/// The address carries its own permission. Exactly `sizeBytes` bytes; a later request takes over an earlier one.
#[utoipa::path(put, path = "/api/uploads/{id}/content", tag = "uploads", security(()),
    params(("id" = Uuid, Path, description = "As the address has it"),
        ("expires" = i64, Query, description = "As the address has it"),
        ("signature" = String, Query, description = "As the address has it")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "The bytes are safe", body = UploadReceived),
        (status = 403, description = "The address is wrong or has expired", body = super::error::ErrorBody),
        (status = 408, description = "The client fell silent", body = super::error::ErrorBody),
        (status = 409, description = "Taken over by a later request, or completed", body = super::error::ErrorBody),
        (status = 413, description = "More bytes than sizeBytes, or the plan's storage is used up", body = super::error::ErrorBody),
        (status = 507, description = "The disk is full", body = super::error::ErrorBody)))]
pub async fn put(
    request: HttpRequest,
    state: web::Data<AppState>,
    id: web::Path<Uuid>,
    payload: web::Payload,
) -> HttpResponse {
    let received = receive(&request, &state, *id, payload.into_inner()).await;
    let mut response = match received {
        Ok(upload) => HttpResponse::Ok().json(UploadReceived { upload }),
        Err(error) => error.error_response(),
    };
    // A rejection must be readable for the page, too.
    allow_origin(&request, &state, &mut response);
    response
}

/// May a page put bytes here?
///
/// The browser's question before a PUT from a page of `http.cors_origins`.
#[utoipa::path(options, path = "/api/uploads/{id}/content", tag = "uploads", security(()),
    params(("id" = Uuid, Path, description = "As the address has it")),
    responses((status = 204, description = "For whom it may: `Access-Control-Allow-*`")))]
pub async fn preflight(request: HttpRequest, state: web::Data<AppState>) -> HttpResponse {
    let mut response = HttpResponse::NoContent().finish();
    if allow_origin(&request, &state, &mut response) {
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
    state: &AppState,
    id: Uuid,
    payload: Payload,
) -> Result<ReceivedUpload, ApiError> {
    let _permit = upload_permit(state)?;
    check_signature(request.query_string(), state, id).await?;
    let mut db = state.store.read().await?;
    let upload = uploads::by_id(&mut db, id).await?;
    let account = accounts::get(&mut db, upload.account_id).await?;
    drop(db);
    if account.is_suspended() {
        return Err(ApiError::AccountSuspended);
    }
    let (account_id, limit) = (
        account.id,
        state.config.plan(&account.plan).storage.as_u64(),
    );
    let size_bytes = upload.size_bytes.unsigned_abs();
    check_declared_length(request, size_bytes)?;
    let claimed = state.store.write(move |tx| {
        Box::pin(async move {
            let claimed = uploads::claim(tx, id).await?;
            let now = now_ms();
            storage::check_beside_uploads(tx, account_id, Some(id), size_bytes, limit, now).await?;
            Ok(claimed)
        })
    });
    let claimed = claimed.await?;
    let spool = fill(state, payload, size_bytes).await?;
    let mime_type = mime_type(spool.head(), &upload.filename);
    let sealed = spool.seal().await?;
    state
        .store
        .write(move |tx| {
            Box::pin(async move {
                let now = now_ms();
                blobs::record(tx, &sealed, now).await?;
                let hash = sealed.blob().hash;
                uploads::receive(tx, id, claimed.attempt, hash, mime_type).await?;
                storage::check_beside_uploads(tx, account_id, None, 0, limit, now).await
            })
        })
        .await?;
    Ok(ReceivedUpload { id, size_bytes })
}

/// Reads the body into a temporary file; exactly `size_bytes`.
async fn fill(state: &AppState, mut payload: Payload, size_bytes: u64) -> Result<Spool, ApiError> {
    let mut spool = state.store.blobs().spool().await?;
    let patience = state.config.uploads.idle_timeout;
    let mut body = payload.by_ref();
    while let Some(piece) = next_piece(&mut body, patience).await? {
        let piece = piece
            .map_err(|error| ApiError::Invalid(format!("the body could not be read: {error}")))?;
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
    ApiError::Invalid(format!(
        "the body has {length} bytes, expected {size_bytes} (sizeBytes)"
    ))
}

/// Complete a direct upload
///
/// Makes the file, once; a repeat answers the same file with `idempotent` true. Workflows that are bound to the folder run on
/// it.
#[utoipa::path(post, path = "/api/uploads/complete", tag = "uploads", request_body = CompleteUpload, responses(
    (status = 200, description = "The file", body = UploadCompleted),
    (status = 404, description = "Unknown or expired", body = super::error::ErrorBody),
    (status = 409, description = "The bytes have not arrived", body = super::error::ErrorBody),
    (status = 413, description = "The plan's storage is used up", body = super::error::ErrorBody),
))]
pub async fn complete(
    state: web::Data<AppState>,
    caller: Caller<Write>,
    reached: Reached,
    Body(request): Body<CompleteUpload>,
) -> Result<HttpResponse, ApiError> {
    let (account_id, id) = (caller.account_id(), request.upload_id);
    let (plan, engine) = (caller.plan(&state), state.workflows.clone());
    let upload = uploads::by_id(&mut state.store.read().await?, id).await?;
    let facts = facts_of(&state, &upload).await?;
    let completed = state.store.write(move |tx| {
        Box::pin(async move {
            let (now, limit) = (now_ms(), plan.storage.as_u64());
            let (file, is_known) = uploads::complete(tx, account_id, id, facts, limit, now).await?;
            let begins_runs = match is_known {
                true => false,
                false => workflows::file_stored(tx, &engine, &plan, &file, now).await?,
            };
            Ok((file, is_known, begins_runs))
        })
    });
    let (file, idempotent, begins_runs) = completed
        .await
        .map_err(|error| ApiError::from(error).offering(|| reached.upgrade_url(&state)))?;
    if begins_runs {
        state.workflows.announce();
    }
    let signer = Signer::of(&mut state.store.read().await?).await?;
    let record = Record {
        state: &state,
        reached: &reached,
        signer,
    };
    let file = record.of(file);
    Ok(HttpResponse::Ok().json(UploadCompleted { file, idempotent }))
}

/// Looked up before the transaction that makes the file; nothing for an upload that has no bytes yet.
async fn facts_of(state: &AppState, upload: &Upload) -> Result<Facts, ApiError> {
    let (State::Received, Some(blob), Some(mime_type)) =
        (upload.state, upload.blob_hash, &upload.mime_type)
    else {
        return Ok(Facts::default());
    };
    let file = state.store.blobs().open(&blob).await?;
    Ok(find_facts(state, upload.account_id, mime_type, file).await)
}

/// What the signature covers.
fn message(id: Uuid, expires_at: i64) -> [u8; 24] {
    let mut message = [0; 24];
    message[..16].copy_from_slice(id.as_bytes());
    message[16..].copy_from_slice(&expires_at.to_be_bytes());
    message
}

fn signed_url(signer: &Signer, base: &str, id: Uuid, expires_at: i64) -> String {
    let signature = signing::encode(&signer.sign(Purpose::Upload, &message(id, expires_at)));
    format!("{base}/api/uploads/{id}/content?expires={expires_at}&signature={signature}")
}

/// The upload behind a `signedUrl`, for anyone who works with its bytes and makes no file of them. 400 for an address of another
/// kind, 403 for one that was not made here or is too old, 404 for another account's.
pub(super) async fn by_signed_url(
    state: &AppState,
    account_id: Uuid,
    address: &str,
) -> Result<Upload, ApiError> {
    let (id, query) = upload_of(address).ok_or_else(|| {
        ApiError::Invalid("uploadUrl must be the signedUrl of an upload as it was given".to_owned())
    })?;
    check_signature(&query, state, id).await?;
    let upload = uploads::by_id(&mut state.store.read().await?, id).await?;
    match upload.account_id == account_id {
        true => Ok(upload),
        false => Err(ApiError::NotFound("upload")),
    }
}

/// The id and the query of a [`signed_url`], under whatever name the service was reached.
fn upload_of(address: &str) -> Option<(Uuid, String)> {
    let address = Url::parse(address.trim()).ok()?;
    let (before, id) = address.path().strip_suffix("/content")?.rsplit_once('/')?;
    before.ends_with("/api/uploads").then_some(())?;
    let id = Uuid::try_parse(id).ok()?;
    Some((id, address.query()?.to_owned()))
}

/// 403 for an address that was not made here, or is too old.
async fn check_signature(query: &str, state: &AppState, id: Uuid) -> Result<(), ApiError> {
    let (mut expires_at, mut signature) = (None, None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "expires" => expires_at = value.parse::<i64>().ok(),
            "signature" => signature = signing::decode(&value),
            _ => {}
        }
    }
    let (Some(expires_at), Some(signature)) = (expires_at, signature) else {
        return Err(ApiError::Forbidden(
            "this address is not complete: use the signedUrl of the upload as it was given",
        ));
    };
    let signer = Signer::of(&mut state.store.read().await?).await?;
    if !signer.accepts(Purpose::Upload, &message(id, expires_at), &signature) {
        return Err(ApiError::Forbidden(
            "the signature of this address is wrong",
        ));
    }
    match now_ms() < expires_at {
        true => Ok(()),
        false => Err(ApiError::Forbidden(
            "this address has expired: make a new upload",
        )),
    }
}
