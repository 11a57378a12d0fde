//! Disk tier of the image cache (`cdn.disk`): rendered variants in `{data_dir}/cache`, bounded by bytes, least recently used
//! first out; survives a restart.
//!
//! A cache, not a store: nothing is flushed, a file appears by rename, and one that is damaged or of another time is a
//! miss and removed. All calls but [`Disk::holds`] block: they belong on the blocking pool.

pub(super) mod file;
mod index;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tracing::debug;
use uuid::Uuid;

use self::index::{Index, Slot};
use super::{entry::Entry, source::ImageSource};

/// Share of the tier (one in so many) above which a variant is not kept.
const LARGEST_SHARE: u64 = 8;

/// Name of a variant in the cache: 128 bits of a hash of its file and request.
pub(super) type Name = [u8; 16];

pub(super) fn name_of(file_id: Uuid, request: &str) -> Name {
    let mut hash = Sha256::new();
    hash.update(file_id.as_bytes());
    hash.update(request.as_bytes());
    let mut name = Name::default();
    name.copy_from_slice(&hash.finalize()[..16]);
    name
}

/// The tier.
#[derive(Debug)]
pub(super) struct Disk {
    folder: PathBuf,
    most: u64,
    index: Mutex<Index>,
    temporaries: AtomicU64,
}

/// `(file, name)` of variants that were dropped to make room.
pub(super) type Dropped = Vec<(Uuid, Name)>;

impl Disk {
    /// Makes a tier of at most `most` bytes below `folder`; 0: nothing is kept.
    pub(super) fn new(folder: PathBuf, most: u64) -> Self {
        Self {
            folder,
            most,
            index: Mutex::default(),
            temporaries: AtomicU64::new(0),
        }
    }

    /// Makes the folder, and removes unfinished files of an earlier process. Called before all else.
    pub(super) fn prepare(&self) -> io::Result<()> {
        let temporary = self.temporary_folder();
        if temporary.exists() {
            fs::remove_dir_all(&temporary)?;
        }
        fs::create_dir_all(&temporary)
    }

    /// Indexes the variants of an earlier process. Returns the files they belong to.
    pub(super) fn scan(&self) -> io::Result<Vec<Uuid>> {
        let mut found = Vec::new();
        for folder in folders(&self.folder)? {
            for of_file in folders(&folder)? {
                let Some(file_id) = file_name(&of_file).and_then(|name| Uuid::try_parse(name).ok())
                else {
                    continue;
                };
                found.extend(variants_of(&of_file, file_id)?);
            }
        }
        found.sort_unstable_by_key(|(written, ..)| *written);
        let mut index = self.index.lock();
        for (_, name, slot) in found {
            index.put(name, slot);
        }
        // The tier may have been made smaller.
        let dropped = index.shrink_to(self.most);
        let files = index.files();
        drop(index);
        for (file_id, name) in dropped {
            self.unlink(file_id, &name);
        }
        Ok(files)
    }

    /// Returns whether the tier has the variant, by its index alone. Does not block.
    pub(super) fn holds(&self, name: &Name) -> bool {
        self.index.lock().holds(name)
    }

    /// Reads a variant; `None` when it is not there, damaged, or made from another state of the source.
    pub(super) fn get(&self, source: &ImageSource, request: &str) -> Option<Entry> {
        let name = name_of(source.id, request);
        if !self.index.lock().touch(&name) {
            return None;
        }
        match file::read(&self.path(source.id, &name), source, request) {
            Ok(entry) => Some(entry),
            Err(error) => {
                debug!(%error, file = %source.id, "a cached variant cannot be used");
                self.remove(source.id, &name);
                None
            }
        }
    }

    /// Keeps a variant, unless its source is stale by then; the least recently used ones are removed for it.
    pub(super) fn put(&self, source: &ImageSource, request: &str, entry: &Entry) -> io::Result<()> {
        let image = file::compose(source, request, entry);
        let bytes = image.len() as u64;
        if bytes > self.most / LARGEST_SHARE {
            return Ok(());
        }
        let name = name_of(source.id, request);
        let number = self.temporaries.fetch_add(1, Relaxed);
        let temporary = self.temporary_folder().join(number.to_string());
        fs::write(&temporary, image)?;
        let dropped = {
            let mut index = self.index.lock();
            // Under the lock that a purge takes after it marked the source.
            if !source.is_current() {
                drop(index);
                fs::remove_file(&temporary)?;
                return Ok(());
            }
            let path = self.path(source.id, &name);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::rename(&temporary, &path)?;
            let slot = Slot {
                file_id: source.id,
                bytes,
            };
            index.put(name, slot);
            index.shrink_to(self.most)
        };
        for (file_id, name) in dropped {
            self.unlink(file_id, &name);
        }
        Ok(())
    }

    /// Removes all variants of a file; returns how many.
    pub(super) fn purge(&self, file_id: Uuid) -> usize {
        let count = self.index.lock().purge(file_id);
        let folder = self.folder_of(file_id);
        if let Err(error) = fs::remove_dir_all(&folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            debug!(%error, folder = %folder.display(), "cached variants stay until the next start");
        }
        count
    }

    /// Returns numbers of entries and bytes.
    pub(super) fn size(&self) -> (usize, u64) {
        self.index.lock().size()
    }

    fn remove(&self, file_id: Uuid, name: &Name) {
        self.index.lock().remove(name);
        self.unlink(file_id, name);
    }

    /// Removes a variant's file, and with the last variant the folder.
    fn unlink(&self, file_id: Uuid, name: &Name) {
        let _ = fs::remove_file(self.path(file_id, name));
        let _ = fs::remove_dir(self.folder_of(file_id));
    }

    fn path(&self, file_id: Uuid, name: &Name) -> PathBuf {
        let name = Uuid::from_bytes(*name).simple().to_string();
        self.folder_of(file_id).join(name)
    }

    /// `{folder}/{last two digits of the id}/{id}`
    fn folder_of(&self, file_id: Uuid) -> PathBuf {
        let id = file_id.simple().to_string();
        self.folder.join(&id[30..]).join(&id)
    }

    fn temporary_folder(&self) -> PathBuf {
        self.folder.join("unfinished")
    }
}

fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// Lists the variants in a file's folder, with the time at which each was written.
fn variants_of(
    folder: &Path,
    file_id: Uuid,
) -> io::Result<Vec<(std::time::SystemTime, Name, Slot)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let Some(name) = file_name(&path).and_then(|name| Uuid::try_parse(name).ok()) else {
            continue;
        };
        let metadata = entry.metadata()?;
        let slot = Slot {
            file_id,
            bytes: metadata.len(),
        };
        found.push((metadata.modified()?, *name.as_bytes(), slot));
    }
    Ok(found)
}

/// Runs blocking work of the tier on the blocking pool.
pub(super) async fn blocking<T: Send + 'static>(
    disk: &Arc<Disk>,
    work: impl FnOnce(&Disk) -> T + Send + 'static,
) -> Option<T> {
    let disk = disk.clone();
    tokio::task::spawn_blocking(move || work(&disk)).await.ok()
}
