//! ZIP archives of folders: stored, with ZIP64 where it is needed, every byte known before any file is read (PKWARE
//! APPNOTE 6.3.10).
//!
//! Sizes and check sums of stored files are known, so that an archive of them is a matter of arithmetic: its length,
//! and the bytes at any offset. [`Builder`] takes names as users gave them and makes paths of them that every system
//! can extract side by side; [`Layout`] is the result, a few dozen bytes for each entry; [`Cursor`] goes through a
//! range of it. Headers are written on request, and never kept.

mod builder;
mod cursor;
mod date;
mod header;
mod layout;
mod name;
#[cfg(test)]
mod tests;

pub use builder::{Builder, Contents, Folder};
pub use cursor::{Cursor, Piece};
pub use layout::Layout;
