//! Resumable (tus) uploads: offset, claims of requests, reserved storage, expiry; a file is made with the last byte.
//!
//! - The offset counts bytes on the disk, or in the object store; it never covers the whole length before the file exists. A
//!   client that sees the whole length has a file, whatever crashed in between.
//! - A request claims the upload first, and its bytes count only while no later one has.
//! - The upload reserves room in the plan's storage for its bytes on the disk and for those that a request may bring,
//!   before they arrive.
//! - An upload that is not finished expires; its bytes are deleted soon after, its row a day later, so that its client
//!   learns of it.

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::{
    Connection, Error, Store, Tx,
    blob::{BlobHash, LeftObjects, PartialObjects, PartialState},
    files::{self, Facts, File, NewFile, Role},
    folders,
    statement::{query, query_as, query_scalar},
    storage,
    turns::in_turns,
    write_tx,
};

/// Time for which an expired upload is still answered as one.
const KNOWN_AFTER_MS: i64 = 24 * 60 * 60 * 1000;
/// Time for which its bytes are kept: a request may be about to make a file of them.
const KEPT_AFTER_MS: i64 = 60 * 1000;
/// Uploads that a sweep checks at a time.
const PAGE: usize = 200;
/// Uploads that lose their objects in one unit of work.
const SWEPT_OBJECTS: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct TusUpload {
    pub id: Uuid,
    pub account_id: Uuid,
    pub folder_id: Option<Uuid>,
    pub filename: String,
    /// Metadata as the client wrote it.
    pub metadata: String,
    /// `None`: to be declared.
    pub length_bytes: Option<i64>,
    /// The length once it is a file, less before.
    pub offset_bytes: i64,
    /// Bytes that are reserved in the plan's storage; no fewer than the offset.
    held_bytes: i64,
    #[sqlx(try_from = "i64")]
    crc32: u32,
    sha256_state: Vec<u8>,
    /// Rises with every request that carries bytes.
    pub attempt: i64,
    pub completed_at: Option<i64>,
    /// `None` before it is completed, and when the file was deleted since.
    pub file_id: Option<Uuid>,
    pub created_at: i64,
    pub expires_at: i64,
    /// Objects of the bytes; `None`: they are in a file. A completed upload keeps it, so that the objects have a row in
    /// every moment of their way to the blob.
    base: Option<Uuid>,
    piece_hashes: Option<Vec<u8>>,
    tail: i64,
    tail_hash: Option<Vec<u8>>,
}

impl TusUpload {
    pub fn offset(&self) -> u64 {
        self.offset_bytes.unsigned_abs()
    }

    /// Returns how many bytes may be on the disk before [`hold`] has to be asked for more.
    pub fn held(&self) -> u64 {
        self.held_bytes.unsigned_abs()
    }

    pub fn length(&self) -> Option<u64> {
        self.length_bytes.map(i64::unsigned_abs)
    }

    pub fn is_completed(&self) -> bool {
        self.completed_at.is_some()
    }

    /// Returns whether the bytes are in the object store.
    pub fn has_objects(&self) -> bool {
        self.base.is_some()
    }

    /// Returns the state of its bytes that are safe.
    pub fn progress(&self) -> PartialState {
        PartialState {
            length: self.offset(),
            crc32: self.crc32,
            sha256: self.sha256_state.clone(),
            objects: PartialObjects::of_row(
                self.base,
                self.piece_hashes.as_deref(),
                self.tail,
                self.tail_hash.as_deref(),
            ),
        }
    }
}

#[derive(Clone, Debug)]
pub struct NewTusUpload {
    pub folder_id: Option<Uuid>,
    pub filename: String,
    pub metadata: String,
    pub length_bytes: Option<u64>,
    pub expires_at: i64,
}

/// Bounds of an account's uploads.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Uploads that are not finished.
    pub unfinished: u64,
    /// Limit for the bytes of its files; 0: no limit. Bytes held by uploads that are not files yet count too, here and
    /// below.
    pub storage_bytes: u64,
}

