//! `/api/uploads/tus`: resumable uploads (tus 1.0), extensions, CORS headers, `X-HTTP-Method-Override`.
//! (<https://tus.io/protocols/resumable-upload>) with creation, creation-with-upload, creation-defer-length, expiration, checksum
//! and termination.
//!
//! An offset is answered once the bytes before it are on the disk, or in the object store; the last one once the file is stored.

mod headers;
mod reception;

use actix_web::{
    FromRequest as _, HttpRequest, HttpResponse, HttpResponseBuilder, ResponseError as _,
    dev::Payload,
    http::header::{self, HeaderName, HeaderValue},
    web,
};
use serde::Serialize;
use sluice_store::{
    now_ms,
    tus::{self, Bounds, NewTusUpload, TusUpload},
    write_tx,
};
use utoipa::ToSchema;
use uuid::Uuid;

pub(super) use headers::{Chunk as ChunkHeaders, Creation as CreationHeaders};

use self::{
    headers::{Chunk, Creation},
    reception::{UploadState, expires_at, forget, lost, receive, too_large},
};
use super::{bytes::http_date, cors::allow_origin};
use crate::application::{
    answer::Timestamp,
    caller::{Caller, Read, Write},
    context::FileContext,
    error::ApiError,
    field,
    reached::Reached,
    tus::checksum,
};

/// Extensions beside the core of tus.
const EXTENSIONS: &str =
    "creation,creation-with-upload,creation-defer-length,expiration,checksum,termination";
/// Names the file that an upload has become.
pub(super) const FILE_ID: HeaderName = HeaderName::from_static("service-file-id");
const UPLOAD_EXPIRES: HeaderName = HeaderName::from_static("upload-expires");

const COLLECTION_METHODS: &str = "POST, OPTIONS";
const UPLOAD_METHODS: &str = "HEAD, GET, PATCH, DELETE, POST, OPTIONS";
/// Seconds for which a browser may keep the answer to a preflight.
const PREFLIGHT_MAX_AGE_S: &str = "600";
/// Request headers that a page of another origin may send.
const CORS_REQUEST_HEADERS: &str = "authorization, content-type, tus-resumable, upload-checksum, upload-defer-length, upload-length, \
     upload-metadata, upload-offset, x-api-key, x-http-method-override, x-request-id";
/// Response headers that a page of another origin may read.
const CORS_RESPONSE_HEADERS: &str = "location, service-file-id, tus-checksum-algorithm, tus-extension, tus-max-size, tus-resumable, \
     tus-version, upload-defer-length, upload-expires, upload-length, upload-metadata, upload-offset, x-request-id";

/// A resumable upload.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResumableUpload {
    id: Uuid,
    filename: String,
    /// Null: at the top.
    folder_id: Option<Uuid>,
    /// Null: not declared yet.
    size_bytes: Option<u64>,
    /// Bytes that are on the disk.
    offset_bytes: u64,
    /// `receiving` or `completed`.
    status: &'static str,
    /// Id of the file that it has become; null before, and when the file was deleted since.
    file_id: Option<Uuid>,
    created_at: Timestamp,
    /// Time of expiry, later with every byte that comes.
    expires_at: Timestamp,
}

#[derive(Serialize, ToSchema)]
pub struct ResumableUploadAnswer {
    upload: ResumableUpload,
}

impl From<TusUpload> for ResumableUpload {
    fn from(upload: TusUpload) -> Self {
        Self {
            size_bytes: upload.length(),
            offset_bytes: upload.offset(),
            status: match upload.is_completed() {
                true => "completed",
                false => "receiving",
            },
            id: upload.id,
            filename: upload.filename,
            folder_id: upload.folder_id,
            file_id: upload.file_id,
            created_at: Timestamp(upload.created_at),
            expires_at: Timestamp(upload.expires_at),
        }
    }
}

/// Show the supported version and extensions of tus
///
/// The version and the extensions of tus, and the browser's question before an upload from a page of `http.cors_origins`.
#[utoipa::path(options, path = "/api/uploads/tus", tag = "tus", security(()),
    responses((status = 204, description = "`Tus-Version`, `Tus-Extension`, `Tus-Max-Size`, `Tus-Checksum-Algorithm`; `Access-Control-Allow-*`")))]
