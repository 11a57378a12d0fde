//! Messages between service and WebRTC gateway, and their bounds (`MAX_MEDIA`, `MAX_SDP`).
//!
//! The service keeps HTTP, admission and conversion; the gateway has the ports, ICE, DTLS and SRTP. A *session* is one viewer or
//! publisher. A *feed* is one encoded track; the gateway makes its packets once and encrypts them for each viewer that is
//! attached to it.
//!
//! ```text
//! Offer ──▶   ◀── Answered | Rejected   … ◀── Connected … Attach ──▶  Video, Audio ──▶ … Close ──▶ | ◀── Gone
//! ```

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use sluice_media::codec::VideoCodec;

pub use crate::framing::Malformed;
use crate::framing::{Fields, Frame, next_frame};

/// Most bytes of one coded frame.
pub const MAX_MEDIA: usize = 8 << 20;
/// Most bytes of an offer or an answer.
pub const MAX_SDP: usize = 64 << 10;
/// Most addresses that an answer names.
pub const MAX_CANDIDATES: usize = 6;
/// Most bytes of a message after its length.
const MAX_FRAME: usize = MAX_MEDIA + 64;
/// Most bytes of a rejection's detail.
const MAX_TEXT: usize = 512;

/// Names one viewer or publisher for as long as the gateway runs; given by the service, never used again.
pub type SessionId = u32;
/// Names one encoded track that viewers are sent; given by the service.
pub type FeedId = u32;

/// Side of the media in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Is sent media (WHEP).
    Viewer,
    /// Sends media (WHIP).
    Publisher,
}

/// Set of video codecs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VideoCodecs(u8);

impl VideoCodecs {
    pub fn with(self, codec: VideoCodec) -> Self {
        Self(self.0 | bit(codec))
    }

    pub fn contains(self, codec: VideoCodec) -> bool {
        self.0 & bit(codec) != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<VideoCodec> for VideoCodecs {
    fn from_iter<I: IntoIterator<Item = VideoCodec>>(codecs: I) -> Self {
        codecs.into_iter().fold(Self::default(), Self::with)
    }
}

fn bit(codec: VideoCodec) -> u8 {
    1 << code(codec)
}

fn code(codec: VideoCodec) -> u8 {
    match codec {
        VideoCodec::Avc => 0,
        VideoCodec::Hevc => 1,
        VideoCodec::Av1 => 2,
    }
}

fn codec(code: u8) -> Result<VideoCodec, Malformed> {
    match code {
        0 => Ok(VideoCodec::Avc),
        1 => Ok(VideoCodec::Hevc),
        2 => Ok(VideoCodec::Av1),
        _ => Err(Malformed("codec")),
    }
}

/// A coded video frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoFrame {
    /// To the gateway: the [`FeedId`]; from the gateway: the [`SessionId`] of the publisher.
    pub of: u32,
    pub codec: VideoCodec,
    /// True when a decoder can start here.
    pub key: bool,
    /// Presentation time on the stream's continuous clock of 90 kHz; audio of the stream is on the same clock.
    pub pts_90k: i64,
    /// Unix time at which a frame of this `pts_90k` is sampled, in microseconds; of one line for both tracks of a stream. Zero from the
    /// gateway.
    pub wallclock_us: i64,
    /// H.264 and HEVC: NAL units, each behind its length in four bytes; the parameter sets come first in a key frame.
    /// AV1: a temporal unit in the low-overhead format, with the sequence header in a key frame.
    pub data: Bytes,
}

/// An Opus packet of a mono or stereo stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AudioFrame {
    /// Same as [`VideoFrame::of`].
    pub of: u32,
    /// Presentation time, on the clock of [`VideoFrame::pts_90k`].
    pub pts_90k: i64,
    pub wallclock_us: i64,
    pub data: Bytes,
}

/// Reason why the service ends a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The client asked for it (DELETE).
    Asked,
    /// The broadcast or the publish is over.
    Over,
    /// The permission ended: a token expired, the input was disabled or deleted, another publisher took over.
    Forbidden,
    /// The service stops.
    Stopping,
}

