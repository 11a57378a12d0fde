//! Messages between service and SRT gateway, and their bounds. The gateway holds C that reads foreign bytes.

use std::net::{IpAddr, SocketAddr};

use bytes::{Bytes, BytesMut};

use super::{
    stream_id::MAX_BYTES,
    table::{Entry, InputId},
};
pub use crate::framing::Malformed;
use crate::{
    framing::{Fields, Frame, next_frame},
    publish::{Ended, LinkStatistics},
};

/// Most payload bytes in one [`FromGateway::Data`].
pub const MAX_DATA: usize = 48 * 1316;
/// Most bytes of a frame after its length.
pub const MAX_FRAME: usize = MAX_DATA + 16;
/// Most bytes of a slug or a passphrase.
const MAX_TEXT: usize = 128;
/// Most addresses in one [`ToGateway::Conflicts`].
pub const MAX_CONFLICTS: usize = 64;

/// Names one connection for as long as the gateway runs.
pub type SessionId = u32;

/// Messages of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToGateway {
    /// An input is new or has changed.
    Put(Entry),
    Remove(InputId),
    /// The table is whole: listen.
    Serve,
    /// End this connection.
    Close(SessionId),
    /// Callers from these addresses are rejected at this input.
    Conflicts(InputId, Vec<IpAddr>),
    /// A follower wants this connection's payloads without delay, or none does any more.
    Prompt {
        session: SessionId,
        is_prompt: bool,
    },
}

/// Messages of the gateway.
#[derive(Clone, Debug, PartialEq)]
pub enum FromGateway {
    /// The gateway listens; with the version of libsrt, as `0x00MMmmpp`.
    Ready {
        version: u32,
    },
    /// A caller was accepted; `stream` in the authorizer's form.
    Opened {
        session: SessionId,
        stream: String,
        remote: SocketAddr,
        latency_ms: u32,
    },
    /// Next payloads; `gap` when some before them were discarded.
    Data {
        session: SessionId,
        gap: bool,
        bytes: Bytes,
    },
    /// Link statistics, once a second.
    Line {
        session: SessionId,
        line: LinkStatistics,
    },
    Closed {
        session: SessionId,
        how: Ended,
    },
    /// A caller was rejected.
    Refused {
        input: Option<InputId>,
        remote: IpAddr,
        code: u16,
    },
    /// Heartbeat, once a second.
    Alive {
        open: u32,
    },
}

impl ToGateway {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut frame = Frame::begin(out);
        match self {
            Self::Put(entry) => {
                frame.byte(1);
                frame.bytes(&entry.id);
                frame.bytes(&entry.key_hash);
                frame.byte(entry.enabled.into());
                frame.text(&entry.slug);
                frame.text(&entry.passphrase);
            }
            Self::Remove(id) => {
                frame.byte(2);
                frame.bytes(id);
            }
            Self::Serve => frame.byte(3),
            Self::Close(session) => {
                frame.byte(4);
                frame.number(*session);
            }
            Self::Prompt { session, is_prompt } => {
                frame.byte(6);
                frame.number(*session);
                frame.byte((*is_prompt).into());
            }
            Self::Conflicts(id, addresses) => {
                frame.byte(5);
                frame.bytes(id);
                for address in addresses.iter().take(MAX_CONFLICTS) {
                    frame.address(*address);
                }
            }
        }
        frame.end();
    }

    /// Takes the next whole frame off `input`; `None` until there is one.
    pub fn decode(input: &mut BytesMut) -> Result<Option<Self>, Malformed> {
        let Some(mut fields) = next_frame(input, MAX_FRAME)? else {
            return Ok(None);
        };
        let message = match fields.byte()? {
            1 => {
                let (id, key_hash) = (fields.array()?, fields.array()?);
                let enabled = fields.byte()? != 0;
                Self::Put(Entry {
                    id,
                    key_hash,
                    enabled,
                    slug: fields.text(MAX_TEXT)?,
                    passphrase: fields.text(MAX_TEXT)?,
                })
            }
            2 => Self::Remove(fields.array()?),
            3 => Self::Serve,
            4 => Self::Close(fields.number()?),
            5 => {
                let (id, mut addresses) = (fields.array()?, Vec::new());
                while !fields.0.is_empty() {
                    if addresses.len() == MAX_CONFLICTS {
                        return Err(Malformed("too many addresses"));
                    }
                    addresses.push(fields.address()?);
                }
                Self::Conflicts(id, addresses)
            }
            6 => Self::Prompt {
                session: fields.number()?,
                is_prompt: fields.flag()?,
            },
            _ => return Err(Malformed("unknown kind")),
        };
        fields.end()?;
        Ok(Some(message))
    }
}