pub async fn offer(request: HttpRequest, context: web::Data<FileContext>) -> HttpResponse {
    offered(&request, &context, COLLECTION_METHODS)
}

/// Show the supported version and extensions of tus
///
/// The same answer as at `/api/uploads/tus`.
#[utoipa::path(options, path = "/api/uploads/tus/{id}", tag = "tus", security(()),
    params(("id" = Uuid, Path, description = "The upload's id")),
    responses((status = 204, description = "The same as at `/api/uploads/tus`")))]
pub async fn offer_here(request: HttpRequest, context: web::Data<FileContext>) -> HttpResponse {
    offered(&request, &context, UPLOAD_METHODS)
}

fn offered(request: &HttpRequest, context: &FileContext, methods: &'static str) -> HttpResponse {
    let mut response = HttpResponse::NoContent()
        .insert_header(("tus-version", headers::VERSION))
        .insert_header(("tus-extension", EXTENSIONS))
        .insert_header(("tus-checksum-algorithm", checksum::ALGORITHMS))
        .insert_header(("tus-max-size", context.config.uploads.max_file.as_u64()))
        .finish();
    if add_headers(request, context, &mut response) {
        let headers = response.headers_mut();
        for (name, value) in [
            (header::ACCESS_CONTROL_ALLOW_METHODS, methods),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, CORS_REQUEST_HEADERS),
            (header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_MAX_AGE_S),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    response
}

/// Make a resumable upload
///
/// `Upload-Metadata` takes `filename` and `folderId`, each in Base64; the type is decided by the bytes. A body of
/// `application/offset+octet-stream` is the upload's first bytes. A client of tus does all of this.
#[utoipa::path(post, path = "/api/uploads/tus", tag = "tus",
    params(("Tus-Resumable" = String, Header, description = "`1.0.0`"),
        ("Upload-Length" = Option<u64>, Header, description = "Exactly so many bytes will come"),
        ("Upload-Defer-Length" = Option<u8>, Header, description = "`1`: the length comes with a later request"),
        ("Upload-Metadata" = Option<String>, Header, description = "`key base64,key base64`"),
        ("Upload-Checksum" = Option<String>, Header, description = "Checksum of the body: `sha1`, `sha256` or `crc32`, and Base64")),
    responses(
        (status = 201, description = "Made: `Location`, `Upload-Expires`; with a body `Upload-Offset`, with all of it `Service-File-Id`"),
        (status = 404, description = "There is no such folder", body = crate::application::error::ErrorBody),
        (status = 409, description = "Too many uploads are unfinished", body = crate::application::error::ErrorBody),
        (status = 412, description = "Another version of tus", body = crate::application::error::ErrorBody),
        (status = 413, description = "Larger than uploads.max_file or the plan's storage", body = crate::application::error::ErrorBody),
        (status = 415, description = "The body is declared as another type", body = crate::application::error::ErrorBody),
        (status = 460, description = "The body does not have its checksum", body = crate::application::error::ErrorBody),
        (status = 507, description = "The disk is full", body = crate::application::error::ErrorBody)))]
pub async fn create(
    request: HttpRequest,
    context: web::Data<FileContext>,
    reached: Reached,
    payload: web::Payload,
) -> HttpResponse {
    let made = make(&request, &context, &reached, payload.into_inner()).await;
    answer(&request, &context, &reached, made)
}

async fn make(
    request: &HttpRequest,
    context: &web::Data<FileContext>,
    reached: &Reached,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    let caller = admitted(request).await?;
    match meant(request)? {
        "POST" => {}
        other => return Err(not_allowed(other, COLLECTION_METHODS)),
    }
    let creation = Creation::parse(request.headers())?;
    let length = creation.length;
    let max_file = context.config.uploads.max_file.as_u64();
    if length.is_some_and(|length| length > max_file) {
        return Err(too_large(max_file));
    }
    let account_id = caller.account_id();
    let bounds = Bounds {
        unfinished: context.config.uploads.max_unfinished,
        storage_bytes: caller.plan(context).storage.as_u64(),
    };
    let new = NewTusUpload {
        folder_id: creation.folder_id,
        filename: creation.filename,
        metadata: creation.metadata,
        length_bytes: length,
        expires_at: expires_at(context),
    };
    let upload = write_tx!(context.store, account_id, |tx| {
        tus::create(tx, account_id, new, bounds, now_ms()).await
    })?;
    let empty = || (length == Some(0)).then(Chunk::empty);
    let state = match creation.chunk.or_else(empty) {
        Some(chunk) => first_bytes(context, caller, upload.id, chunk, payload).await?,
        None => UploadState::of(&upload),
    };
    let location = format!("{}/api/uploads/tus/{}", reached.address.base, upload.id);
    let mut response = HttpResponse::Created();
    response.insert_header((header::LOCATION, location));
    Ok(with_state(response, &state).finish())
}

