//! Error type of ingest: why a publisher's connection ended (invalid, too large, unsupported, timed out, rejected).

use std::{io, time::Duration};

use crate::publish::Rejection;

/// Reason why a connection was ended. A variant says which side caused it; none of them carries a key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The peer broke the protocol's rules.
    #[error("{what} is invalid: {reason}")]
    Invalid { what: &'static str, reason: String },
    /// The peer declared or sent more than a bound allows.
    #[error("{what} is too large: {size} where {limit} is allowed")]
    TooLarge {
        what: &'static str,
        size: u64,
        limit: u64,
    },
    /// Well formed, but this service does not support it.
    #[error("{what} is not supported: {reason}")]
    Unsupported { what: &'static str, reason: String },
    /// The peer took longer than a deadline allows.
    #[error("{what} took longer than {limit:?}")]
    TimedOut { what: &'static str, limit: Duration },
    /// The authorizer did not admit the publisher, which has received the reason.
    #[error("publish rejected: {}", .0.message())]
    Refused(Rejection),
    /// The socket failed, or its peer vanished in the middle of something.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
}

impl Error {
    pub(crate) fn invalid(what: &'static str, reason: impl Into<String>) -> Self {
        Self::Invalid {
            what,
            reason: reason.into(),
        }
    }

    pub(crate) fn unsupported(what: &'static str, reason: impl Into<String>) -> Self {
        Self::Unsupported {
            what,
            reason: reason.into(),
        }
    }

    pub(crate) fn too_large(what: &'static str, size: usize, limit: usize) -> Self {
        Self::TooLarge {
            what,
            size: size as u64,
            limit: limit as u64,
        }
    }
}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Self {
        Self::Refused(rejection)
    }
}
