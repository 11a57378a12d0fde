//! Pieces of a blob in the object store: their keys and hashes, and the upload of a file that grows or of parts of one.
//!
//! A piece is the object `b/{base}/{number}-{hash}` with [`PIECE`] bytes, the last one with fewer; an empty blob has none. The
//! beginning of its hash is in the key, so that no key is ever written with two contents: a request that was superseded and
//! stalled may write its piece after that of a later one.

use std::{
    fs::File,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;
use uuid::{Builder, Uuid};

use super::Blobs;
use crate::{Error, credentials::hexadecimal, now_ms, objects::PIECE};

/// Bytes of a hash in [`Place::piece_hashes`].
pub(crate) const PIECE_HASH_BYTES: usize = 16;
/// Digits of a hash in a key.
pub(crate) const KEY_HASH_DIGITS: usize = 16;

/// The first bytes of the SHA-256 of a piece.
pub(crate) type PieceHash = [u8; PIECE_HASH_BYTES];

/// Object with a piece of stored bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Name in the cache, together with the number.
    pub(crate) base: Uuid,
    pub(crate) number: u64,
    pub(crate) key: String,
    pub(crate) hash: PieceHash,
    /// Bytes of it.
    pub(crate) len: u64,
}

/// Place of a blob's bytes in the object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) base: Uuid,
    /// The [`PieceHash`] of each piece, one after the other.
    pub(crate) piece_hashes: Vec<u8>,
}

impl Place {
    /// Returns the number of pieces.
    pub(crate) fn pieces(&self) -> u64 {
        (self.piece_hashes.len() / PIECE_HASH_BYTES) as u64
    }

    /// Returns the hash of a piece, if there is one of this number.
    pub(super) fn hash(&self, number: u64) -> Option<&PieceHash> {
        let (hashes, _) = self.piece_hashes.as_chunks::<PIECE_HASH_BYTES>();
        hashes.get(usize::try_from(number).ok()?)
    }

    /// Returns the key of a piece, if there is one of this number.
    pub(super) fn key(&self, number: u64) -> Option<String> {
        Some(piece_key(self.base, number, self.hash(number)?))
    }

    /// Returns a piece of a blob of `size` bytes. `Error::Internal` when there is no hash of it.
    pub(super) fn piece(&self, number: u64, size: u64) -> Result<Piece, Error> {
        let (Some(key), Some(hash)) = (self.key(number), self.hash(number)) else {
            let base = self.base.simple();
            return Err(Error::Internal(format!(
                "the row of the objects b/{base} has too few hashes for piece {number}"
            )));
        };
        Ok(Piece {
            base: self.base,
            number,
            key,
            hash: *hash,
            len: piece_len(size, number),
        })
    }

    /// Returns the keys of all pieces.
    pub(crate) fn keys(&self) -> impl Iterator<Item = String> + Send + use<> {
        let place = self.clone();
        (0..place.pieces()).filter_map(move |number| place.key(number))
    }

    /// Returns whether a key is that of one of the pieces.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        let name = key.rsplit('/').next().unwrap_or_default();
        let number: Option<u64> = name.split('-').next().and_then(|text| text.parse().ok());
        number.is_some_and(|number| self.key(number).as_deref() == Some(key))
    }
}

/// Returns the beginning of the keys of all objects of a base.
pub(super) fn prefix_of(base: Uuid) -> String {
    format!("b/{}/", base.simple())
}

/// Returns the key of a piece.
fn piece_key(base: Uuid, number: u64, hash: &PieceHash) -> String {
    let digits = hexadecimal(&hash[..KEY_HASH_DIGITS / 2]);
    format!("{}{number}-{digits}", prefix_of(base))
}

/// Returns the key of a tail: the bytes of a tus upload after its last complete piece.
pub(crate) fn tail_key(base: Uuid, number: i64) -> String {
    format!("{}t{number}", prefix_of(base))
}

pub(crate) fn piece_hash(bytes: &[u8]) -> PieceHash {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    *digest.first_chunk().expect("a SHA-256 is longer")
}

/// Returns the bytes of a piece of a blob of `size` bytes; 0 behind the last one.
pub(super) fn piece_len(size: u64, number: u64) -> u64 {
    let before = number.saturating_mul(PIECE as u64);
    size.saturating_sub(before).min(PIECE as u64)
}

/// Makes a base. It is of the service's time, with which its age is compared; the clock of this machine may be another.
pub(crate) fn new_base() -> Uuid {
    let other = Uuid::new_v4().into_bytes();
    let mut random = [0; 10];
    // The bytes between them have bits that are always the same.
    random[..6].copy_from_slice(&other[..6]);
    random[6..].copy_from_slice(&other[10..14]);
    Builder::from_unix_timestamp_millis(now_ms().unsigned_abs(), &random).into_uuid()
}

