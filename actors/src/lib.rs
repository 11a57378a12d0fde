//! Supervised actors: owners of live inputs, image deliveries, jobs, workflow runs, video streams, recordings and webhooks,
//! below one supervision tree.
//!
//! Actors own writes and lifecycles; readers read what an actor has published. Protocols and packaging are pure and
//! live in `ingest` and `media`; rows live in `store`; this crate gives them an owner, a lifetime and a mailbox.

pub mod cdn;
mod clock;
pub mod cluster;
pub mod component;
pub mod compute;
pub mod convert;
mod durable;
mod error;
pub mod events;
#[cfg(test)]
mod fixtures;
#[doc(hidden)]
pub mod fuzzing;
pub mod live;
mod looping;
pub mod meter;
pub mod metric;
pub mod network;
pub mod outbound;
pub mod recording;
mod registry;
pub mod subsystem;
pub mod tree;
pub mod video;
pub mod webhooks;
pub mod workflow;

pub use error::Error;
