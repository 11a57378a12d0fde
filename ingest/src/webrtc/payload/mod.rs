//! RTP payloads of coded video frames (`MAX_PAYLOAD`, `MAX_PACKETS`), and depacketised frames as the service takes them.
//!
//! A frame's packets are made once and shared by all its viewers. Pure; lengths inside a frame are checked against its bytes, and
//! nothing is allocated by them.

mod av1;
mod h264;
mod h265;
pub(super) mod nal;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use sluice_media::codec::VideoCodec;

use super::message::{MAX_MEDIA, Malformed, VideoFrame};

/// Most bytes of a payload: with headers of RTP, SRTP, UDP and IPv6 a packet fits the 1 280 bytes that every line carries.
pub const MAX_PAYLOAD: usize = 1_160;
/// Most packets of one frame: those of the largest frame, and as many small ones again.
pub const MAX_PACKETS: usize = 2 * MAX_MEDIA.div_ceil(MAX_PAYLOAD);

/// A packet of a frame, without its RTP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub payload: Arc<[u8]>,
    /// True for the last packet of a frame.
    pub marker: bool,
}

/// Returns a frame's packets in their order; empty where the frame has nothing that a decoder needs. All payloads of one fragmented
/// unit but its last have one size, for segmentation by the kernel.
pub fn packetize(frame: &VideoFrame) -> Result<Vec<Packet>, Malformed> {
    let mut packets = match frame.codec {
        VideoCodec::Avc => h264::packetize(&frame.data),
        VideoCodec::Hevc => h265::packetize(&frame.data),
        VideoCodec::Av1 => av1::packetize(&frame.data, frame.key),
    }?;
    if let Some(last) = packets.0.last_mut() {
        last.marker = true;
    }
    Ok(packets.0)
}

/// A publisher's frame as [`VideoFrame`] holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Depacketized {
    pub data: Bytes,
    /// True when a decoder that has the parameter sets can start here.
    pub key: bool,
}

/// Converts what a depacketiser gives (H.264 and HEVC: NAL units behind start codes; AV1: units with their sizes); `None` where the
/// frame has no unit that is kept.
pub fn depacketized(codec: VideoCodec, frame: &[u8]) -> Result<Option<Depacketized>, Malformed> {
    if frame.len() > MAX_MEDIA {
        return Err(Malformed("frame too large"));
    }
    let mut data = BytesMut::with_capacity(frame.len() + frame.len() / 64);
    let key = match codec {
        VideoCodec::Avc | VideoCodec::Hevc => nal::from_start_codes(codec, frame, &mut data)?,
        VideoCodec::Av1 => av1::without_delimiters(frame, &mut data)?,
    };
    if data.len() > MAX_MEDIA {
        return Err(Malformed("frame too large"));
    }
    let data = data.freeze();
    Ok((!data.is_empty()).then_some(Depacketized { data, key }))
}

/// Packets in the making, at most [`MAX_PACKETS`].
#[derive(Debug, Default)]
struct Packets(Vec<Packet>);

impl Packets {
    fn push(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        debug_assert!(!payload.is_empty() && payload.len() <= MAX_PAYLOAD);
        if self.0.len() == MAX_PACKETS {
            return Err(Malformed("frame has too many packets"));
        }
        self.0.push(Packet {
            payload: payload.into(),
            marker: false,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