/// Deletes an upload whose creation was rejected: its address was never answered.
async fn first_bytes(
    context: &web::Data<FileContext>,
    caller: Caller<Write>,
    id: Uuid,
    chunk: Chunk,
    payload: Payload,
) -> Result<UploadState, ApiError> {
    let (context, account_id) = (context.clone(), caller.account_id());
    to_its_end(async move {
        let received = receive(context.clone(), caller, id, chunk, payload).await;
        if received.is_err() {
            forget(&context, account_id, id).await?;
        }
        received
    })
    .await
}

/// Runs the work to its end after a disconnect; on this thread, which the payload cannot leave.
async fn to_its_end<T: 'static>(
    work: impl Future<Output = Result<T, ApiError>> + 'static,
) -> Result<T, ApiError> {
    actix_web::rt::spawn(work)
        .await
        .unwrap_or_else(|error| Err(ApiError::internal(error)))
}

/// Show a resumable upload
///
/// HEAD is the protocol's own request before continuing: it ends a request that still is at work on the upload, brings what came of it
/// to the disk, and answers `Upload-Offset`, `Upload-Length`, `Upload-Metadata`, `Upload-Expires` and, once the upload is a
/// file, `Service-File-Id`. GET says the same in JSON, and ends nothing.
#[utoipa::path(get, path = "/api/uploads/tus/{id}", tag = "tus", params(("id" = Uuid, Path, description = "The upload's id")),
    responses(
        (status = 200, description = "Its state", body = ResumableUploadAnswer),
        (status = 410, description = "Expired, or its bytes are lost", body = crate::application::error::ErrorBody),
        (status = 412, description = "HEAD: another version of tus", body = crate::application::error::ErrorBody),
        (status = 423, description = "HEAD: an earlier request does not end", body = crate::application::error::ErrorBody),
        (status = 503, description = "HEAD: the bytes are in the data folder of another node", body = crate::application::error::ErrorBody)))]
pub async fn show(
    request: HttpRequest,
    context: web::Data<FileContext>,
    reached: Reached,
    id: web::Path<String>,
    payload: web::Payload,
) -> HttpResponse {
    done(&request, &context, &reached, &id, payload).await
}

/// Handles the request by its effective method.
async fn done(
    request: &HttpRequest,
    context: &web::Data<FileContext>,
    reached: &Reached,
    id: &str,
    payload: web::Payload,
) -> HttpResponse {
    let done = match meant(request) {
        Ok("GET") => described(request, context, id).await,
        Ok("HEAD") => measured(request, context, id).await,
        Ok("PATCH") => appended(request, context, id, payload.into_inner()).await,
        Ok("DELETE") => ended(request, context, id).await,
        // The credential is checked first, as in every handler.
        Ok(other) => admitted(request)
            .await
            .and(Err(not_allowed(other, UPLOAD_METHODS))),
        Err(error) => Err(error),
    };
    answer(request, context, reached, done)
}

/// Returns the effective method: `X-HTTP-Method-Override` before the request's own.
fn meant(request: &HttpRequest) -> Result<&str, ApiError> {
    let named = headers::overriding(request.headers())?;
    Ok(named.unwrap_or(request.method().as_str()))
}

fn not_allowed(method: &str, allow: &str) -> ApiError {
    ApiError::MethodNotAllowed {
        method: field::shorten(method),
        allow: allow.to_owned(),
    }
}

