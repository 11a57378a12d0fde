//! The shelves of the blob folder, and the names that lie on them: what a crash between rename and commit left behind is
//! found by looking through them, a few at a time.

use std::{ffi::OsStr, fmt, fs, time::UNIX_EPOCH};

use super::{BlobHash, Blobs};
use crate::Error;

/// One of the 256 folders in which blobs lie, by the first byte of their hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shelf(u8);

impl Shelf {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map(Self)
    }

    /// The one after it; the first follows the last.
    pub(crate) fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// The blob that lies on it under this name, if it is a blob's.
    pub(crate) fn blob(self, name: &OsStr) -> Option<BlobHash> {
        format!("{self}{}", name.to_str()?).parse().ok()
    }
}

impl fmt::Display for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}", self.0)
    }
}

impl Blobs {
    /// The blobs of a shelf that were written before a time. Other names than a blob's are left alone.
    pub(crate) async fn on_shelf(
        &self,
        shelf: Shelf,
        before_ms: i64,
    ) -> Result<Vec<BlobHash>, Error> {
        let folder = self.shared.blobs.join(shelf.to_string());
        self.blocking(move || {
            let entries = fs::read_dir(&folder).map_err(Error::file("cannot list", &folder))?;
            let old = entries
                .filter_map(Result::ok)
                .filter(|entry| written_ms(entry).is_some_and(|written| written < before_ms))
                .filter_map(|entry| shelf.blob(&entry.file_name()));
            Ok(old.collect())
        })
        .await
    }
}

fn written_ms(entry: &fs::DirEntry) -> Option<i64> {
    let written = entry.metadata().ok()?.modified().ok()?;
    let since_1970 = written.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since_1970.as_millis()).ok()
}
