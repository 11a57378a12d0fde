//! Temporary file that becomes a blob: written by an upload or a worker, hashed while it is written, sealed at the
//! end.
//!
//! Memory is bounded for each spool, whatever the length of the file.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use bytes::Bytes;

use super::{
    Blob, Blobs,
    appender::{Appender, PIECE, Writer},
};
use crate::Error;

/// Bytes from the beginning of a file that are kept for recognising its format.
pub const HEAD_BYTES: usize = 4096;

/// A temporary file; dropping it removes the file.
#[derive(Debug)]
pub struct Spool {
    blobs: Blobs,
    link: Temporary,
    appender: Appender,
    head: Vec<u8>,
    written: u64,
    /// True when another process has a descriptor for writing: the hash computed so far does not count.
    is_shared: bool,
}

impl Spool {
    pub(super) async fn create(blobs: Blobs) -> Result<Self, Error> {
        let at = blobs.clone();
        let (link, writer) = blobs.blocking(move || temporary_writer(&at)).await?;
        Ok(Self {
            appender: Appender::new(blobs.clone(), link.0.clone(), writer),
            blobs,
            link,
            head: Vec::new(),
            written: 0,
            is_shared: false,
        })
    }

    /// Appends bytes. `Error::Full` when the disk is full, or falls below `store.min_free`; the spool is unusable
    /// afterwards.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), Error> {
        let missing = HEAD_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..missing]);
        self.written += bytes.len() as u64;
        self.appender.write(&bytes).await
    }

    /// Returns the bytes given to [`Spool::write`]; a worker's bytes show in the sealed blob.
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

    /// Returns a descriptor with which another process, such as a worker, writes the file; its position is shared by
    /// all duplicates. [`Spool::seal`] makes the blob of a copy then: a process that kept a descriptor cannot change
    /// it any more.
    pub fn file(&mut self) -> Result<File, Error> {
        self.is_shared = true;
        let file = &self.appender.writer()?.file;
        file.try_clone().map_err(Error::file(
            "cannot duplicate the descriptor of",
            &self.link.0,
        ))
    }

    /// Opens what was written so far for reading only, with a position of its own.
    pub async fn reader(&mut self) -> Result<File, Error> {
        self.appender.flush().await?;
        let path = self.link.0.clone();
        self.blobs
            .blocking(move || File::open(&path).map_err(Error::file("cannot open", path)))
            .await
    }

    /// Makes a blob of it: hashed, flushed to the disk and under its name when this returns. It counts once
    /// [`crate::blobs::record`] has written its row.
    pub async fn seal(self) -> Result<Sealed, Error> {
        let Self {
            blobs,
            link,
            appender,
            head,
            is_shared,
            ..
        } = self;
        let writer = appender.into_writer().await?;
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
}

/// A writer to a new temporary file; blocks.
pub(super) fn temporary_writer(blobs: &Blobs) -> Result<(Temporary, Writer), Error> {
    let path = blobs.temporary_path();
    let writer = Writer::create(blobs, &path)?;
    Ok((Temporary(path), writer))
}

/// Flushes the file through a descriptor of its own: the one that wrote may be closed already.
fn sync(path: &Path) -> Result<(), Error> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(Error::write("cannot flush", path))
}

/// Flushes a finished file and gives it its blob's name; blocks.
pub(super) fn placed(
    blobs: &Blobs,
    link: Temporary,
    blob: Blob,
    head: Vec<u8>,
) -> Result<Sealed, Error> {
    sync(&link.0)?;
    blobs.place(&link.0, &blob)?;
    Ok(Sealed {
        blobs: blobs.clone(),
        link,
        blob,
        head,
    })
}

/// Makes a blob of a file that another process wrote, which may be at `path`, read from its beginning without moving
/// its position; blocks.
pub(super) fn sealed_copy(blobs: &Blobs, shared: &File, path: &Path) -> Result<Sealed, Error> {
    let (link, mut writer) = temporary_writer(blobs)?;
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

/// Blob whose bytes are on the disk under its name. Until it is dropped a link of its own keeps them, so that a sweep
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

    /// Restores the file under the blob's name when a sweep has removed it; blocks, for microseconds when it exists.
    pub(crate) fn ensure_placed(&self) -> Result<(), Error> {
        match fs::metadata(self.blobs.path(&self.blob.hash)) {
            Ok(found) if found.len() == self.blob.size => Ok(()),
            _ => self.blobs.place(&self.link.0, &self.blob),
        }
    }
}

/// A name in the folder of temporary files, removed when it is dropped.
#[derive(Debug)]
pub(super) struct Temporary(pub(super) PathBuf);

impl Temporary {
    /// Gives the file a permanent name, replacing an existing file.
    pub(super) fn rename(mut self, lasting: &Path) -> io::Result<()> {
        fs::rename(&self.0, lasting)?;
        self.0 = PathBuf::new();
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.0);
        if path.as_os_str().is_empty() {
            return;
        }
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
