//! Bytes of blobs on their way from the folder to the object store and back (`sluice move`), compared with their hashes.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::{
    BlobHash, Blobs,
    pieces::{PieceHash, PieceUpload, Place, new_base, piece_hash},
};
use crate::{Error, copy, folder, objects::PIECE};

/// Bytes that are copied from file to file at a time.
pub(super) const COPIED: usize = 256 * 1024;
/// Times that a piece is fetched before its bytes count as damaged.
const FETCHES: u32 = 2;
/// Extension of the name of a file that is not whole.
const PARTIAL: &str = "partial";

/// Reason why the bytes of a blob could not be moved, for people, such as "is missing".
pub(crate) type Unusable = String;

impl Blobs {
    /// Uploads the file of a blob from the folder under a new base. An error is one of the object store, and ends the work.
    pub(crate) async fn send(
        &self,
        hash: BlobHash,
        size: u64,
    ) -> Result<Result<Place, Unusable>, Error> {
        let path = self.path(&hash);
        let examined = path.clone();
        let expected = self.blocking(move || Ok(examine(&examined, &hash, size)));
        let expected = match expected.await? {
            Ok(expected) => expected,
            Err(unusable) => return Ok(Err(unusable)),
        };
        let mut upload = PieceUpload::new(self, new_base(), Vec::new());
        let uploaded = upload.finish_all(&path, size).await;
        match uploaded {
            Ok(place) if place.piece_hashes == expected => Ok(Ok(place)),
            Ok(_) => {
                upload.discard();
                Ok(Err(other_bytes()))
            }
            Err(error) => {
                upload.discard();
                Err(error)
            }
        }
    }

    /// Writes the bytes of a blob that are in the object store to a file, which has its name once it is whole and flushed. An
    /// error is one of the target, or the object store cannot be used now.
    pub(crate) async fn fetch_to(
        &self,
        hash: BlobHash,
        size: u64,
        place: Place,
        target: PathBuf,
    ) -> Result<Result<(), Unusable>, Error> {
        let mut incoming = self.blocking(move || Incoming::create(target)).await?;
        for number in 0..place.pieces() {
            let Ok(piece) = place.piece(number, size) else {
                return Ok(Err("has too few pieces".to_owned()));
            };
            let fetched = self.fetch_object(&piece.key, piece.hash, piece.len);
            let bytes = match fetched.await? {
                Ok(bytes) => bytes,
                Err(unusable) => return Ok(Err(unusable)),
            };
            incoming = self
                .blocking(move || {
                    incoming.write(&bytes)?;
                    Ok(incoming)
                })
                .await?;
        }
        self.blocking(move || incoming.finish(&hash, size)).await
    }

    /// Reads an object and compares its hash. An error says that the object store cannot be used now.
    pub(crate) async fn fetch_object(
        &self,
        key: &str,
        expected: PieceHash,
        len: u64,
    ) -> Result<Result<Bytes, Unusable>, Error> {
        match self.fetch_hashed(key, expected).await? {
            Ok(bytes) if bytes.len() as u64 != len => Ok(Err(other_object(key))),
            fetched => Ok(fetched),
        }
    }

    /// Reads an object whose length is not known, as [`Blobs::fetch_object`] does.
    pub(super) async fn fetch_hashed(
        &self,
        key: &str,
        expected: PieceHash,
    ) -> Result<Result<Bytes, Unusable>, Error> {
        let remote = self.remote()?;
        let objects = self.objects().expect("there is a remote");
        let _turn = remote.downloads().turn().await?;
        for _ in 0..FETCHES {
            let bytes = match objects.get(key).await {
                Err(Error::NotFound(_)) => {
                    return Ok(Err(format!("is incomplete: the object {key} is missing")));
                }
                got => got?,
            };
            let hashed = bytes.clone();
            let hash = self.blocking(move || Ok(piece_hash(&hashed))).await?;
            if hash == expected {
                return Ok(Ok(bytes));
            }
        }
        Ok(Err(other_object(key)))
    }

    /// Copies the file of a blob from the folder to another one, as [`Blobs::fetch_to`].
    pub(crate) async fn copy_to(
        &self,
        hash: BlobHash,
        size: u64,
        target: PathBuf,
    ) -> Result<Result<(), Unusable>, Error> {
        let source = self.path(&hash);
        self.blocking(move || {
            let mut from = match open(&source, size) {
                Ok(from) => from,
                Err(unusable) => return Ok(Err(unusable)),
            };
            let mut incoming = Incoming::create(target)?;
            let mut bytes = vec![0; COPIED];
            loop {
                match from.read(&mut bytes) {
                    Ok(0) => return incoming.finish(&hash, size),
                    Ok(count) => incoming.write(&bytes[..count])?,
                    Err(error) => return Ok(Err(unreadable(&error))),
                }
            }
        })
        .await
    }
}

