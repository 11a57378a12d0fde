//! Calls between the nodes of a cluster: HTTP/1.1 to `cluster.advertise` of another node, signed under a key of the installation.
//!
//! - Only live nodes call and are called. A call is for one node, one time and one use, and so is the signature of its answer.
//! - A call is a help and never the truth: a node without an answer does without it, and rows decide what is right.

mod call_checks;
mod error;
mod nonces;
mod peers;
mod signature;
#[cfg(test)]
mod tests;

pub use call_checks::{CallChecks, CallRejection, Caller};
pub use error::PeerError;
pub use peers::{PeerAnswer, Peers};
pub use signature::{HEADER, PROTOCOL, PeerCall};
