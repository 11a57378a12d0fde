//! Writes the MP4 headers that init sections and recordings share (`mvhd`, `tkhd`, `mdia`; ISO/IEC 14496-12 §8.2 to §8.4).
//!
//! A duration of `None` is not said: the fragments have it.

use super::{
    boxes::{put_u16, put_u32, put_u64, put_zeros, write_box, write_full_box},
    record::TrackKind,
};

/// 16.16 identity matrix of `mvhd` and `tkhd`.
const IDENTITY: [u32; 9] = [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];
/// `track_enabled`, `track_in_movie`.
const TRACK_ACTIVE: u32 = 3;
/// ISO 639-2 "und", packed in three times five bits.
const LANGUAGE_UNDETERMINED: u16 = 0x55c4;

/// Writes the movie header.
pub(super) fn write_mvhd(
    out: &mut Vec<u8>,
    timescale: u32,
    duration: Option<u64>,
    next_track: u32,
) {
    write_full_box(out, b"mvhd", version(duration), 0, |out| {
        put_times(out, duration);
        put_u32(out, timescale);
        put_duration(out, duration);
        put_u32(out, 0x1_0000); // rate 1.0
        put_u16(out, 0x100); // volume 1.0
        put_zeros(out, 10);
        IDENTITY.iter().for_each(|&value| put_u32(out, value));
        put_zeros(out, 24);
        put_u32(out, next_track);
    });
}

/// Writes the track header; `size` is 16.16, and 0 for audio.
pub(super) fn write_tkhd(
    out: &mut Vec<u8>,
    kind: TrackKind,
    track: u32,
    duration: Option<u64>,
    size: (u32, u32),
) {
    let volume = match kind {
        TrackKind::Video => 0,
        TrackKind::Audio => 0x100,
    };
    write_full_box(out, b"tkhd", version(duration), TRACK_ACTIVE, |out| {
        put_times(out, duration);
        put_u32(out, track);
        put_zeros(out, 4);
        put_duration(out, duration);
        put_zeros(out, 8 + 4); // reserved, layer and group
        put_u16(out, volume);
        put_zeros(out, 2);
        IDENTITY.iter().for_each(|&value| put_u32(out, value));
        put_u32(out, size.0);
        put_u32(out, size.1);
    });
}

/// Writes the media of a track around its sample table. The data are in the same file.
pub(super) fn write_mdia(
    out: &mut Vec<u8>,
    kind: TrackKind,
    timescale: u32,
    duration: Option<u64>,
    stbl: impl FnOnce(&mut Vec<u8>),
) {
    let (handler, name, header, flags, header_bytes) = match kind {
        TrackKind::Video => (b"vide", b"video\0", b"vmhd", 1, 8),
        TrackKind::Audio => (b"soun", b"audio\0", b"smhd", 0, 4),
    };
    write_box(out, b"mdia", |out| {
        write_full_box(out, b"mdhd", version(duration), 0, |out| {
            put_times(out, duration);
            put_u32(out, timescale);
            put_duration(out, duration);
            put_u16(out, LANGUAGE_UNDETERMINED);
            put_u16(out, 0);
        });
        write_full_box(out, b"hdlr", 0, 0, |out| {
            put_u32(out, 0);
            out.extend_from_slice(handler);
            put_zeros(out, 12);
            out.extend_from_slice(name);
        });
        write_box(out, b"minf", |out| {
            write_full_box(out, header, 0, flags, |out| put_zeros(out, header_bytes));
            write_box(out, b"dinf", |out| {
                write_full_box(out, b"dref", 0, 0, |out| {
                    put_u32(out, 1);
                    write_full_box(out, b"url ", 0, 1, |_| {});
                });
            });
            stbl(out);
        });
    });
}

/// Version of a box: times and durations have 64 bits in version 1.
fn version(duration: Option<u64>) -> u8 {
    u8::from(duration.is_some())
}

/// Writes times of creation and modification, which are not said.
fn put_times(out: &mut Vec<u8>, duration: Option<u64>) {
    put_zeros(out, if duration.is_some() { 16 } else { 8 });
}

fn put_duration(out: &mut Vec<u8>, duration: Option<u64>) {
    match duration {
        Some(duration) => put_u64(out, duration),
        None => put_u32(out, 0),
    }
}
