//! Backup and restore of a data folder (`sluice backup`, `sluice restore`): database, blobs, video streams, manifest.
//!
//! A backup covers the database, which holds everything that was configured and the installation's key, and the files
//! of users that it names. Live windows are transient and left out. It is a folder: the database, the folder of blobs,
//! that of [video streams](streams) and a manifest.
//!
//! - The database is copied first. A blob that the copy names is kept for a day at least ([`crate::blobs`]), so that
//!   copying the blobs afterwards, beside a running service, gives a consistent state.
//! - An existing backup is updated in place: blobs are only added until the new manifest counts, so that the earlier
//!   backup stays whole when this one is interrupted.
//! - A missing or damaged blob does not stop the others; it is reported.

mod blob_copier;
mod digest;
mod feed;
mod index;
mod manifest;
mod stale;
mod streams;
mod unfinished;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use sqlx::{ConnectOptions, Connection as _, query, sqlite::SqliteConnectOptions};
use tracing::warn;

use self::{blob_copier::BlobCopier, index::BackupIndex, unfinished::Unfinished};
use crate::{
    Error, Store,
    blob::{self, BlobHash},
    copy, folder,
    folder::FolderLock,
    migrate, store,
};

pub use manifest::{BackupFile, BlobTotals, Manifest};
pub use streams::CarriedStreams;
pub(crate) use streams::carry as carry_streams;

/// Name of a backup's new database until its blobs are copied.
const ARRIVING: &str = "arriving.db";
/// Lost blobs that are named; of the others there is a number.
const MAX_LOST_NAMED: usize = 100;

/// Settings of a transfer of blobs between two folders.
pub struct Transfer {
    /// Reads every blob and compares it with its checksum. Otherwise only copied blobs are read, and of the others the
    /// length is compared.
    pub verify: bool,
    /// Called for each piece that was copied and each blob that is done, on a thread that may block.
    pub watch: Box<dyn FnMut(BackupProgress) + Send>,
}

/// Progress of a backup or restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupProgress {
    pub count: u64,
    pub bytes: u64,
    pub total_count: u64,
    pub total_bytes: u64,
}

impl BackupProgress {
    /// Returns the progress before the first of so many, with so many bytes together.
    pub(crate) fn begin(total_count: u64, total_bytes: u64) -> Self {
        Self {
            count: 0,
            bytes: 0,
            total_count,
            total_bytes,
        }
    }
}

/// Result of the transfer of the blobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Blobs that the database names.
    pub count: u64,
    pub bytes: u64,
    /// Blobs of `count` that were linked or copied now; the others existed already.
    pub brought: u64,
    pub brought_bytes: u64,
    /// Blobs of `count` that are missing afterwards.
    pub lost: u64,
    /// The first of the lost ones.
    pub lost_named: Vec<Lost>,
}

/// Blob that could not be copied, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub hash: BlobHash,
    /// Some of the files with these bytes; empty for blobs that only a job, a run or an upload needs.
    pub filenames: Vec<String>,
    /// Reason, such as "is missing".
    pub why: String,
}

/// A backup that was made.
#[derive(Clone, Debug)]
pub struct Backup {
    pub manifest: Manifest,
    pub blobs: Carried,
    pub streams: CarriedStreams,
}

/// Result of a restore.
#[derive(Clone, Debug)]
pub struct Restored {
    /// Path of the kept copy of the previous database.
    pub kept: Option<PathBuf>,
    pub blobs: Carried,
    pub streams: CarriedStreams,
}

