//! Reads a byte range of an archive (download, `Range` request) as headers and pieces of files.

use super::{
    header,
    layout::{EntryOffset, Layout},
};

/// Size of pieces of headers, about.
const PIECE_BYTES: usize = 64 * 1024;

/// Next piece of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Headers.
    Bytes(Vec<u8>),
    /// A part of a file, not empty.
    Contents {
        /// Number that [`super::Builder::file`] gave it.
        file: u32,
        offset: u64,
        len: u64,
    },
}

/// Position of a reader of a [`Layout`]. It belongs to the layout that made it.
#[derive(Clone, Debug)]
pub struct Cursor {
    at: u64,
    end: u64,
    /// The entry that the reader is in, by header and contents or, in the directory, by record.
    place: EntryOffset,
}

impl Cursor {
    pub(super) fn new(layout: &Layout, start: u64, len: u64) -> Self {
        let at = start.min(layout.len());
        Self {
            at,
            end: at.saturating_add(len).min(layout.len()),
            place: match at < layout.directory().at {
                true => layout.find(at, |place| place.local),
                false => layout.find(at, |place| place.central),
            },
        }
    }

    /// Returns the number of bytes left.
    pub fn left(&self) -> u64 {
        self.end - self.at
    }

    /// The next piece; `None` at the range's end. The layout must be the cursor's own.
    pub fn next(&mut self, layout: &Layout) -> Option<Piece> {
        if self.left() == 0 {
            return None;
        }
        let directory = layout.directory();
        if self.at >= directory.at {
            return Some(Piece::Bytes(self.records(layout)));
        }
        let piece = match self.headers(layout) {
            headers if headers.is_empty() => self.contents(layout),
            headers => Piece::Bytes(headers),
        };
        if self.at == directory.at {
            self.place = layout.find(self.at, |place| place.central);
        }
        Some(piece)
    }

    /// Headers up to the next contents; none when the reader is in contents.
    fn headers(&mut self, layout: &Layout) -> Vec<u8> {
        let files_end = layout.directory().at.min(self.end);
        let mut out = Vec::new();
        while self.at < files_end && out.len() < PIECE_BYTES {
            let entry = layout.entry(self.place.entry);
            let contents_at = self.place.local + layout.local_len(self.place.entry);
            if self.at < contents_at {
                let mut header = Vec::new();
                header::write_local(&mut header, &entry, &layout.path(self.place.entry));
                self.take(&mut out, &header, self.place.local);
            } else if self.at < contents_at + entry.size {
                break;
            }
            if self.at == contents_at + entry.size {
                self.place = layout.after(self.place);
            }
        }
        out
    }

    /// The file whose contents come next, by its number, and how many bytes of it; `None` where something else comes.
    pub fn contents_next(&self, layout: &Layout) -> Option<(u32, u64)> {
        if self.left() == 0 || self.at >= layout.directory().at {
            return None;
        }
        let (starts, ends) = self.contents_range(layout);
        let file = layout.file_number(self.place.entry)?;
        (starts..ends)
            .contains(&self.at)
            .then(|| (file, ends.min(self.end) - self.at))
    }

    /// Returns the place of the contents of the current entry.
    fn contents_range(&self, layout: &Layout) -> (u64, u64) {
        let starts = self.place.local + layout.local_len(self.place.entry);
        (starts, starts + layout.entry(self.place.entry).size)
    }

    /// Takes the next piece of a file's contents, in which the reader is.
    fn contents(&mut self, layout: &Layout) -> Piece {
        let (contents_at, contents_end) = self.contents_range(layout);
        let file = layout.file_number(self.place.entry);
        let piece = Piece::Contents {
            file: file.expect("folders have no contents"),
            offset: self.at - contents_at,
            len: contents_end.min(self.end) - self.at,
        };
        self.at = contents_end.min(self.end);
        if self.at == contents_end {
            self.place = layout.after(self.place);
        }
        piece
    }

    /// Returns records of the directory, and its end records.
    fn records(&mut self, layout: &Layout) -> Vec<u8> {
        let directory = layout.directory();
        let mut out = Vec::new();
        while self.at < self.end && out.len() < PIECE_BYTES {
            let mut record = Vec::new();
            let starts = if self.place.entry < layout.entries() {
                let (entry, path) = (
                    layout.entry(self.place.entry),
                    layout.path(self.place.entry),
                );
                header::write_central(&mut record, &entry, &path, self.place.local);
                let starts = self.place.central;
                self.place = layout.after(self.place);
                starts
            } else {
                directory.write_end(&mut record);
                directory.at + directory.len
            };
            self.take(&mut out, &record, starts);
        }
        out
    }

    /// Appends the part of a record at an offset that is in the range.
    fn take(&mut self, out: &mut Vec<u8>, record: &[u8], starts: u64) {
        let from = (self.at - starts) as usize;
        let to = ((self.end - starts) as usize).min(record.len());
        out.extend_from_slice(&record[from..to]);
        self.at = starts + to as u64;
    }
}