/// Reads the file of a blob; returns the hashes of its pieces. Blocks.
fn examine(path: &Path, hash: &BlobHash, size: u64) -> Result<Vec<u8>, Unusable> {
    let mut from = open(path, size)?;
    let (mut whole, mut hashes) = (Sha256::new(), Vec::new());
    let mut left = size;
    let mut piece = Vec::new();
    while left > 0 {
        piece.resize(left.min(PIECE as u64) as usize, 0);
        from.read_exact(&mut piece)
            .map_err(|error| unreadable(&error))?;
        whole.update(&piece);
        hashes.extend_from_slice(&piece_hash(&piece));
        left -= piece.len() as u64;
    }
    let digest: [u8; 32] = whole.finalize().into();
    match digest == *hash.as_bytes() {
        true => Ok(hashes),
        false => Err(other_bytes()),
    }
}

fn open(path: &Path, size: u64) -> Result<File, Unusable> {
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    match opened {
        Ok((len, file)) if len == size => Ok(file),
        Ok((len, _)) => Err(format!(
            "has {len} bytes instead of the {size} that were stored"
        )),
        Err(error) => Err(unreadable(&error)),
    }
}

pub(super) fn unreadable(error: &io::Error) -> Unusable {
    match error.kind() {
        io::ErrorKind::NotFound => "is missing".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

pub(super) fn other_bytes() -> Unusable {
    "has other bytes than were stored".to_owned()
}

fn other_object(key: &str) -> Unusable {
    format!("is damaged: the object {key} has other bytes")
}

/// File that is written until it has its name; removed when it comes to nothing.
pub(super) struct Incoming {
    file: File,
    partial: PathBuf,
    target: PathBuf,
    digest: Sha256,
    written: u64,
}

impl Incoming {
    /// Makes it beside its name, with the folder of both.
    fn create(target: PathBuf) -> Result<Self, Error> {
        Self::create_as(target.with_extension(PARTIAL), target)
    }

    /// Makes it with another name until its end, and the folders of both.
    pub(super) fn create_as(partial: PathBuf, target: PathBuf) -> Result<Self, Error> {
        for path in [&partial, &target] {
            folder::create_private(path.parent().expect("it lies in a folder"))?;
        }
        copy::remove_if_there(&partial)?;
        Ok(Self {
            file: folder::create_private_file(&partial)?,
            partial,
            target,
            digest: Sha256::new(),
            written: 0,
        })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.digest.update(bytes);
        self.written += bytes.len() as u64;
        self.file
            .write_all(bytes)
            .map_err(Error::write("cannot write", &self.partial))
    }

    /// Returns the number of bytes that were written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Returns the SHA-256 of what was written.
    pub(super) fn sha256(&self) -> [u8; 32] {
        self.digest.clone().finalize().into()
    }

    /// Flushes it and gives it its name, if its bytes are those of the blob.
    fn finish(self, hash: &BlobHash, size: u64) -> Result<Result<(), Unusable>, Error> {
        match self.written == size && self.sha256() == *hash.as_bytes() {
            true => self.place().map(Ok),
            false => Ok(Err(other_bytes())),
        }
    }

    /// Flushes it and gives it its name.
    pub(super) fn place(self) -> Result<(), Error> {
        self.file
            .sync_all()
            .map_err(Error::write("cannot flush", &self.partial))?;
        fs::rename(&self.partial, &self.target)
            .map_err(Error::write("cannot rename", &self.partial))?;
        folder::sync_folder(self.target.parent().expect("it lies in a folder"))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // After its end there is nothing of this name.
        let _ = fs::remove_file(&self.partial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(bytes: &[u8]) -> BlobHash {
        BlobHash(Sha256::digest(bytes).into())
    }

    #[test]
    fn only_whole_and_right_files_are_examined_well() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let bytes = vec![3; PIECE + 5];
        fs::write(&path, &bytes).unwrap();
        let (hash, size) = (hash_of(&bytes), bytes.len() as u64);
        let hashes = examine(&path, &hash, size).unwrap();
        let expected = [piece_hash(&bytes[..PIECE]), piece_hash(&bytes[PIECE..])].concat();
        assert_eq!(hashes, expected);
        assert!(examine(&path, &hash, size - 1).is_err());
        assert!(examine(&path, &hash_of(b""), size).is_err());
        let missing = examine(&folder.path().join("b"), &hash, size).unwrap_err();
        assert_eq!(missing, "is missing");
        fs::write(&path, b"").unwrap();
        assert_eq!(examine(&path, &hash_of(b""), 0).unwrap(), [0; 0]);
    }

    #[test]
    fn an_incoming_file_has_its_name_when_it_is_right() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("ab").join("cd");
        let write = |hash: BlobHash| {
            let mut incoming = Incoming::create(target.clone()).unwrap();
            incoming.write(b"some ").unwrap();
            incoming.write(b"bytes").unwrap();
            incoming.finish(&hash, 10).unwrap()
        };
        assert!(write(hash_of(b"others")).is_err());
        assert_eq!(fs::read_dir(folder.path().join("ab")).unwrap().count(), 0);
        assert_eq!(write(hash_of(b"some bytes")), Ok(()));
        assert_eq!(fs::read(&target).unwrap(), b"some bytes");
        assert_eq!(fs::read_dir(folder.path().join("ab")).unwrap().count(), 1);
    }
}