impl Default for Transfer {
    fn default() -> Self {
        Self {
            verify: false,
            watch: Box::new(|_| ()),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A name is a user's, with any characters.
        let names: Vec<String> = self
            .filenames
            .iter()
            .map(|name| format!("{name:?}"))
            .collect();
        match names.as_slice() {
            [] => write!(f, "the blob {} of a job, a run or an upload", self.hash)?,
            _ => write!(f, "{} (blob {})", names.join(", "), self.hash)?,
        }
        write!(f, " {}", self.why)
    }
}

/// Writes a consistent copy into `dir` beside the running service, flushed to disk when it returns; an earlier backup
/// in it is updated.
///
/// Blobs that the service has lost are reported in [`Backup::blobs`], and then none of an earlier backup is removed.
/// `Error::Conflict` when `dir` has anything else in it, or another backup is being written there; it is made when it
/// does not exist.
pub async fn backup(
    store: &Store,
    dir: &Path,
    transfer: Transfer,
    now_ms: i64,
) -> Result<Backup, Error> {
    folder::create_private(dir)?;
    let unfinished = Unfinished::begin(dir)?;
    let arriving = dir.join(ARRIVING);
    copy_database(store, &arriving).await?;

    let mut index = BackupIndex::open(&arriving).await?;
    let (from, to) = (store.blobs().folder(), blob::folder_in(dir));
    let blobs = carry(&mut index, from, &to, transfer).await?;
    let schema_version = index.schema_version();
    index.close().await?;
    let streams = streams::carry(&arriving, store.data_dir(), dir).await?;

    let totals = BlobTotals {
        count: blobs.count,
        bytes: blobs.bytes,
        lost: blobs.lost,
    };
    let place = dir.to_owned();
    let manifest = off_thread(move || {
        let read =
            digest::digest_of(&arriving, |_| ()).map_err(Error::file("cannot read", &arriving))?;
        let database = BackupFile::new(folder::DATABASE, read);
        let manifest = Manifest::new(schema_version, database, totals, now_ms);
        publish(&place, &arriving, &manifest)?;
        Ok(manifest)
    })
    .await?;
    // After the manifest: until it counts, the earlier backup must stay whole.
    if blobs.lost == 0 {
        stale::remove(&folder::database(dir), &to).await?;
        streams::remove_stale(&folder::database(dir), dir).await?;
    }
    unfinished.end()?;
    Ok(Backup {
        manifest,
        blobs,
        streams,
    })
}

/// Replaces the database of an earlier backup by the new one. At each moment the manifest has the checksum of the
/// current one.
fn publish(dir: &Path, arriving: &Path, manifest: &Manifest) -> Result<(), Error> {
    if dir.join(manifest::NAME).exists() {
        manifest.or(Manifest::read(dir)?).write(dir)?;
    }
    copy::rename_durably(arriving, &folder::database(dir))?;
    manifest.write(dir)
}

async fn copy_database(store: &Store, target: &Path) -> Result<(), Error> {
    // A connection of its own: a long copy must not take a reader from the service.
    let mut connection = store::read_only(&store.database()).connect().await?;
    let copied = copy::database(&mut connection, target).await;
    let closed = connection.close().await;
    copied?;
    Ok(closed?)
}

/// Copies everything that a database names from one folder of blobs to another.
async fn carry(
    index: &mut BackupIndex,
    from: &Path,
    to: &Path,
    transfer: Transfer,
) -> Result<Carried, Error> {
    let totals = index.totals().await?;
    let mut carried = Carried {
        count: totals.0,
        bytes: totals.1,
        ..Carried::default()
    };
    let mut copier = BlobCopier::new(from.to_owned(), to.to_owned(), transfer, totals);
    let mut last = None;
    loop {
        let page = index.after(last).await?;
        let Some(entry) = page.last() else { break };
        last = Some(entry.hash);
        let failed;
        (copier, failed) = off_thread(move || {
            let failed = copier.bring(&page)?;
            Ok((copier, failed))
        })
        .await?;
        carried.lost += failed.len() as u64;
        for (hash, why) in failed {
            if carried.lost_named.len() < MAX_LOST_NAMED {
                let filenames = index.filenames(hash).await?;
                carried.lost_named.push(Lost {
                    hash,
                    filenames,
                    why,
                });
            }
        }
    }
    (carried.brought, carried.brought_bytes) = (copier.brought, copier.brought_bytes);
    off_thread(move || copier.finish()).await?;
    Ok(carried)
}

/// Replaces the database of a data folder that no service uses by that of a backup, and adds its blobs to the existing
/// ones.
///
/// The database is checked before anything is changed: `Error::Invalid` for a folder that is no backup or does not
/// have the manifest's checksums, `Error::Newer` for one of a newer version, `Error::Locked` while a service runs, and
/// `Error::Conflict` when the data folder is not empty and `force` is false; one in which a restore was interrupted
/// may be restored to again. Forced, the previous database is kept in the folder `backups`. Blobs that the backup does
/// not have are reported in [`Restored::blobs`]; everything else is restored.
pub async fn restore(
    backup_dir: &Path,
    data_dir: &Path,
    force: bool,
    transfer: Transfer,
    now_ms: i64,
) -> Result<Restored, Error> {
    let manifest = Manifest::read(backup_dir)?;
    migrate::check_known(manifest.schema_version)?;
    folder::create_private(data_dir)?;
    let _lock = FolderLock::take(data_dir)?;
    let database = folder::database(data_dir);
    let arriving = database.with_extension("restoring");
    if !force {
        check_free(data_dir, &database, &arriving)?;
    }
    let (source, copied) = (folder::database(backup_dir), arriving.clone());
    let arrived = off_thread(move || copy_private(&source, &copied)).await?;
    if !manifest.files.contains(&arrived) {
        copy::remove_if_there(&arriving)?;
        return Err(Error::Invalid(format!(
            "{} is damaged: {} does not have the checksum of its manifest",
            backup_dir.display(),
            arrived.name
        )));
    }
    // Before the database, so that every blob it names exists when it does.
    let mut index = BackupIndex::open(&arriving).await?;
    let (from, to) = (blob::folder_in(backup_dir), blob::folder_in(data_dir));
    let blobs = carry(&mut index, &from, &to, transfer).await?;
    index.close().await?;
    let streams = streams::carry(&arriving, backup_dir, data_dir).await?;
    // Before the rename: a crash must not leave a database that gives numbers again.
    feed::leave_a_gap(&arriving, now_ms).await?;
    let kept = set_aside(&database, data_dir, now_ms).await?;
    copy::rename_durably(&arriving, &database)?;
    Ok(Restored {
        kept,
        blobs,
        streams,
    })
}

/// Returns `Error::Conflict` when the data folder has other data.
fn check_free(data_dir: &Path, database: &Path, arriving: &Path) -> Result<(), Error> {
    let is_half_restored = arriving.exists() && !database.exists();
    let mut names = folder::names_in(data_dir)?.into_iter();
    if !is_half_restored && names.any(|name| folder::is_content(&name)) {
        return Err(Error::Conflict(format!(
            "{} is not empty: nothing was restored",
            data_dir.display()
        )));
    }
    Ok(())
}

/// Keeps the old database under another name, in addition to its own: a crash leaves the old or the new one in place.
async fn set_aside(
    database: &Path,
    data_dir: &Path,
    now_ms: i64,
) -> Result<Option<PathBuf>, Error> {
    if !database.exists() {
        return Ok(None);
    }
    // A database too damaged to merge its log into is kept as it is, with its log.
    if let Err(error) = take_log_in(database).await {
        warn!(%error, "the old database is kept with its log beside it");
    }
    let copies = folder::copies(data_dir);
    folder::create_private(&copies)?;
    let kept = copies.join(format!("before-restore-{}.db", copy::time_in_name(now_ms)));
    fs::hard_link(database, &kept)
        .or_else(|_| fs::copy(database, &kept).map(|_| ()))
        .map_err(Error::file("cannot keep the old database as", &kept))?;
    // SQLite would take a log left beside the new database for its own and destroy the database.
    for (log, kept_log) in folder::log_files(database)
        .iter()
        .zip(folder::log_files(&kept))
    {
        if log.exists() {
            fs::rename(log, kept_log).map_err(Error::file("cannot move", log))?;
        }
    }
    folder::sync_folder(&copies)?;
    folder::sync_folder(data_dir)?;
    Ok(Some(kept))
}

async fn take_log_in(database: &Path) -> Result<(), sqlx::Error> {
    let mut connection = SqliteConnectOptions::new()
        .filename(database)
        .connect()
        .await?;
    let outcome = query("PRAGMA wal_checkpoint(TRUNCATE)")
        .execute(&mut connection)
        .await;
    connection.close().await?;
    outcome.map(|_| ())
}

/// Copies a backup's database to a private file, and describes the copied bytes.
fn copy_private(from: &Path, to: &Path) -> Result<BackupFile, Error> {
    let source = fs::File::open(from).map_err(Error::file("cannot open", from))?;
    copy::remove_if_there(to)?;
    let target = folder::create_private_file(to)?;
    let copied =
        digest::digest(source, target, |_| ()).map_err(|broken| broken.in_copy(from, to))?;
    Ok(BackupFile::new(folder::DATABASE, copied))
}

/// Reading and hashing files blocks for too long to do it on an async thread.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::Internal(format!("copying files: {error}")))?
}
