//! Rows of blobs, the columns that refer to them, and the sweep that deletes unreferenced blobs after 24 hours.
//!
//! - A row is written by [`record`] in the transaction of the row that names the blob; afterwards the file is kept for
//!   as long as something of [`REFERENCES`] names it, and a day longer.
//! - Sweeping has two steps: mark what nothing names, delete what has been marked for a day and is still not named.
//!   Both decisions are made by the writer, so that neither can race with an upload of the same bytes.
//! - A file is renamed away inside the unit of work that deletes its row; its blocks are freed afterwards. Objects are deleted
//!   after the commit: their keys are never used again.

use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::{
    Connection, Error, Store, Tx,
    blob::{BlobHash, Blobs, HashPrefix, Sealed, SetAside, pieces::Place},
    statement::{query, query_as, query_scalar},
    stray_objects,
};

/// Every column that names a blob, as (table, column). A blob is kept while one of them has its hash; each needs an index.
pub const REFERENCES: &[(&str, &str)] = &[
    ("files", "blob_hash"),
    ("uploads", "blob_hash"),
    ("jobs", "archive_blob"),
    ("job_files", "result_blob"),
    ("job_files", "attachment_blob"),
    ("job_inputs", "blob"),
    ("workflow_runs", "input_blob"),
    ("workflow_runs", "output_blob"),
    ("video_streams", "source_blob"),
    ("video_captions", "blob"),
];

/// Time for which an unreferenced blob is kept, as a row or as a file without one.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;
/// Rows read in one statement of a reader, and deleted in one unit of work.
const PAGE: usize = 200;
/// Pages of rows that one sweep reads.
const PAGES_PER_SWEEP: usize = 50;
/// Prefixes in which one sweep searches for files without a row.
const PREFIXES_PER_SWEEP: usize = 8;
/// Prefixes of a sweep in the first round after a start, which searches for files of a killed process: eight sweeps,
/// one a minute.
const PREFIXES_PER_FIRST_SWEEP: usize = 32;
/// Greatest lag of a file system's times behind the clock.
const FILE_TIMES_LAG_MS: i64 = 20;

/// Row of a stored blob.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct BlobRow {
    pub hash: BlobHash,
    pub size_bytes: i64,
    #[sqlx(try_from = "i64")]
    pub crc32: u32,
    pub created_at: i64,
    /// Time since which nothing is known to name it.
    pub marked_at: Option<i64>,
    /// Base of its objects; `None`: the bytes are a file in the folder.
    pub(crate) base: Option<Uuid>,
    pub(crate) piece_hashes: Option<Vec<u8>>,
}

impl BlobRow {
    /// Returns where the bytes are in the object store; `None`: they are in the folder.
    pub(crate) fn place(self) -> Option<Place> {
        place_of(self.base, self.piece_hashes)
    }
}

fn place_of(base: Option<Uuid>, piece_hashes: Option<Vec<u8>>) -> Option<Place> {
    Some(Place {
        base: base?,
        piece_hashes: piece_hashes.unwrap_or_default(),
    })
}

/// Positions at which the sweeps continue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position {
    /// Rows up to this hash have been read in this round.
    after: Option<BlobHash>,
    prefix: HashPrefix,
    /// Start of this process, the only one of the folder; `None` once a round has looked for what it found.
    started_ms: Option<i64>,
}

/// Records that this process has the folder to itself from now on: a file that is older and without a row has no
/// owner, and is deleted in the first round.
pub(crate) fn note_start(blobs: &Blobs, now_ms: i64) {
    position(blobs).started_ms = Some(now_ms - FILE_TIMES_LAG_MS);
}

