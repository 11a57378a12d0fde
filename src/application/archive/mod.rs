//! ZIP archives of folders and of chosen files: their contents, and the bounds of how many are made at a time.

pub(crate) mod limiter;
pub(crate) mod listing;
pub(crate) mod selection;