/// Parses an id; a malformed one is not found.
fn id_of(given: &str) -> Result<Uuid, ApiError> {
    given.parse().map_err(|_| ApiError::NotFound("upload"))
}

async fn described(
    request: &HttpRequest,
    context: &FileContext,
    id: &str,
) -> Result<HttpResponse, ApiError> {
    let caller = Caller::<Read>::extract(request).await?;
    let id = id_of(id)?;
    let upload = find(context, caller.account_id(), id).await?;
    Ok(HttpResponse::Ok().json(ResumableUploadAnswer {
        upload: upload.into(),
    }))
}

async fn measured(
    request: &HttpRequest,
    context: &FileContext,
    id: &str,
) -> Result<HttpResponse, ApiError> {
    let caller = admitted(request).await?;
    let id = id_of(id)?;
    // Only the owner may end a request; the row has its received bytes after its end.
    find(context, caller.account_id(), id).await?;
    let _turn = context.turns.take(id).await?;
    let upload = find(context, caller.account_id(), id).await?;
    let is_there = upload.is_completed()
        || upload.has_objects()
        || context
            .store
            .blobs()
            .has_partial(id, upload.offset())
            .await?;
    if !is_there {
        return Err(lost(context, &upload).await);
    }
    let mut response = with_state(HttpResponse::Ok(), &UploadState::of(&upload));
    match upload.length() {
        Some(length) => response.insert_header((headers::LENGTH, length)),
        None => response.insert_header((headers::DEFER_LENGTH, "1")),
    };
    if !upload.metadata.is_empty() {
        response.insert_header((headers::METADATA, upload.metadata));
    }
    Ok(response.finish())
}

async fn find(context: &FileContext, account_id: Uuid, id: Uuid) -> Result<TusUpload, ApiError> {
    let mut db = context.store.read().await?;
    Ok(tus::get(&mut db, account_id, id, now_ms()).await?)
}

/// Send bytes of a resumable upload
///
/// From `Upload-Offset` on, any number of bytes. A request that is still at work on the upload is ended first. What came
/// before a connection broke is kept. The last byte makes the file, as other uploads do: the answer has its id in
/// `Service-File-Id`.
#[utoipa::path(patch, path = "/api/uploads/tus/{id}", tag = "tus",
    params(("id" = Uuid, Path, description = "The upload's id"),
        ("Tus-Resumable" = String, Header, description = "`1.0.0`"),
        ("Upload-Offset" = u64, Header, description = "The offset as HEAD answers it"),
        ("Upload-Length" = Option<u64>, Header, description = "Length of an upload that was made without it"),
        ("Upload-Checksum" = Option<String>, Header, description = "Checksum of the body: `sha1`, `sha256` or `crc32`, and Base64")),
    request_body(content = Vec<u8>, content_type = "application/offset+octet-stream"),
    responses(
        (status = 204, description = "The bytes are safe: `Upload-Offset`, `Upload-Expires`; with the last ones `Service-File-Id`"),
        (status = 409, description = "Not the upload's offset or length, or the client fell silent", body = crate::application::error::ErrorBody),
        (status = 410, description = "Expired, or its bytes are lost", body = crate::application::error::ErrorBody),
        (status = 412, description = "Another version of tus", body = crate::application::error::ErrorBody),
        (status = 413, description = "More bytes than the upload has, or the plan's storage is used up", body = crate::application::error::ErrorBody),
        (status = 415, description = "The body is declared as another type", body = crate::application::error::ErrorBody),
        (status = 423, description = "A later request has taken over", body = crate::application::error::ErrorBody),
        (status = 460, description = "The body does not have its checksum; nothing of it was kept", body = crate::application::error::ErrorBody),
        (status = 503, description = "The bytes are in the data folder of another node", body = crate::application::error::ErrorBody),
        (status = 507, description = "The disk is full", body = crate::application::error::ErrorBody)))]
pub async fn append(
    request: HttpRequest,
    context: web::Data<FileContext>,
    reached: Reached,
    id: web::Path<String>,
    payload: web::Payload,
) -> HttpResponse {
    done(&request, &context, &reached, &id, payload).await
}

