//! `[archive]`: `max_entries`, `max_active`, `memory`, `stall_timeout`, `keep_selections` of ZIP downloads.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use sluice_media::setting::{duration, size};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Archive {
    /// Files and folders in one archive.
    pub max_entries: u32,
    /// Archives that are sent at a time.
    pub max_active: usize,
    /// Archives of one account's folders among them, also those that readers of its links download.
    pub max_per_account: usize,
    /// Folders that are listed for an archive at a time; each holds a reader of the database.
    pub max_listed: usize,
    /// Memory for the lists of all archives that are sent, about 40 bytes and the name for each file.
    #[serde(with = "size")]
    pub memory: ByteSize,
    /// Time for which an archive keeps its resources while its reader takes nothing.
    #[serde(with = "duration")]
    pub stall_timeout: Duration,
    /// Time for which the address of an archive of chosen files works.
    #[serde(with = "duration")]
    pub keep_selections: Duration,
    /// Such addresses of one account; the oldest ones end.
    pub max_selections: u32,
}

impl Default for Archive {
    fn default() -> Self {
        Self {
            max_entries: 1_000_000,
            max_active: 256,
            max_per_account: 64,
            max_listed: 2,
            memory: ByteSize::mib(256),
            stall_timeout: Duration::from_secs(5 * 60),
            keep_selections: Duration::from_secs(24 * 3600),
            max_selections: 1_000,
        }
    }
}

impl Archive {
    pub(super) fn check(&self) -> Result<(), String> {
        if !(1..=100_000_000).contains(&self.max_entries) {
            return Err("archive.max_entries must be between 1 and 100000000".into());
        }
        for (key, value) in [
            ("archive.max_active", self.max_active),
            ("archive.max_per_account", self.max_per_account),
            ("archive.max_listed", self.max_listed),
        ] {
            if value == 0 {
                return Err(format!("{key} must be at least 1"));
            }
        }
        if !(1 << 20..=1 << 40).contains(&self.memory.as_u64()) {
            return Err("archive.memory must be between 1 MiB and 1 TiB".into());
        }
        if !(1..=24 * 3600).contains(&self.stall_timeout.as_secs()) {
            return Err("archive.stall_timeout must be between 1s and 24h".into());
        }
        if !(60..=365 * 24 * 3600).contains(&self.keep_selections.as_secs()) {
            return Err("archive.keep_selections must be between 1m and 365d".into());
        }
        if !(1..=100_000).contains(&self.max_selections) {
            return Err("archive.max_selections must be between 1 and 100000".into());
        }
        Ok(())
    }
}
