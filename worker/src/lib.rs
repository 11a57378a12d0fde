//! The decode ring: untrusted media is decoded in processes of its own, never in the service's.
//!
//! Without features this crate is what the service needs to talk to workers: the job protocol and the handle of a worker
//! process. The feature `codecs` adds the worker's side: sandbox, loop and image code. Only the binary turns it on.

#[cfg(feature = "codecs")]
pub mod av;
mod channel;
#[cfg(feature = "codecs")]
mod descriptors;
#[cfg(feature = "codecs")]
pub mod faults;
#[cfg(feature = "codecs")]
mod foreign;
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "codecs")]
pub mod image;
mod postmortem;
pub mod process;
pub mod protocol;
#[cfg(feature = "codecs")]
pub mod prove;
mod resident;
#[cfg(feature = "codecs")]
pub mod sandbox;
#[cfg(feature = "codecs")]
pub mod serve;
