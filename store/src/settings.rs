//! The configuration section `[store]`.

use std::{path::PathBuf, time::Duration};

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Settings of the store, with their defaults in [`Default`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// The folder of the database, the live media and everything else that must survive.
    pub data_dir: PathBuf,
    /// Empty: SQLite in `data_dir`. Reserved for `postgres://…`.
    pub database_url: String,
    /// Free disk space below which uploads and jobs wait: a share ("5%") or a size ("10 GB").
    pub min_free: String,
    /// Connections that read beside the writer.
    pub readers: u32,
    /// Units of work that may wait for the writer; one more is refused as busy.
    pub writer_queue: usize,
    /// Units of work that share one commit at most.
    pub commit_group: usize,
    /// How long a change or a read waits for a locked database or a free reader before it fails as busy.
    #[serde(with = "jiff::fmt::serde::unsigned_duration::friendly::compact::required")]
    pub busy_timeout: Duration,
    /// Size of the write-ahead log above which it is truncated.
    pub wal_truncate_above: ByteSize,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            data_dir: "data".into(),
            database_url: String::new(),
            min_free: "5%".into(),
            readers: 4,
            writer_queue: 1024,
            commit_group: 256,
            busy_timeout: Duration::from_secs(5),
            wal_truncate_above: ByteSize::mb(64),
        }
    }
}

impl StoreSettings {
    /// Refuses values that cannot work, with the key's path and what is allowed.
    pub fn check(&self) -> Result<(), Error> {
        if self.database_url.starts_with("postgres://")
            || self.database_url.starts_with("postgresql://")
        {
            return Err(Error::Unsupported(
                "store.database_url: PostgreSQL comes with a later release; leave it empty for SQLite in store.data_dir".into(),
            ));
        }
        if !self.database_url.is_empty() {
            return Err(invalid(
                "store.database_url",
                "empty, which means SQLite in store.data_dir",
            ));
        }
        if self.data_dir.as_os_str().is_empty() {
            return Err(invalid("store.data_dir", "a folder"));
        }
        if !(1..=64).contains(&self.readers) {
            return Err(invalid("store.readers", "1 to 64"));
        }
        if !(1..=65_536).contains(&self.writer_queue) {
            return Err(invalid("store.writer_queue", "1 to 65536"));
        }
        if !(1..=4_096).contains(&self.commit_group) {
            return Err(invalid("store.commit_group", "1 to 4096"));
        }
        if self.busy_timeout.is_zero() || self.busy_timeout > Duration::from_secs(300) {
            return Err(invalid("store.busy_timeout", "above 0 and at most 5m"));
        }
        if self.wal_truncate_above < ByteSize::mb(1) {
            return Err(invalid("store.wal_truncate_above", "1 MB or more"));
        }
        self.min_free_bytes(0).map(|_| ())
    }

    /// `min_free` in bytes on a disk of `total` bytes.
    pub fn min_free_bytes(&self, total: u64) -> Result<u64, Error> {
        const ALLOWED: &str = "a share of the disk (\"5%\", 0 to 99) or a size (\"10 GB\")";
        let text = self.min_free.trim();
        match text.strip_suffix('%') {
            Some(share) => match share.trim().parse::<f64>() {
                Ok(percent) if (0.0..=99.0).contains(&percent) => {
                    Ok((total as f64 * percent / 100.0) as u64)
                }
                _ => Err(invalid("store.min_free", ALLOWED)),
            },
            None => match text.parse::<ByteSize>() {
                Ok(size) => Ok(size.as_u64()),
                Err(_) => Err(invalid("store.min_free", ALLOWED)),
            },
        }
    }
}

fn invalid(key: &str, allowed: &str) -> Error {
    Error::Invalid(format!("{key}: expected {allowed}"))
}
