//! The handle: opens the data folder, runs changes through the one writer and reads through a few readers.

use std::{future::Future, path::Path, pin::Pin};

use crate::{Error, Reader, StoreSettings, Tx};

/// What a unit of work gives back: `Box::pin(async move { … })`.
pub type Work<'t, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 't>>;

/// The database of one data folder. Clones share it; the last one dropped, or [`Store::close`], ends it.
#[derive(Clone)]
pub struct Store {}

/// Why changes do not go through at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub since_ms: i64,
    /// For people.
    pub reason: String,
}

/// What the writer has done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub commits: u64,
    /// Units of work that were committed.
    pub units: u64,
    /// Units of work that failed or were refused.
    pub failures: u64,
    /// Units of work that wait now.
    pub waiting: u64,
    pub wal_bytes: u64,
}

/// The disk under the data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    pub free_bytes: u64,
    pub total_bytes: u64,
    /// `store.min_free` in bytes.
    pub min_free_bytes: u64,
}

impl DiskSpace {
    /// Whether uploads and jobs have to wait.
    pub fn is_low(&self) -> bool {
        self.free_bytes < self.min_free_bytes
    }
}

impl Store {
    /// Makes the data folder, locks it, migrates the database and starts the writer on the current tokio runtime.
    ///
    /// `Error::Locked` when another process has the folder, `Error::Newer` when a newer version wrote the database,
    /// `Error::Invalid`/`Unsupported` for settings.
    pub async fn open(settings: &StoreSettings) -> Result<Self, Error> {
        settings.check()?;
        Err(Error::Unsupported("the store is not built yet".into()))
    }

    /// Opens the database of a data folder for reading only and without its lock, beside a running service or without one.
    /// [`Store::write`] fails on it.
    pub async fn open_for_backup(data_dir: &Path) -> Result<Self, Error> {
        let _ = data_dir;
        Err(Error::Unsupported("the store is not built yet".into()))
    }

    /// Runs a unit of work in the writer, and returns what it returned once that has been committed to disk.
    ///
    /// ```ignore
    /// let input = store.write(move |tx| Box::pin(async move { live_inputs::get(tx, account, id).await })).await?;
    /// ```
    ///
    /// Units share commits; an error or a panic undoes that unit only. `Error::Busy`: nothing was changed, because the queue
    /// is full, the database was locked for `store.busy_timeout`, or the commit failed. A unit must wait for nothing but
    /// its own verbs. It runs even when the caller has left.
    pub async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx<'_>) -> Work<'t, T> + Send + 'static,
    {
        let _ = work;
        Err(Error::Unsupported("the store is not built yet".into()))
    }

    /// A reader, which sees everything that [`Store::write`] has answered. `Error::Busy` when none is free for
    /// `store.busy_timeout`.
    pub async fn read(&self) -> Result<Reader, Error> {
        Err(Error::Unsupported("the store is not built yet".into()))
    }

    /// Why changes fail at present, for health and readiness; `None` when all is well. Published state: costs nothing.
    pub fn trouble(&self) -> Option<Trouble> {
        None
    }

    pub fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    pub fn data_dir(&self) -> &Path {
        Path::new("")
    }

    pub fn disk_space(&self) -> Result<DiskSpace, Error> {
        Err(Error::Unsupported("the store is not built yet".into()))
    }

    /// Deletes what has expired, in turns of about 20 ms with other work between them; returns how many rows.
    pub async fn sweep(&self, now_ms: i64) -> Result<u64, Error> {
        let _ = now_ms;
        Ok(0)
    }

    /// Commits what is queued, refuses what comes later, truncates the log and gives the lock back.
    pub async fn close(&self) {}
}
