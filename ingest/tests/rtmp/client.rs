//! A client that sends exactly the bytes a test wants.

use sluice_ingest::rtmp::{amf0, message::kind};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

use crate::support::{DEADLINE, Server};

/// An `avcC` of 1920×1080 High at level 4.0, as ffmpeg 9.0 wrote it.
const AVC_RECORD: [u8; 45] = [
    0x01, 0x64, 0x00, 0x28, 0xff, 0xe1, 0x00, 0x1b, 0x67, 0x64, 0x00, 0x28, 0xac, 0xd9, 0x40, 0x78,
    0x02, 0x27, 0xe5, 0xc0, 0x44, 0x00, 0x00, 0x03, 0x00, 0x04, 0x00, 0x00, 0x03, 0x00, 0xf0, 0x3c,
    0x60, 0xc6, 0x58, 0x01, 0x00, 0x04, 0x68, 0xef, 0x8f, 0xcb, 0xfd, 0xf8, 0xf8,
];

/// C0, C1 and C2 of a simple handshake.
pub fn handshake() -> Vec<u8> {
    let mut bytes = vec![0; 1 + 2 * 1536];
    bytes[0] = 3;
    bytes
}

/// A message in chunks of 128 bytes, its first header in format 0.
pub fn message(
    chunk_stream: u8,
    kind: u8,
    stream_id: u32,
    timestamp_ms: u32,
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = vec![chunk_stream];
    bytes.extend(&timestamp_ms.min(0xFF_FFFF).to_be_bytes()[1..]);
    bytes.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    bytes.push(kind);
    bytes.extend(stream_id.to_le_bytes());
    let extended: &[u8] = match timestamp_ms {
        0xFF_FFFF.. => &timestamp_ms.to_be_bytes(),
        _ => &[],
    };
    bytes.extend(extended);
    for (index, piece) in payload.chunks(128).enumerate() {
        if index > 0 {
            bytes.push(0xC0 | chunk_stream);
            bytes.extend(extended);
        }
        bytes.extend(piece);
    }
    bytes
}

pub fn command(stream_id: u32, fill: impl FnOnce(&mut amf0::Writer)) -> Vec<u8> {
    let mut payload = amf0::Writer::new();
    fill(&mut payload);
    message(3, kind::COMMAND_AMF0, stream_id, 0, &payload.into_bytes())
}

pub fn connect(app: &str) -> Vec<u8> {
    command(0, |c| {
        c.string("connect").number(1.0).object(|o| {
            o.name("app").string(app);
            o.name("flashVer").string("Test/1");
        });
    })
}

pub fn create_stream() -> Vec<u8> {
    command(0, |c| {
        c.string("createStream").number(2.0).null();
    })
}

pub fn publish(stream: &str) -> Vec<u8> {
    command(1, |c| {
        c.string("publish").number(3.0).null();
        c.string(stream).string("live");
    })
}

pub fn delete_stream() -> Vec<u8> {
    command(0, |c| {
        c.string("deleteStream").number(4.0).null().number(1.0);
    })
}

/// Returns the bytes up to and including `publish`.
pub fn opening(app: &str, stream: &str) -> Vec<u8> {
    [handshake(), connect(app), create_stream(), publish(stream)].concat()
}

pub fn video_configuration() -> Vec<u8> {
    let body = [&[0x17, 0, 0, 0, 0][..], &AVC_RECORD, &[0]].concat();
    message(4, kind::VIDEO, 1, 0, &body)
}

/// A key frame of two payload bytes.
pub fn key_frame(timestamp_ms: u32) -> Vec<u8> {
    let body = [0x17, 1, 0, 0, 0, 0, 0, 0, 2, 0x65, 0x88];
    message(4, kind::VIDEO, 1, timestamp_ms, &body)
}

/// A connection to the server under test.
pub struct Client<S = TcpStream> {
    pub socket: S,
    received: Vec<u8>,
}

impl Client {
    pub async fn connect(server: &Server) -> Self {
        Self {
            socket: TcpStream::connect(server.address).await.unwrap(),
            received: Vec::new(),
        }
    }

    /// Connects and sends; a server that hangs up meanwhile is no failure of the test.
    pub async fn sending(server: &Server, bytes: &[u8]) -> Self {
        let mut client = Self::connect(server).await;
        client.send(bytes).await;
        client
    }
}

impl Client<TlsStream<TcpStream>> {
    pub async fn connect_tls(server: &Server) -> Self {
        Self {
            socket: server.connect_tls().await,
            received: Vec::new(),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes).await;
        let _ = self.socket.flush().await;
    }

    /// Reads until the server has sent this text.
    pub async fn read_until(&mut self, text: &str) {
        let reading = async {
            while !contains(&self.received, text) {
                let read = self.socket.read_buf(&mut self.received).await;
                assert!(read.unwrap_or(0) > 0, "the server closed without {text:?}");
            }
        };
        tokio::time::timeout(DEADLINE, reading).await.unwrap();
    }

    /// Reads until the server has closed, and returns all that it sent.
    pub async fn read_to_end(&mut self) -> &[u8] {
        let reading =
            async { while matches!(self.socket.read_buf(&mut self.received).await, Ok(1..)) {} };
        tokio::time::timeout(DEADLINE, reading).await.unwrap();
        &self.received
    }
}

pub fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|w| w == text.as_bytes())
}
