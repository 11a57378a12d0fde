//! ZIP archives of folders: their contents, and the bounds of how many are made at a time.

pub(crate) mod listing;
pub(crate) mod places;