/// Kind of [`FromGateway::Data`], whose frame the gateway fills in place.
const DATA: u8 = 3;

impl FromGateway {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut frame = Frame::begin(out);
        match self {
            Self::Ready { version } => {
                frame.byte(1);
                frame.number(*version);
            }
            Self::Opened {
                session,
                stream,
                remote,
                latency_ms,
            } => {
                frame.byte(2);
                frame.number(*session);
                frame.number(*latency_ms);
                frame.socket(*remote);
                frame.text(stream);
            }
            Self::Data {
                session,
                gap,
                bytes,
            } => {
                frame.byte(DATA);
                frame.number(*session);
                frame.byte((*gap).into());
                frame.bytes(bytes);
            }
            Self::Line { session, line } => {
                frame.byte(4);
                frame.number(*session);
                for count in [line.lost, line.retransmitted, line.discarded, line.received] {
                    frame.bytes(&count.to_be_bytes());
                }
                frame.bytes(&line.rtt_ms.to_be_bytes());
                frame.number(line.latency_ms);
                frame.number(line.buffer_ms);
            }
            Self::Closed { session, how } => {
                frame.byte(5);
                frame.number(*session);
                frame.byte((*how == Ended::Clean).into());
            }
            Self::Refused {
                input,
                remote,
                code,
            } => {
                frame.byte(6);
                frame.number((*code).into());
                frame.address(*remote);
                if let Some(id) = input {
                    frame.bytes(id);
                }
            }
            Self::Alive { open } => {
                frame.byte(7);
                frame.number(*open);
            }
        }
        frame.end();
    }

    /// Takes the next whole frame off `input`; `None` until there is one. Payloads are not copied.
    pub fn decode(input: &mut BytesMut) -> Result<Option<Self>, Malformed> {
        let Some(mut fields) = next_frame(input, MAX_FRAME)? else {
            return Ok(None);
        };
        let message = match fields.byte()? {
            1 => Self::Ready {
                version: fields.number()?,
            },
            2 => {
                let (session, latency_ms) = (fields.number()?, fields.number()?);
                Self::Opened {
                    session,
                    latency_ms,
                    remote: fields.socket()?,
                    stream: fields.text(MAX_BYTES)?,
                }
            }
            DATA => Self::Data {
                session: fields.number()?,
                gap: fields.byte()? != 0,
                bytes: fields.rest(),
            },
            4 => Self::Line {
                session: fields.number()?,
                line: line(&mut fields)?,
            },
            5 => Self::Closed {
                session: fields.number()?,
                how: match fields.byte()? {
                    0 => Ended::Dropped,
                    _ => Ended::Clean,
                },
            },
            6 => Self::Refused {
                code: u16::try_from(fields.number()?).map_err(|_| Malformed("code"))?,
                remote: fields.address()?,
                input: match fields.0.is_empty() {
                    true => None,
                    false => Some(fields.array()?),
                },
            },
            7 => Self::Alive {
                open: fields.number()?,
            },
            _ => return Err(Malformed("unknown kind")),
        };
        fields.end()?;
        Ok(Some(message))
    }
}

/// Begins a frame of payloads at the end of `out`; the caller appends the payloads and ends it with [`end_data`].
pub fn begin_data(session: SessionId, gap: bool, out: &mut Vec<u8>) -> usize {
    let mut frame = Frame::begin(out);
    frame.byte(DATA);
    frame.number(session);
    frame.byte(gap.into());
    frame.start
}

/// Ends the frame that [`begin_data`] began at `start`.
pub fn end_data(start: usize, out: &mut Vec<u8>) {
    Frame { out, start }.end();
}

