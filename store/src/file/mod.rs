//! Stored files: folders, uploads, blobs and their references, links, archives, what came from what.

pub mod archive;
pub mod blobs;
pub mod files;
pub(crate) mod folder;
pub mod folders;
pub mod lineage;
pub mod shares;
pub mod storage;
pub mod tus;
pub mod uploads;
