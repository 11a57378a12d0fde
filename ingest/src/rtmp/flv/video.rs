//! Reads FLV video tags (FLV 10.1 §E.4.3, enhanced RTMP v2): H.264, HEVC, AV1; names of codecs that are not carried.

use sluice_media::codec::VideoCodec;

use super::{
    Corruption, Packet, Tag,
    cursor::Cursor,
    enhanced::{packet_type, skip_mod_ex, track_of},
    fourcc_name,
};

const WHAT: &str = "video tag";
const CARRIED: &str = "H.264, HEVC or AV1";
const EX_HEADER: u8 = 0x80;
const KEY_FRAME: u8 = 1;
/// A message to the player about seeking, no frame.
const COMMAND_FRAME: u8 = 5;

mod legacy_codec {
    pub(super) const AVC: u8 = 7;
    /// Undefined in FLV, but sent by encoders from before enhanced RTMP.
    pub(super) const HEVC: u8 = 12;
}

/// Parses a body; `None` when it holds nothing for a decoder. `wanted` is the track that is carried, once known.
pub(super) fn parse(
    body: &[u8],
    wanted: Option<u8>,
) -> Result<Option<Tag<VideoCodec>>, Corruption> {
    let mut cursor = Cursor::new(body, WHAT);
    let head = cursor.u8()?;
    let frame_type = (head >> 4) & 7;
    if head & EX_HEADER == 0 {
        return legacy(cursor, frame_type, head & 0x0F);
    }
    let key = frame_type == KEY_FRAME;

    let (packet_type, offset_ns) = skip_mod_ex(&mut cursor, head & 0x0F)?;
    if frame_type == COMMAND_FRAME && packet_type != packet_type::METADATA {
        return Ok(None);
    }
    let multitrack = packet_type::MULTITRACK_VIDEO;
    let track = track_of(&mut cursor, packet_type, multitrack, wanted, "video")?;
    let codec = codec_of(track.fourcc)?;
    let mut body = Cursor::new(&body[..track.body.end], WHAT);
    body.skip(track.body.start)?;
    let packet = match track.packet_type {
        packet_type::SEQUENCE_START => Packet::Configuration,
        packet_type::CODED_FRAMES if codec != VideoCodec::Av1 => Packet::Frame {
            cts_ms: body.i24()?,
            key,
        },
        packet_type::CODED_FRAMES | packet_type::CODED_FRAMES_X => Packet::Frame { cts_ms: 0, key },
        packet_type::SEQUENCE_END | packet_type::METADATA => return Ok(None),
        number => {
            return Err(Corruption::PacketType {
                what: "video",
                number,
            });
        }
    };
    Ok(Some(Tag {
        codec,
        track: track.id,
        has_other_tracks: track.has_others,
        offset_ns,
        packet,
        range: body.rest(),
    }))
}

fn legacy(
    mut cursor: Cursor<'_>,
    frame_type: u8,
    codec_id: u8,
) -> Result<Option<Tag<VideoCodec>>, Corruption> {
    if frame_type == COMMAND_FRAME {
        return Ok(None);
    }
    let codec = match codec_id {
        legacy_codec::AVC => VideoCodec::Avc,
        legacy_codec::HEVC => VideoCodec::Hevc,
        other => {
            let name = legacy_name(other).into();
            return Err(Corruption::VideoCodec {
                name,
                choose: CARRIED,
            });
        }
    };
    let packet_type = cursor.u8()?;
    let cts_ms = cursor.i24()?;
    let packet = match packet_type {
        0 => Packet::Configuration,
        1 => Packet::Frame {
            cts_ms,
            key: frame_type == KEY_FRAME,
        },
        2 => return Ok(None),
        number => {
            return Err(Corruption::PacketType {
                what: "video",
                number,
            });
        }
    };
    Ok(Some(Tag {
        codec,
        track: 0,
        has_other_tracks: false,
        offset_ns: 0,
        packet,
        range: cursor.rest(),
    }))
}

fn codec_of(fourcc: [u8; 4]) -> Result<VideoCodec, Corruption> {
    match &fourcc {
        b"avc1" => Ok(VideoCodec::Avc),
        b"hvc1" => Ok(VideoCodec::Hevc),
        b"av01" => Ok(VideoCodec::Av1),
        _ => Err(Corruption::VideoCodec {
            name: fourcc_name(fourcc),
            choose: CARRIED,
        }),
    }
}

fn legacy_name(codec_id: u8) -> &'static str {
    match codec_id {
        2 => "Sorenson H.263",
        3 | 6 => "Screen video",
        4 | 5 => "VP6",
        _ => "of an unknown number",
    }
}
