//! Reads FLV audio tags (FLV 10.1 §E.4.2, enhanced RTMP v2): AAC, MP3, Opus; names of codecs that are not carried.

use sluice_media::codec::AudioCodec;

use super::{
    Corruption, Packet, Tag,
    cursor::Cursor,
    enhanced::{packet_type, skip_mod_ex, track_of},
    fourcc_name,
};

const WHAT: &str = "audio tag";

mod audio_format {
    pub(super) const MP3: u8 = 2;
    pub(super) const EX_HEADER: u8 = 9;
    pub(super) const AAC: u8 = 10;
}

/// Parses a body; `None` when it holds nothing for a decoder. `wanted` is the track that is carried, once known.
pub(super) fn parse(
    body: &[u8],
    wanted: Option<u8>,
) -> Result<Option<Tag<AudioCodec>>, Corruption> {
    let mut cursor = Cursor::new(body, WHAT);
    let head = cursor.u8()?;
    let frame = Packet::Frame {
        cts_ms: 0,
        key: true,
    };
    match head >> 4 {
        audio_format::EX_HEADER => enhanced(cursor, head & 0x0F, wanted),
        audio_format::MP3 => Ok(Some(legacy_tag(AudioCodec::Mp3, frame, &cursor))),
        audio_format::AAC => {
            let packet = match cursor.u8()? {
                0 => Packet::Configuration,
                1 => frame,
                number => {
                    return Err(Corruption::PacketType {
                        what: "audio",
                        number,
                    });
                }
            };
            Ok(Some(legacy_tag(AudioCodec::Aac, packet, &cursor)))
        }
        other => Err(Corruption::AudioCodec {
            name: legacy_name(other).into(),
        }),
    }
}

fn enhanced(
    mut cursor: Cursor<'_>,
    first_type: u8,
    wanted: Option<u8>,
) -> Result<Option<Tag<AudioCodec>>, Corruption> {
    let (packet_type, offset_ns) = skip_mod_ex(&mut cursor, first_type)?;
    let multitrack = packet_type::MULTITRACK_AUDIO;
    let track = track_of(&mut cursor, packet_type, multitrack, wanted, "audio")?;
    let codec = codec_of(track.fourcc)?;
    let packet = match track.packet_type {
        // MP3 is configured by its frames.
        packet_type::SEQUENCE_START if codec == AudioCodec::Mp3 => return Ok(None),
        packet_type::SEQUENCE_START => Packet::Configuration,
        packet_type::CODED_FRAMES => Packet::Frame {
            cts_ms: 0,
            key: true,
        },
        // 4 is MultichannelConfig here: the order of the channels, which the codec's own configuration has too.
        packet_type::SEQUENCE_END | packet_type::METADATA => return Ok(None),
        number => {
            return Err(Corruption::PacketType {
                what: "audio",
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
        range: track.body,
    }))
}

fn legacy_tag(codec: AudioCodec, packet: Packet, cursor: &Cursor<'_>) -> Tag<AudioCodec> {
    Tag {
        codec,
        track: 0,
        has_other_tracks: false,
        offset_ns: 0,
        packet,
        range: cursor.rest(),
    }
}

fn codec_of(fourcc: [u8; 4]) -> Result<AudioCodec, Corruption> {
    match &fourcc {
        b"mp4a" => Ok(AudioCodec::Aac),
        b"Opus" => Ok(AudioCodec::Opus),
        b".mp3" => Ok(AudioCodec::Mp3),
        _ => Err(Corruption::AudioCodec {
            name: fourcc_name(fourcc),
        }),
    }
}

fn legacy_name(format: u8) -> &'static str {
    match format {
        0 | 3 => "PCM",
        1 => "ADPCM",
        4..=6 => "Nellymoser",
        7 => "G.711 A-law",
        8 => "G.711 µ-law",
        11 => "Speex",
        14 => "MP3 at 8 kHz",
        _ => "of an unknown number",
    }
}
