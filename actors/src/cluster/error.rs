//! Reasons why a call to another node has no answer that can be used.

use std::time::Duration;

use crate::outbound;

/// Reason why there is no answer. Whether the other node carried the call out is not known.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    #[error("node {node} cannot be reached at `{address}`: {reason}")]
    Unreached {
        node: String,
        address: String,
        reason: String,
    },
    #[error("node {node} did not answer within {} ms", within.as_millis())]
    Late { node: String, within: Duration },
    /// Its lease ended, or it left, before it answered.
    #[error("node {node} is no longer live")]
    Gone { node: String },
    #[error("the call of node {node} failed: {source}")]
    Failed {
        node: String,
        source: outbound::Error,
    },
    #[error("node {node} rejected the call with status {status}: {reason}")]
    Rejected {
        node: String,
        status: u16,
        reason: String,
    },
    #[error("the answer from the address of node {node} is not signed by that node")]
    Unsigned { node: String },
    #[error(transparent)]
    Store(#[from] sluice_store::Error),
}
