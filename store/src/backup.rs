//! Backup and restore.
//!
//! A backup covers the database, which holds everything that was configured and the installation's key. Live windows are
//! transient and stay out. It is a folder: the database and a manifest, which is written last, so that a folder without
//! one is no backup.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx::{ConnectOptions, Connection as _, query, sqlite::SqliteConnectOptions};
use tracing::warn;

use crate::{
    Error, Store, copy, credentials::hexadecimal, folder, folder::FolderLock, migrate, store,
};

const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest.json";
/// A manifest is a few hundred bytes; more is not read.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Of this file's form.
    pub format: u32,
    /// The program that made it.
    pub version: String,
    pub schema_version: i64,
    pub created_at_ms: i64,
    pub files: Vec<BackupFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    pub name: String,
    pub bytes: u64,
    /// Hexadecimal.
    pub sha256: String,
}

/// Writes a consistent copy into `dir` while the service goes on, flushed to disk when it returns.
/// `Error::Conflict` when `dir` has anything in it; it is made when it does not exist.
pub async fn backup(store: &Store, dir: &Path, now_ms: i64) -> Result<Manifest, Error> {
    folder::create_private(dir)?;
    if !names_in(dir)?.is_empty() {
        return Err(Error::Conflict(format!(
            "{} is not empty: a backup needs a folder of its own",
            dir.display()
        )));
    }
    let target = folder::database(dir);
    // A connection of its own: a long copy must not take a reader from the service.
    let mut connection = store::read_only(&store.database()).connect().await?;
    let copied = copy::database(&mut connection, &target).await;
    let closed = connection.close().await;
    copied?;
    closed?;

    let mut copied = store::read_only(&target).connect().await?;
    let schema_version = migrate::applied_version(&mut copied).await?;
    copied.close().await?;
    let manifest = Manifest {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        schema_version,
        created_at_ms: now_ms,
        files: vec![off_thread(move || describe(&target)).await?],
    };
    write_manifest(dir, &manifest)?;
    Ok(manifest)
}

/// Puts a backup in place of the database of a data folder that no service uses.
///
/// Everything is checked before anything is changed: `Error::Invalid` for a folder that is no backup or does not have the
/// manifest's checksums, `Error::Newer` for one of a newer version, `Error::Locked` while a service runs, and
/// `Error::Conflict` when the data folder is not empty and `force` is false. Forced, the database that was there is
/// kept in the folder `backups`, and its path returned.
pub async fn restore(
    backup_dir: &Path,
    data_dir: &Path,
    force: bool,
    now_ms: i64,
) -> Result<Option<PathBuf>, Error> {
    let manifest = read_manifest(backup_dir)?;
    let known = migrate::known_version(&migrate::MIGRATIONS);
    if manifest.schema_version > known {
        return Err(Error::Newer {
            found: manifest.schema_version,
            known,
        });
    }
    folder::create_private(data_dir)?;
    let _lock = FolderLock::take(data_dir)?;
    if !force
        && names_in(data_dir)?
            .iter()
            .any(|name| folder::is_content(name))
    {
        return Err(Error::Conflict(format!(
            "{} is not empty: nothing was restored",
            data_dir.display()
        )));
    }

    let source = folder::database(backup_dir);
    let database = folder::database(data_dir);
    let arriving = database.with_extension("restoring");
    let copied = arriving.clone();
    let arrived = off_thread(move || copy_private(&source, &copied)).await?;
    if !manifest.files.contains(&arrived) {
        copy::remove_if_there(&arriving)?;
        return Err(Error::Invalid(format!(
            "{} is damaged: {} does not have the checksum of its manifest",
            backup_dir.display(),
            arrived.name
        )));
    }
    let kept = set_aside(&database, data_dir, now_ms).await?;
    copy::rename_durably(&arriving, &database)?;
    Ok(kept)
}

/// Keeps the old database under another name, while its own name stays: a crash leaves the old or the new one in place.
async fn set_aside(
    database: &Path,
    data_dir: &Path,
    now_ms: i64,
) -> Result<Option<PathBuf>, Error> {
    if !database.exists() {
        return Ok(None);
    }
    // A database too broken to take its log in is kept as it is, with its log.
    if let Err(error) = take_log_in(database).await {
        warn!(%error, "the old database is kept with its log beside it");
    }
    let copies = folder::copies(data_dir);
    folder::create_private(&copies)?;
    let kept = copies.join(format!("before-restore-{}.db", copy::time_in_name(now_ms)));
    fs::hard_link(database, &kept)
        .or_else(|_| fs::copy(database, &kept).map(|_| ()))
        .map_err(Error::file("cannot keep the old database as", &kept))?;
    // A log left beside the new database would be taken for its own and destroy it.
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

fn names_in(dir: &Path) -> Result<Vec<std::ffi::OsString>, Error> {
    fs::read_dir(dir)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect())
        .map_err(Error::file("cannot list", dir))
}

fn write_manifest(dir: &Path, manifest: &Manifest) -> Result<(), Error> {
    let path = dir.join(MANIFEST);
    let partial = path.with_extension("partial");
    let text = serde_json::to_vec_pretty(manifest)
        .map_err(|error| Error::Internal(format!("writing a manifest: {error}")))?;
    folder::create_private_file(&partial)?
        .write_all(&text)
        .map_err(Error::file("cannot write", &partial))?;
    copy::rename_durably(&partial, &path)
}

fn read_manifest(dir: &Path) -> Result<Manifest, Error> {
    let path = dir.join(MANIFEST);
    let no_backup = |why: String| Error::Invalid(format!("{} is no backup: {why}", dir.display()));
    let mut text = String::new();
    File::open(&path)
        .and_then(|file| file.take(MAX_MANIFEST_BYTES).read_to_string(&mut text))
        .map_err(|error| no_backup(format!("{MANIFEST}: {error}")))?;
    let manifest: Manifest =
        serde_json::from_str(&text).map_err(|error| no_backup(format!("{MANIFEST}: {error}")))?;
    match manifest.format {
        FORMAT => Ok(manifest),
        other => Err(no_backup(format!(
            "its form is {other}, this program reads {FORMAT}"
        ))),
    }
}

/// Name, length and checksum of a file.
fn describe(path: &Path) -> Result<BackupFile, Error> {
    let file = File::open(path).map_err(Error::file("cannot open", path))?;
    let read = digest(file, io::sink()).map_err(Error::file("cannot read", path))?;
    Ok(backup_file(path, read))
}

/// Copies a file to a private one, and describes the bytes that went over.
fn copy_private(from: &Path, to: &Path) -> Result<BackupFile, Error> {
    let source = File::open(from).map_err(Error::file("cannot open", from))?;
    copy::remove_if_there(to)?;
    let target = folder::create_private_file(to)?;
    let copied = digest(source, target).map_err(Error::file("cannot copy", from))?;
    Ok(backup_file(from, copied))
}

fn backup_file(path: &Path, (bytes, sha256): (u64, String)) -> BackupFile {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    BackupFile {
        name,
        bytes,
        sha256,
    }
}

/// Moves all bytes from one to the other; their number and SHA-256.
fn digest(mut from: impl Read, mut to: impl Write) -> io::Result<(u64, String)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut total = 0;
    loop {
        let length = from.read(&mut buffer)?;
        if length == 0 {
            return Ok((total, hexadecimal(&hasher.finalize())));
        }
        hasher.update(&buffer[..length]);
        to.write_all(&buffer[..length])?;
        total += length as u64;
    }
}

/// Reading and hashing a whole database blocks for too long to do it on an async thread.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::Internal(format!("a file's checksum: {error}")))?
}
