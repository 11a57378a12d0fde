//! Bounds on what an RTSP source sends: longest head, description and frame. The bytes are inspected before the RTSP
//! library, which would buffer without end.
//!
//! The library has no bounds of its own, and the source is foreign. [`Inspector`] follows the framing (RFC 2326 §10.12
//! for interleaved packets) and the marker bits of frames; [`relay`] passes bytes on as long as it finds nothing
//! wrong.

use std::io;

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::Error;

/// The longest status line with headers.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// The longest description.
const MAX_BODY_BYTES: usize = 256 * 1024;
/// The most bytes of one frame, as for other protocols.
const MAX_FRAME_BYTES: usize = 8 * 1024 * 1024;
/// Size of one read.
const READ_BYTES: usize = 64 * 1024;

const INTERLEAVED: u8 = b'$';
const INTERLEAVED_HEADER: usize = 4;
/// The least of an RTP header; its second byte has the marker, its bytes 4 to 7 the timestamp.
const RTP_HEADER: usize = 12;

/// Follows what a source sends.
#[derive(Debug)]
pub struct Inspector {
    state: State,
    /// Timestamp of the last packets of each interleaved channel, and the bytes that arrived with it.
    frames: [Frame; 256],
}

#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    timestamp: [u8; 4],
    bytes: usize,
}

#[derive(Debug)]
enum State {
    /// A message's head, up to its empty line; or the start of an interleaved packet.
    Head(Vec<u8>),
    /// Bytes of a body or a packet that are passed without inspection.
    Pass(usize),
}

impl Default for Inspector {
    fn default() -> Self {
        Self {
            state: State::Head(Vec::new()),
            frames: [Frame::default(); 256],
        }
    }
}

impl Inspector {
    /// Takes the next bytes, in pieces of any size; an error ends the connection.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while let Some((first, rest)) = bytes.split_first() {
            match &mut self.state {
                State::Pass(left) => {
                    let passed = (*left).min(bytes.len());
                    *left -= passed;
                    if *left == 0 {
                        self.state = State::Head(Vec::new());
                    }
                    bytes = &bytes[passed..];
                }
                State::Head(head) => {
                    head.push(*first);
                    bytes = rest;
                    if let Some(behind) = self.head_ended()? {
                        self.state = match behind {
                            0 => State::Head(Vec::new()),
                            left => State::Pass(left),
                        };
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns how many bytes follow the head, once it is whole.
    fn head_ended(&mut self) -> Result<Option<usize>, Error> {
        let State::Head(head) = &self.state else {
            return Ok(None);
        };
        if head.first() == Some(&INTERLEAVED) {
            return packet_head(head, &mut self.frames);
        }
        if head.len() > MAX_HEAD_BYTES {
            return Err(Error::too_large("RTSP head", head.len(), MAX_HEAD_BYTES));
        }
        // Blank lines between messages are allowed.
        if head == b"\r" || head == b"\n" || head == b"\r\n" {
            return Ok((head.last() == Some(&b'\n')).then_some(0));
        }
        if !head.ends_with(b"\n\r\n") && !head.ends_with(b"\n\n") {
            return Ok(None);
        }
        let length = content_length(head)?;
        if length > MAX_BODY_BYTES {
            return Err(Error::too_large("RTSP body", length, MAX_BODY_BYTES));
        }
        Ok(Some(length))
    }
}

/// Returns how many bytes follow the head of an interleaved packet, once it is whole; counts them to their frame.
fn packet_head(head: &[u8], frames: &mut [Frame; 256]) -> Result<Option<usize>, Error> {
    let Some(&[_, channel, high, low]) = head.first_chunk::<INTERLEAVED_HEADER>() else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let seen = head.len() - INTERLEAVED_HEADER;
    if seen < length.min(RTP_HEADER) {
        return Ok(None);
    }
    let frame = &mut frames[usize::from(channel)];
    let timestamp = head
        .get(8..12)
        .and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    let is_control = channel % 2 == 1;
    match timestamp {
        Some(timestamp) if timestamp != frame.timestamp || is_control => {
            *frame = Frame {
                timestamp,
                bytes: length,
            };
        }
        _ => frame.bytes += length,
    }
    if frame.bytes > MAX_FRAME_BYTES {
        return Err(Error::too_large("RTSP frame", frame.bytes, MAX_FRAME_BYTES));
    }
    Ok(Some(length - seen))
}

fn content_length(head: &[u8]) -> Result<usize, Error> {
    let text = String::from_utf8_lossy(head);
    let mut lengths = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim()
            .eq_ignore_ascii_case("content-length")
            .then_some(value)
    });
    let Some(length) = lengths.next() else {
        return Ok(0);
    };
    if lengths.next().is_some() {
        return Err(Error::invalid("RTSP head", "it has two lengths"));
    }
    let parsed = length.trim().parse();
    parsed.map_err(|_| Error::invalid("RTSP head", "its length is no number"))
}

/// Passes bytes between the source and the one connection that `listener` takes, until either side ends.
pub(super) async fn relay<L>(listener: TcpListener, source: L) -> Result<(), Error>
where
    L: AsyncRead + AsyncWrite + Unpin,
{
    let (near, _) = listener.accept().await?;
    drop(listener);
    near.set_nodelay(true)?;
    let (mut from_source, mut to_source) = tokio::io::split(source);
    let (mut from_client, mut to_client) = near.into_split();
    let requests = async {
        tokio::io::copy(&mut from_client, &mut to_source).await?;
        to_source.shutdown().await?;
        Ok::<(), Error>(())
    };
    let answers = async {
        let mut inspector = Inspector::default();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let read = from_source.read(&mut buffer).await?;
            if read == 0 {
                return Ok::<(), Error>(());
            }
            inspector.push(&buffer[..read])?;
            to_client.write_all(&buffer[..read]).await?;
        }
    };
    tokio::select! {
        ended = requests => ended,
        ended = answers => ended,
    }
}

