//! Recorded media of a broadcast: files in the recording's folder, or their copies in the object store.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use sluice_media::hls::names::MediaName;
use sluice_store::{
    Error as StoreError, Store,
    blob::{Blobs, Source},
};

/// Name of the index in a recording's folder.
pub(crate) const RECORDING_INDEX: &str = "recording.index";

/// Most bytes of media that are read into memory as a whole: of an init section.
const MOST_IN_MEMORY: usize = 1 << 20;

/// Folder of a recording whose media are in the object store, too.
#[derive(Debug)]
pub(crate) struct RecordedFolder {
    pub path: PathBuf,
    pub broadcast: String,
    blobs: Blobs,
}

impl RecordedFolder {
    pub(crate) fn new(store: &Store, path: &Path, broadcast: &str) -> Self {
        Self {
            path: path.to_owned(),
            broadcast: broadcast.to_owned(),
            blobs: store.blobs().clone(),
        }
    }

    /// Returns the path of a file in the folder, which may not be there.
    pub(crate) fn file(&self, name: MediaName) -> PathBuf {
        self.path.join(name.to_string())
    }

    /// Returns media of `len` bytes; 0: their length is not known.
    pub(crate) fn media(self: &Arc<Self>, name: MediaName, len: u64) -> RecordedMedia {
        RecordedMedia {
            folder: self.clone(),
            name,
            len,
        }
    }
}

/// Segment or init section of a recording.
#[derive(Clone, Debug)]
pub struct RecordedMedia {
    folder: Arc<RecordedFolder>,
    name: MediaName,
    len: u64,
}

impl RecordedMedia {
    /// Returns the length in bytes; 0: it is not known.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Opens the file, when all of it is there, else the objects; without any, what there is of the file. `Error::NotFound` when
    /// nothing is there; `Error::Objects` when the object store cannot be used now.
    pub async fn open(&self) -> Result<Source, StoreError> {
        let (path, len) = (self.folder.file(self.name), self.len);
        let partial = match blocking(move || open_local(&path, len)).await? {
            Some((file, true)) => return Ok(Source::File(Arc::new(file))),
            Some((file, false)) => Some(file),
            None => None,
        };
        let name = self.name.to_string();
        let stored = self.folder.blobs.recorded(&self.folder.broadcast, &name);
        match (stored.await, partial) {
            (Err(StoreError::NotFound(_)), Some(file)) => Ok(Source::File(Arc::new(file))),
            (opened, _) => opened,
        }
    }

    /// Reads an init section.
    pub(crate) async fn bytes(&self) -> Result<Bytes, StoreError> {
        match self.open().await? {
            Source::Pieces(mut reader) => reader.read(0, MOST_IN_MEMORY).await,
            Source::File(file) => {
                let reading = blocking(move || {
                    let len = file.metadata()?.len().min(MOST_IN_MEMORY as u64);
                    let mut bytes = vec![0; len as usize];
                    file.read_exact_at(&mut bytes, 0)?;
                    Ok(Bytes::from(bytes))
                });
                reading.await
            }
        }
    }
}

/// Opens a file, with whether it has so many bytes; `None` when it is not there.
fn open_local(path: &Path, len: u64) -> io::Result<Option<(File, bool)>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let is_whole = file.metadata()?.len() >= len;
    Ok(Some((file, is_whole)))
}

/// Removes a file; none is fine.
pub(super) fn remove_local(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Runs blocking work on tokio's blocking pool.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| StoreError::Internal(format!("work on a recording: {error}")))?;
    done.map_err(|error| match error.downcast::<StoreError>() {
        Ok(error) => error,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            StoreError::NotFound("recorded media")
        }
        Err(error) => StoreError::Internal(format!("recorded media cannot be read: {error}")),
    })
}
