//! Files whose bytes are in the object store too, at `{data_dir}/cached`: whole blobs by their hash, pieces of large ones by
//! base and number. Least recently used ones are removed when they exceed `store.cache`.
//!
//! - Nothing here is the only copy of anything: each file may be removed at any time, and the whole folder while the service is
//!   stopped. Blobs that are only on this disk have another folder.
//! - A file under its name is whole: it was flushed under a temporary name on the same file system first.
//! - The time of a file's last change tells its last use, to the minute.

use std::{
    collections::BinaryHeap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use uuid::Uuid;

use super::{BlobHash, HashPrefix, place_in, spool::Temporary};
use crate::{Error, folder};

const CACHED: &str = "cached";
const PIECES: &str = "pieces";

/// Time within which another use of a file is not written down.
const TOUCH_EVERY: Duration = Duration::from_secs(60);
/// Time after which the files are counted again: their number and sizes are only kept in memory in between.
const COUNT_EVERY: Duration = Duration::from_secs(60 * 60);
/// Time after which the files are looked at again when the disk is low and none could be removed.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Bytes of which file systems make files.
const BLOCK: u64 = 4096;
/// Files that are removed after one look at all of them; more are held in no memory.
const MOST_CANDIDATES: usize = 32 * 1024;

/// Folder of cached files with a bound.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
    bound: u64,
    used: Mutex<Used>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    bytes: u64,
    removed_bytes: u64,
    /// `None` before the first count.
    counted_at: Option<SystemTime>,
    /// Time at which the disk was low and no file could be removed; `None` once there is a new one.
    exhausted_at: Option<Instant>,
}

/// All files of the folder, at one look.
#[derive(Default)]
struct Found {
    bytes: u64,
    /// Those that were used longest ago, with the last use, and the bytes that they take.
    oldest: BinaryHeap<(SystemTime, u64, PathBuf)>,
}

impl Cache {
    pub(super) fn new(data_dir: &Path, bound: u64) -> Self {
        Self {
            folder: data_dir.join(CACHED),
            bound,
            used: Mutex::default(),
        }
    }

    /// Returns the most bytes that it may take.
    pub(super) fn bound(&self) -> u64 {
        self.bound
    }

    /// Makes the folders; blocks.
    pub(super) fn prepare(&self) -> Result<(), Error> {
        self.folders()
            .try_for_each(|folder| folder::create_private(&folder))
    }

    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        HashPrefix::all()
            .map(|prefix| prefix.to_string())
            .chain([PIECES.to_owned()])
            .map(|name| self.folder.join(name))
    }

    pub(super) fn blob_path(&self, hash: &BlobHash) -> PathBuf {
        place_in(&self.folder, hash)
    }

    pub(super) fn piece_path(&self, base: Uuid, number: u64) -> PathBuf {
        let name = format!("{}-{number}", base.simple());
        self.folder.join(PIECES).join(name)
    }

    /// Opens a file and notes its use; `None` when it is not there. Blocks.
    pub(super) fn open(&self, path: &Path) -> Result<Option<File>, Error> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(Error::file("cannot open", path))?,
        };
        let metadata = file
            .metadata()
            .map_err(Error::file("cannot measure", path))?;
        let now = SystemTime::now();
        let is_noted = metadata.modified().is_ok_and(|used| {
            now.duration_since(used)
                .is_ok_and(|since| since < TOUCH_EVERY)
        });
        if !is_noted && let Err(error) = file.set_modified(now) {
            tracing::debug!(%error, path = %path.display(), "the use of a cached file is not noted");
        }
        Ok(Some(file))
    }

    /// Takes a finished file of `len` bytes in, flushed, in the place of an existing one. Blocks.
    pub(super) fn take(&self, finished: Temporary, len: u64, place: &Path) -> Result<(), Error> {
        let flushed = File::open(&finished.0)
            .and_then(|file| file.set_modified(SystemTime::now()).and(file.sync_all()));
        flushed.map_err(Error::write("cannot flush", &finished.0))?;
        let parent = place.parent().expect("it lies in a folder");
        if !parent.exists() {
            folder::create_private(parent)?;
        }
        let replaced = fs::metadata(place).map_or(0, |found| taken(found.len()));
        finished
            .rename(place)
            .map_err(Error::write("cannot rename to", place))?;
        let mut used = self.used.lock();
        used.bytes = (used.bytes + taken(len)).saturating_sub(replaced);
        used.exhausted_at = None;
        Ok(())
    }

    /// Removes a file; none is fine. Blocks.
    pub(super) fn remove(&self, path: &Path) {
        let Ok(found) = fs::metadata(path) else {
            return;
        };
        if fs::remove_file(path).is_ok() {
            let mut used = self.used.lock();
            used.bytes = used.bytes.saturating_sub(taken(found.len()));
        }
    }

    /// Returns the bytes that the files take, and those of the files that were removed to make room.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let used = *self.used.lock();
        (used.bytes, used.removed_bytes)
    }

    /// Returns whether a file of so many bytes is within the bound.
    pub(super) fn can_hold(&self, len: u64) -> bool {
        len <= self.bound
    }

    /// Returns whether so many bytes more are within the bound.
    pub(super) fn has_room(&self, more: u64) -> bool {
        let used = *self.used.lock();
        let is_counted = used.counted_at.is_some_and(|counted| {
            SystemTime::now()
                .duration_since(counted)
                .is_ok_and(|since| since < COUNT_EVERY)
        });
        is_counted && used.bytes.saturating_add(more) <= self.bound
    }

    /// Returns whether the disk was low and no file could be removed, so that another look at all of them would be in vain.
    pub(super) fn is_exhausted(&self) -> bool {
        let exhausted_at = self.used.lock().exhausted_at;
        exhausted_at.is_some_and(|at| at.elapsed() < LOOK_EVERY)
    }

    /// Removes files until so many bytes more are within the bound, and some more files, so that not each new file has to look at
    /// all others; a quarter of them at least when the disk is low. Blocks.
    pub(super) fn make_room(&self, more: u64, is_low: bool) -> Result<(), Error> {
        let (_, removed_before) = self.bytes();
        self.remove_beyond(more, is_low)?;
        let mut used = self.used.lock();
        if is_low && used.removed_bytes == removed_before {
            used.exhausted_at = Some(Instant::now());
        }
        Ok(())
    }

    fn remove_beyond(&self, more: u64, is_low: bool) -> Result<(), Error> {
        let mut most = None;
        loop {
            let found = self.look()?;
            {
                let mut used = self.used.lock();
                used.bytes = found.bytes;
                used.counted_at = Some(SystemTime::now());
            }
            if most.is_none() && !is_low && found.bytes.saturating_add(more) <= self.bound {
                return Ok(());
            }
            let most = *most.get_or_insert_with(|| {
                let target = (self.bound - self.bound / 10).saturating_sub(more);
                match is_low {
                    true => target.min(found.bytes / 4 * 3),
                    false => target,
                }
            });
            if found.bytes <= most || self.remove_oldest(found, most) == 0 || self.bytes().0 <= most
            {
                return Ok(());
            }
        }
    }

    /// Removes the files that were used longest ago, until the others have `most` bytes; returns how many.
    fn remove_oldest(&self, found: Found, most: u64) -> usize {
        let (mut bytes, mut count) = (found.bytes, 0);
        for (_, size, path) in found.oldest.into_sorted_vec() {
            if bytes <= most {
                break;
            }
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(%error, path = %path.display(), "a cached file could not be removed");
                }
                _ => {
                    count += 1;
                    bytes = bytes.saturating_sub(size);
                    let mut used = self.used.lock();
                    used.bytes = used.bytes.saturating_sub(size);
                    used.removed_bytes += size;
                }
            }
        }
        count
    }

    fn look(&self) -> Result<Found, Error> {
        let mut found = Found::default();
        for folder in self.folders() {
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries.map_err(Error::file("cannot list", &folder))?,
            };
            for entry in entries.filter_map(Result::ok) {
                // One that was removed meanwhile has no metadata.
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                if !metadata.is_file() {
                    continue;
                }
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                found.add(used, taken(metadata.len()), entry.path());
            }
        }
        Ok(found)
    }
}

