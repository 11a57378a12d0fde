//! Writes init sections (`ftyp`, `moov`, edit list; ISO/IEC 14496-12 §8.2, CMAF §7.3.1) and the CODECS, RESOLUTION of a
//! stream.
//!
//! Written by hand, so that decoder configuration records go out byte for byte as the encoder sent them. Nothing in
//! here depends on time: the same configurations always give the same bytes.

use bytes::Bytes;

use super::{
    StreamInfo,
    boxes::{put_u16, put_u32, put_zeros, write_box, write_full_box},
    fragment::{AUDIO_TRACK, VIDEO_TRACK},
    headers::{write_mdia, write_mvhd, write_tkhd},
    record::TrackKind,
};
use crate::codec::{AudioCodec, AudioConfig, VideoCodec, VideoConfig};

/// Ticks per second of the video track.
const VIDEO_TIMESCALE: u32 = 90_000;
/// Ticks per second of the movie header, which times nothing in a fragmented file.
const MOVIE_TIMESCALE: u32 = 1_000;

/// Writes the init section of the present tracks. `delay_90k`: the amount added to the frames' composition offsets so
/// that none is negative; an edit list subtracts it.
pub(super) fn encode(
    video: Option<&VideoConfig>,
    audio: Option<&AudioConfig>,
    delay_90k: u32,
) -> Bytes {
    let mut out = Vec::with_capacity(1_536);
    write_box(&mut out, b"ftyp", |out| {
        out.extend_from_slice(b"iso6");
        put_u32(out, 0);
        out.extend_from_slice(b"iso6cmfcmp41");
    });
    write_box(&mut out, b"moov", |out| {
        write_mvhd(out, MOVIE_TIMESCALE, None, AUDIO_TRACK + 1);
        if let Some(config) = video {
            write_video_trak(out, config, delay_90k);
        }
        if let Some(config) = audio {
            write_audio_trak(out, config);
        }
        write_box(out, b"mvex", |out| {
            if video.is_some() {
                write_trex(out, VIDEO_TRACK);
            }
            if audio.is_some() {
                write_trex(out, AUDIO_TRACK);
            }
        });
    });
    Bytes::from(out)
}

/// Describes these tracks for the multivariant playlist.
pub(super) fn stream_info(
    video: Option<&VideoConfig>,
    audio: Option<&AudioConfig>,
    frame_rate: Option<f64>,
) -> StreamInfo {
    let codecs: Vec<&str> = video
        .map(|config| config.codecs.as_str())
        .into_iter()
        .chain(audio.map(|config| config.codecs.as_str()))
        .collect();
    StreamInfo {
        codecs: codecs.join(","),
        resolution: video.map(display_size),
        frame_rate,
        has_video: video.is_some(),
        has_audio: audio.is_some(),
    }
}

/// Width and height in square pixels.
fn display_size(config: &VideoConfig) -> (u16, u16) {
    let (across, down) = config.pixel_aspect;
    if across == 0 || down == 0 || across == down {
        return (config.width, config.height);
    }
    let width = u64::from(config.width) * u64::from(across) / u64::from(down);
    (
        u16::try_from(width).unwrap_or(config.width).max(1),
        config.height,
    )
}

fn write_trex(out: &mut Vec<u8>, track: u32) {
    write_full_box(out, b"trex", 0, 0, |out| {
        put_u32(out, track);
        put_u32(out, 1); // default sample description
        put_zeros(out, 12); // durations, sizes and flags are in every fragment
    });
}

fn write_video_trak(out: &mut Vec<u8>, config: &VideoConfig, delay_90k: u32) {
    let (width, height) = display_size(config);
    let size = (u32::from(width) << 16, u32::from(height) << 16);
    write_box(out, b"trak", |out| {
        write_tkhd(out, TrackKind::Video, VIDEO_TRACK, None, size);
        if delay_90k > 0 {
            write_edts(out, delay_90k);
        }
        write_mdia(out, TrackKind::Video, VIDEO_TIMESCALE, None, |out| {
            write_stbl(out, |out| write_visual_entry(out, config));
        });
    });
}

/// Writes one edit without an end: presentation begins `media_time` behind the first decode time (ISO/IEC 14496-12
/// §8.6.6).
fn write_edts(out: &mut Vec<u8>, media_time: u32) {
    write_box(out, b"edts", |out| {
        write_full_box(out, b"elst", 0, 0, |out| {
            put_u32(out, 1);
            put_u32(out, 0); // duration: all that follows
            put_u32(out, media_time);
            put_u32(out, 0x1_0000); // rate 1.0
        });
    });
}

fn write_audio_trak(out: &mut Vec<u8>, config: &AudioConfig) {
    write_box(out, b"trak", |out| {
        write_tkhd(out, TrackKind::Audio, AUDIO_TRACK, None, (0, 0));
        write_mdia(out, TrackKind::Audio, config.sample_rate, None, |out| {
            write_stbl(out, |out| write_audio_entry(out, config));
        });
    });
}

