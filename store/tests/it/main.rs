//! The store as its callers use it, on real files.

mod backup;
mod blobs;
mod changes;
mod data_folder;
mod delivery;
mod files;
mod first_start;
mod jobs;
mod killed;
mod live;
mod locked_database;
mod people;
mod scratch;
mod shares;
mod support;
mod work;
mod writer;