/// Returns when a base was made, in milliseconds since 1970 UTC; `None` for an id that is not of version 7.
pub(crate) fn made_ms(base: Uuid) -> Option<i64> {
    let milliseconds = (base.as_u128() >> 80) as u64;
    (base.get_version_num() == 7)
        .then(|| i64::try_from(milliseconds).ok())
        .flatten()
}

/// Uploads the pieces of a file that grows: complete pieces go up in the background, at most `store.objects_at_once` of the whole
/// process at a time.
///
/// An error is final: the object is unusable afterwards. Dropping it stops the uploads and leaves the objects;
/// [`PieceUpload::discard`] deletes them too.
#[derive(Debug)]
pub(crate) struct PieceUpload {
    blobs: Blobs,
    base: Uuid,
    /// Hashes of the pieces in their order; `None` while one goes up.
    hashes: Vec<Option<PieceHash>>,
    running: JoinSet<Result<(usize, PieceHash), Error>>,
}

impl PieceUpload {
    /// Begins, or continues after the pieces whose hashes are in `done`.
    pub(crate) fn new(blobs: &Blobs, base: Uuid, done: Vec<u8>) -> Self {
        let (hashes, _) = done.as_chunks::<PIECE_HASH_BYTES>();
        Self {
            blobs: blobs.clone(),
            base,
            hashes: hashes.iter().copied().map(Some).collect(),
            running: JoinSet::new(),
        }
    }

    pub(crate) fn base(&self) -> Uuid {
        self.base
    }

    /// Starts the upload of the complete pieces among the first `len` bytes of the file, which must not change any more. Waits
    /// only when too many are under way.
    pub(crate) async fn push(&mut self, file: &Path, len: u64) -> Result<(), Error> {
        while ((self.hashes.len() + 1) as u64).saturating_mul(PIECE as u64) <= len {
            self.start(file, PIECE).await?;
        }
        while let Some(ended) = self.running.try_join_next() {
            self.note(ended)?;
        }
        Ok(())
    }

    /// Waits for the uploads that were started; returns the hashes of all complete pieces, which are durable then.
    pub(crate) async fn settled(&mut self) -> Result<Vec<u8>, Error> {
        while let Some(ended) = self.running.join_next().await {
            self.note(ended)?;
        }
        let mut hashes = Vec::with_capacity(self.hashes.len() * PIECE_HASH_BYTES);
        for hash in &self.hashes {
            hashes.extend_from_slice(&hash.ok_or_else(cut_short)?);
        }
        Ok(hashes)
    }

    /// Waits for the uploads that were started, also once one has failed; returns the hashes of the pieces before the first one that
    /// is not durable.
    pub(super) async fn salvaged(&mut self) -> Vec<u8> {
        while let Some(ended) = self.running.join_next().await {
            // The first failure was returned before.
            let _noted = self.note(ended);
        }
        let durable = self.hashes.iter().map_while(|hash| *hash);
        durable.flatten().collect()
    }

    /// Uploads all that is missing of the file's `len` bytes, the last piece too, however short. Everything is durable when this
    /// returns.
    pub(super) async fn finish_all(&mut self, file: &Path, len: u64) -> Result<Place, Error> {
        self.push(file, len).await?;
        let started = (self.hashes.len() as u64).saturating_mul(PIECE as u64);
        match len.checked_sub(started) {
            Some(0) => {}
            Some(rest) => self.start(file, rest as usize).await?,
            None => {
                return Err(Error::Internal(
                    "an upload is shorter than its pieces".into(),
                ));
            }
        }
        Ok(Place {
            base: self.base,
            piece_hashes: self.settled().await?,
        })
    }

    /// Stops the uploads and deletes in the background what is up. Only for a base that is in no row.
    pub(super) fn discard(mut self) {
        self.running.abort_all();
        if !self.hashes.is_empty() {
            // The keys of pieces under way are not known.
            self.blobs.delete_below(prefix_of(self.base));
        }
    }

    async fn start(&mut self, file: &Path, count: usize) -> Result<(), Error> {
        while self.running.len() >= self.blobs.remote()?.at_once() {
            let Some(ended) = self.running.join_next().await else {
                break;
            };
            self.note(ended)?;
        }
        let number = self.hashes.len();
        self.hashes.push(None);
        let (blobs, base, file) = (self.blobs.clone(), self.base, file.to_owned());
        self.running.spawn(upload(blobs, base, number, file, count));
        Ok(())
    }

