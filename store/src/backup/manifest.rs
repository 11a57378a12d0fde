//! `manifest.json` of a backup: format, schema version, checksum of the database, number of blobs. It is written last: a
//! folder without one is no backup.

use std::{
    fs::File,
    io::{Read, Write},
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use crate::{Error, copy, credentials::hexadecimal, folder};

pub(super) const NAME: &str = "manifest.json";
const FORMAT: u32 = 1;
/// A manifest is a few hundred bytes; more is not read.
const MAX_BYTES: u64 = 1 << 20;

/// Contents of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this file's format.
    pub format: u32,
    /// The program that made it.
    pub version: String,
    pub schema_version: i64,
    pub created_at_ms: i64,
    /// Database files. While a newer database replaces it both are listed, so that a crash leaves a backup.
    pub files: Vec<BackupFile>,
    /// The files of users; their checksums are their names.
    #[serde(default)]
    pub blobs: BlobTotals,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    pub name: String,
    pub bytes: u64,
    /// Hexadecimal.
    pub sha256: String,
}

/// Blobs that the database of a backup names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobTotals {
    pub count: u64,
    pub bytes: u64,
    /// Blobs of these that are not in the backup, because the service had lost them.
    pub lost: u64,
}

impl Manifest {
    pub(super) fn new(
        schema_version: i64,
        database: BackupFile,
        blobs: BlobTotals,
        now_ms: i64,
    ) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            schema_version,
            created_at_ms: now_ms,
            files: vec![database],
            blobs,
        }
    }

    /// Merges two manifests, for the moment in which either database may be in place.
    pub(super) fn or(&self, earlier: Self) -> Self {
        let mut both = self.clone();
        both.schema_version = both.schema_version.max(earlier.schema_version);
        both.files.extend(earlier.files);
        both
    }

    pub(super) fn write(&self, dir: &Path) -> Result<(), Error> {
        let path = dir.join(NAME);
        let partial = path.with_extension("partial");
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| Error::Internal(format!("writing a manifest: {error}")))?;
        copy::remove_if_there(&partial)?;
        folder::create_private_file(&partial)?
            .write_all(&text)
            .map_err(Error::write("cannot write", &partial))?;
        copy::rename_durably(&partial, &path)
    }

    /// Reads the manifest. `Error::Invalid` when the folder is no backup that this program can read.
    pub(super) fn read(dir: &Path) -> Result<Self, Error> {
        let no_backup =
            |why: String| Error::Invalid(format!("{} is no backup: {why}", dir.display()));
        let mut text = String::new();
        File::open(dir.join(NAME))
            .and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text))
            .map_err(|error| no_backup(format!("{NAME}: {error}")))?;
        let manifest: Self =
            serde_json::from_str(&text).map_err(|error| no_backup(format!("{NAME}: {error}")))?;
        match manifest.format {
            FORMAT => Ok(manifest),
            other => Err(no_backup(format!(
                "its form is {other}, this program reads {FORMAT}"
            ))),
        }
    }
}

impl BackupFile {
    pub(super) fn new(name: &str, digest: Digest) -> Self {
        Self {
            name: name.to_owned(),
            bytes: digest.bytes,
            sha256: hexadecimal(&digest.sha256),
        }
    }
}
