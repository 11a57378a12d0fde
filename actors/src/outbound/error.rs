//! Errors of requests to receivers, `sourceUrl` and sources (`cannot be reached`, `outbound.allow`, TLS, time-outs), in
//! messages that name the setting.
//!
//! Messages name scheme, host and port at most: paths and queries of receivers are secrets as often as not.

use std::{io, net::IpAddr, path::PathBuf, time::Duration};

use super::{
    address::{AddressVerdict, Reason},
    url::UrlError,
};

/// Reason why the service does not send a request there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error("{}", describe(host, *address, verdict))]
    Address {
        host: String,
        address: IpAddr,
        verdict: AddressVerdict,
    },
}

impl Rejection {
    /// Returns the kind of the rejected address; `None` when the URL itself is wrong.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Url(_) => None,
            Self::Address { verdict, .. } => Some(verdict.reason),
        }
    }
}

/// Names host, address, reason, and the exact setting.
fn describe(host: &str, address: IpAddr, verdict: &AddressVerdict) -> String {
    let subject = if host.trim_matches(['[', ']']) == address.to_string() {
        host.to_owned()
    } else {
        format!("{host} resolves to {address}, which")
    };
    let embedded = match verdict.embedded {
        Some(v4) => format!(" that leads to {v4}"),
        None => String::new(),
    };
    let networks: Vec<String> = (verdict.needed.iter())
        .map(|network| format!("\"{network}\""))
        .collect();
    format!(
        "{subject} is {}{embedded}; the operator can allow it by outbound.allow = [{}]",
        verdict.reason,
        networks.join(", ")
    )
}

/// Reason why a request got no answer, or none that can be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] Rejection),
    /// All places for lookups or fetches are taken: try again shortly.
    #[error("too many {0} at once")]
    Busy(&'static str),
    #[error("the name {host} cannot be resolved: {reason}")]
    Resolve { host: String, reason: String },
    #[error("{target} cannot be reached: {reason}")]
    Connect { target: String, reason: String },
    #[error("no TLS with {target}: {reason}")]
    Tls { target: String, reason: String },
    #[error("{what} took longer than {}", seconds(*after))]
    Timeout { what: &'static str, after: Duration },
    /// Status line and headers are longer than `outbound.max_head`.
    #[error("the head of the answer is larger than {0} bytes")]
    HeadTooLarge(u64),
    #[error("the answer cannot be read as HTTP: {0}")]
    Malformed(String),
    #[error("the connection was closed before the answer: {0}")]
    Closed(String),
    /// The head came, the body did not come to its end.
    #[error("after status {status}: {cause}")]
    Unfinished { status: u16, cause: Box<Self> },
    #[error("the answer is larger than {0} bytes")]
    TooLarge(u64),
    #[error("the answer has status {0}")]
    Status(u16),
    #[error("redirected: {0}")]
    Redirect(String),
    #[error("the answer is encoded as {0}, although identity was asked for")]
    Encoded(String),
    /// The caller's own sink failed.
    #[error("the answer cannot be kept: {0}")]
    Sink(#[source] io::Error),
}

impl Error {
    /// Returns the status that the receiver answered before the error.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Unfinished { status, .. } | Self::Status(status) => Some(*status),
            _ => None,
        }
    }
}

/// Reason why the connector cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("outbound.ca_file {path} cannot be used: {reason}", path = path.display())]
    CaFile { path: PathBuf, reason: String },
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
