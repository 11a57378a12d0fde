//! Disk use of the data folder by kind (`stored files`, `live`, `image cache`, …), as the file system has it: a walk, with a bound
//! of files.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Files that one walk looks at; beyond them the sums are incomplete.
const MOST_FILES: u64 = 500_000;
/// Unit of `st_blocks` (stat(2)).
const BLOCK_BYTES: u64 = 512;

/// Kinds by the name of their file or folder in the data folder; everything else is `other`.
const KINDS: [(&str, &str); 16] = [
    ("blobs", "stored files"),
    ("video", "video streams"),
    ("recordings", "recordings"),
    ("live", "live windows"),
    ("cache", "image cache"),
    ("cached", "cache of the object store"),
    ("partial", "unfinished uploads"),
    ("tus", "unfinished uploads"),
    ("uploads", "unfinished uploads"),
    ("tmp", "work in progress"),
    ("scratch", "work in progress"),
    ("runs", "work in progress"),
    ("sluice.db", "database"),
    ("sluice.db-wal", "database"),
    ("sluice.db-shm", "database"),
    ("backups", "copies of the database"),
];
const OTHER: &str = "other";

/// Use of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    pub bytes: u64,
    pub files: u64,
}

/// Uses of all kinds that have files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskUse {
    pub kinds: BTreeMap<&'static str, Use>,
    /// False when there are more files than one walk looks at.
    pub is_complete: bool,
    /// Unix milliseconds.
    pub measured_at: i64,
}

/// Measures the data folder. A file with several names counts once, for the first kind that has it; what vanishes meanwhile
/// does not count.
pub(crate) fn measure(data_dir: &Path) -> DiskUse {
    let mut walk = Walk {
        most: MOST_FILES,
        ..Walk::default()
    };
    // In the order of the kinds, so that a shared file always counts for the same one.
    for (name, kind) in KINDS {
        walk.add(kind, data_dir.join(name));
    }
    for entry in entries(data_dir) {
        if !KINDS.iter().any(|(name, _)| entry.ends_with(name)) {
            walk.add(OTHER, entry);
        }
    }
    DiskUse {
        is_complete: walk.most > 0,
        kinds: walk.kinds,
        measured_at: sluice_store::now_ms(),
    }
}

#[derive(Default)]
struct Walk {
    kinds: BTreeMap<&'static str, Use>,
    /// Inodes of files with several names.
    shared: HashSet<u64>,
    /// Files that may still be looked at.
    most: u64,
}

impl Walk {
    fn add(&mut self, kind: &'static str, path: PathBuf) {
        let mut folders = vec![path];
        while let Some(path) = folders.pop() {
            if self.most == 0 {
                return;
            }
            let Ok(found) = fs::symlink_metadata(&path) else {
                continue;
            };
            self.most -= 1;
            if found.is_dir() {
                // What cannot be looked at need not be listed.
                folders.extend(entries(&path).take(self.most as usize));
            }
            if found.nlink() > 1 && found.is_file() && !self.shared.insert(found.ino()) {
                continue;
            }
            let sum = self.kinds.entry(kind).or_default();
            sum.bytes += found.blocks() * BLOCK_BYTES;
            sum.files += u64::from(found.is_file());
        }
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_for_their_kind_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["blobs/ab", "recordings/1", "cache", "cached/cd"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        for name in [
            "blobs/ab/one",
            "blobs/ab/two",
            "cached/cd/three",
            "sluice.db",
            "lock",
        ] {
            fs::write(path(name), [7; 10_000]).unwrap();
        }
        fs::hard_link(path("blobs/ab/one"), path("recordings/1/part")).unwrap();
        let found = measure(folder.path());
        assert!(found.is_complete);
        let files = |kind| found.kinds[kind].files;
        assert_eq!(
            [
                "stored files",
                "recordings",
                "image cache",
                "cache of the object store",
                "database",
                "other"
            ]
            .map(files),
            [2, 0, 0, 1, 1, 1]
        );
        assert!(found.kinds["stored files"].bytes >= 20_000);
        assert!(measure(Path::new("/nonexistent")).kinds.is_empty());
    }

    #[test]
    fn a_walk_ends_at_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        for name in 0..5 {
            fs::write(folder.path().join(name.to_string()), "x").unwrap();
        }
        let mut walk = Walk {
            most: 3,
            ..Walk::default()
        };
        walk.add(OTHER, folder.path().to_owned());
        assert_eq!((walk.most, walk.kinds[OTHER].files), (0, 2));
    }
}
