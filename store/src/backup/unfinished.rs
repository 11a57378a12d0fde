//! File `unfinished` of a backup that is being written: one backup at a time, and an interrupted one may be continued.

use std::{
    fs::{self, File, TryLockError},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::manifest;
use crate::{Error, folder};

const NAME: &str = "unfinished";

/// Lock of a folder in which a backup is written. The kernel releases the lock when the process ends; the file remains
/// then, and marks the folder's contents as a backup's.
pub(super) struct Unfinished {
    path: PathBuf,
    _file: File,
}

impl Unfinished {
    /// Locks the folder. `Error::Conflict` for one with anything but a backup in it, or with one that is being written.
    pub(super) fn begin(dir: &Path) -> Result<Self, Error> {
        let names = folder::names_in(dir)?;
        let is_backup = |name: &std::ffi::OsString| name == NAME || name == manifest::NAME;
        if !names.is_empty() && !names.iter().any(is_backup) {
            return Err(Error::Conflict(format!(
                "{} is not empty and is no backup: name a new folder, an empty one, or an earlier backup",
                dir.display()
            )));
        }
        if names.iter().any(|name| name == manifest::NAME) {
            // Rejected now rather than after hours of copying, when it is of another format.
            manifest::Manifest::read(dir)?;
        }
        let path = dir.join(NAME);
        let file = folder::create_private_file(&path)?;
        let taken = || {
            Error::Conflict(format!(
                "another backup is being written to {}",
                dir.display()
            ))
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(taken()),
            // Network file systems may not support locks.
            Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(Error::file("cannot lock", path)(error)),
        }
        // The last holder may have ended, and removed this very file, between opening and locking.
        let links = file.metadata().map(|found| found.nlink());
        match links.map_err(Error::file("cannot look at", &path))? {
            0 => Err(taken()),
            _ => Ok(Self { path, _file: file }),
        }
    }

    pub(super) fn end(self) -> Result<(), Error> {
        fs::remove_file(&self.path).map_err(Error::file("cannot remove", self.path))
    }
}