async fn appended(
    request: &HttpRequest,
    context: &web::Data<FileContext>,
    id: &str,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    let caller = admitted(request).await?;
    let id = id_of(id)?;
    let chunk = Chunk::parse(request.headers())?;
    let state = to_its_end(receive(context.clone(), caller, id, chunk, payload)).await?;
    Ok(with_state(HttpResponse::NoContent(), &state).finish())
}

/// End a resumable upload
///
/// Its bytes go, and a request that brings some is ended. A file that it has become stays.
#[utoipa::path(delete, path = "/api/uploads/tus/{id}", tag = "tus", params(("id" = Uuid, Path, description = "The upload's id")),
    responses(
        (status = 204, description = "Gone"),
        (status = 410, description = "Expired", body = crate::application::error::ErrorBody),
        (status = 412, description = "Another version of tus", body = crate::application::error::ErrorBody),
        (status = 423, description = "An earlier request does not end", body = crate::application::error::ErrorBody)))]
pub async fn end(
    request: HttpRequest,
    context: web::Data<FileContext>,
    reached: Reached,
    id: web::Path<String>,
    payload: web::Payload,
) -> HttpResponse {
    done(&request, &context, &reached, &id, payload).await
}

async fn ended(
    request: &HttpRequest,
    context: &FileContext,
    id: &str,
) -> Result<HttpResponse, ApiError> {
    let caller = admitted(request).await?;
    let id = id_of(id)?;
    find(context, caller.account_id(), id).await?;
    let _turn = context.turns.take(id).await?;
    forget(context, caller.account_id(), id).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Do what `X-HTTP-Method-Override` names
///
/// For clients that can only POST: `PATCH`, `DELETE`, `HEAD` or `GET`. The header counts before the method of any request.
#[utoipa::path(post, path = "/api/uploads/tus/{id}", tag = "tus",
    params(("id" = Uuid, Path, description = "The upload's id"),
        ("X-HTTP-Method-Override" = String, Header, description = "`PATCH`, `DELETE` or `HEAD`")),
    responses(
        (status = 204, description = "As that method answers"),
        (status = 405, description = "Another method, or none", body = crate::application::error::ErrorBody)))]
pub async fn overridden(
    request: HttpRequest,
    context: web::Data<FileContext>,
    reached: Reached,
    id: web::Path<String>,
    payload: web::Payload,
) -> HttpResponse {
    done(&request, &context, &reached, &id, payload).await
}

/// Admits a tus client with scope write.
async fn admitted(request: &HttpRequest) -> Result<Caller<Write>, ApiError> {
    let caller = Caller::extract(request).await?;
    // A session's forgery check depends on the request's own method.
    let is_guarded = !request.method().is_safe() || request.method().as_str() == meant(request)?;
    if caller.is_session() && !is_guarded {
        return Err(ApiError::Forbidden(
            "with a session, X-HTTP-Method-Override needs a POST",
        ));
    }
    headers::check_version(request.headers())?;
    Ok(caller)
}

fn with_state(mut response: HttpResponseBuilder, state: &UploadState) -> HttpResponseBuilder {
    response
        .insert_header((headers::OFFSET, state.offset))
        .insert_header((UPLOAD_EXPIRES, http_date(state.expires_at).to_string()));
    if let Some(file_id) = state.file_id {
        response.insert_header((FILE_ID, file_id.to_string()));
    }
    response
}

/// Gives rejections the same headers as other answers: a page must be able to read them.
fn answer(
    request: &HttpRequest,
    context: &FileContext,
    reached: &Reached,
    done: Result<HttpResponse, ApiError>,
) -> HttpResponse {
    let mut response = done.unwrap_or_else(|error| {
        let error = error.offering(|| reached.upgrade_url(context));
        error.error_response()
    });
    add_headers(request, context, &mut response);
    response
}

/// Sets the headers of every answer, and whether a page of another origin may read it.
fn add_headers(request: &HttpRequest, context: &FileContext, response: &mut HttpResponse) -> bool {
    let may_read = allow_origin(request, context, response);
    let headers = response.headers_mut();
    headers.insert(
        HeaderName::from_static(headers::RESUMABLE),
        HeaderValue::from_static(headers::VERSION),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if may_read {
        let exposed = HeaderValue::from_static(CORS_RESPONSE_HEADERS);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    may_read
}
