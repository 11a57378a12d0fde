//! Rows of stored files: folders, uploads, blobs and their references, share links, archives, lineage.

pub mod archive;
pub mod blobs;
pub mod bulk;
pub mod file_facts;
pub mod file_filter;
pub mod file_list;
pub mod files;
pub(crate) mod folder;
pub mod folder_list;
pub mod folder_totals;
pub mod folders;
pub mod lineage;
pub(crate) mod name_key;
pub mod selections;
pub mod shares;
pub mod storage;
pub(crate) mod stray_objects;
pub mod tus;
pub mod unfinished_uploads;
pub mod uploads;
