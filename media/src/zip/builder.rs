//! Builds the entries of an archive of folders: paths, distinct names, longest path.

use std::collections::{HashMap, HashSet};

use super::{layout::Layout, name};
use crate::Error;

/// The longest path: its length has 16 bits.
const MAX_PATH_BYTES: u64 = u16::MAX as u64;

/// A folder that has been added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Folder(u32);

impl Folder {
    /// The archived folder itself; it has no entry of its own.
    pub const ROOT: Self = Self(0);

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Facts of a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    pub size: u64,
    /// CRC-32 as in ZIP (ISO 3309).
    pub crc32: u32,
}

/// Record of a folder; its parents' names are not repeated.
#[derive(Clone, Copy, Debug)]
pub(super) struct FolderRecord {
    pub parent: u32,
    /// End of its name in the text of all names; it begins where the one before ends.
    pub name_end: u32,
    /// Length of the whole path, with the slash at its end.
    pub path_len: u32,
    /// Seconds since 1970.
    pub modified: u32,
}

/// Record of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileRecord {
    pub size: u64,
    pub crc32: u32,
    pub modified: u32,
    pub folder: u32,
    pub name_end: u32,
}

/// Takes all folders, parents first, then all files; the same in the same order gives the same archive.
#[derive(Debug)]
pub struct Builder {
    /// The root first.
    folders: Vec<FolderRecord>,
    files: Vec<FileRecord>,
    names: String,
    /// Names that are in use, each with its parent.
    taken: HashSet<u64>,
    /// The numbers that names in use more than once come to next, by [`name::counter_key`].
    numbers: HashMap<u64, u32>,
}

impl Default for Builder {
    fn default() -> Self {
        let root = FolderRecord {
            parent: 0,
            name_end: 0,
            path_len: 0,
            modified: 0,
        };
        Self {
            folders: vec![root],
            files: Vec::new(),
            names: String::new(),
            taken: HashSet::new(),
            numbers: HashMap::new(),
        }
    }
}

impl Builder {
    /// Adds a folder under a name that is safe and its own among its siblings. `modified_ms` is milliseconds since
    /// 1970. `Error::Unsupported` when its path is too long for an archive.
    ///
    /// # Panics
    ///
    /// After the first file.
    pub fn folder(
        &mut self,
        parent: Folder,
        given: &str,
        modified_ms: i64,
    ) -> Result<Folder, Error> {
        assert!(self.files.is_empty(), "folders come before files");
        let name = self.own_name(parent, given, true);
        let path_len = self.path_len(parent, &name)? + 1;
        let name_end = self.push_name(&name)?;
        let folder = Folder(numbered(self.folders.len())?);
        self.folders.push(FolderRecord {
            parent: parent.0,
            name_end,
            path_len,
            modified: seconds(modified_ms),
        });
        Ok(folder)
    }

    /// Adds a file; its number, from 0, is what [`super::Piece::Contents`] names it by. Else as [`Builder::folder`].
    pub fn file(
        &mut self,
        folder: Folder,
        given: &str,
        contents: Contents,
        modified_ms: i64,
    ) -> Result<u32, Error> {
        let name = self.own_name(folder, given, false);
        self.path_len(folder, &name)?;
        let name_end = self.push_name(&name)?;
        let number = numbered(self.files.len())?;
        self.files.push(FileRecord {
            size: contents.size,
            crc32: contents.crc32,
            modified: seconds(modified_ms),
            folder: folder.0,
            name_end,
        });
        Ok(number)
    }

    /// Returns the memory of the list so far, without what is only needed until it is finished.
    pub fn bytes(&self) -> usize {
        size_of_val(self.folders.as_slice()) + size_of_val(self.files.as_slice()) + self.names.len()
    }

    /// Counts the numbered names that were tried so far.
    #[cfg(test)]
    pub(super) fn tried(&self) -> u64 {
        let tried = self.numbers.values().map(|next| u64::from(next - 2));
        tried.sum()
    }

    pub fn finish(mut self) -> Layout {
        self.folders.shrink_to_fit();
        self.files.shrink_to_fit();
        self.names.shrink_to_fit();
        Layout::new(self.folders, self.files, self.names)
    }

    /// Returns a safe name, with a number when a file system would take it for a sibling.
    fn own_name(&mut self, parent: Folder, given: &str, is_folder: bool) -> String {
        let name = name::safe(given);
        if self.taken.insert(name::folded(parent.0, &name)) {
            return name;
        }
        let key = name::counter_key(parent.0, &name, is_folder);
        let next = self.numbers.entry(key).or_insert(2);
        loop {
            let candidate = name::numbered(&name, *next, is_folder);
            *next += 1;
            if self.taken.insert(name::folded(parent.0, &candidate)) {
                return candidate;
            }
        }
    }

    fn path_len(&self, parent: Folder, name: &str) -> Result<u32, Error> {
        let len = u64::from(self.folders[parent.index()].path_len) + name.len() as u64;
        // A folder's path has a slash more.
        match len < MAX_PATH_BYTES {
            true => Ok(len as u32),
            false => Err(too_large(format!(
                "a path in it is longer than {MAX_PATH_BYTES} bytes"
            ))),
        }
    }

    fn push_name(&mut self, name: &str) -> Result<u32, Error> {
        let end = self.names.len() + name.len();
        let end = u32::try_from(end)
            .map_err(|_| too_large("its names have more than 4 GiB".to_owned()))?;
        self.names.push_str(name);
        Ok(end)
    }
}

fn numbered(index: usize) -> Result<u32, Error> {
    u32::try_from(index).map_err(|_| too_large("it has more than 2^32 entries".to_owned()))
}

fn too_large(reason: String) -> Error {
    Error::unsupported("archive", reason)
}

/// Clamps to the range of 32 bits, from 1970 to 2106.
fn seconds(ms: i64) -> u32 {
    u32::try_from(ms.max(0) / 1000).unwrap_or(u32::MAX)
}
