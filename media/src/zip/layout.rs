//! Length and offsets of everything in an archive, before any file is read.
//!
//! ```text
//! 0                                                       directory.at                        len
//! │ header, contents │ header, contents │ …               │ record │ record │ …  │ end records │
//!   folders first, then files, in the order in which they were added; the same in the directory
//! ```

use super::{
    builder::{FileRecord, FolderRecord},
    cursor::Cursor,
    header::{self, Directory, Entry},
};

/// Entries between two kept offsets; those between are computed.
const OFFSET_EVERY: u32 = 64;

/// An archive: everything but the files' bytes.
#[derive(Debug)]
pub struct Layout {
    /// The root first, which has no entry.
    folders: Vec<FolderRecord>,
    files: Vec<FileRecord>,
    names: String,
    offsets: Vec<EntryOffset>,
    directory: Directory,
}

/// An entry, and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryOffset {
    pub entry: u32,
    /// Offset of its local header, from the archive's beginning.
    pub local: u64,
    /// Offset of its record in the directory, from the archive's beginning.
    pub central: u64,
}

impl Layout {
    pub(super) fn new(folders: Vec<FolderRecord>, files: Vec<FileRecord>, names: String) -> Self {
        let mut layout = Self {
            folders,
            files,
            names,
            offsets: Vec::new(),
            directory: Directory {
                entries: 0,
                at: 0,
                len: 0,
            },
        };
        layout.measure();
        layout
    }

    /// Computes all offsets in one pass. The directory's place is known at the end, so that it counts from 0 until
    /// then.
    fn measure(&mut self) {
        let mut place = EntryOffset {
            entry: 0,
            local: 0,
            central: 0,
        };
        let mut offsets = Vec::with_capacity((self.entries() / OFFSET_EVERY + 1) as usize);
        while place.entry < self.entries() {
            if place.entry.is_multiple_of(OFFSET_EVERY) {
                offsets.push(place);
            }
            place = self.after(place);
        }
        for kept in &mut offsets {
            kept.central += place.local;
        }
        self.offsets = offsets;
        self.directory = Directory {
            entries: u64::from(self.entries()),
            at: place.local,
            len: place.central,
        };
    }

    /// The archive's length in bytes.
    pub fn len(&self) -> u64 {
        self.directory.at + self.directory.len + self.directory.end_len()
    }

    /// Returns whether it has no entries; an archive of nothing has a length, too.
    pub fn is_empty(&self) -> bool {
        self.entries() == 0
    }

    pub fn files(&self) -> u32 {
        self.files.len() as u32
    }

    /// Returns the size of the file of that number.
    pub fn size(&self, file: u32) -> u64 {
        self.files[file as usize].size
    }

    /// Returns a reader of `len` bytes from `start`, as far as there are any.
    pub fn cursor(&self, start: u64, len: u64) -> Cursor {
        Cursor::new(self, start, len)
    }

    pub(super) fn directory(&self) -> Directory {
        self.directory
    }

    /// Returns the number of folders and files; folders come first.
    pub(super) fn entries(&self) -> u32 {
        (self.folders.len() - 1 + self.files.len()) as u32
    }

    /// The number of the file that the entry is; `None` for a folder.
    pub(super) fn file_number(&self, entry: u32) -> Option<u32> {
        entry.checked_sub(self.folders.len() as u32 - 1)
    }

    pub(super) fn entry(&self, entry: u32) -> Entry {
        match self.file_number(entry) {
            None => Entry {
                size: 0,
                crc32: 0,
                modified: self.folders[entry as usize + 1].modified,
                is_folder: true,
            },
            Some(number) => {
                let file = &self.files[number as usize];
                Entry {
                    size: file.size,
                    crc32: file.crc32,
                    modified: file.modified,
                    is_folder: false,
                }
            }
        }
    }

    pub(super) fn local_len(&self, entry: u32) -> u64 {
        header::local_len(&self.entry(entry), self.path_len(entry))
    }

    pub(super) fn central_len(&self, place: EntryOffset) -> u64 {
        let (entry, path_len) = (self.entry(place.entry), self.path_len(place.entry));
        header::central_len(&entry, path_len, place.local)
    }

    /// The place after this one.
    pub(super) fn after(&self, place: EntryOffset) -> EntryOffset {
        EntryOffset {
            entry: place.entry + 1,
            local: place.local + self.local_len(place.entry) + self.entry(place.entry).size,
            central: place.central + self.central_len(place),
        }
    }

    /// The last entry that does not begin behind an offset, by the place that `of` looks at; the first when none is
    /// there.
    pub(super) fn find(&self, offset: u64, of: impl Fn(&EntryOffset) -> u64) -> EntryOffset {
        let kept = self.offsets.partition_point(|kept| of(kept) <= offset);
        let mut place = match kept.checked_sub(1) {
            Some(kept) => self.offsets[kept],
            None => self.first(),
        };
        while place.entry < self.entries() {
            let next = self.after(place);
            if of(&next) > offset {
                break;
            }
            place = next;
        }
        place
    }

    fn first(&self) -> EntryOffset {
        EntryOffset {
            entry: 0,
            local: 0,
            central: self.directory.at,
        }
    }

    /// Path of an entry; a folder's ends with a slash.
    pub(super) fn path(&self, entry: u32) -> Vec<u8> {
        let (name, parent, slash) = match self.file_number(entry) {
            None => {
                let folder = entry as usize + 1;
                (self.folder_name(folder), self.folders[folder].parent, "/")
            }
            Some(number) => {
                let number = number as usize;
                (self.file_name(number), self.files[number].folder, "")
            }
        };
        let mut path = Vec::with_capacity(self.path_len(entry) as usize);
        for ancestor in self.lineage(parent) {
            path.extend_from_slice(self.folder_name(ancestor).as_bytes());
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        path.extend_from_slice(slash.as_bytes());
        path
    }

    /// Returns the folder and its ancestors, outermost first, without the root.
    fn lineage(&self, folder: u32) -> Vec<usize> {
        let mut lineage = Vec::new();
        let mut folder = folder as usize;
        while folder != 0 {
            lineage.push(folder);
            folder = self.folders[folder].parent as usize;
        }
        lineage.reverse();
        lineage
    }

    fn path_len(&self, entry: u32) -> u64 {
        match self.file_number(entry) {
            None => u64::from(self.folders[entry as usize + 1].path_len),
            Some(number) => {
                let file = &self.files[number as usize];
                let folder_len = u64::from(self.folders[file.folder as usize].path_len);
                folder_len + self.file_name(number as usize).len() as u64
            }
        }
    }

    /// Name of a folder that is not the root.
    fn folder_name(&self, folder: usize) -> &str {
        let start = self.folders[folder - 1].name_end;
        &self.names[start as usize..self.folders[folder].name_end as usize]
    }

    fn file_name(&self, number: usize) -> &str {
        let last_folder = self.folders.last().expect("the root is there");
        let start = match number.checked_sub(1) {
            Some(before) => self.files[before].name_end,
            None => last_folder.name_end,
        };
        &self.names[start as usize..self.files[number].name_end as usize]
    }
}