/// Messages of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToGateway {
    /// An offer, answered by [`FromGateway::Answered`] or [`FromGateway::Rejected`].
    Offer {
        session: SessionId,
        role: Role,
        /// Addresses of UDP candidates, best first; TCP candidates have the same ones.
        candidates: Vec<SocketAddr>,
        sdp: String,
    },
    /// Feeds that a viewer is sent from now on. Another video feed takes effect at its next key frame.
    Attach {
        session: SessionId,
        video: Option<FeedId>,
        audio: Option<FeedId>,
    },
    Video(VideoFrame),
    Audio(AudioFrame),
    /// The feed is over; its kept group of pictures is dropped.
    Forget(FeedId),
    Close {
        session: SessionId,
        reason: CloseReason,
    },
}

/// Reason why an offer is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferError {
    /// The offer breaks a rule, which the detail names.
    Invalid,
    /// No codec of the offer can be sent or received; the detail names those that were offered.
    NoCommonCodec,
    /// The gateway has as many sessions, or as many unconnected ones, as it may.
    Full,
}

/// Transport of a session's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Udp,
    Tcp,
}

/// Statistics of a session since its last report, sent each second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionStatistics {
    /// Round-trip time; zero until it is known.
    pub rtt_ms: f64,
    /// Share of packets that were lost, 0 to 1, by the receiver's reports.
    pub loss: f64,
    pub packets: u32,
    pub bytes: u32,
    pub retransmitted: u32,
    pub nacks: u32,
    pub key_frame_requests: u32,
    /// Frames that were left out because the socket or the line did not take them.
    pub dropped_frames: u32,
    /// True while only audio and key frames are sent, because the line is too slow.
    pub is_thin: bool,
}

/// Reason why a session ended in the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoneReason {
    /// The service closed it.
    Closed,
    /// The peer closed it (DTLS `close_notify`, RTCP BYE).
    Peer,
    /// No packet of the peer came to the ports before the handshake's time was over.
    Unreachable,
    /// Packets came, and the handshake did not end in time.
    Handshake,
    /// A connected peer fell silent.
    Silent,
    /// The line was too slow for too long.
    TooSlow,
    /// An error of the session, also a panic in its code.
    Failed,
}

/// Messages of the gateway.
#[derive(Clone, Debug, PartialEq)]
pub enum FromGateway {
    /// The gateway serves its ports.
    Ready,
    Answered {
        session: SessionId,
        /// Video codecs that the peer takes and this gateway can send or receive.
        video: VideoCodecs,
        /// True when the peer takes or sends Opus.
        audio: bool,
        sdp: String,
    },
    Rejected {
        session: SessionId,
        reason: OfferError,
        detail: String,
    },
    /// ICE and DTLS are done.
    Connected {
        session: SessionId,
        transport: Transport,
        remote: SocketAddr,
        /// Time since the offer.
        after_ms: u32,
    },
    /// The first frame was sent to a viewer.
    FirstFrame {
        session: SessionId,
        /// Time since it was connected.
        after_ms: u32,
    },
    /// Viewers of the feed need a key frame now.
    KeyFrameWanted(FeedId),
    Statistics {
        session: SessionId,
        statistics: SessionStatistics,
    },
    /// A publisher's frame; H.264 and HEVC with parameter sets among the units, where the publisher sends them.
    Video(VideoFrame),
    Audio(AudioFrame),
    Gone {
        session: SessionId,
        reason: GoneReason,
    },
    /// Heartbeat, once a second.
    Alive {
        sessions: u32,
    },
}

/// Declares the one-byte codes of an enum without fields.
macro_rules! codes {
    ($type:ident { $($variant:ident = $code:literal),* $(,)? }) => {
        impl $type {
            fn code(self) -> u8 {
                match self {
                    $(Self::$variant => $code,)*
                }
            }

            fn from_code(code: u8) -> Result<Self, Malformed> {
                match code {
                    $($code => Ok(Self::$variant),)*
                    _ => Err(Malformed(stringify!($type))),
                }
            }
        }
    };
}

codes!(Role {
    Viewer = 0,
    Publisher = 1,
});
codes!(CloseReason {
    Asked = 0,
    Over = 1,
    Forbidden = 2,
    Stopping = 3,
});
codes!(OfferError {
    Invalid = 0,
    NoCommonCodec = 1,
    Full = 2,
});
codes!(Transport { Udp = 0, Tcp = 1 });
codes!(GoneReason {
    Closed = 0,
    Peer = 1,
    Unreachable = 2,
    Handshake = 3,
    Silent = 4,
    TooSlow = 5,
    Failed = 6,
});

