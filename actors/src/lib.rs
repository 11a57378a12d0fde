//! Supervised actors: the tree, live inputs and their listeners.
//!
//! Actors own writes and lifecycles; readers read what an actor has published. Protocols and packaging are pure and
//! live in `ingest` and `media`; rows live in `store`; this crate gives them an owner, a lifetime and a mailbox.

pub mod cdn;
pub mod compute;
pub mod concern;
pub mod convert;
mod error;
pub mod live;
pub mod meter;
pub mod registry;
pub mod tree;

pub use error::Error;
