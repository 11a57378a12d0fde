//! ZIP archives of folders and of chosen files: their entries, selections, and limits.

pub(crate) mod limiter;
pub(crate) mod listing;
pub(crate) mod selection;
