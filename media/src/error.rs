//! Error type of the media parsers: `Invalid` and `Unsupported`; `what` names the structure that was read.

/// Reason why bytes are not the media they claim to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes break their format's rules: truncated, out of range, contradictory. The unit or record is useless.
    #[error("{what} is invalid: {reason}")]
    Invalid { what: &'static str, reason: String },
    /// Well formed, but this service does not carry it.
    #[error("{what} is not supported: {reason}")]
    Unsupported { what: &'static str, reason: String },
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
}
