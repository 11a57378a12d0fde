//! A temporary file on its way to become a blob: written by an upload or a worker, hashed on the way, sealed at the end.
//!
//! Memory is bounded by [`PIECE`] for each spool, whatever the length of the file.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::{Blob, BlobHash, Blobs};
use crate::Error;

/// Bytes from the beginning of a file that are kept for recognising its format.
pub const HEAD_BYTES: usize = 4096;
/// Bytes gathered before they are hashed and written at once.
const PIECE: usize = 256 * 1024;

/// A temporary file; dropping it removes the file.
#[derive(Debug)]
pub struct Spool {
    blobs: Blobs,
    link: Temporary,
    /// `None` while it is on the blocking pool, and for good when a write was cut short.
    writer: Option<Writer>,
    gathered: Vec<u8>,
    head: Vec<u8>,
    written: u64,
    /// Somebody else has a descriptor to write with: what was hashed on the way does not count.
    is_shared: bool,
}

/// The file with what is known of the bytes written so far.
struct Writer {
    file: File,
    sha256: Sha256,
    crc32: crc32fast::Hasher,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl Spool {
    pub(super) async fn create(blobs: Blobs) -> Result<Self, Error> {
        let at = blobs.clone();
        let (link, writer) = blobs.blocking(move || Writer::create(&at)).await?;
        Ok(Self {
            blobs,
            link,
            writer: Some(writer),
            gathered: Vec::new(),
            head: Vec::new(),
            written: 0,
            is_shared: false,
        })
    }

    /// Appends. `Error::Full` when the disk is, or falls below `store.min_free`; the spool is of no use afterwards.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), Error> {
        let missing = HEAD_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..missing]);
        self.written += bytes.len() as u64;
        let mut rest = &bytes[..];
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

    /// Bytes given to [`Spool::write`]; what a worker wrote shows in the sealed blob.
    pub fn len(&self) -> u64 {
        self.written
    }

    pub fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// The first [`HEAD_BYTES`] given to [`Spool::write`], for recognising the format.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// A descriptor for somebody else, such as a worker, to write the file through; its position is shared by all
    /// duplicates. [`Spool::seal`] makes the blob of a copy then: whoever kept a descriptor cannot change it any more.
    pub fn file(&mut self) -> Result<File, Error> {
        self.is_shared = true;
        let file = &self.writer.as_ref().ok_or_else(cut_short)?.file;
        file.try_clone().map_err(Error::file(
            "cannot duplicate the descriptor of",
            &self.link.0,
        ))
    }

    /// What was written so far, opened for reading only, with a position of its own.
    pub async fn reader(&mut self) -> Result<File, Error> {
        self.flush().await?;
        let path = self.link.0.clone();
        self.blobs
            .blocking(move || File::open(&path).map_err(Error::file("cannot open", path)))
            .await
    }

    /// Makes a blob of it: hashed, flushed to the disk and under its name when this returns. It counts once
    /// [`crate::blobs::record`] has written its row.
    pub async fn seal(mut self) -> Result<Sealed, Error> {
        self.flush().await?;
        let writer = self.writer.take().ok_or_else(cut_short)?;
        let Self {
            blobs,
            link,
            head,
            is_shared,
            ..
        } = self;
        let at = blobs.clone();
        blobs
            .blocking(move || match is_shared {
                true => sealed_copy(&at, &writer.file, &link.0),
                false => {
                    let blob = writer.finish(&link.0)?;
                    placed(&at, link, blob, head)
                }
            })
            .await
    }

    /// Hashes and writes what was gathered.
    async fn flush(&mut self) -> Result<(), Error> {
        let mut writer = self.writer.take().ok_or_else(cut_short)?;
        if self.gathered.is_empty() {
            self.writer = Some(writer);
            return Ok(());
        }
        let mut piece = std::mem::take(&mut self.gathered);
        let (at, path) = (self.blobs.clone(), self.link.0.clone());
        let (writer, piece) = self
            .blobs
            .blocking(move || {
                writer.take(&piece, &at, &path)?;
                piece.clear();
                Ok((writer, piece))
            })
            .await?;
        self.writer = Some(writer);
        self.gathered = piece;
        Ok(())
    }
}