/// Makes the blob count, in the transaction of the row that names it: a new row, or a marked one revived. Its file is in its
/// place afterwards, also when a sweep had taken it away; a row with objects keeps those that it has, unless they are lost.
pub async fn record(tx: &mut Tx<'_>, sealed: &Sealed, now_ms: i64) -> Result<(), Error> {
    let (blob, place) = (sealed.blob(), sealed.place());
    let base: Option<Uuid> = query_scalar(
        "INSERT INTO blobs (hash, size_bytes, crc32, created_at, base, piece_hashes) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (hash) DO UPDATE SET marked_at = NULL RETURNING base",
    )
    .bind(blob.hash)
    .bind(i64::try_from(blob.size).map_err(|_| Error::Internal("a blob of 8 EiB".into()))?)
    .bind(blob.crc32)
    .bind(now_ms)
    .bind(place.map(|place| place.base))
    .bind(place.map(|place| place.piece_hashes.clone()))
    .fetch_one(tx)
    .await?;
    match (place, base) {
        (Some(place), Some(base)) if base == place.base => sealed.note_recorded(),
        // The row's objects are lost. What is left of them is found as strays.
        (Some(place), Some(base)) if sealed.replaces(base) => replace(tx, sealed, place).await,
        // The objects of the row have the same bytes.
        (Some(_), Some(_)) => Ok(()),
        (Some(_), None) if sealed.is_in_folder() => Ok(()),
        // The row's file is lost.
        (Some(place), None) => replace(tx, sealed, place).await,
        // Checks the folder in the writer on purpose: a sweep moves files only here, too.
        (None, _) => sealed.ensure_placed(),
    }
}

/// Gives the row of a blob the objects in place of lost bytes.
async fn replace(tx: &mut Tx<'_>, sealed: &Sealed, place: &Place) -> Result<(), Error> {
    query("UPDATE blobs SET base = $2, piece_hashes = $3 WHERE hash = $1")
        .bind(sealed.blob().hash)
        .bind(place.base)
        .bind(place.piece_hashes.clone())
        .execute(tx)
        .await?;
    sealed.note_recorded()
}

/// Returns a blob's row. `Error::NotFound` for a blob that was never recorded.
pub async fn get(db: &mut impl Connection, hash: &BlobHash) -> Result<BlobRow, Error> {
    query_as("SELECT * FROM blobs WHERE hash = $1")
        .bind(*hash)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("blob"))
}

/// Counts the blobs.
pub async fn count(db: &mut impl Connection) -> Result<i64, Error> {
    Ok(query_scalar("SELECT count(*) FROM blobs")
        .fetch_one(db)
        .await?)
}

/// Returns the SQL condition that is true when something names the blob `blobs.hash`.
fn is_named() -> String {
    naming(REFERENCES)
}

/// Returns the SQL condition that is true when one of these columns names the blob `blobs.hash`. The offset keeps PostgreSQL from
/// reading a whole table to look up a page of blobs.
pub(crate) fn naming<'a>(references: impl IntoIterator<Item = &'a (&'a str, &'a str)>) -> String {
    let exists = |(table, column): &(&str, &str)| {
        format!(
            "EXISTS (SELECT 1 FROM {table} WHERE {table}.{column} = blobs.hash LIMIT 1 OFFSET 0)"
        )
    };
    let each: Vec<String> = references.into_iter().map(exists).collect();
    format!("({})", each.join(" OR "))
}

/// Marks, deletes and searches for objects without rows, a bounded part of each; returns how many blobs were deleted.
pub(crate) async fn sweep(store: &Store, now_ms: i64) -> Result<u64, Error> {
    mark(store, now_ms).await?;
    let swept = delete_marked(store, now_ms - KEPT_MS).await?;
    // The rows are swept also while the object store fails.
    if let Err(error) = stray_objects::sweep(store, now_ms - KEPT_MS).await {
        tracing::warn!(%error, "objects without a row are searched for later");
    }
    Ok(swept)
}

/// Deletes files of the folder without rows, a bounded part, and what is beyond the bound of the cache; returns how many without
/// rows there were.
pub(crate) async fn sweep_folder(store: &Store, now_ms: i64) -> Result<u64, Error> {
    let unrecorded = delete_unrecorded(store, now_ms - KEPT_MS).await?;
    // The folder is swept also while the cache fails.
    if let Err(error) = store.blobs().sweep_cache().await {
        tracing::warn!(%error, "the cache is not swept");
    }
    Ok(unrecorded)
}

/// Continues through the rows where the last sweep ended, and marks blobs that nothing names.
async fn mark(store: &Store, now_ms: i64) -> Result<(), Error> {
    for _ in 0..PAGES_PER_SWEEP {
        let after = position(store.blobs()).after;
        let page = unmarked_after(&mut store.read().await?, after).await?;
        let is_last = page.len() < PAGE;
        position(store.blobs()).after = match page.last() {
            Some((hash, _)) if !is_last => Some(*hash),
            _ => None,
        };
        let unnamed = page.into_iter().filter(|(_, is_named)| !is_named);
        let unnamed: Vec<BlobHash> = unnamed.map(|(hash, _)| hash).collect();
        if !unnamed.is_empty() {
            store
                .write(move |tx| Box::pin(async move { mark_unnamed(tx, &unnamed, now_ms).await }))
                .await?;
        }
        if is_last {
            break;
        }
    }
    Ok(())
}

