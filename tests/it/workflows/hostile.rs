//! Definitions and files that were made to break the engine: each is rejected or fails by itself, and nothing else with
//! it.

mod definitions;
mod files;
