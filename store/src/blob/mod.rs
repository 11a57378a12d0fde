//! Stored bytes, content-addressed: `{data_dir}/blobs/ab/cdef…` is the file whose SHA-256 is `abcdef…`, or its pieces are in the
//! object store of `store.objects_url`; `store.file_work`, `store.min_free`.
//!
//! - With an object store new blobs are there, and `{data_dir}/cached` has copies of those in use. The row says which of both a
//!   blob has.
//! - A file under a blob's name is whole: it was flushed under a temporary name on the same file system first.
//! - A file is kept while a row of [`crate::blobs`] names it; a [`Sealed`] keeps the bytes by a link of its own.
//! - Everything that blocks runs on tokio's blocking pool behind `store.file_work` permits.

mod appender;
mod cache;
mod flights;
mod hash;
mod loss;
mod moving;
mod orphan;
mod partial;
pub(crate) mod pieces;
mod recorded;
mod remote;
mod scratch;
mod source;
mod spool;
mod turns;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, Weak},
};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::{Error, StoreSettings, folder, objects::Objects, store::Readers};

use remote::Remote;

pub use hash::BlobHash;
pub use partial::{LeftObjects, Partial, PartialObjects, PartialState};
pub use recorded::UploadedFile;
pub use remote::{ObjectStatistics, StraySearch};
pub use scratch::{Scratch, Scratched};
pub use source::{PiecesReader, Source};
pub use spool::{HEAD_BYTES, Sealed, Spool};

pub(crate) use moving::Unusable;
pub(crate) use orphan::HashPrefix;

const BLOBS: &str = "blobs";
const TEMPORARY: &str = "tmp";
const SCRATCH: &str = "scratch";
const PARTIAL: &str = "partial";

/// Facts of a blob, known once its bytes are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blob {
    pub hash: BlobHash,
    /// Size in bytes.
    pub size: u64,
    /// CRC-32 as in ZIP archives (ISO 3309, polynomial 0x04C11DB7 reflected).
    pub crc32: u32,
}

/// The blob folder of a store. Clones share it.
#[derive(Clone)]
pub struct Blobs {
    shared: Arc<Shared>,
}

struct Shared {
    blobs: PathBuf,
    temporary: PathBuf,
    scratch: PathBuf,
    partial: PathBuf,
    settings: StoreSettings,
    /// Permits for files hashed, written and flushed at a time.
    permits: Arc<Semaphore>,
    /// Position at which the slow search for files without a row continues.
    position: Mutex<crate::blobs::Position>,
    /// Local files of resumable uploads.
    known_files: partial::KnownFiles,
    /// Object store with its cache, if there is one.
    remote: Option<Remote>,
    /// Connections for the rows of blobs; none before the store is made.
    readers: OnceLock<Weak<Readers>>,
}

impl std::fmt::Debug for Blobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blobs")
            .field("blobs", &self.shared.blobs)
            .finish_non_exhaustive()
    }
}

impl Blobs {
    /// Creates a handle; does not access the disk.
    pub(crate) fn new(settings: &StoreSettings, objects: Option<Objects>) -> Self {
        Self {
            shared: Arc::new(Shared {
                blobs: folder_in(&settings.data_dir),
                temporary: settings.data_dir.join(TEMPORARY),
                scratch: settings.data_dir.join(SCRATCH),
                partial: settings.data_dir.join(PARTIAL),
                permits: Arc::new(Semaphore::new(settings.file_work)),
                settings: settings.clone(),
                position: Mutex::default(),
                known_files: partial::KnownFiles::default(),
                remote: objects.map(|objects| Remote::new(objects, settings)),
                readers: OnceLock::new(),
            }),
        }
    }