/// A page of rows without a mark, each with whether something names it.
pub(crate) async fn unmarked_after(
    db: &mut impl Connection,
    after: Option<BlobHash>,
) -> Result<Vec<(BlobHash, bool)>, Error> {
    let statement = format!(
        "SELECT hash, {} FROM blobs WHERE hash > $1 AND marked_at IS NULL ORDER BY hash LIMIT $2",
        is_named()
    );
    let after = after.map_or_else(Vec::new, |hash| hash.as_bytes().to_vec());
    let page = query_as(statement)
        .bind(after)
        .bind(PAGE as i64)
        .fetch_all(db)
        .await?;
    Ok(page)
}

/// Checks again, in the writer: a row may have named the blob since the reader looked.
async fn mark_unnamed(tx: &mut Tx<'_>, hashes: &[BlobHash], now_ms: i64) -> Result<(), Error> {
    let statement = format!(
        "UPDATE blobs SET marked_at = $2 WHERE hash = $1 AND marked_at IS NULL AND NOT {}",
        is_named()
    );
    for hash in hashes {
        query(statement.clone())
            .bind(*hash)
            .bind(now_ms)
            .execute(tx)
            .await?;
    }
    Ok(())
}

/// Deletes the blobs that were marked before a time; the mark of a blob that is named again is removed.
async fn delete_marked(store: &Store, before_ms: i64) -> Result<u64, Error> {
    let mut total = 0;
    loop {
        let (seen, deleted) = take_away(store, move |tx, blobs, aside| {
            Box::pin(async move {
                let marked: Vec<BlobHash> = query_scalar(
                    "SELECT hash FROM blobs WHERE marked_at < $1 ORDER BY marked_at LIMIT $2",
                )
                .bind(before_ms)
                .bind(PAGE as i64)
                .fetch_all(tx)
                .await?;
                let mut deleted = 0;
                for hash in &marked {
                    deleted += u64::from(delete_one(tx, &blobs, hash, &aside).await?);
                }
                Ok((marked.len(), deleted))
            })
        })
        .await?;
        total += deleted;
        if seen < PAGE {
            return Ok(total);
        }
    }
}

/// Deletes a blob unless something names it; returns whether it was deleted.
async fn delete_one(
    tx: &mut Tx<'_>,
    blobs: &Blobs,
    hash: &BlobHash,
    aside: &Aside,
) -> Result<bool, Error> {
    let statement = format!(
        "DELETE FROM blobs WHERE hash = $1 AND NOT {} RETURNING base, piece_hashes",
        is_named()
    );
    let deleted: Option<(Option<Uuid>, Option<Vec<u8>>)> =
        query_as(statement).bind(*hash).fetch_optional(tx).await?;
    let Some((base, piece_hashes)) = deleted else {
        query("UPDATE blobs SET marked_at = NULL WHERE hash = $1")
            .bind(*hash)
            .execute(tx)
            .await?;
        return Ok(false);
    };
    aside.extend(blobs.set_aside(hash)?);
    if let Some(place) = place_of(base, piece_hashes) {
        aside.0.lock().objects.push((*hash, place));
    }
    Ok(true)
}

/// Removes files that have no row, because a crash came between their rename and their commit: those from before the
/// start soon after it, others when they are old. One that is recorded at this moment is restored ([`record`]).
async fn delete_unrecorded(store: &Store, before_ms: i64) -> Result<u64, Error> {
    let mut total = 0;
    let started_ms = position(store.blobs()).started_ms;
    let (prefixes, before_ms) = match started_ms {
        Some(started_ms) => (PREFIXES_PER_FIRST_SWEEP, before_ms.max(started_ms)),
        None => (PREFIXES_PER_SWEEP, before_ms),
    };
    for _ in 0..prefixes {
        let prefix = {
            let mut position = position(store.blobs());
            let prefix = position.prefix;
            position.prefix = prefix.next();
            prefix
        };
        let found = store.blobs().with_prefix(prefix, before_ms).await?;
        for hashes in found.chunks(PAGE) {
            let suspects = without_row(store, hashes).await?;
            if suspects.is_empty() {
                continue;
            }
            total += take_away(store, move |tx, blobs, aside| {
                let suspects = suspects.clone();
                Box::pin(async move {
                    let mut removed = 0;
                    for hash in &suspects {
                        // Checked again in the writer: an upload of the same bytes may have been recorded since.
                        if !has_row(tx, hash).await? {
                            aside.extend(blobs.set_aside(hash)?);
                            removed += 1;
                        }
                    }
                    Ok(removed)
                })
            })
            .await?;
        }
        if prefix.next() == HashPrefix::default() {
            position(store.blobs()).started_ms = None;
        }
    }
    Ok(total)
}