/// Request that carries bytes.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub offset: u64,
    /// Greatest number of bytes of the request, if it is known.
    pub brings_bytes: Option<u64>,
    /// Declares the length of an upload that was made without one.
    pub length_bytes: Option<u64>,
    /// The longest that an upload may be.
    pub most_bytes: u64,
    pub expires_at: i64,
    /// Limit as of [`Bounds::storage_bytes`].
    pub storage_bytes: u64,
    /// The process that serves the request.
    pub owner: Uuid,
}

/// State in which [`advance`] leaves the upload.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// True when the request carries no more.
    pub is_last: bool,
    pub expires_at: i64,
    /// Limit as of [`Bounds::storage_bytes`].
    pub storage_bytes: u64,
}

/// Creates an upload. `Error::NotFound` for a folder that the account does not have, `Error::Conflict` for one upload
/// too many, `Error::OverQuota` when it cannot be stored.
pub async fn create(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    new: NewTusUpload,
    bounds: Bounds,
    now_ms: i64,
) -> Result<TusUpload, Error> {
    if let Some(folder_id) = new.folder_id {
        folders::get(tx, account_id, folder_id).await?;
    }
    let uploads = unfinished(tx, account_id, now_ms).await?;
    if uploads >= bounds.unfinished {
        return Err(Error::Conflict(format!(
            "{uploads} uploads are unfinished, which is as many as may be (uploads.max_unfinished): finish or delete one"
        )));
    }
    let (length, limit) = (new.length_bytes.unwrap_or_default(), bounds.storage_bytes);
    storage::check_beside_uploads(tx, account_id, None, length, limit, now_ms).await?;
    let upload = query_as(
        "INSERT INTO tus_uploads (id, account_id, folder_id, filename, metadata, length_bytes, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(account_id)
    .bind(new.folder_id)
    .bind(new.filename)
    .bind(new.metadata)
    .bind(new.length_bytes.map(in_row).transpose()?)
    .bind(now_ms)
    .bind(new.expires_at)
    .fetch_one(tx)
    .await?;
    Ok(upload)
}

/// Returns an upload. `Error::NotFound` for one that the account does not have, `Error::Gone` for one that has
/// expired.
pub async fn get(
    db: &mut impl Connection,
    account_id: Uuid,
    id: Uuid,
    now_ms: i64,
) -> Result<TusUpload, Error> {
    let found: Option<TusUpload> = query_as("SELECT * FROM tus_uploads WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?;
    let upload = found
        .filter(|upload| upload.account_id == account_id)
        .ok_or(Error::NotFound("upload"))?;
    match upload.expires_at <= now_ms {
        true => Err(Error::Gone(
            "this upload has expired (uploads.keep_unfinished): make a new one",
        )),
        false => Ok(upload),
    }
}

/// Begins a request: returns the upload with the attempt that the functions below need, reserves room for the bytes
/// that the request declares, and keeps the upload until `expires_at`. `Error::Conflict` for an offset that is not the
/// upload's and for a length that is not, `Error::OverQuota` for bytes or a newly declared length that cannot be
/// stored, besides the errors of [`get`]. A completed upload is returned as it is.
pub async fn claim(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    claim: Claim,
    now_ms: i64,
) -> Result<TusUpload, Error> {
    let upload = get(tx, account_id, id, now_ms).await?;
    if upload.offset() != claim.offset {
        return Err(Error::Conflict(format!(
            "the upload has {} bytes, Upload-Offset says {}: ask for the offset with HEAD",
            upload.offset(),
            claim.offset
        )));
    }
    let declared = declared_length(&upload, claim.length_bytes)?;
    if upload.is_completed() {
        return Ok(upload);
    }
    let held = held_by(&claim, upload.length().or(declared));
    let more = declared.unwrap_or_default().max(held);
    // A request that brings nothing is not checked: its bytes are held already.
    if more > upload.offset() {
        let limit = claim.storage_bytes;
        storage::check_beside_uploads(tx, account_id, Some(id), more, limit, now_ms).await?;
    }
    Ok(query_as(
        "UPDATE tus_uploads SET attempt = attempt + 1, length_bytes = coalesce($2, length_bytes), expires_at = $3, held_bytes = $4,
             node_id = $5
         WHERE id = $1 RETURNING *",
    )
    .bind(id)
    .bind(declared.map(in_row).transpose()?)
    .bind(claim.expires_at)
    .bind(in_row(held)?)
    .bind(claim.owner)
    .fetch_one(tx)
    .await?)
}

/// Returns the bytes that the upload holds while the request runs; more than it may have is never taken.
fn held_by(claim: &Claim, length: Option<u64>) -> u64 {
    let most = length.unwrap_or(claim.most_bytes).max(claim.offset);
    let brings = claim.brings_bytes.unwrap_or_default();
    claim.offset.saturating_add(brings).min(most)
}

/// Reserves room for a body of unknown length: for `wanted` bytes of the upload, or for fewer as the plan has it, but
/// no fewer than `needed`; returns how many. `Error::OverQuota` when it has less, else as [`advance`].
pub async fn hold(
    tx: &mut Tx<'_>,
    upload: &TusUpload,
    needed: u64,
    wanted: u64,
    storage_bytes: u64,
    now_ms: i64,
) -> Result<u64, Error> {
    let (account_id, but) = (upload.account_id, Some(upload.id));
    let room =
        storage::check_beside_uploads(tx, account_id, but, needed, storage_bytes, now_ms).await?;
    let held = wanted.min(room);
    let updated = query(
        "UPDATE tus_uploads SET held_bytes = $3
         WHERE id = $1 AND attempt = $2 AND completed_at IS NULL AND expires_at > $4",
    )
    .bind(upload.id)
    .bind(upload.attempt)
    .bind(in_row(held)?)
    .bind(now_ms)
    .execute(tx)
    .await?;
    match updated.rows_affected() {
        0 => Err(not_taken(tx, upload, now_ms).await),
        _ => Ok(held),
    }
}

/// Ends a request: the upload holds only its recorded bytes, unless a later request has claimed it.
pub async fn release(tx: &mut Tx<'_>, upload: &TusUpload) -> Result<(), Error> {
    query(
        "UPDATE tus_uploads SET held_bytes = offset_bytes WHERE id = $1 AND attempt = $2 AND completed_at IS NULL",
    )
    .bind(upload.id)
    .bind(upload.attempt)
    .execute(tx)
    .await?;
    Ok(())
}

/// Releases the reservations of requests that a process served which has ended; of every one, at the start of the only process:
/// no request is in progress.
pub(crate) async fn release_all(tx: &mut Tx<'_>, owner: Option<Uuid>) -> Result<(), Error> {
    query(
        "UPDATE tus_uploads SET held_bytes = offset_bytes
         WHERE completed_at IS NULL AND held_bytes > offset_bytes AND ($1 IS NULL OR node_id = $1)",
    )
    .bind(owner)
    .execute(tx)
    .await?;
    Ok(())
}

/// Truncates, at the start, the bytes of a request that ended with the process. A file that cannot be truncated is
/// left to the next request.
pub(crate) async fn cut_partials(store: &Store) -> Result<(), Error> {
    for id in store.blobs().partials().await? {
        let offset = unfinished_offset(&mut store.read().await?, id).await?;
        let Some(offset) = offset else { continue };
        if let Err(error) = store.blobs().cut_partial(id, offset.unsigned_abs()).await {
            tracing::warn!(%error, upload = %id, "the bytes after an upload's offset are truncated by its next request");
        }
    }
    Ok(())
}

async fn unfinished_offset(db: &mut impl Connection, id: Uuid) -> Result<Option<i64>, Error> {
    let offset =
        query_scalar("SELECT offset_bytes FROM tus_uploads WHERE id = $1 AND completed_at IS NULL")
            .bind(id)
            .fetch_optional(db)
            .await?;
    Ok(offset)
}

/// Returns the length to write into the row: none when it has it, and none yet when that would complete the upload.
fn declared_length(upload: &TusUpload, declared: Option<u64>) -> Result<Option<u64>, Error> {
    let Some(declared) = declared else {
        return Ok(None);
    };
    match upload.length() {
        Some(length) if length == declared => Ok(None),
        Some(length) => Err(Error::Conflict(format!(
            "the upload's length is {length}, Upload-Length says {declared}"
        ))),
        None if declared < upload.offset() => Err(Error::Conflict(format!(
            "the upload has {} bytes already, Upload-Length says {declared}",
            upload.offset()
        ))),
        // A row with the whole length promises a file, which only [`complete`] makes.
        None => Ok(Some(declared).filter(|length| *length > upload.offset())),
    }
}

/// Records that more bytes are safe; with the last ones of a request the upload holds no more room than they
/// need. `Error::Conflict` when a later request has claimed the upload or it was deleted, `Error::Gone` when it has
/// expired, `Error::OverQuota` when the account may not store so much.
pub async fn advance(
    tx: &mut Tx<'_>,
    upload: &TusUpload,
    progress: &PartialState,
    step: Step,
    now_ms: i64,
) -> Result<(), Error> {
    let objects = progress.objects.as_ref();
    let tail = objects.and_then(|objects| objects.tail);
    let advanced = query(
        "UPDATE tus_uploads SET offset_bytes = $3, crc32 = $4, sha256_state = $5, expires_at = $6,
                                base = $9, piece_hashes = $10, tail = $11, tail_hash = $12,
                                held_bytes = CASE WHEN $8 THEN $3 ELSE max(held_bytes, $3) END
         WHERE id = $1 AND attempt = $2 AND completed_at IS NULL AND (length_bytes IS NULL OR length_bytes > $3)
           AND expires_at > $7",
    )
    .bind(upload.id)
    .bind(upload.attempt)
    .bind(in_row(progress.length)?)
    .bind(progress.crc32)
    .bind(&progress.sha256)
    .bind(step.expires_at)
    .bind(now_ms)
    .bind(step.is_last)
    .bind(objects.map(|objects| objects.base))
    .bind(objects.map(|objects| objects.piece_hashes.clone()))
    .bind(tail.map_or(0, |tail| tail.number))
    .bind(tail.map(|tail| tail.hash.to_vec()))
    .execute(tx)
    .await?;
    if advanced.rows_affected() == 0 {
        return Err(not_taken(tx, upload, now_ms).await);
    }
    let (account_id, limit) = (upload.account_id, step.storage_bytes);
    storage::check_beside_uploads(tx, account_id, None, 0, limit, now_ms)
        .await
        .map(drop)
}

/// Blob and facts of an upload whose bytes are complete.
#[derive(Clone, Debug)]
pub struct Completion {
    /// Recorded in the same transaction.
    pub blob: BlobHash,
    pub size_bytes: u64,
    pub mime_type: String,
    pub facts: Facts,
}

/// Makes the file of a completed upload; returns what its objects have left too, for [`Blobs::remove_objects`] after the
/// commit. `Error::Conflict` when a later request has claimed the upload, `Error::Gone` when it has expired,
/// `Error::OverQuota` beyond `storage_bytes` (0: no limit).
///
/// [`Blobs::remove_objects`]: crate::blob::Blobs::remove_objects
pub async fn complete(
    tx: &mut Tx<'_>,
    upload: &TusUpload,
    arrived: Completion,
    storage_bytes: u64,
    now_ms: i64,
) -> Result<(File, LeftObjects), Error> {
    // The folder is read now: it may have been deleted since the upload was made.
    let completed: Option<TusUpload> = query_as(
        "UPDATE tus_uploads SET completed_at = $3, length_bytes = $4, offset_bytes = $4, sha256_state = x'',
                                piece_hashes = NULL, tail = 0, tail_hash = NULL
         WHERE id = $1 AND attempt = $2 AND completed_at IS NULL AND expires_at > $3 RETURNING *",
    )
    .bind(upload.id)
    .bind(upload.attempt)
    .bind(now_ms)
    .bind(in_row(arrived.size_bytes)?)
    .fetch_optional(tx)
    .await?;
    let Some(upload) = completed else {
        return Err(not_taken(tx, upload, now_ms).await);
    };
    storage::check(tx, upload.account_id, arrived.size_bytes, storage_bytes).await?;
    let new = NewFile {
        folder_id: upload.folder_id,
        filename: upload.filename,
        mime_type: arrived.mime_type,
        size_bytes: arrived.size_bytes,
        blob: arrived.blob,
        role: Role::Uploaded,
        width: arrived.facts.width,
        height: arrived.facts.height,
        duration_ms: arrived.facts.duration_ms,
        generation: 0,
    };
    let file = files::create(tx, upload.account_id, new, now_ms).await?;
    query("UPDATE tus_uploads SET file_id = $2 WHERE id = $1")
        .bind(upload.id)
        .bind(file.id)
        .execute(tx)
        .await?;
    let left = left_objects(tx, upload.base).await?;
    Ok((file, left))
}

/// Deletes an upload; a file that it has become is kept. Returns what its objects have left, as [`complete`] does.
/// `Error::NotFound` for one that the account does not have.
pub async fn delete(tx: &mut Tx<'_>, account_id: Uuid, id: Uuid) -> Result<LeftObjects, Error> {
    let deleted: Option<Option<Uuid>> =
        query_scalar("DELETE FROM tus_uploads WHERE id = $1 AND account_id = $2 RETURNING base")
            .bind(id)
            .bind(account_id)
            .fetch_optional(tx)
            .await?;
    match deleted {
        Some(base) => left_objects(tx, base).await,
        None => Err(Error::NotFound("upload")),
    }
}

/// Returns the objects that only an upload could name which has ended. Asked after the change of its row, so that the end
/// of another request is seen.
async fn left_objects(tx: &mut Tx<'_>, base: Option<Uuid>) -> Result<LeftObjects, Error> {
    let Some(base) = base else {
        return Ok(LeftObjects::None);
    };
    let blob: Option<i64> = query_scalar("SELECT CAST(1 AS INTEGER) FROM blobs WHERE base = $1")
        .bind(base)
        .fetch_optional(tx)
        .await?;
    Ok(match blob {
        Some(_) => LeftObjects::Tail(base),
        None => LeftObjects::All(base),
    })
}

/// Deletes the rows of uploads that expired long ago, and the objects of those that expired; returns how many rows.
pub(crate) async fn sweep(store: &Store, now_ms: i64) -> Result<u64, Error> {
    if store.blobs().has_objects() {
        sweep_objects(store, now_ms - KEPT_AFTER_MS).await?;
    }
    in_turns(store, move |tx, rows| {
        Box::pin(delete_expired(tx, now_ms - KNOWN_AFTER_MS, rows))
    })
    .await
}

async fn delete_expired(tx: &mut Tx<'_>, before_ms: i64, rows: u32) -> Result<u64, Error> {
    let deleted = query(
        "DELETE FROM tus_uploads WHERE id IN (SELECT id FROM tus_uploads WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)",
    )
    .bind(before_ms)
    .bind(rows)
    .execute(tx)
    .await?;
    Ok(deleted.rows_affected())
}

/// Deletes the objects of uploads that have expired, in the background; their rows name none afterwards.
async fn sweep_objects(store: &Store, before_ms: i64) -> Result<(), Error> {
    loop {
        let unnamed = write_tx!(store, |tx| take_objects(tx, before_ms).await)?;
        for base in &unnamed {
            store.blobs().remove_objects(LeftObjects::All(*base));
        }
        if unnamed.len() < SWEPT_OBJECTS {
            return Ok(());
        }
    }
}

/// Takes the objects from the rows of some uploads that expired before a time; returns their bases.
async fn take_objects(tx: &mut Tx<'_>, before_ms: i64) -> Result<Vec<Uuid>, Error> {
    let expired: Vec<(Uuid, Uuid)> = query_as(
        "SELECT id, base FROM tus_uploads
         WHERE expires_at <= $1 AND completed_at IS NULL AND base IS NOT NULL ORDER BY expires_at LIMIT $2",
    )
    .bind(before_ms)
    .bind(SWEPT_OBJECTS as i64)
    .fetch_all(tx)
    .await?;
    let mut taken = Vec::with_capacity(expired.len());
    for (id, base) in expired {
        // Checked again: another node may have made a file of it since.
        let updated = query(
            "UPDATE tus_uploads SET base = NULL, piece_hashes = NULL, tail = 0, tail_hash = NULL
             WHERE id = $1 AND expires_at <= $2 AND completed_at IS NULL",
        )
        .bind(id)
        .bind(before_ms)
        .execute(tx)
        .await?;
        if updated.rows_affected() > 0 {
            taken.push(base);
        }
    }
    Ok(taken)
}

/// Removes the bytes of uploads that cannot be added to any more. Lists the files first: each has had its row before it.
pub(crate) async fn sweep_partials(store: &Store, now_ms: i64) -> Result<u64, Error> {
    let found = store.blobs().partials().await?;
    let mut removed = 0;
    for page in found.chunks(PAGE) {
        let needed = needed(&mut store.read().await?, page, now_ms).await?;
        for id in page.iter().filter(|id| !needed.contains(id)) {
            store.blobs().remove_partial(*id).await?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Returns those of the uploads that may still be added to, or could be a moment ago.
async fn needed(
    db: &mut impl Connection,
    uploads: &[Uuid],
    now_ms: i64,
) -> Result<BTreeSet<Uuid>, Error> {
    let mut needed = BTreeSet::new();
    for id in uploads {
        let found: Option<i64> = query_scalar(
            "SELECT CAST(1 AS INTEGER) FROM tus_uploads WHERE id = $1 AND completed_at IS NULL AND expires_at > $2",
        )
        .bind(id)
        .bind(now_ms - KEPT_AFTER_MS)
        .fetch_optional(db)
        .await?;
        needed.extend(found.map(|_| *id));
    }
    Ok(needed)
}

/// Counts the unfinished uploads of an account.
async fn unfinished(db: &mut impl Connection, account_id: Uuid, now_ms: i64) -> Result<u64, Error> {
    let uploads: i64 = query_scalar(
        "SELECT count(*) FROM tus_uploads WHERE account_id = $1 AND completed_at IS NULL AND expires_at > $2",
    )
    .bind(account_id)
    .bind(now_ms)
    .fetch_one(db)
    .await?;
    Ok(uploads.unsigned_abs())
}

fn in_row(bytes: u64) -> Result<i64, Error> {
    i64::try_from(bytes).map_err(|_| Error::Invalid("a file has at most 8 EiB".into()))
}

/// Returns the error that says why an upload could not be changed.
async fn not_taken(tx: &mut Tx<'_>, upload: &TusUpload, now_ms: i64) -> Error {
    match get(tx, upload.account_id, upload.id, now_ms).await {
        Ok(_) | Err(Error::NotFound(_)) => taken_over(),
        Err(error) => error,
    }
}

fn taken_over() -> Error {
    Error::Conflict("another request has taken this upload over".into())
}

#[cfg(test)]
mod tests;
