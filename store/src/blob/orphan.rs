//! Hash prefixes, the 256 folders of blobs, and the blob files in them: a sweep finds those that a crash left without a
//! row.

use std::{ffi::OsStr, fmt, fs, os::unix::fs::MetadataExt as _};

use super::{BlobHash, Blobs};
use crate::Error;

/// Hash prefix: one of the 256 folders of blobs, by the first byte of their hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HashPrefix(u8);

impl HashPrefix {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map(Self)
    }

    /// The one after it; the first follows the last.
    pub(crate) fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// Returns the blob that has this file name under the prefix, if it is a blob's name.
    pub(crate) fn blob(self, name: &OsStr) -> Option<BlobHash> {
        format!("{self}{}", name.to_str()?).parse().ok()
    }
}

impl fmt::Display for HashPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}", self.0)
    }
}

impl Blobs {
    /// The blobs of a prefix that got their names before a time. Other names than a blob's are left alone.
    pub(crate) async fn with_prefix(
        &self,
        prefix: HashPrefix,
        before_ms: i64,
    ) -> Result<Vec<BlobHash>, Error> {
        let folder = self.shared.blobs.join(prefix.to_string());
        self.blocking(move || {
            let entries = fs::read_dir(&folder).map_err(Error::file("cannot list", &folder))?;
            let old = entries
                .filter_map(Result::ok)
                .filter(|entry| placed_ms(entry).is_some_and(|placed| placed < before_ms))
                .filter_map(|entry| prefix.blob(&entry.file_name()));
            Ok(old.collect())
        })
        .await
    }
}

/// Returns when the file got its last name, which is its blob's or came with it; what was written into an upload
/// before a restart is older.
fn placed_ms(entry: &fs::DirEntry) -> Option<i64> {
    let status = entry.metadata().ok()?;
    Some(status.ctime() * 1_000 + status.ctime_nsec() / 1_000_000)
}
