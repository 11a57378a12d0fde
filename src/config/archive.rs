//! `[archive]`: folders that are downloaded whole.

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use sluice_media::setting::size;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Archive {
    /// Files and folders in one archive.
    pub max_entries: u32,
    /// Archives that are sent at a time.
    pub max_active: usize,
    /// Folders that are listed for an archive at a time; each holds a reader of the database.
    pub max_listed: usize,
    /// For the lists of all archives that are sent, about 40 bytes and the name for each file.
    #[serde(with = "size")]
    pub memory: ByteSize,
}

impl Default for Archive {
    fn default() -> Self {
        Self {
            max_entries: 1_000_000,
            max_active: 256,
            max_listed: 2,
            memory: ByteSize::mib(256),
        }
    }
}

impl Archive {
    pub(super) fn check(&self) -> Result<(), String> {
        if !(1..=100_000_000).contains(&self.max_entries) {
            return Err("archive.max_entries must be between 1 and 100000000".into());
        }
        if self.max_active == 0 || self.max_listed == 0 {
            return Err("archive.max_active and archive.max_listed must be at least 1".into());
        }
        if !(1 << 20..=1 << 40).contains(&self.memory.as_u64()) {
            return Err("archive.memory must be between 1 MiB and 1 TiB".into());
        }
        Ok(())
    }
}
