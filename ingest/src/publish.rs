//! Interface of every ingest protocol to the service: list of protocols, stream key check, rejection texts, reports for
//! health, link statistics.
//!
//! Protocols are independent of accounts, actors and playlists: they ask the [`PublishAuthorizer`], and feed the
//! session it returns.

use std::{fmt, future::Future, net::SocketAddr, ops::Deref, time::Duration};

pub use sluice_media::meter::LinkStatistics;
use sluice_media::unit::Unit;

/// Time for the authorizer's answer, which usually comes sooner; a publisher does not wait longer.
pub(crate) const ADMIT_WITHIN: Duration = Duration::from_secs(10);

/// Makes the enum, the list of all and their names from one line each.
macro_rules! protocols {
    ($($name:ident = $text:literal;)*) => {
        /// Protocol of a publisher, as shown in health.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Protocol {
            $($name,)*
        }

        impl Protocol {
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$name),*];

            /// The lower-case name used in the API and in logs.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

protocols! {
    Rtmp = "rtmp";
    Rtmps = "rtmps";
    Srt = "srt";
    Rtsp = "rtsp";
    Whip = "whip";
}

/// Request to publish, sent before any media. Every text is foreign and bounded by the protocol layer.
#[derive(Clone, Debug)]
pub struct PublishRequest {
    pub protocol: Protocol,
    pub remote: SocketAddr,
    /// RTMP: the stream name of `publish`, without query; `{inputSlug}.{streamKey}` when pasted as shown.
    pub stream: Secret,
    /// The encoder's own name (RTMP: `flashVer` of `connect`, replaced by `encoder` of `onMetaData` once known).
    pub encoder: Option<String>,
}

/// A text that `Debug` does not show, for a key or a passphrase is in it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl Deref for Secret {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// Reason why a publish was rejected. The text is shown to the person at the encoder and never contains a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Unknown or rotated key, or a name that is none.
    Unauthorized,
    /// The input exists and is disabled.
    Disabled,
    /// Another encoder uses this key.
    Conflict,
    /// The service cannot take a publisher now: it starts, drains or is full.
    Busy,
}

impl Rejection {
    /// Returns the sentence that the encoder shows.
    pub fn message(&self) -> &'static str {
        match self {
            Self::Unauthorized => {
                "unknown stream key: copy server and key from the live input again"
            }
            Self::Disabled => "this live input is disabled: enable it, then start again",
            Self::Conflict => {
                "another encoder uses this key: stop it, or wait until it has been silent for 2 s"
            }
            Self::Busy => "the service cannot take a stream now: try again in a few seconds",
        }
    }
}

/// End of a publish, from the encoder's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The encoder ended the publish (RTMP `deleteStream`, `FCUnpublish`, `closeStream`): the broadcast ends now.
    Clean,
    /// The connection was lost or cut: the broadcast waits for the encoder inside its reconnect window.
    Dropped,
}

/// Error of a publish that the service ended (disabled, rotated, deleted, taken over, shut down): close the
/// connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// Admits publishers.
pub trait PublishAuthorizer: Clone + Send + Sync + 'static {
    type Session: PublishSession;

    /// Checks the key and the input's state; on success the session owns the input's timeline from its first unit on.
    fn admit(
        &self,
        request: PublishRequest,
    ) -> impl Future<Output = Result<Self::Session, Rejection>> + Send;
}

/// Session of one admitted publisher. Dropping it without [`PublishSession::end`] counts as [`Ended::Dropped`].
pub trait PublishSession: Send + 'static {
    /// Delivers units in order of arrival and empties `units`. Waits while the input's mailbox is full: the caller
    /// must not read its socket meanwhile, which is the back-pressure to the encoder.
    fn deliver(&mut self, units: &mut Vec<Unit>)
    -> impl Future<Output = Result<(), Closed>> + Send;

    /// Reports facts for health: the encoder's name once its metadata has it, and units dropped as corrupt.
    fn report(&mut self, report: SessionReport);

    /// Resolves when the service ends this publish.
    fn closed(&self) -> impl Future<Output = Closed> + Send;

    /// Reports the end and waits until it has been taken.
    fn end(self, how: Ended) -> impl Future<Output = ()> + Send;
}

/// Facts that a protocol layer learned beside the media. Counters are totals of the session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionReport {
    pub encoder: Option<String>,
    /// Units or messages left out because their bytes were corrupt or their codec is not carried.
    pub damaged: u64,
    /// Description of the last of them (for example "audio codec Speex is not carried").
    pub last_damage: Option<String>,
    pub bytes_received: u64,
    /// Link statistics, where the protocol has them.
    pub line: Option<LinkStatistics>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_does_not_show_its_key() {
        let request = PublishRequest {
            protocol: Protocol::Rtmp,
            remote: SocketAddr::from(([127, 0, 0, 1], 1935)),
            stream: "slug.secret".into(),
            encoder: None,
        };
        let shown = format!("{request:?}");
        assert!(
            shown.contains("Rtmp") && !shown.contains("secret"),
            "{shown}"
        );
    }
}
