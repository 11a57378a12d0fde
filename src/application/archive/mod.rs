//! ZIP archives of folders: which files they hold, and how many are made at a time.

pub(crate) mod listing;
pub(crate) mod places;
