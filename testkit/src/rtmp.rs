//! RTMP 1.0 messages of the test publisher: simple handshake, chunks, AMF0, as much of the answers as it needs.

use std::collections::HashMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::{Failure, flv::Tag};

/// Chunk size of OBS.
pub const CHUNK_SIZE: usize = 4096;
const HANDSHAKE_BYTES: usize = 1536;
/// Longest answer that is read; usual ones have a few hundred bytes.
const LONGEST_ANSWER_BYTES: usize = 64 * 1024;

pub const SET_CHUNK_SIZE: u8 = 1;
pub const USER_CONTROL: u8 = 4;
pub const COMMAND: u8 = 20;
/// Chunk streams: 2 is the protocol's own, 3 carries commands, media has one each (`flv::chunk_stream`).
pub const CONTROL_STREAM: u8 = 2;
pub const COMMAND_STREAM: u8 = 3;

/// A message of the server.
#[derive(Debug)]
pub struct Message {
    pub kind: u8,
    pub body: Bytes,
}

/// AMF0 values that a publisher's commands are made of.
#[derive(Clone, Copy, Debug)]
pub enum Amf<'a> {
    Number(f64),
    Text(&'a str),
    Null,
    Object(&'a [(&'a str, &'a str)]),
}

/// The simple handshake (RTMP 1.0, section 5.2).
pub async fn shake_hands(
    socket: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> Result<(), Failure> {
    let mut hello = [0_u8; 1 + HANDSHAKE_BYTES];
    hello[0] = 3;
    socket.write_all(&hello).await?;
    let mut answer = [0_u8; 1 + 2 * HANDSHAKE_BYTES];
    socket.read_exact(&mut answer).await?;
    socket.write_all(&answer[1..=HANDSHAKE_BYTES]).await?;
    Ok(())
}

/// Appends a short message as one chunk with a full header.
pub fn put_message(out: &mut BytesMut, chunk_stream: u8, kind: u8, stream_id: u32, body: &[u8]) {
    debug_assert!(body.len() <= CHUNK_SIZE, "commands fit one chunk");
    put_header(out, chunk_stream, kind, 0, body.len(), stream_id);
    out.put_slice(body);
}

/// Appends a tag of the clip; its later chunks' headers are in its body already.
pub fn put_tag(out: &mut BytesMut, tag: &Tag, time_ms: u32, stream_id: u32) {
    put_header(
        out,
        tag.chunk_stream(),
        tag.kind,
        time_ms,
        tag.length,
        stream_id,
    );
    out.put_slice(&tag.chunked);
}

/// A type 0 header. Times stay below 2^24 ms (4.6 hours) because every run is bounded to minutes.
fn put_header(
    out: &mut BytesMut,
    chunk_stream: u8,
    kind: u8,
    time_ms: u32,
    length: usize,
    stream_id: u32,
) {
    out.put_u8(chunk_stream);
    out.put_uint(time_ms.into(), 3);
    out.put_uint(length as u64, 3);
    out.put_u8(kind);
    out.put_u32_le(stream_id);
}

/// Appends an AMF0 command.
pub fn put_command(
    out: &mut BytesMut,
    stream_id: u32,
    name: &str,
    transaction: f64,
    arguments: &[Amf<'_>],
) {
    let mut body = BytesMut::new();
    for value in [Amf::Text(name), Amf::Number(transaction)]
        .iter()
        .chain(arguments)
    {
        put_value(&mut body, *value);
    }
    put_message(out, COMMAND_STREAM, COMMAND, stream_id, &body);
}

fn put_value(out: &mut BytesMut, value: Amf<'_>) {
    match value {
        Amf::Number(number) => {
            out.put_u8(0);
            out.put_f64(number);
        }
        Amf::Text(text) => {
            out.put_u8(2);
            put_text(out, text);
        }
        Amf::Null => out.put_u8(5),
        Amf::Object(members) => {
            out.put_u8(3);
            for (name, text) in members {
                put_text(out, name);
                put_value(out, Amf::Text(text));
            }
            out.put_slice(&[0, 0, 9]);
        }
    }
}

fn put_text(out: &mut BytesMut, text: &str) {
    out.put_u16(u16::try_from(text.len()).expect("publishers write short texts"));
    out.put_slice(text.as_bytes());
}

/// The stream id in the `_result` of `createStream`: name, transaction, null, number.
pub fn created_stream(body: &[u8]) -> Option<u32> {
    let id = body
        .strip_prefix(b"\x02\x00\x07_result\x00")?
        .get(8..)?
        .strip_prefix(b"\x05\x00")?;
    Some(f64::from_be_bytes(id.get(..8)?.try_into().ok()?) as u32)
}

/// Puts the server's chunks together again.
#[derive(Debug)]
pub struct Answers<R> {
    socket: R,
    buffer: BytesMut,
    chunk_size: usize,
    unfinished: HashMap<u8, Unfinished>,
}

#[derive(Debug, Default)]
struct Unfinished {
    kind: u8,
    length: usize,
    extended: bool,
    body: BytesMut,
}

impl<R: AsyncRead + Unpin> Answers<R> {
    pub fn new(socket: R) -> Self {
        Self {
            socket,
            buffer: BytesMut::new(),
            chunk_size: 128,
            unfinished: HashMap::new(),
        }
    }

    /// The next whole message. Chunk sizes are taken on the way.
    pub async fn next(&mut self) -> Result<Message, Failure> {
        loop {
            let Some(message) = self.chunk().await? else {
                continue;
            };
            match (message.kind, message.body.first_chunk::<4>()) {
                (SET_CHUNK_SIZE, Some(size)) => {
                    self.chunk_size = u32::from_be_bytes(*size).max(1) as usize
                }
                _ => return Ok(message),
            }
        }
    }

    /// Reads one chunk; gives the message that it completes.
    async fn chunk(&mut self) -> Result<Option<Message>, Failure> {
        self.fill(1).await?;
        let basic = self.buffer.get_u8();
        let (format, id) = (basic >> 6, basic & 0x3F);
        if id < 2 {
            return Err("the server uses a chunk stream above 63, which no answer needs".into());
        }
        let header_bytes = [11, 7, 3, 0][usize::from(format)];
        self.fill(header_bytes).await?;
        let header = self.buffer.split_to(header_bytes);
        let stream = self.unfinished.entry(id).or_default();
        if let Some(time) = header.get(..3) {
            stream.extended = time == [0xFF; 3];
        }
        if let Some(head) = header.get(3..7) {
            stream.length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            stream.kind = head[3];
        }
        if stream.length > LONGEST_ANSWER_BYTES {
            return Err(
                format!("the server announces a message of {} bytes", stream.length).into(),
            );
        }
        let piece_bytes = self.chunk_size.min(stream.length - stream.body.len());
        let skipped = if stream.extended { 4 } else { 0 };
        self.fill(skipped + piece_bytes).await?;
        self.buffer.advance(skipped);
        let piece = self.buffer.split_to(piece_bytes);
        let stream = self.unfinished.get_mut(&id).expect("entered above");
        stream.body.put(piece);
        Ok((stream.body.len() == stream.length).then(|| Message {
            kind: stream.kind,
            body: std::mem::take(&mut stream.body).freeze(),
        }))
    }

    async fn fill(&mut self, bytes: usize) -> Result<(), Failure> {
        while self.buffer.len() < bytes {
            if self.socket.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server closed the connection".into());
            }
        }
        Ok(())
    }
}
