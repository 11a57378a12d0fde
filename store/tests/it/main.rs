//! The store as its callers use it, on real files.

mod audit;
mod backup;
mod blobs;
mod changes;
mod data_folder;
mod delivery;
mod file_lists;
mod files;
mod first_start;
mod jobs;
mod killed;
mod live;
mod live_lists;
mod locked_database;
mod lost_connections;
mod members;
mod moving;
mod nodes;
mod people;
mod postgres;
mod scratch;
mod shares;
mod support;
mod work;
mod writer;
