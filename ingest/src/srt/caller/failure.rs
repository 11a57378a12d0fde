//! Error texts of SRT outputs: unanswered, closed port, rejections by their code (1000s). None of them carries a
//! secret.

use std::{borrow::Cow, io, time::Duration};

use srt_protocol::protocol::pending_connection::ConnectionReject;

use crate::srt::stream_id::Reject;

/// Offset that libsrt adds to a code of access control on the wire.
const ACCESS_CODES_FROM: i32 = 1000;

/// Reason why there is no connection, or no longer one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// The target cannot be called as it is written.
    #[error("{what} of the SRT address {reason}")]
    Invalid {
        what: &'static str,
        reason: &'static str,
    },
    /// No answer arrived.
    #[error(
        "no answer by SRT within {within:?}: is the receiver a listener, and its UDP port open?"
    )]
    Unanswered { within: Duration },
    /// The machine exists, and its port is closed.
    #[error("no one listens on this UDP port")]
    PortClosed,
    /// The listener rejected the call.
    #[error("the receiver rejected the stream: {reason}")]
    Refused { reason: Cow<'static, str> },
    /// The answer is not SRT, or a version that is not supported.
    #[error("the receiver's answer is not understood: does it speak SRT 1.3 or later?")]
    NotUnderstood,
    /// The receiver shut the connection down, or was silent for too long.
    #[error("the receiver ended the connection")]
    Ended,
    /// The connection took no media.
    #[error("the connection took no media for too long")]
    Stuck,
    /// The socket failed.
    #[error("connection failed: {kind}")]
    Io { kind: io::ErrorKind },
}

impl CallFailure {
    pub(super) const PASSPHRASE: Self = Self::Invalid {
        what: "the passphrase",
        reason: "must have 10 to 79 characters",
    };
    pub(super) const STREAM_ID: Self = Self::Invalid {
        what: "the stream id",
        reason: "must have at most 512 bytes",
    };

    /// Maps the error of a call that was to be answered within this time.
    pub(super) fn of_call(error: &io::Error, within: Duration) -> Self {
        let inner = error.get_ref();
        if let Some(reject) = inner.and_then(|inner| inner.downcast_ref::<ConnectionReject>()) {
            let (ConnectionReject::Rejected(reason) | ConnectionReject::Rejecting(reason)) = reject;
            return Self::Refused {
                reason: words((*reason).into()),
            };
        }
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Unanswered { within },
            io::ErrorKind::ConnectionRefused => Self::PortClosed,
            kind => Self::Io { kind },
        }
    }
}

/// Returns the meaning of a handshake code: libsrt's own, and those of access control.
fn words(code: i32) -> Cow<'static, str> {
    let known = match code {
        1002 => "it gave no reason; the stream id may be wrong",
        1003 | 1005 => "it is busy",
        1007 => "it is closing",
        1008 => "its version of SRT is not ours",
        1010 => "the passphrase is wrong",
        1011 => "it wants a passphrase where none is given, or none where one is",
        1012 | 1013 => "it is not set to live transmission",
        1014 | 1015 => "it wants a packet filter or a group",
        _ => return access_words(code),
    };
    known.into()
}

fn access_words(code: i32) -> Cow<'static, str> {
    let access = u16::try_from(code - ACCESS_CODES_FROM)
        .ok()
        .and_then(Reject::from_code);
    let known = match access {
        Some(Reject::BadRequest) => "it does not understand the stream id",
        Some(Reject::Unauthorized) => "it does not know this stream id or key",
        Some(Reject::Overload) => "it takes no more connections",
        Some(Reject::Forbidden) => "the stream is not allowed there",
        Some(Reject::NotFound) => "it has no such stream",
        Some(Reject::BadMode) => "it does not take streams under this stream id",
        Some(Reject::Conflict) => "another sender is there already",
        Some(Reject::Down) => "it takes no stream now",
        Some(Reject::BadSecret) | None => return format!("code {code}").into(),
    };
    known.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_words() {
        for (code, expected) in [
            (1010, "the passphrase is wrong"),
            (2401, "it does not know this stream id or key"),
            (2503, "it takes no stream now"),
            (2999, "code 2999"),
            (i32::MAX, "code 2147483647"),
            (1000, "code 1000"),
        ] {
            assert_eq!(words(code), expected, "{code}");
        }
    }

    #[test]
    fn errors_of_the_system_are_distinguished() {
        let within = Duration::from_secs(3);
        for (kind, expected) in [
            (io::ErrorKind::TimedOut, "no answer by SRT within 3s"),
            (
                io::ErrorKind::ConnectionRefused,
                "no one listens on this UDP port",
            ),
            (
                io::ErrorKind::NetworkUnreachable,
                "connection failed: network unreachable",
            ),
        ] {
            let failure = CallFailure::of_call(&kind.into(), within).to_string();
            assert!(failure.starts_with(expected), "{failure}");
        }
    }
}
