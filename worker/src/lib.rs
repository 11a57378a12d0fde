//! Worker processes: untrusted media is decoded in sandboxed processes of its own, never in the service.
//!
//! Without features this crate is what the service needs to talk to workers: the job protocol and the handle of a worker
//! process. The feature `codecs` adds the worker's side: sandbox, loop and image code. Only the binary turns it on. What
//! tests need of a worker, faults on demand and proofs of single layers, is in debug builds only.

#[cfg(feature = "codecs")]
pub mod av;
mod channel;
#[cfg(feature = "codecs")]
mod descriptors;
#[cfg(all(feature = "codecs", debug_assertions))]
pub mod faults;
#[cfg(all(feature = "codecs", debug_assertions))]
mod foreign;
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "codecs")]
pub mod image;
mod postmortem;
pub mod process;
pub mod protocol;
#[cfg(all(feature = "codecs", debug_assertions))]
pub mod prove;
mod resident;
#[cfg(feature = "codecs")]
pub mod sandbox;
#[cfg(feature = "codecs")]
pub mod serve;

pub use resident::ProcessorTime;
