//! Media of recorded broadcasts in the object store: each file is the pieces of a base of its own, which its row names
//! ([`crate::live_segments`]).

use std::{
    fs::File,
    os::unix::fs::FileExt as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::{
    Blobs,
    pieces::{PieceUpload, Place, made_ms, new_base, piece_hash},
    source::Source,
};
use crate::{Error, Reader, live_segments, now_ms, objects::PIECE};

/// Age of a base from which it is not recorded any more: objects without a row are deleted when their base is 24 hours old, and
/// clocks differ.
const MAX_RECORDED_AGE_MS: i64 = 16 * 60 * 60 * 1000;
/// Objects that are deleted at a time.
const DELETED_AT_ONCE: usize = 8;

/// File that was uploaded. Its objects are deleted when it is dropped before a row has them.
#[derive(Debug)]
pub struct UploadedFile {
    blobs: Blobs,
    place: Place,
    size: u64,
    /// True once a unit of work has given the objects to a row, whatever became of it.
    is_recorded: AtomicBool,
}

impl UploadedFile {
    /// Returns the number of bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Notes that a row names the objects, when its unit of work is committed. `Error::Objects` when they are so old that a sweep
    /// may have taken them for lost: upload the file again.
    pub(crate) fn note_recorded(&self) -> Result<(), Error> {
        if made_ms(self.place.base).is_none_or(|made| now_ms() - made > MAX_RECORDED_AGE_MS) {
            return Err(Error::Objects(
                "recorded media waited too long for their row: upload them again".to_owned(),
            ));
        }
        self.is_recorded.store(true, Relaxed);
        Ok(())
    }
}

impl Drop for UploadedFile {
    fn drop(&mut self) {
        if !self.is_recorded.load(Relaxed) {
            self.blobs.delete_later(self.place.keys());
        }
    }
}

impl Blobs {
    /// Uploads the first `len` bytes of a file, which must not change any more. They are durable when this returns.
    /// `Error::Unsupported` without an object store.
    pub async fn upload_file(&self, file: &Path, len: u64) -> Result<UploadedFile, Error> {
        self.remote()?;
        let mut upload = PieceUpload::new(self, new_base(), Vec::new());
        match upload.finish_all(file, len).await {
            Ok(place) => Ok(UploadedFile {
                blobs: self.clone(),
                place,
                size: len,
                is_recorded: AtomicBool::new(false),
            }),
            Err(error) => {
                upload.discard();
                Err(error)
            }
        }
    }

    /// Opens media of a recorded broadcast that are in the object store. `Error::NotFound` when they have no row there.
    pub async fn recorded(&self, broadcast: &str, name: &str) -> Result<Source, Error> {
        let (size, place) = self.recorded_place(broadcast, name).await?;
        let pieces = (0..place.pieces())
            .map(|number| Ok((number * PIECE as u64, place.piece(number, size)?)))
            .collect::<Result<Vec<_>, Error>>()?;
        Ok(Source::Pieces(self.listed(pieces)?))
    }

    /// Returns whether the first bytes of a local file are the media of a recorded broadcast that the object store has, by length
    /// and hashes; `None` when these have no row there.
    pub async fn is_as_recorded(
        &self,
        broadcast: &str,
        name: &str,
        file: Arc<File>,
    ) -> Result<Option<bool>, Error> {
        let (size, place) = match self.recorded_place(broadcast, name).await {
            Err(Error::NotFound(_)) => return Ok(None),
            found => found?,
        };
        let compared = self.blocking(move || Ok(is_copy(&file, size, &place)));
        compared.await.map(Some)
    }

    async fn recorded_place(&self, broadcast: &str, name: &str) -> Result<(u64, Place), Error> {
        let not_found = || Error::NotFound("recorded media");
        if !self.has_objects() {
            return Err(not_found());
        }
        let readers = self.shared.readers.get().ok_or_else(not_found)?.upgrade();
        let readers = readers.ok_or_else(|| Error::Busy("the store is shutting down".into()))?;
        let mut reader = Reader::new(readers.acquire().await?);
        live_segments::place(&mut reader, broadcast, name).await
    }

    /// Deletes objects that no row names any more; those that cannot be deleted now are left to the search for objects without a
    /// row.
    pub(crate) async fn delete_objects(&self, keys: impl Iterator<Item = String> + Send) {
        let Some(objects) = self.objects() else {
            return;
        };
        let keys: Vec<String> = keys.collect();
        let deleting: Result<(), Error> = stream::iter(keys)
            .map(|key| async move { objects.delete(&key).await })
            .buffer_unordered(DELETED_AT_ONCE)
            .try_collect()
            .await;
        if let Err(error) = deleting {
            tracing::warn!(%error, "objects are deleted by a later sweep");
        }
    }
}

/// Compares the first bytes of a file with pieces, by their hashes; one that cannot be read is no copy. Blocks.
fn is_copy(file: &File, size: u64, place: &Place) -> bool {
    (0..place.pieces()).all(|number| {
        let Ok(piece) = place.piece(number, size) else {
            return false;
        };
        let mut bytes = vec![0; piece.len as usize];
        let read = file.read_exact_at(&mut bytes, number * PIECE as u64);
        read.is_ok() && piece_hash(&bytes) == piece.hash
    })
}
