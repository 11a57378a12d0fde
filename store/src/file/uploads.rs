//! Direct uploads: made by the API, filled by one PUT to their `signedUrl`, completed as a file.
//!
//! A PUT claims the upload first, and its bytes count only while no later PUT has: so a new request supersedes an
//! interrupted one.

use uuid::Uuid;

use crate::{
    Connection, Error, Tx,
    blob::BlobHash,
    files::{self, Facts, File, NewFile, Role},
    folders,
    statement::{query, query_as},
    storage,
};

/// Deletes uploads that have expired by the time `$1`, completed ones too, `$2` at most.
pub(crate) const DELETE_EXPIRED: &str = "DELETE FROM uploads WHERE id IN (
     SELECT id FROM uploads WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)";

text_enum! {
    /// State of an upload.
    pub enum State {
        /// Waiting for its bytes.
        Pending = "pending",
        /// Complete in bytes, and no file yet.
        Received = "received",
        /// Made a file.
        Completed = "completed",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Upload {
    pub id: Uuid,
    pub account_id: Uuid,
    pub folder_id: Option<Uuid>,
    pub filename: String,
    /// Content type as the client declared it; the file's type is decided by its bytes.
    pub content_type: String,
    /// Exact number of bytes that are accepted.
    pub size_bytes: i64,
    pub state: State,
    /// Rises with every PUT.
    pub attempt: i64,
    pub blob_hash: Option<BlobHash>,
    pub mime_type: Option<String>,
    /// `None` before it is completed, and when the file was deleted since.
    pub file_id: Option<Uuid>,
    pub created_at: i64,
    pub expires_at: i64,
}

#[derive(Clone, Debug)]
pub struct NewUpload {
    pub folder_id: Option<Uuid>,
    pub filename: String,
    pub content_type: String,
    pub size_bytes: u64,
    pub expires_at: i64,
}

/// Creates an upload. `Error::NotFound` for a folder that the account does not have.
pub async fn create(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    new: NewUpload,
    now_ms: i64,
) -> Result<Upload, Error> {
    if let Some(folder_id) = new.folder_id {
        folders::get(tx, account_id, folder_id).await?;
    }
    let size_bytes = i64::try_from(new.size_bytes)
        .map_err(|_| Error::Invalid("a file has at most 8 EiB".into()))?;
    let upload = query_as(
        "INSERT INTO uploads (id, account_id, folder_id, filename, content_type, size_bytes, state, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, $8) RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(account_id)
    .bind(new.folder_id)
    .bind(new.filename)
    .bind(new.content_type)
    .bind(size_bytes)
    .bind(now_ms)
    .bind(new.expires_at)
    .fetch_one(tx)
    .await?;
    Ok(upload)
}

/// Returns an upload of any account, for the holder of a signed address.
pub async fn by_id(db: &mut impl Connection, id: Uuid) -> Result<Upload, Error> {
    query_as("SELECT * FROM uploads WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("upload"))
}

/// Begins a PUT: returns the upload with the attempt that [`receive`] needs. `Error::Conflict` once it is completed.
pub async fn claim(tx: &mut Tx<'_>, id: Uuid) -> Result<Upload, Error> {
    let upload: Upload =
        query_as("UPDATE uploads SET attempt = attempt + 1 WHERE id = $1 RETURNING *")
            .bind(id)
            .fetch_optional(tx)
            .await?
            .ok_or(Error::NotFound("upload"))?;
    match upload.state {
        State::Completed => Err(Error::Conflict("the upload is completed already".into())),
        State::Pending | State::Received => Ok(upload),
    }
}

/// Records that the bytes are complete; their blob is recorded in the same transaction. `Error::Conflict` when a later
/// PUT has claimed the upload, or it was completed meanwhile.
pub async fn receive(
    tx: &mut Tx<'_>,
    id: Uuid,
    attempt: i64,
    blob: BlobHash,
    mime_type: &str,
) -> Result<Upload, Error> {
    query_as(
        "UPDATE uploads SET state = 'received', blob_hash = $3, mime_type = $4
         WHERE id = $1 AND attempt = $2 AND state <> 'completed' RETURNING *",
    )
    .bind(id)
    .bind(attempt)
    .bind(blob)
    .bind(mime_type)
    .fetch_optional(tx)
    .await?
    .ok_or_else(|| {
        Error::Conflict("another request has taken this upload over, or it was cancelled".into())
    })
}

/// Makes the file, once: `(file, true)` when an earlier call made it. `Error::Conflict` while the bytes are missing,
/// `Error::OverQuota` beyond `limit_bytes` of storage (0: no limit), `Error::NotFound` also for a file deleted since.
pub async fn complete(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    facts: Facts,
    limit_bytes: u64,
    now_ms: i64,
) -> Result<(File, bool), Error> {
    let upload = by_id(tx, id).await?;
    if upload.account_id != account_id {
        return Err(Error::NotFound("upload"));
    }
    if upload.state == State::Completed {
        let file_id = upload.file_id.ok_or(Error::NotFound("file"))?;
        return Ok((files::get(tx, account_id, file_id).await?, true));
    }
    let (blob, mime_type) = received(&upload)?;
    let size_bytes = upload.size_bytes.unsigned_abs();
    storage::check(tx, account_id, size_bytes, limit_bytes).await?;
    let new = NewFile {
        folder_id: upload.folder_id,
        filename: upload.filename,
        mime_type,
        size_bytes,
        blob,
        role: Role::Uploaded,
        width: facts.width,
        height: facts.height,
        duration_ms: facts.duration_ms,
        generation: 0,
    };
    let file = files::create(tx, account_id, new, now_ms).await?;
    query("UPDATE uploads SET state = 'completed', file_id = $2 WHERE id = $1")
        .bind(id)
        .bind(file.id)
        .execute(tx)
        .await?;
    Ok((file, false))
}

/// Content of an upload, for a use that makes no file of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadContent {
    /// Recorded blob; named by nothing unless a row of the same transaction does.
    pub blob: BlobHash,
    pub filename: String,
    /// MIME type as recognised from the bytes.
    pub mime_type: String,
    pub size_bytes: i64,
}

/// Uses the upload up, once. `Error::Conflict` while the bytes are missing, and when it was completed or taken before.
pub async fn take(tx: &mut Tx<'_>, account_id: Uuid, id: Uuid) -> Result<UploadContent, Error> {
    let upload = by_id(tx, id).await?;
    if upload.account_id != account_id {
        return Err(Error::NotFound("upload"));
    }
    if upload.state == State::Completed {
        return Err(Error::Conflict(
            "this upload was used before: make a new one".into(),
        ));
    }
    let (blob, mime_type) = received(&upload)?;
    query("UPDATE uploads SET state = 'completed', blob_hash = NULL WHERE id = $1")
        .bind(id)
        .execute(tx)
        .await?;
    Ok(UploadContent {
        blob,
        filename: upload.filename,
        mime_type,
        size_bytes: upload.size_bytes,
    })
}

/// Deletes an unfinished upload. `Error::NotFound` for one that the account does not have, `Error::Conflict` for one that is
/// completed.
pub async fn cancel(tx: &mut Tx<'_>, account_id: Uuid, id: Uuid) -> Result<(), Error> {
    let upload = by_id(tx, id).await?;
    if upload.account_id != account_id {
        return Err(Error::NotFound("upload"));
    }
    if upload.state == State::Completed {
        return Err(Error::Conflict(
            "the upload is completed already: delete its file".into(),
        ));
    }
    query("DELETE FROM uploads WHERE id = $1")
        .bind(id)
        .execute(tx)
        .await?;
    Ok(())
}

/// The upload's bytes. `Error::Conflict` while they are missing.
fn received(upload: &Upload) -> Result<(BlobHash, String), Error> {
    let found = upload.blob_hash.zip(upload.mime_type.clone());
    found.ok_or_else(|| {
        Error::Conflict(
            "the bytes of this upload have not arrived: PUT them to its signedUrl first".into(),
        )
    })
}