    fn note(
        &mut self,
        ended: Result<Result<(usize, PieceHash), Error>, tokio::task::JoinError>,
    ) -> Result<(), Error> {
        let (number, hash) =
            ended.map_err(|error| Error::Internal(format!("upload of a piece: {error}")))??;
        self.hashes[number] = Some(hash);
        Ok(())
    }
}

/// Uploads a piece of a blob.
async fn upload(
    blobs: Blobs,
    base: Uuid,
    number: usize,
    file: PathBuf,
    count: usize,
) -> Result<(usize, PieceHash), Error> {
    let offset = number as u64 * PIECE as u64;
    let key = move |hash: &PieceHash| piece_key(base, number as u64, hash);
    let hash = send(&blobs, file, offset, count, key).await?;
    Ok((number, hash))
}

/// Uploads `count` bytes of a file, at most [`PIECE`], as an object. They are in memory only while it has its turn.
async fn send(
    blobs: &Blobs,
    file: PathBuf,
    offset: u64,
    count: usize,
    key: impl FnOnce(&PieceHash) -> String + Send,
) -> Result<PieceHash, Error> {
    let remote = blobs.remote()?;
    let _turn = remote.uploads().turn().await?;
    let (bytes, hash) = blobs
        .blocking(move || {
            let mut bytes = vec![0; count];
            File::open(&file)
                .and_then(|file| file.read_exact_at(&mut bytes, offset))
                .map_err(Error::file("cannot read", &file))?;
            let hash = piece_hash(&bytes);
            Ok((Bytes::from(bytes), hash))
        })
        .await?;
    remote.put(&key(&hash), bytes).await?;
    Ok(hash)
}

/// Part of a file that is to be an object.
#[derive(Clone, Debug)]
pub(crate) struct FilePart {
    pub(crate) file: PathBuf,
    pub(crate) offset: u64,
    /// Bytes, at most [`PIECE`].
    pub(crate) len: u64,
    /// Key that no other object has, or has had.
    pub(crate) key: String,
}

/// Uploads parts of files side by side; returns their hashes in order. All are durable when this returns.
pub(crate) async fn send_parts(
    blobs: &Blobs,
    parts: Vec<FilePart>,
) -> Result<Vec<PieceHash>, Error> {
    let at_once = blobs.remote()?.at_once();
    stream::iter(parts)
        .map(|part| {
            let blobs = blobs.clone();
            async move {
                let key = part.key;
                send(&blobs, part.file, part.offset, part.len as usize, |_| key).await
            }
        })
        .buffered(at_once)
        .try_collect()
        .await
}

fn cut_short() -> Error {
    Error::Internal("an upload of pieces was used on after one of them failed".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_cut_into_pieces() {
        let piece = PIECE as u64;
        let cases = [
            (0, 0, 0),
            (1, 0, 1),
            (piece, 0, piece),
            (piece, 1, 0),
            (piece + 5, 0, piece),
            (piece + 5, 1, 5),
            (piece + 5, u64::MAX, 0),
        ];
        for (size, number, expected) in cases {
            assert_eq!(piece_len(size, number), expected, "{size} {number}");
        }
        let place = Place {
            base: Uuid::from_u128(0x0123),
            piece_hashes: [[1; 16], [2; 16]].concat(),
        };
        assert_eq!(place.pieces(), 2);
        assert_eq!(place.hash(1), Some(&[2; 16]));
        assert_eq!(place.hash(2), None);
        let keys: Vec<String> = place.keys().collect();
        assert_eq!(
            keys,
            [
                "b/00000000000000000000000000000123/0-0101010101010101",
                "b/00000000000000000000000000000123/1-0202020202020202"
            ]
        );
        assert!(keys.iter().all(|key| place.has_key(key)));
        for other in [
            "b/00000000000000000000000000000123/0-0202020202020202",
            "b/00000000000000000000000000000123/00-0101010101010101",
            "b/00000000000000000000000000000123/2-0101010101010101",
            "b/00000000000000000000000000000123/t1",
            "b/00000000000000000000000000000124/0-0101010101010101",
            "",
        ] {
            assert!(!place.has_key(other), "{other}");
        }
    }

    #[test]
    fn a_base_tells_its_age() {
        let before = crate::now_ms();
        let base = new_base();
        let made = made_ms(base).unwrap();
        assert!((before..=crate::now_ms()).contains(&made));
        assert_eq!(base.get_variant(), uuid::Variant::RFC4122);
        assert_ne!(base, new_base());
        assert_eq!(made_ms(Uuid::new_v4()), None);
    }
}
