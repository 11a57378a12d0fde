//! `GET /api/downloads/{token}`: files, results, outputs and archives by signed, expiring addresses. The token names what may be
//! fetched until when, signed with the installation's key. It is not valid once what it names is gone, and every token that does
//! not work is answered alike.

use actix_web::{HttpRequest, HttpResponse, http::header, web};
use sluice_store::{Reader, files, jobs, now_ms, selections, workflows};
use uuid::Uuid;

use super::{
    archive,
    bytes::{self, StoredBytes},
};
use crate::application::{
    context::{FileContext, Platform},
    downloads::{DownloadGrant, Downloadable},
    error::ApiError,
    signing::Signer,
};

/// `Cache-Control` of stored bytes. They never change under one id, but are deleted with their row: only the client stores them,
/// and revalidates before use.
pub(super) const CACHE: &str = "private, no-cache";

/// Download by an expiring address
///
/// The `download_url` of a file, `downloadUrl` of a result or of a run's output, or `url` of an archive of chosen files; needs no
/// credential. Ranges work.
#[utoipa::path(get, path = "/api/downloads/{token}", tag = "files", security(()),
    params(("token" = String, Path, description = "As the address has it")),
    responses(
        (status = 200, description = "The bytes", content_type = "application/octet-stream", body = Vec<u8>),
        (status = 206, description = "The range asked for", content_type = "application/octet-stream", body = Vec<u8>),
        (status = 304, description = "Unchanged"),
        (status = 403, description = "The account is suspended", body = crate::application::error::ErrorBody),
        (status = 404, description = "Expired, gone or never issued", body = crate::application::error::ErrorBody),
        (status = 416, description = "No such range", body = crate::application::error::ErrorBody),
        (status = 503, description = "Too many archives at a time", body = crate::application::error::ErrorBody)))]
pub async fn fetch(
    request: HttpRequest,
    platform: web::Data<Platform>,
    files: web::Data<FileContext>,
    token: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let mut db = platform.store.read().await?;
    let grant = DownloadGrant::read(&token, &Signer::of(&mut db).await?)
        .filter(|grant| now_ms() < grant.expires_at)
        .ok_or(ApiError::NotFound("download"))?;
    if let Downloadable::Result(id) = grant.what
        && let Some(facts) = facts_of(&mut db, id).await?
    {
        return Ok(facts);
    }
    if let Downloadable::Selection(id) = grant.what {
        let selection = selections::by_id(&mut db, id, now_ms()).await?;
        drop(db);
        let selection = selection.ok_or(ApiError::NotFound("download"))?;
        if files.suspensions.contains(selection.account_id) {
            return Err(ApiError::AccountSuspended);
        }
        return archive::respond_selected(&request, &files, &selection).await;
    }
    let (account_id, bytes) = find(&mut db, grant.what).await?;
    drop(db);
    if platform.suspensions.contains(account_id) {
        return Err(ApiError::AccountSuspended);
    }
    bytes::respond(&request, &platform, &bytes, CACHE).await
}

/// The bytes of an account.
type Owned = (Uuid, StoredBytes);

/// Finds the resource of a grant as it is now; the rejection is the same for everything that does not exist.
async fn find(db: &mut Reader, what: Downloadable) -> Result<Owned, ApiError> {
    let found = match what {
        Downloadable::File(id) => files::by_id(db, id)
            .await?
            .map(|file| (file.account_id, StoredBytes::from(file))),
        Downloadable::Result(id) => result_bytes(db, id).await?,
        Downloadable::Attachment(id) => attachment_bytes(db, id).await?,
        Downloadable::Archive(id) => archive_bytes(db, id).await?,
        Downloadable::Output(id) => output_bytes(db, id).await?,
        // An archive that is computed has no bytes of its own.
        Downloadable::Selection(_) => None,
    };
    found.ok_or(ApiError::NotFound("download"))
}

/// Returns the facts of an inspection as a file of JSON; `None` for a result that is a file itself.
async fn facts_of(db: &mut Reader, id: Uuid) -> Result<Option<HttpResponse>, ApiError> {
    let found = item(db, id).await?;
    let Some((facts, name)) = found.and_then(|(item, _)| Some((item.facts?, item.original_name)))
    else {
        return Ok(None);
    };
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CACHE_CONTROL, CACHE));
    bytes::sandbox(&mut response, "attachment", &format!("{name}.json"));
    Ok(Some(response.json(facts)))
}

async fn result_bytes(db: &mut Reader, id: Uuid) -> Result<Option<Owned>, ApiError> {
    let Some((item, job)) = item(db, id).await? else {
        return Ok(None);
    };
    let bytes = item.result_blob.map(|blob| StoredBytes {
        blob,
        size_bytes: item.result_size.unwrap_or_default().unsigned_abs(),
        filename: item.result_name.unwrap_or(item.original_name),
        mime_type: item
            .mime_type
            .unwrap_or_else(|| "application/octet-stream".to_owned()),
        modified_at: job.created_at,
    });
    Ok(bytes.map(|bytes| (job.account_id, bytes)))
}

async fn attachment_bytes(db: &mut Reader, id: Uuid) -> Result<Option<Owned>, ApiError> {
    let Some((item, job)) = item(db, id).await? else {
        return Ok(None);
    };
    let Some(attachment) = item.attachment() else {
        return Ok(None);
    };
    let bytes = attachment.blob.map(|blob| StoredBytes {
        blob,
        size_bytes: attachment.size.unsigned_abs(),
        filename: attachment.filename,
        mime_type: attachment.mime_type,
        modified_at: job.created_at,
    });
    Ok(bytes.map(|bytes| (job.account_id, bytes)))
}

/// Finds an item and its job.
async fn item(db: &mut Reader, id: Uuid) -> Result<Option<(jobs::Item, jobs::Job)>, ApiError> {
    let item = match jobs::item(db, id).await {
        Err(sluice_store::Error::NotFound(_)) => return Ok(None),
        item => item?,
    };
    let job = jobs::by_id(db, item.job_id).await?;
    Ok(Some((item, job)))
}

async fn archive_bytes(db: &mut Reader, id: Uuid) -> Result<Option<Owned>, ApiError> {
    let job = match jobs::by_id(db, id).await {
        Err(sluice_store::Error::NotFound(_)) => return Ok(None),
        job => job?,
    };
    let bytes = job.archive_blob.map(|blob| StoredBytes {
        blob,
        size_bytes: job.archive_size.unwrap_or_default().unsigned_abs(),
        filename: format!("{}.zip", job.id),
        mime_type: "application/zip".to_owned(),
        modified_at: job.completed_at.unwrap_or(job.created_at),
    });
    Ok(bytes.map(|bytes| (job.account_id, bytes)))
}

async fn output_bytes(db: &mut Reader, run_id: Uuid) -> Result<Option<Owned>, ApiError> {
    let output = match workflows::output(db, run_id).await {
        Err(sluice_store::Error::NotFound(_)) => return Ok(None),
        output => output?,
    };
    let run = workflows::by_id(db, run_id).await?;
    let bytes = StoredBytes {
        blob: output.blob,
        size_bytes: output.size.unsigned_abs(),
        filename: output.filename,
        mime_type: output.mime_type,
        modified_at: run.completed_at.unwrap_or(run.created_at),
    };
    Ok(Some((run.account_id, bytes)))
}

impl From<files::File> for StoredBytes {
    fn from(file: files::File) -> Self {
        Self {
            blob: file.blob,
            size_bytes: file.size_bytes.unsigned_abs(),
            filename: file.filename,
            mime_type: file.mime_type,
            modified_at: file.created_at,
        }
    }
}
