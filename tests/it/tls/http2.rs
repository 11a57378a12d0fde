//! Bounds of HTTP/2 connections, tried with frames that no client library sends.

use std::{collections::BTreeMap, time::Duration};

use rustls_pki_types::CertificateDer;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::client::TlsStream;

use super::{Files, connect};
use crate::support::{Failure, eventually, http::client, server::Server};

/// Streams that a connection may have open, and what refuses a further one (RFC 9113 §7).
const MAX_STREAMS: usize = 100;
const REFUSED_STREAM: u32 = 7;
const PATIENCE: Duration = Duration::from_secs(30);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// The largest payload of a frame that every receiver takes (RFC 9113 §4.2).
const MAX_FRAME: usize = 16_384;

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

/// An HTTP/2 connection that sends what it is given and checks nothing.
struct Raw(TlsStream<TcpStream>);

impl Raw {
    async fn open(server: &Server, trusted: &CertificateDer<'static>) -> Result<Self, Failure> {
        let mut stream = connect(server.addresses().http, trusted, &[b"h2"]).await?;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await?;
        let mut raw = Self(stream);
        raw.send(SETTINGS, 0, 0, &[]).await?;
        Ok(raw)
    }

    async fn send(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
    ) -> Result<(), Failure> {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.write_all(&frame).await?;
        self.0.flush().await?;
        Ok(())
    }

    /// Sends a header block in as many frames as it needs.
    async fn send_block(&mut self, stream: u32, flags: u8, block: &[u8]) -> Result<(), Failure> {
        let count = block.chunks(MAX_FRAME).count();
        for (index, chunk) in block.chunks(MAX_FRAME).enumerate() {
            let end = if index + 1 == count { END_HEADERS } else { 0 };
            let (kind, flags) = match index {
                0 => (HEADERS, flags | end),
                _ => (CONTINUATION, end),
            };
            self.send(kind, flags, stream, chunk).await?;
        }
        Ok(())
    }

    async fn receive(&mut self) -> Result<Frame, Failure> {
        let mut head = [0; 9];
        timeout(PATIENCE, self.0.read_exact(&mut head)).await??;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        timeout(PATIENCE, self.0.read_exact(&mut payload)).await??;
        Ok(Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
            payload,
        })
    }

    /// Reads until the server has answered a PING, so that everything sent before was handled.
    async fn settle(&mut self) -> Result<Vec<Frame>, Failure> {
        self.send(PING, 0, 0, b"settled?").await?;
        let mut frames = Vec::new();
        loop {
            let frame = self.receive().await?;
            match frame.kind {
                PING if frame.flags & ACK != 0 => return Ok(frames),
                GOAWAY => {
                    frames.push(frame);
                    return Ok(frames);
                }
                _ => frames.push(frame),
            }
        }
    }
}

/// A header block in HPACK (RFC 7541): what every request needs, `method` from the static table.
fn request(method: u8, path: &str) -> Vec<u8> {
    let mut block = vec![0x80 | method, 0x87];
    for (name, value) in [(4, path), (1, "localhost")] {
        block.extend([name, value.len() as u8]);
        block.extend(value.as_bytes());
    }
    block
}

const GET: u8 = 2;
const POST: u8 = 3;

fn literal(block: &mut Vec<u8>, first: u8, name: &str, value: &[u8]) {
    block.push(first);
    for text in [name.as_bytes(), value] {
        // A 7-bit prefix, then groups of seven bits.
        match text.len() {
            short @ 0..127 => block.push(short as u8),
            long => {
                let mut rest = long - 127;
                block.push(127);
                while rest >= 128 {
                    block.push((rest % 128) as u8 | 128);
                    rest /= 128;
                }
                block.push(rest as u8);
            }
        }
        block.extend(text);
    }
}

async fn server() -> Result<(Server, CertificateDer<'static>, Files), Failure> {
    let files = Files::new()?;
    let trusted = files.renew()?;
    let server = files.settings().start().await?;
    Ok((server, trusted, files))
}