/// Opens a loopback socket whose port only this process has.
pub(super) async fn listen() -> io::Result<TcpListener> {
    TcpListener::bind(("127.0.0.1", 0)).await
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(channel: u8, timestamp: u32, bytes: usize) -> Vec<u8> {
        let mut packet = vec![INTERLEAVED, channel];
        packet.extend((bytes as u16).to_be_bytes());
        let mut rtp = vec![0x80, 96, 0, 1];
        rtp.extend(timestamp.to_be_bytes());
        rtp.resize(bytes.max(8), b'$');
        rtp.truncate(bytes);
        [packet, rtp].concat()
    }

    fn outcome(stream: &[u8], piece: usize) -> Result<(), String> {
        let mut inspector = Inspector::default();
        for piece in stream.chunks(piece) {
            inspector.push(piece).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    #[test]
    fn a_session_passes() {
        let mut stream =
            b"RTSP/1.0 200 OK\r\nCSeq: 1\r\ncontent-Length: 9\r\n\r\n$\r\n\r\n$$$$".to_vec();
        stream.extend(b"\r\nRTSP/1.0 200 OK\r\nCSeq: 2\r\n\r\n");
        for number in 0..400 {
            stream.extend(packet(0, number, 60_000));
            stream.extend(packet(1, 7, 40));
            stream.extend(packet(2, number, 3));
        }
        for piece in [1, 7, 1_000, stream.len()] {
            assert_eq!(outcome(&stream, piece), Ok(()), "{piece}");
        }
    }

    #[test]
    fn what_never_ends_is_cut() {
        let endless = packet(0, 5, 60_000).repeat(200);
        let short = packet(0, 5, 6).repeat(2_000_000);
        let lines = b"X: y\r\n".repeat(10_000);
        let body = b"RTSP/1.0 200 OK\r\nContent-Length: 99999999\r\n\r\n".to_vec();
        let twice = b"RTSP/1.0 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_vec();
        for (stream, words) in [
            (endless, "RTSP frame is too large"),
            (short, "RTSP frame is too large"),
            (lines, "RTSP head is too large"),
            (body, "RTSP body is too large"),
            (twice, "it has two lengths"),
        ] {
            let error = outcome(&stream, 1_000).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end(stream in prop::collection::vec(any::<u8>(), 0..3_000), piece in 1_usize..100) {
            let _ = outcome(&stream, piece);
        }
    }
}
