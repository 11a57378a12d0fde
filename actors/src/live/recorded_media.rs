//! Recorded media of a broadcast: files in the recording's folder, or their copies in the object store.

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;
use rustix::io::Errno;
use sluice_media::hls::names::MediaName;
use sluice_store::{
    Error as StoreError, Store,
    blob::{Blobs, Source},
};
use tracing::warn;

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
    /// True for local files that are as they were recorded, of those that were compared: at most the files of the recording.
    compared: Mutex<HashMap<MediaName, bool>>,
}

impl RecordedFolder {
    pub(crate) fn new(store: &Store, path: &Path, broadcast: &str) -> Self {
        Self {
            path: path.to_owned(),
            broadcast: broadcast.to_owned(),
            blobs: store.blobs().clone(),
            compared: Mutex::default(),
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
            is_compared: false,
        }
    }

    /// Returns media as [`RecordedFolder::media`] does, whose local file counts only when it has the bytes that are in the object
    /// store: after a power loss it may be zeros, or short.
    pub(crate) fn compared_media(self: &Arc<Self>, name: MediaName, len: u64) -> RecordedMedia {
        RecordedMedia {
            is_compared: true,
            ..self.media(name, len)
        }
    }
}

/// Segment or init section of a recording.
#[derive(Clone, Debug)]
pub struct RecordedMedia {
    folder: Arc<RecordedFolder>,
    name: MediaName,
    len: u64,
    /// True when the local file is compared with the objects before it is read.
    is_compared: bool,
}

impl RecordedMedia {
    /// Returns the length in bytes; 0: it is not known.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Opens the file, when all of it is there, else the objects; without any, what there is of the file. `Error::NotFound` when
    /// nothing is there; `Error::Objects` when the object store cannot be used now; `Error::Lost` when the disk cannot read the
    /// file and there are no objects.
    pub async fn open(&self) -> Result<Source, StoreError> {
        let (path, len) = (self.folder.file(self.name), self.len);
        let local = match blocking(move || Ok(open_local(&path, len))).await? {
            Ok(Some((file, is_whole))) => {
                let file = Arc::new(file);
                if is_whole && self.is_as_recorded(&file).await? {
                    return Ok(Source::File(file));
                }
                Ok(Some(file))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        let name = self.name.to_string();
        let stored = self.folder.blobs.recorded(&self.folder.broadcast, &name);
        match (stored.await, local) {
            (Err(StoreError::NotFound(_)), Ok(Some(file))) => Ok(Source::File(file)),
            (Err(StoreError::NotFound(_)), Err(error)) => Err(unreadable(error)),
            (opened, _) => opened,
        }
    }

    /// Returns whether a local file may be read; one that was compared once is not compared again.
    async fn is_as_recorded(&self, file: &Arc<File>) -> Result<bool, StoreError> {
        if !self.is_compared {
            return Ok(true);
        }
        let known = self.folder.compared.lock().get(&self.name).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let (broadcast, name) = (&self.folder.broadcast, self.name.to_string());
        let comparing = self
            .folder
            .blobs
            .is_as_recorded(broadcast, &name, file.clone());
        let is_same = comparing.await?.unwrap_or(true);
        if !is_same {
            warn!(
                broadcast,
                name, "a recorded file is damaged: its objects are read instead"
            );
        }
        self.folder.compared.lock().insert(self.name, is_same);
        Ok(is_same)
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
        Err(error) => unreadable(error),
    })
}

/// Returns the error of recorded media that the disk does not give: `Error::Lost` for those that it cannot read any more.
fn unreadable(error: io::Error) -> StoreError {
    let what = format!("recorded media cannot be read: {error}");
    match is_disk_failure(&error) {
        true => StoreError::Lost(what),
        false => StoreError::Internal(what),
    }
}

/// Returns whether bytes cannot be read any more: the disk fails, or the file system is damaged.
pub(crate) fn is_disk_failure(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::IO | Errno::UCLEAN | Errno::BADMSG)
    )
}
