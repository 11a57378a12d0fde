//! Appends to a file that will be a blob: bytes are gathered, then hashed (SHA-256, CRC-32) and written in pieces on
//! the blocking pool.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::{Blob, BlobHash, Blobs};
use crate::Error;

/// Bytes gathered before they are hashed and written at once, and read at once.
pub(super) const PIECE: usize = 256 * 1024;

/// Appends to one file. Memory is bounded by [`PIECE`].
#[derive(Debug)]
pub(super) struct Appender {
    blobs: Blobs,
    path: PathBuf,
    /// `None` while it is on the blocking pool, and for good when a write was cancelled.
    writer: Option<Writer>,
    gathered: Vec<u8>,
}

impl Appender {
    pub(super) fn new(blobs: Blobs, path: PathBuf, writer: Writer) -> Self {
        Self {
            blobs,
            path,
            writer: Some(writer),
            gathered: Vec::new(),
        }
    }

    /// Appends bytes. `Error::Full` when the disk is full, or falls below `store.min_free`; the appender is unusable
    /// afterwards.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = rest.len().min(PIECE - self.gathered.len());
            self.gathered.extend_from_slice(&rest[..taken]);
            rest = &rest[taken..];
            if self.gathered.len() == PIECE {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Returns the number of gathered bytes, which are not in the file yet.
    pub(super) fn unwritten(&self) -> usize {
        self.gathered.len()
    }

    /// Hashes and writes the gathered bytes.
    pub(super) async fn flush(&mut self) -> Result<(), Error> {
        if self.gathered.is_empty() {
            self.writer()?;
            return Ok(());
        }
        let mut piece = std::mem::take(&mut self.gathered);
        let (at, path) = (self.blobs.clone(), self.path.clone());
        self.gathered = self
            .with_writer(move |writer| {
                writer.take(&piece, &at, &path)?;
                piece.clear();
                Ok(piece)
            })
            .await?;
        Ok(())
    }

    /// Works with the writer on the blocking pool; a failure is its end.
    pub(super) async fn with_writer<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Writer) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let mut writer = self.writer.take().ok_or_else(cut_short)?;
        let (writer, done) = self
            .blobs
            .blocking(move || {
                let done = work(&mut writer)?;
                Ok((writer, done))
            })
            .await?;
        self.writer = Some(writer);
        Ok(done)
    }

    pub(super) fn writer(&self) -> Result<&Writer, Error> {
        self.writer.as_ref().ok_or_else(cut_short)
    }

    /// The writer, once everything gathered is written.
    pub(super) async fn take_writer(&mut self) -> Result<Writer, Error> {
        self.flush().await?;
        self.writer.take().ok_or_else(cut_short)
    }
}

/// File with the hash state of the bytes written so far.
pub(super) struct Writer {
    pub(super) file: File,
    pub(super) sha256: Sha256,
    pub(super) crc32: crc32fast::Hasher,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl Writer {
    /// Creates a new, empty file; blocks.
    pub(super) fn create(blobs: &Blobs, path: &Path) -> Result<Self, Error> {
        blobs.check_space()?;
        Self::new(path)
    }

    /// Creates a new, empty file for bytes that are read and not stored; blocks.
    pub(super) fn create_to_read(blobs: &Blobs, path: &Path) -> Result<Self, Error> {
        blobs.check_space_to_read()?;
        Self::new(path)
    }

    fn new(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(Error::write("cannot create", path))?;
        Ok(Self {
            file,
            sha256: Sha256::new(),
            crc32: crc32fast::Hasher::new(),
        })
    }

    pub(super) fn take(&mut self, piece: &[u8], blobs: &Blobs, path: &Path) -> Result<(), Error> {
        blobs.check_space()?;
        self.append(piece, path)
    }

    /// Appends bytes that are read and not stored.
    pub(super) fn take_to_read(
        &mut self,
        piece: &[u8],
        blobs: &Blobs,
        path: &Path,
    ) -> Result<(), Error> {
        blobs.check_space_to_read()?;
        self.append(piece, path)
    }

    fn append(&mut self, piece: &[u8], path: &Path) -> Result<(), Error> {
        self.hash(piece);
        self.file
            .write_all(piece)
            .map_err(Error::write("cannot write", path))
    }

    /// Counts bytes that are in the file already.
    pub(super) fn hash(&mut self, piece: &[u8]) {
        self.sha256.update(piece);
        self.crc32.update(piece);
    }

    pub(super) fn finish(self, path: &Path) -> Result<Blob, Error> {
        let size = length(&self.file, path)?;
        Ok(Blob {
            hash: BlobHash(self.sha256.finalize().into()),
            size,
            crc32: self.crc32.finalize(),
        })
    }
}

pub(super) fn length(file: &File, path: &Path) -> Result<u64, Error> {
    let metadata = file
        .metadata()
        .map_err(Error::file("cannot measure", path))?;
    Ok(metadata.len())
}

fn cut_short() -> Error {
    Error::Internal("a spool was used on after a write that failed or was given up".into())
}