impl ToGateway {
    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut frame = Frame::begin(out);
        match self {
            Self::Offer {
                session,
                role,
                candidates,
                sdp,
            } => {
                frame.byte(1);
                frame.number(*session);
                frame.byte(role.code());
                let candidates = &candidates[..candidates.len().min(MAX_CANDIDATES)];
                frame.byte(candidates.len() as u8);
                for candidate in candidates {
                    frame.socket(*candidate);
                }
                frame.bytes(sdp.as_bytes());
            }
            Self::Attach {
                session,
                video,
                audio,
            } => {
                frame.byte(2);
                frame.number(*session);
                for feed in [video, audio] {
                    frame.byte(feed.is_some().into());
                    frame.number(feed.unwrap_or(0));
                }
            }
            Self::Video(video) => video.encode(3, &mut frame),
            Self::Audio(audio) => audio.encode(4, &mut frame),
            Self::Forget(feed) => {
                frame.byte(5);
                frame.number(*feed);
            }
            Self::Close { session, reason } => {
                frame.byte(6);
                frame.number(*session);
                frame.byte(reason.code());
            }
        }
        frame.end();
    }

    /// Takes the next whole message off `input`; `None` until there is one.
    pub fn decode(input: &mut BytesMut) -> Result<Option<Self>, Malformed> {
        let Some(mut fields) = next_frame(input, MAX_FRAME)? else {
            return Ok(None);
        };
        let message = match fields.byte()? {
            1 => {
                let session = fields.number()?;
                let role = Role::from_code(fields.byte()?)?;
                let count = usize::from(fields.byte()?);
                if count > MAX_CANDIDATES {
                    return Err(Malformed("too many candidates"));
                }
                let candidates = (0..count)
                    .map(|_| fields.socket())
                    .collect::<Result<_, _>>()?;
                Self::Offer {
                    session,
                    role,
                    candidates,
                    sdp: sdp(&mut fields)?,
                }
            }
            2 => {
                let session = fields.number()?;
                let mut feed = || {
                    let is_some = fields.flag()?;
                    let feed = fields.number()?;
                    Ok(is_some.then_some(feed))
                };
                let (video, audio) = (feed()?, feed()?);
                Self::Attach {
                    session,
                    video,
                    audio,
                }
            }
            3 => Self::Video(VideoFrame::decode(&mut fields)?),
            4 => Self::Audio(AudioFrame::decode(&mut fields)?),
            5 => Self::Forget(fields.number()?),
            6 => Self::Close {
                session: fields.number()?,
                reason: CloseReason::from_code(fields.byte()?)?,
            },
            _ => return Err(Malformed("unknown kind")),
        };
        fields.end()?;
        Ok(Some(message))
    }
}