impl Writer {
    fn create(blobs: &Blobs) -> Result<(Temporary, Self), Error> {
        blobs.check_space()?;
        let path = blobs.temporary_path();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(Error::write("cannot create", &path))?;
        let writer = Self {
            file,
            sha256: Sha256::new(),
            crc32: crc32fast::Hasher::new(),
        };
        Ok((Temporary(path), writer))
    }

    fn take(&mut self, piece: &[u8], blobs: &Blobs, path: &Path) -> Result<(), Error> {
        blobs.check_space()?;
        self.sha256.update(piece);
        self.crc32.update(piece);
        self.file
            .write_all(piece)
            .map_err(Error::write("cannot write", path))
    }

    fn finish(self, path: &Path) -> Result<Blob, Error> {
        let size = length(&self.file, path)?;
        Ok(Blob {
            hash: BlobHash(self.sha256.finalize().into()),
            size,
            crc32: self.crc32.finalize(),
        })
    }
}

fn length(file: &File, path: &Path) -> Result<u64, Error> {
    let metadata = file
        .metadata()
        .map_err(Error::file("cannot measure", path))?;
    Ok(metadata.len())
}

/// Flushed through a descriptor of its own: the one that wrote may be gone already.
fn sync(path: &Path) -> Result<(), Error> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(Error::write("cannot flush", path))
}

fn placed(blobs: &Blobs, link: Temporary, blob: Blob, head: Vec<u8>) -> Result<Sealed, Error> {
    sync(&link.0)?;
    blobs.place(&link.0, &blob)?;
    Ok(Sealed {
        blobs: blobs.clone(),
        link,
        blob,
        head,
    })
}

/// A blob of what somebody else wrote to a file that may lie at `path`, read from its beginning without moving its position;
/// blocks.
pub(super) fn sealed_copy(blobs: &Blobs, shared: &File, path: &Path) -> Result<Sealed, Error> {
    let (link, mut writer) = Writer::create(blobs)?;
    let (mut head, mut size) = (Vec::new(), 0);
    let mut piece = vec![0; PIECE];
    loop {
        let count = shared
            .read_at(&mut piece, size)
            .map_err(Error::file("cannot read", path))?;
        if count == 0 {
            break;
        }
        if size == 0 {
            head.extend_from_slice(&piece[..count.min(HEAD_BYTES)]);
        }
        writer.take(&piece[..count], blobs, &link.0)?;
        size += count as u64;
    }
    let blob = writer.finish(&link.0)?;
    placed(blobs, link, blob, head)
}

fn cut_short() -> Error {
    Error::Internal("a spool was used on after a write that failed or was given up".into())
}

/// A blob whose bytes are on the disk under its name. Until it is dropped a link of its own keeps them, so that a sweep
/// between sealing and [`crate::blobs::record`] loses nothing.
#[derive(Debug)]
pub struct Sealed {
    blobs: Blobs,
    link: Temporary,
    blob: Blob,
    head: Vec<u8>,
}

impl Sealed {
    pub fn blob(&self) -> &Blob {
        &self.blob
    }

    /// The first [`HEAD_BYTES`] of the file.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Puts the file in its place again when somebody has swept it away; blocks, for microseconds when all is well.
    pub(crate) fn ensure_placed(&self) -> Result<(), Error> {
        match fs::metadata(self.blobs.path(&self.blob.hash)) {
            Ok(found) if found.len() == self.blob.size => Ok(()),
            _ => self.blobs.place(&self.link.0, &self.blob),
        }
    }
}

/// A name in the folder of temporary files, removed when it is dropped.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.0);
        let remove = move || {
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(%error, path = %path.display(), "a temporary file is removed at the next start");
            }
        };
        // Freeing the blocks of a large file takes long enough to hold up an async thread.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}