    /// Makes the folders and removes unfinished files of an earlier process. Only for the holder of the data folder's
    /// lock.
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        let Shared {
            blobs,
            temporary,
            scratch,
            partial,
            ..
        } = &*self.shared;
        folder::create_private(blobs)?;
        for prefix in HashPrefix::all() {
            folder::create_private(&blobs.join(prefix.to_string()))?;
        }
        // A blob's name is durable only when the folder that holds it is.
        folder::sync_folder(blobs)?;
        if let Some(remote) = &self.shared.remote {
            remote.cache().prepare()?;
        }
        folder::create_private(scratch)?;
        folder::create_private(partial)?;
        folder::create_private(temporary)?;
        let leftovers = fs::read_dir(temporary).map_err(Error::file("cannot list", temporary))?;
        for entry in leftovers {
            let path = entry.map_err(Error::file("cannot list", temporary))?.path();
            fs::remove_file(&path).map_err(Error::file("cannot remove", &path))?;
        }
        // Rows of partial files are only true while the folder of the files exists.
        folder::sync_folder(&self.shared.settings.data_dir)
    }

    /// A new temporary file. `Error::Full` when the disk is below `store.min_free`.
    pub async fn spool(&self) -> Result<Spool, Error> {
        Spool::create(self.clone()).await
    }

    /// Returns the folder of all blobs.
    pub(crate) fn folder(&self) -> &Path {
        &self.shared.blobs
    }

    pub(crate) fn path(&self, hash: &BlobHash) -> PathBuf {
        place_in(&self.shared.blobs, hash)
    }

    /// A name for a temporary file that no other has.
    fn temporary_path(&self) -> PathBuf {
        let name = uuid::Uuid::new_v4().simple().to_string();
        self.shared.temporary.join(name)
    }

    pub(crate) fn position(&self) -> &Mutex<crate::blobs::Position> {
        &self.shared.position
    }

    /// Links a finished, flushed file to its blob's name, durably; the file keeps its own name too. An existing file
    /// is replaced: it should have the same bytes, but these were hashed just now, and a disk may have corrupted the
    /// others.
    pub(crate) fn place(&self, finished: &Path, blob: &Blob) -> Result<(), Error> {
        let place = self.path(&blob.hash);
        match fs::hard_link(finished, &place) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let link = self.temporary_path();
                fs::hard_link(finished, &link).map_err(Error::write("cannot link", &link))?;
                fs::rename(&link, &place).map_err(Error::write("cannot replace", &place))?;
            }
            Err(error) => return Err(Error::write("cannot link", &place)(error)),
        }
        let prefix = place.parent().expect("a blob lies on a prefix");
        folder::sync_folder(prefix)
    }

    /// Renames a blob's file to a temporary name, to be removed later; `None` when there was none.
    pub(crate) fn set_aside(&self, hash: &BlobHash) -> Result<Option<SetAside>, Error> {
        let (place, aside) = (self.path(hash), self.temporary_path());
        match fs::rename(&place, &aside) {
            Ok(()) => Ok(Some(SetAside { place, aside })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::file("cannot move", place)(error)),
        }
    }

    /// Runs blocking work on the blocking pool, once there is a permit.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let permit = self.shared.permits.clone().acquire_owned().await;
        let permit = permit.expect("the semaphore is never closed");
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        })
        .await
        .map_err(|error| Error::Internal(format!("work on a blob: {error}")))?
    }

    /// Checks the free space; `Error::Full` when the disk is below `store.min_free`. Blocks.
    fn check_space(&self) -> Result<(), Error> {
        match crate::store::disk_space(&self.shared.settings)?.is_low() {
            true => Err(Error::Full),
            false => Ok(()),
        }
    }

    /// Checks the space for bytes that are read and not stored, which may take half of `store.min_free`: a full disk keeps files
    /// from being stored, not from being read. Blocks.
    fn check_space_to_read(&self) -> Result<(), Error> {
        let disk = crate::store::disk_space(&self.shared.settings)?;
        match disk.free_bytes < disk.min_free_bytes / 2 {
            true => Err(Error::Full),
            false => Ok(()),
        }
    }
}

/// The folder of blobs of a data folder, or of a backup.
pub(crate) fn folder_in(dir: &Path) -> PathBuf {
    dir.join(BLOBS)
}

/// Returns the path of a blob in a folder of blobs.
pub(crate) fn place_in(folder: &Path, hash: &BlobHash) -> PathBuf {
    let name = hash.to_string();
    let (prefix, rest) = name.split_at(2);
    folder.join(prefix).join(rest)
}

/// Blob's file that was set aside for removal.
#[derive(Debug)]
pub(crate) struct SetAside {
    place: PathBuf,
    aside: PathBuf,
}

impl SetAside {
    /// Removes the file permanently; after a failure the next start does it.
    pub(crate) fn remove(self) {
        if let Err(error) = fs::remove_file(&self.aside) {
            tracing::warn!(%error, path = %self.aside.display(), "a deleted blob is removed at the next start");
        }
    }

    /// Restores the file, because its row is kept after all. A blob that was written again meanwhile is kept.
    pub(crate) fn put_back(self) {
        if let Err(error) = fs::hard_link(&self.aside, &self.place)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            tracing::error!(%error, path = %self.place.display(), "a blob could not be put back");
            return;
        }
        let _ = fs::remove_file(&self.aside);
    }
}

#[cfg(test)]
mod tests;