impl FromGateway {
    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut frame = Frame::begin(out);
        match self {
            Self::Ready => frame.byte(1),
            Self::Answered {
                session,
                video,
                audio,
                sdp,
            } => {
                frame.byte(2);
                frame.number(*session);
                frame.byte(video.0);
                frame.byte((*audio).into());
                frame.bytes(sdp.as_bytes());
            }
            Self::Rejected {
                session,
                reason,
                detail,
            } => {
                frame.byte(3);
                frame.number(*session);
                frame.byte(reason.code());
                frame.text(shortened(detail));
            }
            Self::Connected {
                session,
                transport,
                remote,
                after_ms,
            } => {
                frame.byte(4);
                frame.number(*session);
                frame.byte(transport.code());
                frame.socket(*remote);
                frame.number(*after_ms);
            }
            Self::FirstFrame { session, after_ms } => {
                frame.byte(5);
                frame.number(*session);
                frame.number(*after_ms);
            }
            Self::KeyFrameWanted(feed) => {
                frame.byte(6);
                frame.number(*feed);
            }
            Self::Statistics {
                session,
                statistics,
            } => {
                frame.byte(7);
                frame.number(*session);
                statistics.encode(&mut frame);
            }
            Self::Video(video) => video.encode(8, &mut frame),
            Self::Audio(audio) => audio.encode(9, &mut frame),
            Self::Gone { session, reason } => {
                frame.byte(10);
                frame.number(*session);
                frame.byte(reason.code());
            }
            Self::Alive { sessions } => {
                frame.byte(11);
                frame.number(*sessions);
            }
        }
        frame.end();
    }

    /// Takes the next whole message off `input`; `None` until there is one. Media are not copied.
    pub fn decode(input: &mut BytesMut) -> Result<Option<Self>, Malformed> {
        let Some(mut fields) = next_frame(input, MAX_FRAME)? else {
            return Ok(None);
        };
        let message = match fields.byte()? {
            1 => Self::Ready,
            2 => Self::Answered {
                session: fields.number()?,
                video: VideoCodecs(fields.byte()? & 0b111),
                audio: fields.flag()?,
                sdp: sdp(&mut fields)?,
            },
            3 => Self::Rejected {
                session: fields.number()?,
                reason: OfferError::from_code(fields.byte()?)?,
                detail: fields.text(MAX_TEXT)?,
            },
            4 => Self::Connected {
                session: fields.number()?,
                transport: Transport::from_code(fields.byte()?)?,
                remote: fields.socket()?,
                after_ms: fields.number()?,
            },
            5 => Self::FirstFrame {
                session: fields.number()?,
                after_ms: fields.number()?,
            },
            6 => Self::KeyFrameWanted(fields.number()?),
            7 => Self::Statistics {
                session: fields.number()?,
                statistics: SessionStatistics::decode(&mut fields)?,
            },
            8 => Self::Video(VideoFrame::decode(&mut fields)?),
            9 => Self::Audio(AudioFrame::decode(&mut fields)?),
            10 => Self::Gone {
                session: fields.number()?,
                reason: GoneReason::from_code(fields.byte()?)?,
            },
            11 => Self::Alive {
                sessions: fields.number()?,
            },
            _ => return Err(Malformed("unknown kind")),
        };
        fields.end()?;
        Ok(Some(message))
    }
}

impl VideoFrame {
    fn encode(&self, kind: u8, frame: &mut Frame<'_>) {
        frame.byte(kind);
        frame.number(self.of);
        frame.byte(code(self.codec));
        frame.byte(self.key.into());
        frame.bytes(&self.pts_90k.to_be_bytes());
        frame.bytes(&self.wallclock_us.to_be_bytes());
        frame.bytes(&self.data);
    }

    fn decode(fields: &mut Fields) -> Result<Self, Malformed> {
        Ok(Self {
            of: fields.number()?,
            codec: codec(fields.byte()?)?,
            key: fields.flag()?,
            pts_90k: fields.signed()?,
            wallclock_us: fields.signed()?,
            data: fields.rest(),
        })
    }
}

impl AudioFrame {
    fn encode(&self, kind: u8, frame: &mut Frame<'_>) {
        frame.byte(kind);
        frame.number(self.of);
        frame.bytes(&self.pts_90k.to_be_bytes());
        frame.bytes(&self.wallclock_us.to_be_bytes());
        frame.bytes(&self.data);
    }

    fn decode(fields: &mut Fields) -> Result<Self, Malformed> {
        Ok(Self {
            of: fields.number()?,
            pts_90k: fields.signed()?,
            wallclock_us: fields.signed()?,
            data: fields.rest(),
        })
    }
}

impl SessionStatistics {
    fn encode(&self, frame: &mut Frame<'_>) {
        for float in [self.rtt_ms, self.loss] {
            frame.bytes(&float.to_be_bytes());
        }
        for count in [
            self.packets,
            self.bytes,
            self.retransmitted,
            self.nacks,
            self.key_frame_requests,
            self.dropped_frames,
        ] {
            frame.number(count);
        }
        frame.byte(self.is_thin.into());
    }

    fn decode(fields: &mut Fields) -> Result<Self, Malformed> {
        Ok(Self {
            rtt_ms: fields.float()?,
            loss: fields.float()?,
            packets: fields.number()?,
            bytes: fields.number()?,
            retransmitted: fields.number()?,
            nacks: fields.number()?,
            key_frame_requests: fields.number()?,
            dropped_frames: fields.number()?,
            is_thin: fields.flag()?,
        })
    }
}

