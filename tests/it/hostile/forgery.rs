//! RTMP bytes that no encoder makes (RTMP 1.0, sections 5 and 7; AMF0, section 2).

pub const AUDIO: u8 = 8;
pub const VIDEO: u8 = 9;
pub const DATA: u8 = 18;
pub const COMMAND: u8 = 20;
const SET_CHUNK_SIZE: u8 = 1;
const USER_CONTROL: u8 = 4;
/// Chunk size at the beginning of both sides.
const DEFAULT_CHUNK_BYTES: usize = 128;
/// Timestamp in the header that announces the extended timestamp of four bytes.
const EXTENDED: u32 = 0xFF_FFFF;

/// A whole message in chunks of the default size; bodies up to that size fit any larger one.
pub fn message(chunk_stream: u8, kind: u8, stream_id: u32, time_ms: u32, body: &[u8]) -> Vec<u8> {
    let mut out = header(chunk_stream, kind, stream_id, time_ms, body.len());
    let mut pieces = body.chunks(DEFAULT_CHUNK_BYTES);
    out.extend_from_slice(pieces.next().unwrap_or_default());
    for piece in pieces {
        out.push(0xC0 | chunk_stream);
        out.extend_from_slice(piece);
    }
    out
}

/// A type 0 chunk header that declares `length` bytes.
fn header(chunk_stream: u8, kind: u8, stream_id: u32, time_ms: u32, length: usize) -> Vec<u8> {
    let mut out = match chunk_stream {
        2..=63 => vec![chunk_stream],
        other => vec![0, other - 64],
    };
    out.extend_from_slice(&time_ms.min(EXTENDED).to_be_bytes()[1..]);
    out.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
    out.push(kind);
    out.extend_from_slice(&stream_id.to_le_bytes());
    if time_ms >= EXTENDED {
        out.extend_from_slice(&time_ms.to_be_bytes());
    }
    out
}

fn set_chunk_size(bytes: u32) -> Vec<u8> {
    message(2, SET_CHUNK_SIZE, 0, 0, &bytes.to_be_bytes())
}

fn text(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).expect("AMF0 texts of the scenarios are short");
    [&[2], &length.to_be_bytes()[..], text.as_bytes()].concat()
}

fn number(number: f64) -> Vec<u8> {
    [&[0], &number.to_be_bytes()[..]].concat()
}

fn command(name: &str, arguments: &[u8]) -> Vec<u8> {
    let body = [text(name), number(1.0), arguments.to_vec()].concat();
    message(3, COMMAND, 0, 0, &body)
}

/// `connect` with objects in objects: so many bytes of them.
pub fn nested_objects(bytes: usize) -> Vec<u8> {
    command("connect", &b"\x03\x00\x01a".repeat(bytes / 4))
}

/// `connect` with an array that declares 2^32 - 1 members: strict (0x0A) or associative (0x08).
pub fn endless_array(marker: u8) -> Vec<u8> {
    command("connect", &[marker, 0xFF, 0xFF, 0xFF, 0xFF, 5, 5, 5])
}

/// Chunks of 2 GB, and the beginning of a message of 16 MB.
pub fn huge_chunks() -> Vec<u8> {
    let mut out = set_chunk_size(0x7FFF_FFFF);
    out.extend(header(4, VIDEO, 1, 0, 0xFF_FFFF));
    out.extend([0; 4096]);
    out
}

/// Messages of 16 MB on 64 chunk streams, with one byte of each.
pub fn many_beginnings() -> Vec<u8> {
    let mut out = set_chunk_size(1);
    for chunk_stream in 3..67 {
        out.extend(header(chunk_stream, VIDEO, 1, 0, 0xFF_FFFF));
        out.push(0);
    }
    out
}

/// `connect`, `createStream` and `publish` with these names.
pub fn publish(app: &str, stream: &str) -> Vec<u8> {
    let object = [&[3, 0, 3], &b"app"[..], &text(app), &[0, 0, 9]].concat();
    let names = [vec![5], text(stream), text("live")].concat();
    [
        command("connect", &object),
        command("createStream", &[5]),
        command("publish", &names),
    ]
    .concat()
}

/// Messages of one byte.
pub fn tiny_messages(kind: u8, stream_id: u32, count: usize) -> Vec<u8> {
    let mut out = message(4, kind, stream_id, 0, &[0]);
    out.extend([0xC4, 0].repeat(count));
    out
}

/// Ping requests, each of which wants an answer.
pub fn pings(count: usize) -> Vec<u8> {
    message(2, USER_CONTROL, 0, 0, &[0, 6, 0, 0, 0, 0]).repeat(count)
}

/// `createStream`, each of which wants an answer.
pub fn streams(count: usize) -> Vec<u8> {
    command("createStream", &[5]).repeat(count)
}

/// An AVC sequence header whose parameter set declares 65536×65536 (ISO/IEC 14496-10, section 7.3.2.1.1).
pub fn enormous_frame() -> Vec<u8> {
    let mut bits = Bits::default();
    bits.exp_golomb(0); // seq_parameter_set_id
    bits.exp_golomb(0); // log2_max_frame_num_minus4
    bits.exp_golomb(2); // pic_order_cnt_type
    bits.exp_golomb(1); // max_num_ref_frames
    bits.push(0, 1); // gaps_in_frame_num_value_allowed_flag
    bits.exp_golomb(4095); // pic_width_in_mbs_minus1
    bits.exp_golomb(4095); // pic_height_in_map_units_minus1
    bits.push(0b1100, 4); // frame_mbs_only, direct_8x8_inference, no cropping, no VUI
    bits.push(1, 1); // rbsp_stop_one_bit
    let parameters = [&[0x67, 66, 0, 51][..], &bits.bytes()].concat();
    let picture_parameters = [0x68, 0xCE, 0x3C, 0x80];
    let mut tag = vec![0x17, 0, 0, 0, 0, 1, 66, 0, 51, 0xFF, 0xE1];
    tag.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
    tag.extend(parameters);
    tag.extend([1, 0, picture_parameters.len() as u8]);
    tag.extend(picture_parameters);
    tag
}

/// An AVC frame whose NAL unit declares 4 GB.
pub const NAL_UNIT_BEYOND_ITS_TAG: [u8; 12] =
    [0x17, 1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x65, 0x88, 0x84];

#[derive(Default)]
struct Bits(Vec<bool>);

impl Bits {
    fn push(&mut self, value: u32, count: u32) {
        self.0
            .extend((0..count).rev().map(|bit| value >> bit & 1 == 1));
    }

    fn exp_golomb(&mut self, value: u32) {
        let length = 32 - (value + 1).leading_zeros();
        self.push(0, length - 1);
        self.push(value + 1, length);
    }

    fn bytes(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| {
            let value = bits
                .iter()
                .fold(0_u8, |value, &bit| value << 1 | u8::from(bit));
            value << (8 - bits.len())
        };
        self.0.chunks(8).map(byte).collect()
    }
}

/// The same noise each time (xorshift).
pub fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed | 1;
    (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}