async fn without_row(store: &Store, hashes: &[BlobHash]) -> Result<Vec<BlobHash>, Error> {
    let mut reader = store.read().await?;
    let mut without = Vec::new();
    for hash in hashes {
        if !has_row(&mut reader, hash).await? {
            without.push(*hash);
        }
    }
    Ok(without)
}

async fn has_row(db: &mut impl Connection, hash: &BlobHash) -> Result<bool, Error> {
    let found: Option<i64> = query_scalar("SELECT CAST(1 AS INTEGER) FROM blobs WHERE hash = $1")
        .bind(*hash)
        .fetch_optional(db)
        .await?;
    Ok(found.is_some())
}

/// Bytes whose rows a unit of work deletes.
#[derive(Clone, Default)]
struct Aside(Arc<Mutex<Taken>>);

#[derive(Default)]
struct Taken {
    /// Files that it took out of their place.
    files: Vec<SetAside>,
    objects: Vec<(BlobHash, Place)>,
}

impl Aside {
    fn extend(&self, file: Option<SetAside>) {
        self.0.lock().files.extend(file);
    }

    fn take(&self) -> Taken {
        std::mem::take(&mut self.0.lock())
    }
}

/// Runs a unit of work that renames files away and notes objects; they are removed when it was committed; when not, files are
/// restored and objects left.
async fn take_away<T, F>(store: &Store, work: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: for<'t> FnOnce(&'t mut Tx<'_>, Blobs, Aside) -> crate::Work<'t, T> + Send + 'static,
{
    let (blobs, aside) = (store.blobs().clone(), Aside::default());
    let taken = aside.clone();
    let outcome = store.write(move |tx| work(tx, blobs, taken)).await;
    let (Taken { files, objects }, is_committed) = (aside.take(), outcome.is_ok());
    let at = store.blobs().clone();
    if is_committed && !objects.is_empty() {
        let places = objects.clone().into_iter();
        at.delete_later(places.flat_map(|(_, place)| place.keys()));
    }
    let settle = move || {
        if is_committed {
            for (hash, place) in &objects {
                at.forget(hash, place);
            }
        }
        for file in files {
            if is_committed {
                file.remove();
            } else {
                file.put_back();
            }
        }
        Ok(())
    };
    // After the commit: a rollback restores the rows, and a removed file could not be restored.
    store.blobs().blocking(settle).await?;
    outcome
}

fn position(blobs: &Blobs) -> parking_lot::MutexGuard<'_, Position> {
    blobs.position().lock()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::StoreSettings;

    /// A table that names blobs outside the list would lose its bytes after a day.
    #[tokio::test]
    async fn every_column_that_names_a_blob_is_in_the_list_and_indexed() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::on_sqlite(folder.path());
        let store = Store::open(&settings).await.unwrap();
        let mut reader = store.read().await.unwrap();
        let columns: Vec<(String, String)> = query_as(
            "SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c
             WHERE t.type = 'table' AND (c.name LIKE '%blob%' AND c.type = 'BLOB' OR EXISTS (
                 SELECT 1 FROM pragma_foreign_key_list(t.name) k WHERE k.\"table\" = 'blobs' AND k.\"from\" = c.name))",
        )
        .fetch_all(&mut reader)
        .await
        .unwrap();
        let listed: BTreeSet<_> = REFERENCES
            .iter()
            .map(|(table, column)| ((*table).to_owned(), (*column).to_owned()))
            .collect();
        assert_eq!(columns.into_iter().collect::<BTreeSet<_>>(), listed);
        for (table, column) in REFERENCES {
            let indexed: Option<i64> = query_scalar(
                "SELECT 1 FROM pragma_index_list($1) i JOIN pragma_index_info(i.name) c
                 WHERE c.seqno = 0 AND c.name = $2",
            )
            .bind(*table)
            .bind(*column)
            .fetch_optional(&mut reader)
            .await
            .unwrap();
            assert_eq!(indexed, Some(1), "an index on {table}.{column}");
        }
    }
}
