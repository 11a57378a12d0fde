//! Direct uploads, `POST /api/uploads`: `signedUrl`, its signature and expiry (`uploads.keep_unfinished`), length of `contentType`.

pub(crate) mod complete;

use serde::{Deserialize, Serialize};
use sluice_store::{
    now_ms, storage,
    uploads::{self, NewUpload, Upload},
    write_tx,
};
use url::{Url, form_urlencoded};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{
    caller::{Caller, Write},
    context::Platform,
    error::ApiError,
    filename,
    files::record::FileRecord,
    reached::Reached,
    signing::{self, Purpose, Signer},
};

/// Longest `contentType`, in characters.
pub(crate) const MAX_CONTENT_TYPE: usize = 255;

/// A file to be sent.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewUploadRequest {
    filename: String,
    /// Exact number of bytes to be put.
    size_bytes: u64,
    /// Media type that the client declares; the bytes decide it.
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
    /// Address for the bytes, without a credential.
    pub(crate) signed_url: String,
    /// `PUT`
    method: &'static str,
    pub(crate) expires_in_seconds: u64,
}

/// The request that completes the upload once the bytes are there.
#[derive(Serialize, ToSchema)]
pub struct Completion {
    url: String,
    body: CompleteUpload,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompleteUpload {
    pub(crate) upload_id: Uuid,
}

#[derive(Serialize, ToSchema)]
pub struct UploadCompleted {
    pub(crate) file: FileRecord,
    /// True when an earlier call has made the file.
    pub(crate) idempotent: bool,
}

/// Makes a direct upload for the caller.
pub(crate) async fn make(
    platform: &Platform,
    caller: &Caller<Write>,
    reached: &Reached,
    request: NewUploadRequest,
) -> Result<UploadMade, ApiError> {
    let (account_id, settings) = (caller.account_id(), &platform.config.uploads);
    if request.size_bytes > settings.max_file.as_u64() {
        return Err(ApiError::TooLarge(format!(
            "sizeBytes must be at most {} (uploads.max_file), got {}",
            settings.max_file.as_u64(),
            request.size_bytes
        )));
    }
    let storage_limit = caller.plan(platform).storage.as_u64();
    let lifetime_s = settings.keep_unfinished.as_secs();
    let new = NewUpload {
        folder_id: request.folder_id,
        filename: filename::clean(&request.filename),
        content_type: checked_content_type(request.content_type)?,
        size_bytes: request.size_bytes,
        expires_at: now_ms() + lifetime_s as i64 * 1000,
    };
    let upload = write_tx!(platform.store, account_id, |tx| {
        let (now, size) = (now_ms(), new.size_bytes);
        storage::check_beside_uploads(tx, account_id, None, size, storage_limit, now).await?;
        uploads::create(tx, account_id, new, now).await
    })
    .map_err(|error| ApiError::from(error).offering(|| reached.upgrade_url(platform)))?;
    let signer = Signer::of(&mut platform.store.read().await?).await?;
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

pub(crate) fn checked_content_type(given: Option<String>) -> Result<String, ApiError> {
    let content_type = given.unwrap_or_else(|| "application/octet-stream".to_owned());
    match content_type.len() <= MAX_CONTENT_TYPE && content_type.is_ascii() {
        true => Ok(content_type),
        false => Err(invalid!(
            "contentType must be at most {MAX_CONTENT_TYPE} ASCII characters"
        )),
    }
}

pub(crate) fn signed_url(signer: &Signer, base: &str, id: Uuid, expires_at: i64) -> String {
    let signature =
        signing::encode(&signer.sign(Purpose::Upload, &signing::id_until(id, expires_at)));
    format!("{base}/api/uploads/{id}/content?expires={expires_at}&signature={signature}")
}

/// Finds the upload of a `signedUrl`, for callers that use its bytes and make no file of them. 400 for an address of
/// another kind, 403 for one that was not made here or is too old, 404 for another account's.
pub(crate) async fn by_signed_url(
    platform: &Platform,
    account_id: Uuid,
    address: &str,
) -> Result<Upload, ApiError> {
    let (id, query) = upload_of(address)
        .ok_or_else(|| invalid!("uploadUrl must be the signedUrl of an upload as it was given"))?;
    check_signature(&query, platform, id).await?;
    let upload = uploads::by_id(&mut platform.store.read().await?, id).await?;
    match upload.account_id == account_id {
        true => Ok(upload),
        false => Err(ApiError::NotFound("upload")),
    }
}

/// Returns the id and the query of a [`signed_url`], whatever host name it has.
pub(crate) fn upload_of(address: &str) -> Option<(Uuid, String)> {
    let address = Url::parse(address.trim()).ok()?;
    let (before, id) = address.path().strip_suffix("/content")?.rsplit_once('/')?;
    before.ends_with("/api/uploads").then_some(())?;
    let id = Uuid::try_parse(id).ok()?;
    Some((id, address.query()?.to_owned()))
}

/// Answers 403 for an address that was not made here, or is too old.
pub(crate) async fn check_signature(
    query: &str,
    platform: &Platform,
    id: Uuid,
) -> Result<(), ApiError> {
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
    let signer = Signer::of(&mut platform.store.read().await?).await?;
    if !signer.accepts(
        Purpose::Upload,
        &signing::id_until(id, expires_at),
        &signature,
    ) {
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