impl Found {
    fn add(&mut self, used: SystemTime, bytes: u64, path: PathBuf) {
        self.bytes += bytes;
        self.oldest.push((used, bytes, path));
        if self.oldest.len() > MOST_CANDIDATES {
            self.oldest.pop();
        }
    }
}

/// Returns the bytes that a file of this length takes on the disk.
fn taken(len: u64) -> u64 {
    len.max(1).next_multiple_of(BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(cache: &Cache, folder: &Path, number: u8, age_s: u64) -> PathBuf {
        let finished = folder.join("finished");
        fs::write(&finished, vec![number; 4000]).unwrap();
        let path = cache.blob_path(&BlobHash([number; 32]));
        cache.take(Temporary(finished), 4000, &path).unwrap();
        let used = SystemTime::now() - Duration::from_secs(age_s);
        File::open(&path).unwrap().set_modified(used).unwrap();
        path
    }

    #[test]
    fn least_recently_used_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), 10 * BLOCK);
        cache.prepare().unwrap();
        assert!(!cache.has_room(0), "nothing is known before a count");
        let paths: Vec<_> = (0..8)
            .map(|number| add(&cache, folder.path(), number, 1000 - u64::from(number)))
            .collect();
        cache.make_room(0, false).unwrap();
        assert_eq!(cache.bytes(), (8 * BLOCK, 0));
        assert!(cache.has_room(2 * BLOCK) && !cache.has_room(2 * BLOCK + 1));

        // Its use makes the first the newest.
        drop(cache.open(&paths[0]).unwrap().unwrap());
        cache.make_room(3 * BLOCK, false).unwrap();
        let is_there: Vec<_> = paths.iter().map(|path| path.exists()).collect();
        let kept = [true, false, false, true, true, true, true, true];
        assert_eq!(is_there, kept);
        assert_eq!(cache.bytes(), (6 * BLOCK, 2 * BLOCK));

        cache.make_room(0, true).unwrap();
        assert_eq!(cache.bytes().0, 4 * BLOCK, "a quarter or more");
        cache.remove(&paths[0]);
        cache.remove(&paths[0]);
        assert_eq!(cache.bytes().0, 3 * BLOCK);
        assert!(cache.open(&paths[0]).unwrap().is_none());
    }

    #[test]
    fn files_are_not_looked_at_again_while_none_can_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), 10 * BLOCK);
        add(&cache, folder.path(), 1, 0);
        cache.make_room(0, true).unwrap();
        assert_eq!(cache.bytes(), (0, BLOCK));
        assert!(!cache.is_exhausted(), "one was removed");
        cache.make_room(0, false).unwrap();
        assert!(!cache.is_exhausted(), "there is enough room");
        cache.make_room(0, true).unwrap();
        assert!(cache.is_exhausted());
        add(&cache, folder.path(), 2, 0);
        assert!(!cache.is_exhausted(), "there is a new one");
    }

    #[test]
    fn a_folder_that_was_removed_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path(), u64::MAX);
        let path = add(&cache, folder.path(), 1, 0);
        add(&cache, folder.path(), 1, 0);
        assert!(path.exists());
        cache.make_room(0, false).unwrap();
        assert_eq!(cache.bytes(), (BLOCK, 0));
    }
}
