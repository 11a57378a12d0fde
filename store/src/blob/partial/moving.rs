//! Bytes of an unfinished upload on their way to another data folder (`sluice move --back`), compared with the sums of its row.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

use bytes::Bytes;
use sha2::Digest as _;
use uuid::Uuid;

use super::{
    PartialObjects, PartialState, restored,
    tail::{self, Tail},
};
use crate::{
    Error,
    blob::{
        Blobs, PARTIAL, TEMPORARY, Unusable,
        moving::{COPIED, Incoming, other_bytes, unreadable},
        pieces::{Place, tail_key},
    },
};

impl Blobs {
    /// Writes the bytes of an upload, from the object store or its file, to its file in another data folder; `Ok(false)` when it is
    /// there. The file has its name once it is whole and flushed. An error is one of the target, or the object store cannot be
    /// used now.
    pub(crate) async fn bring_partial(
        &self,
        upload: Uuid,
        state: PartialState,
        data_dir: &Path,
    ) -> Result<Result<bool, Unusable>, Error> {
        let (name, length) = (upload.to_string(), state.length);
        let target = data_dir.join(PARTIAL).join(&name);
        // A start empties this folder.
        let aside = data_dir.join(TEMPORARY).join(&name);
        let beginning = self.blocking(move || match fs::metadata(&target) {
            Ok(found) if found.len() == length => Ok(None),
            _ => Ok(Some(Incoming::create_as(aside, target)?)),
        });
        let Some(file) = beginning.await? else {
            return Ok(Ok(false));
        };
        let incoming = IncomingPartial {
            file,
            crc32: crc32fast::Hasher::new(),
        };
        let filled = match &state.objects {
            Some(objects) => self.fetch_partial(objects, incoming).await?,
            None => self.copy_partial(upload, length, incoming).await?,
        };
        let incoming = match filled {
            Ok(incoming) => incoming,
            Err(unusable) => return Ok(Err(unusable)),
        };
        let finished = self.blocking(move || incoming.finish(&state)).await?;
        Ok(finished.map(|()| true))
    }

    /// Writes the complete pieces in their order, then the tail.
    async fn fetch_partial(
        &self,
        objects: &PartialObjects,
        mut incoming: IncomingPartial,
    ) -> Result<Result<IncomingPartial, Unusable>, Error> {
        let place = Place {
            base: objects.base,
            piece_hashes: objects.piece_hashes.clone(),
        };
        for number in 0..place.pieces() {
            let piece = place.piece(number, objects.complete())?;
            let fetched = self.fetch_object(&piece.key, piece.hash, piece.len);
            match fetched.await? {
                Ok(bytes) => incoming = self.add_to_partial(incoming, bytes).await?,
                Err(unusable) => return Ok(Err(unusable)),
            }
        }
        let Some(newest) = objects.tail else {
            return Ok(Ok(incoming));
        };
        let last = match self.fetch_tail(objects.base, newest).await? {
            Ok(last) => last,
            Err(unusable) => return Ok(Err(unusable)),
        };
        for segment in last.before {
            match self.fetch_tail(objects.base, segment.object).await? {
                Ok(content) => incoming = self.add_to_partial(incoming, content.bytes).await?,
                Err(unusable) => return Ok(Err(unusable)),
            }
        }
        Ok(Ok(self.add_to_partial(incoming, last.bytes).await?))
    }

    async fn fetch_tail(
        &self,
        base: Uuid,
        tail: Tail,
    ) -> Result<Result<tail::Content, Unusable>, Error> {
        let key = tail_key(base, tail.number);
        let object = match self.fetch_hashed(&key, tail.hash).await? {
            Ok(object) => object,
            Err(unusable) => return Ok(Err(unusable)),
        };
        let content = tail::read(&object);
        Ok(content.ok_or_else(|| format!("is damaged: the object {key} cannot be read")))
    }

    async fn add_to_partial(
        &self,
        mut incoming: IncomingPartial,
        bytes: Bytes,
    ) -> Result<IncomingPartial, Error> {
        self.blocking(move || {
            incoming.write(&bytes)?;
            Ok(incoming)
        })
        .await
    }

    /// Copies the first `length` bytes of the upload's own file: of an upload that began without an object store.
    async fn copy_partial(
        &self,
        upload: Uuid,
        length: u64,
        mut incoming: IncomingPartial,
    ) -> Result<Result<IncomingPartial, Unusable>, Error> {
        let source = self.partial_path(upload);
        self.blocking(move || {
            let file = match File::open(&source) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Err(elsewhere(&source)));
                }
                Err(error) => return Ok(Err(unreadable(&error))),
            };
            let mut from = file.take(length);
            let mut bytes = vec![0; COPIED];
            loop {
                match from.read(&mut bytes) {
                    Ok(0) => return Ok(Ok(incoming)),
                    Ok(count) => incoming.write(&bytes[..count])?,
                    Err(error) => return Ok(Err(unreadable(&error))),
                }
            }
        })
        .await
    }
}

fn elsewhere(source: &Path) -> Unusable {
    format!(
        "has its bytes in a file that is missing: {} (it began without an object store: on several nodes the file is in the data \
         folder of the node that began it, from where it can be copied)",
        source.display()
    )
}

/// File of an upload that is being written.
struct IncomingPartial {
    file: Incoming,
    crc32: crc32fast::Hasher,
}

impl IncomingPartial {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.crc32.update(bytes);
        self.file.write(bytes)
    }

    /// Flushes it and gives it its name, if its bytes are those that were acknowledged.
    fn finish(self, state: &PartialState) -> Result<Result<(), Unusable>, Error> {
        let (written, length) = (self.file.written(), state.length);
        if written != length {
            return Ok(Err(format!(
                "has {written} bytes instead of the {length} that were acknowledged"
            )));
        }
        // A state of another release of the library cannot be read; the other sum is compared in any case.
        let has_other_sha256 = restored(&state.sha256).is_some_and(|expected| {
            let expected: [u8; 32] = expected.finalize().into();
            expected != self.file.sha256()
        });
        if has_other_sha256 || self.crc32.finalize() != state.crc32 {
            return Ok(Err(other_bytes()));
        }
        self.file.place().map(Ok)
    }
}
