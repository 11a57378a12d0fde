//! Backup and restore. A backup covers the database, which holds all that is configured; live windows are transient.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Error, Store};

/// What a backup holds, written last: a folder without it is no backup.
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

/// Writes a consistent copy into `dir`, which must be empty or not exist, while the service goes on.
pub async fn backup(store: &Store, dir: &Path, now_ms: i64) -> Result<Manifest, Error> {
    let _ = (store, dir, now_ms);
    Err(Error::Unsupported("backup is not built yet".into()))
}

/// Puts a backup in place of the database of a data folder that no service uses.
/// `Error::Conflict` when the folder is not empty and `force` is false. Forced, the database that was there is kept
/// beside the copies of migrations, and its path returned.
pub async fn restore(
    backup_dir: &Path,
    data_dir: &Path,
    force: bool,
    now_ms: i64,
) -> Result<Option<PathBuf>, Error> {
    let _ = (backup_dir, data_dir, force, now_ms);
    Err(Error::Unsupported("restore is not built yet".into()))
}