async fn is_alive(server: &Server) -> Result<(), Failure> {
    let answer = client()
        .get(format!("{}/healthz", server.base_url()))
        .send();
    assert_eq!(answer.await?.status(), 200);
    let log = server.log();
    assert!(!log.contains("panicked"), "{log}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_beyond_the_bound_are_refused() -> Result<(), Failure> {
    let (server, trusted, _files) = server().await?;
    let mut raw = Raw::open(&server, &trusted).await?;
    // Sign-ins whose bodies never end stay open.
    for number in 0..300 {
        raw.send_block(1 + 2 * number, 0, &request(POST, "/api/session"))
            .await?;
    }
    let frames = raw.settle().await?;
    let settings = frames
        .iter()
        .find(|frame| frame.kind == SETTINGS && frame.flags & ACK == 0)
        .ok_or("no SETTINGS")?;
    let settings: BTreeMap<u16, u32> = settings
        .payload
        .chunks_exact(6)
        .map(|entry| {
            let value = [entry[2], entry[3], entry[4], entry[5]];
            (
                u16::from_be_bytes([entry[0], entry[1]]),
                u32::from_be_bytes(value),
            )
        })
        .collect();
    assert_eq!(settings.get(&3), Some(&100), "MAX_CONCURRENT_STREAMS");
    assert_eq!(settings.get(&6), Some(&65_536), "MAX_HEADER_LIST_SIZE");
    let refused = frames
        .iter()
        .filter(|frame| frame.kind == RST_STREAM && frame.payload == REFUSED_STREAM.to_be_bytes());
    assert_eq!(refused.count(), 300 - MAX_STREAMS);

    // A stream that ends makes room for the next.
    raw.send(RST_STREAM, 0, 1, &8_u32.to_be_bytes()).await?;
    raw.settle().await?;
    raw.send_block(1001, END_STREAM, &request(GET, "/healthz"))
        .await?;
    let answer = loop {
        let frame = raw.receive().await?;
        if frame.stream == 1001 && matches!(frame.kind, DATA | RST_STREAM) {
            break frame;
        }
    };
    assert_eq!(answer.kind, DATA);
    is_alive(&server).await
}

/// The answers to requests with many fields: each 431 or the end of the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_with_too_many_fields_are_refused() -> Result<(), Failure> {
    let (server, trusted, _files) = server().await?;
    for count in [97_usize, 2_500, 25_000, 70_000] {
        let mut raw = Raw::open(&server, &trusted).await?;
        let mut block = request(GET, "/healthz");
        for number in 0..count {
            literal(&mut block, 0, &format!("x{number:x}"), b"");
        }
        raw.send_block(1, END_STREAM, &block).await?;
        let answer = loop {
            let frame = raw.receive().await?;
            if matches!(frame.kind, GOAWAY | RST_STREAM | HEADERS) {
                break frame;
            }
        };
        if answer.kind == HEADERS {
            // 431 is not in HPACK's static table: its digits are in the block, plain or in Huffman's code.
            assert!(
                has(&answer.payload, b"431") || has(&answer.payload, &[0x69, 0x90, 0xff]),
                "{count}: {:?}",
                answer.payload
            );
        }
    }
    // The number of fields that HTTP/1 allows is accepted.
    let mut raw = Raw::open(&server, &trusted).await?;
    let mut block = request(GET, "/healthz");
    for number in 0..96 {
        literal(&mut block, 0, &format!("x{number:x}"), b"");
    }
    raw.send_block(1, END_STREAM, &block).await?;
    let answer = loop {
        let frame = raw.receive().await?;
        if frame.kind == HEADERS {
            break frame;
        }
    };
    assert_eq!(answer.payload.first(), Some(&0x88), ":status 200");
    is_alive(&server).await
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// A field in HPACK's dynamic table costs its sender one byte each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_costs_at_most_two_mebibytes() -> Result<(), Failure> {
    const CONNECTIONS: u64 = 8;
    const CONNECTION_KIB: u64 = 2 * 1024;
    let (server, trusted, _files) = server().await?;
    let mut warm = Raw::open(&server, &trusted).await?;
    warm.send_block(1, 0, &request(POST, "/api/session"))
        .await?;
    warm.settle().await?;
    is_alive(&server).await?;
    let before_kib = server.resident_kib()?;

    let mut open = Vec::new();
    for connection in 0..CONNECTIONS {
        let mut raw = Raw::open(&server, &trusted).await?;
        for number in 0..100 {
            let mut block = request(POST, "/api/session");
            if number == 0 {
                literal(&mut block, 0x40, "x", b"");
            }
            // Half of the connections send as much as fits into a frame, half as many fields as are taken.
            let fields = if connection % 2 == 0 { 8_400 } else { 80 };
            block.resize(block.len() + fields, 0x80 | 62);
            raw.send_block(1 + 2 * number, 0, &block).await?;
        }
        raw.settle().await?;
        open.push(raw);
    }
    eventually("memory within its bound", PATIENCE, async || {
        let grown_kib = server.resident_kib().ok()?.saturating_sub(before_kib);
        (grown_kib <= CONNECTIONS * CONNECTION_KIB).then_some(())
    })
    .await?;
    is_alive(&server).await
}