fn line(fields: &mut Fields) -> Result<LinkStatistics, Malformed> {
    let (lost, retransmitted) = (fields.count()?, fields.count()?);
    let (discarded, received) = (fields.count()?, fields.count()?);
    let rtt_ms = fields.float()?;
    Ok(LinkStatistics {
        lost,
        retransmitted,
        discarded,
        received,
        rtt_ms,
        latency_ms: fields.number()?,
        buffer_ms: fields.number()?,
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::*;

    fn orders() -> Vec<ToGateway> {
        vec![
            ToGateway::Put(Entry {
                id: [7; 16],
                slug: "studio".into(),
                key_hash: [9; 32],
                passphrase: "a passphrase".into(),
                enabled: true,
            }),
            ToGateway::Remove([7; 16]),
            ToGateway::Serve,
            ToGateway::Close(4711),
            ToGateway::Prompt {
                session: 4711,
                is_prompt: true,
            },
            ToGateway::Conflicts(
                [1; 16],
                vec![[10, 0, 0, 1].into(), Ipv6Addr::LOCALHOST.into()],
            ),
            ToGateway::Conflicts([1; 16], Vec::new()),
        ]
    }

    fn reports() -> Vec<FromGateway> {
        vec![
            FromGateway::Ready { version: 0x10501 },
            FromGateway::Opened {
                session: 1,
                stream: "studio.key".into(),
                remote: "[2001:db8::1]:9".parse().unwrap(),
                latency_ms: 400,
            },
            FromGateway::Data {
                session: 1,
                gap: true,
                bytes: Bytes::from(vec![0x47; MAX_DATA]),
            },
            FromGateway::Line {
                session: 1,
                line: LinkStatistics {
                    lost: 1,
                    retransmitted: 2,
                    discarded: 3,
                    received: 4,
                    rtt_ms: 5.5,
                    latency_ms: 6,
                    buffer_ms: 7,
                },
            },
            FromGateway::Closed {
                session: 1,
                how: Ended::Clean,
            },
            FromGateway::Refused {
                input: Some([3; 16]),
                remote: [10, 0, 0, 1].into(),
                code: 1401,
            },
            FromGateway::Refused {
                input: None,
                remote: [10, 0, 0, 1].into(),
                code: 1404,
            },
            FromGateway::Alive { open: 2 },
        ]
    }

    #[test]
    fn frames_come_back_whole_however_they_are_cut() {
        let mut sent = Vec::new();
        orders().iter().for_each(|order| order.encode(&mut sent));
        for piece in [1, 7, sent.len()] {
            let (mut input, mut received) = (BytesMut::new(), Vec::new());
            for part in sent.chunks(piece) {
                input.extend_from_slice(part);
                while let Some(order) = ToGateway::decode(&mut input).unwrap() {
                    received.push(order);
                }
            }
            assert_eq!(received, orders());
        }
        let mut sent = Vec::new();
        reports().iter().for_each(|report| report.encode(&mut sent));
        let (mut input, mut received) = (BytesMut::from(&sent[..]), Vec::new());
        while let Some(report) = FromGateway::decode(&mut input).unwrap() {
            received.push(report);
        }
        assert_eq!(received, reports());
        assert!(input.is_empty());
    }

    #[test]
    fn a_frame_filled_in_place_is_the_same() {
        let mut out = Vec::new();
        let start = begin_data(5, true, &mut out);
        out.extend_from_slice(b"payload");
        end_data(start, &mut out);
        let report = FromGateway::decode(&mut BytesMut::from(&out[..])).unwrap();
        let expected = FromGateway::Data {
            session: 5,
            gap: true,
            bytes: Bytes::from_static(b"payload"),
        };
        assert_eq!(report, Some(expected));
    }

    #[test]
    fn lengths_beyond_the_bound_are_refused_before_their_bytes_come() {
        for len in [0, MAX_FRAME as u32 + 1, u32::MAX] {
            let mut input = BytesMut::from(&len.to_be_bytes()[..]);
            assert!(FromGateway::decode(&mut input).is_err(), "{len}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_error_or_a_message(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0_u8..9) {
            let mut frame = ((bytes.len() + 1) as u32).to_be_bytes().to_vec();
            frame.push(kind);
            frame.extend_from_slice(&bytes);
            let _ = FromGateway::decode(&mut BytesMut::from(&frame[..]));
            let _ = ToGateway::decode(&mut BytesMut::from(&frame[..]));
        }
    }
}