/// A sample table with one sample entry and no sample: those are in the fragments.
fn write_stbl(out: &mut Vec<u8>, entry: impl FnOnce(&mut Vec<u8>)) {
    write_box(out, b"stbl", |out| {
        write_full_box(out, b"stsd", 0, 0, |out| {
            put_u32(out, 1);
            entry(out);
        });
        write_full_box(out, b"stts", 0, 0, |out| put_u32(out, 0));
        write_full_box(out, b"stsc", 0, 0, |out| put_u32(out, 0));
        write_full_box(out, b"stsz", 0, 0, |out| put_zeros(out, 8));
        write_full_box(out, b"stco", 0, 0, |out| put_u32(out, 0));
    });
}

fn write_visual_entry(out: &mut Vec<u8>, config: &VideoConfig) {
    let (entry, record): (&[u8; 4], &[u8; 4]) = match config.codec {
        VideoCodec::Avc => (b"avc1", b"avcC"),
        VideoCodec::Hevc => (b"hvc1", b"hvcC"),
        VideoCodec::Av1 => (b"av01", b"av1C"),
    };
    write_box(out, entry, |out| {
        put_zeros(out, 6);
        put_u16(out, 1); // data reference
        put_zeros(out, 16);
        put_u16(out, config.width);
        put_u16(out, config.height);
        put_u32(out, 0x48_0000); // 72 dpi across
        put_u32(out, 0x48_0000); // and down
        put_u32(out, 0);
        put_u16(out, 1); // frames per sample
        put_zeros(out, 32); // compressor name
        put_u16(out, 0x18); // depth
        put_u16(out, 0xffff);
        write_box(out, record, |out| out.extend_from_slice(&config.record));
    });
}

fn write_audio_entry(out: &mut Vec<u8>, config: &AudioConfig) {
    let entry: &[u8; 4] = match config.codec {
        AudioCodec::Opus => b"Opus",
        AudioCodec::Aac | AudioCodec::Mp3 => b"mp4a",
    };
    // 16.16; a rate that does not fit is left to the decoder configuration, as for 96 kHz AAC.
    let rate = u16::try_from(config.sample_rate).unwrap_or(0);
    write_box(out, entry, |out| {
        put_zeros(out, 6);
        put_u16(out, 1); // data reference
        put_zeros(out, 8);
        put_u16(out, u16::from(config.channels));
        put_u16(out, 16); // bits per sample
        put_zeros(out, 4);
        put_u32(out, u32::from(rate) << 16);
        match config.codec {
            AudioCodec::Opus => write_dops(out, config),
            AudioCodec::Aac => write_esds(out, 0x40, Some(&config.record)),
            AudioCodec::Mp3 => write_esds(out, mp3_object_type(config), None),
        }
    });
}

/// MPEG-1 audio (0x6B) has the three full rates, MPEG-2 (0x69) the halved ones (ISO/IEC 14496-1 table 5).
fn mp3_object_type(config: &AudioConfig) -> u8 {
    if config.sample_rate >= 32_000 {
        0x6b
    } else {
        0x69
    }
}

/// Writes `dOps` (Opus in ISOBMFF §4.3.2), channel mapping family 0.
fn write_dops(out: &mut Vec<u8>, config: &AudioConfig) {
    let head = config.opus_head();
    write_box(out, b"dOps", |out| {
        out.push(0);
        out.push(head.map_or(config.channels, |head| head.channels));
        put_u16(out, head.map_or(0, |head| head.pre_skip));
        put_u32(
            out,
            head.map_or(config.sample_rate, |head| head.input_sample_rate),
        );
        put_u16(out, head.map_or(0, |head| head.output_gain).cast_unsigned());
        out.push(0);
    });
}

/// Writes the elementary stream descriptor (ISO/IEC 14496-1 §7.2.6): ES, decoder configuration, decoder specific
/// information, SL.
fn write_esds(out: &mut Vec<u8>, object_type: u8, specific: Option<&[u8]>) {
    let mut decoder = vec![object_type, 0x15]; // audio stream
    decoder.extend_from_slice(&[0; 3 + 4 + 4]); // buffer size and bitrates: not said
    if let Some(specific) = specific {
        put_descriptor(&mut decoder, 0x05, specific);
    }
    let mut stream = vec![0, 0, 0]; // ES id as the file format demands, no flags
    put_descriptor(&mut stream, 0x04, &decoder);
    put_descriptor(&mut stream, 0x06, &[2]);
    write_full_box(out, b"esds", 0, 0, |out| put_descriptor(out, 0x03, &stream));
}

/// A descriptor with its length in four groups of seven bits.
fn put_descriptor(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    let len = body.len();
    out.push(tag);
    for shift in [21, 14, 7] {
        out.push((len >> shift) as u8 & 0x7f | 0x80);
    }
    out.push(len as u8 & 0x7f);
    out.extend_from_slice(body);
}