fn sdp(fields: &mut Fields) -> Result<String, Malformed> {
    let bytes = fields.rest();
    if bytes.len() > MAX_SDP {
        return Err(Malformed("session description too long"));
    }
    let text = std::str::from_utf8(&bytes);
    Ok(text.map_err(|_| Malformed("text is not UTF-8"))?.to_owned())
}

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], 8189))
    }

    fn video(of: u32) -> VideoFrame {
        VideoFrame {
            of,
            codec: VideoCodec::Hevc,
            key: true,
            pts_90k: -3,
            wallclock_us: 1_790_000_000_000_000,
            data: Bytes::from_static(b"frame"),
        }
    }

    fn audio(of: u32) -> AudioFrame {
        AudioFrame {
            of,
            pts_90k: 90_000,
            wallclock_us: 0,
            data: Bytes::from_static(b"opus"),
        }
    }

    #[test]
    fn messages_survive_the_socket() {
        let orders = [
            ToGateway::Offer {
                session: 1,
                role: Role::Publisher,
                candidates: vec![address(), "[2001:db8::1]:9".parse().unwrap()],
                sdp: "v=0\r\n".into(),
            },
            ToGateway::Attach {
                session: 1,
                video: None,
                audio: Some(7),
            },
            ToGateway::Video(video(7)),
            ToGateway::Audio(audio(7)),
            ToGateway::Forget(7),
            ToGateway::Close {
                session: 1,
                reason: CloseReason::Forbidden,
            },
        ];
        let mut bytes = Vec::new();
        for order in &orders {
            order.encode(&mut bytes);
        }
        let mut input = BytesMut::from(&bytes[..]);
        for order in orders {
            assert_eq!(ToGateway::decode(&mut input), Ok(Some(order)));
        }
        assert_eq!(ToGateway::decode(&mut input), Ok(None));
    }

    #[test]
    fn reports_survive_the_socket() {
        let reports = [
            FromGateway::Ready,
            FromGateway::Answered {
                session: 1,
                video: [VideoCodec::Avc, VideoCodec::Av1].into_iter().collect(),
                audio: true,
                sdp: "v=0\r\n".into(),
            },
            FromGateway::Rejected {
                session: 1,
                reason: OfferError::NoCommonCodec,
                detail: "VP8".into(),
            },
            FromGateway::Connected {
                session: 1,
                transport: Transport::Tcp,
                remote: address(),
                after_ms: 65,
            },
            FromGateway::FirstFrame {
                session: 1,
                after_ms: 56,
            },
            FromGateway::KeyFrameWanted(7),
            FromGateway::Statistics {
                session: 1,
                statistics: SessionStatistics {
                    rtt_ms: 12.5,
                    loss: 0.05,
                    packets: 725,
                    is_thin: true,
                    ..SessionStatistics::default()
                },
            },
            FromGateway::Video(video(1)),
            FromGateway::Audio(audio(1)),
            FromGateway::Gone {
                session: 1,
                reason: GoneReason::Unreachable,
            },
            FromGateway::Alive { sessions: 3 },
        ];
        let mut bytes = Vec::new();
        for report in &reports {
            report.encode(&mut bytes);
        }
        let mut input = BytesMut::from(&bytes[..]);
        for report in reports {
            assert_eq!(FromGateway::decode(&mut input), Ok(Some(report)));
        }
        assert!(input.is_empty());
    }

    #[test]
    fn a_long_detail_is_shortened() {
        let mut bytes = Vec::new();
        let rejected = FromGateway::Rejected {
            session: 1,
            reason: OfferError::Invalid,
            detail: "é".repeat(1_000),
        };
        rejected.encode(&mut bytes);
        let read = FromGateway::decode(&mut BytesMut::from(&bytes[..]));
        let Ok(Some(FromGateway::Rejected { detail, .. })) = read else {
            panic!("{read:?}");
        };
        assert_eq!(detail.len(), MAX_TEXT);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_error_or_a_message(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0_u8..13) {
            let mut frame = ((bytes.len() + 1) as u32).to_be_bytes().to_vec();
            frame.push(kind);
            frame.extend_from_slice(&bytes);
            let _ = FromGateway::decode(&mut BytesMut::from(&frame[..]));
            let _ = ToGateway::decode(&mut BytesMut::from(&frame[..]));
        }
    }
}
