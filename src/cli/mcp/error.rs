//! Errors that `sluice mcp` answers to agents: no service, wrong key, too many requests, files that may not be sent; JSON-RPC
//! codes.

use crate::cli::mcp::roots::Rejection;

/// Codes of JSON-RPC 2.0 §5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Parse = -32_700,
    InvalidRequest = -32_600,
    /// Codes of the range for implementations.
    Unavailable = -32_000,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum BridgeError {
    /// The command cannot reach any service as it was started.
    #[error("`sluice mcp` is not set up: {0}")]
    NotSetUp(String),
    #[error(
        "no service answers at {url}: {reason}; start it there (sluice serve), or say with --url where it is"
    )]
    Away { url: String, reason: String },
    #[error(
        "{url} does not know this API key: set SLUICE_API_KEY, where this server is configured, to a valid one"
    )]
    UnknownKey { url: String },
    #[error(
        "what answers at {url} has no agent tools: is --url the address of a Sluice whose mcp.enabled is true?"
    )]
    NoTools { url: String },
    #[error("{url} answers {status}: {message}")]
    Rejected {
        url: String,
        status: u16,
        message: String,
    },
    #[error(
        "the answer of {url} broke off: {reason}; what was asked for may have happened, so look before asking again"
    )]
    Broken { url: String, reason: String },
    #[error("{what} has more than {max_bytes} bytes (mcp.stdio_message)")]
    TooLarge {
        what: &'static str,
        max_bytes: usize,
    },
    #[error(
        "{0} requests are in flight, which is as many as there may be (mcp.stdio_calls): wait for an answer"
    )]
    Busy(usize),
    #[error("a request with this id is in flight")]
    SameId,
    #[error(transparent)]
    File(#[from] Rejection),
    #[error("the upload of `{name}` failed: {reason}")]
    Upload { name: String, reason: String },
    /// The message of the service's tool, unchanged.
    #[error("{0}")]
    Tool(String),
    #[error("`sluice mcp` failed at this request; its standard error says how")]
    Internal,
}

impl BridgeError {
    pub(super) fn code(&self) -> Code {
        match self {
            Self::TooLarge { .. } | Self::SameId => Code::InvalidRequest,
            _ => Code::Unavailable,
        }
    }
}
