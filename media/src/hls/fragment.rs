//! Writes movie fragments of live and vod (`moof`, `mdat`; ISO/IEC 14496-12 §8.8). One allocation and one copy of the
//! payload for each part.
//!
//! Sizes are known before the first byte is written, so the buffer is reserved once and never grows. Offsets count
//! from the start of the `moof` (`default-base-is-moof`), so that parts can be concatenated to segments as they are.

use bytes::Bytes;

use super::boxes::{put_u32, put_u64, write_box, write_full_box};

pub(super) const VIDEO_TRACK: u32 = 1;
pub(super) const AUDIO_TRACK: u32 = 2;

/// `sample_depends_on = 2`: a frame that needs no other.
const FLAGS_SYNC: u32 = 0x0200_0000;
/// `sample_depends_on = 1`, `sample_is_non_sync_sample`.
const FLAGS_DEPENDENT: u32 = 0x0101_0000;

const TFHD_DEFAULT_SAMPLE_FLAGS: u32 = 0x00_0020;
const TFHD_DEFAULT_BASE_IS_MOOF: u32 = 0x02_0000;
const TRUN_DATA_OFFSET: u32 = 0x00_0001;
const TRUN_DURATION: u32 = 0x00_0100;
const TRUN_SIZE: u32 = 0x00_0200;
const TRUN_FLAGS: u32 = 0x00_0400;
const TRUN_COMPOSITION_OFFSET: u32 = 0x00_0800;

const MOOF_BYTES: usize = 8 + 16;
/// `traf`, `tfhd`, `tfdt`, `trun` without its entries.
const VIDEO_TRAF_BYTES: usize = 8 + 16 + 20 + 20;
const AUDIO_TRAF_BYTES: usize = 8 + 20 + 20 + 20;
const VIDEO_ENTRY_BYTES: usize = 16;
const AUDIO_ENTRY_BYTES: usize = 8;
const MDAT_HEADER_BYTES: usize = 8;

/// A frame whose duration is known.
#[derive(Debug)]
pub(super) struct VideoSample {
    /// Decode time on the broadcast's timeline.
    pub(super) at_90k: i64,
    pub(super) duration_90k: u32,
    pub(super) cts_90k: i32,
    pub(super) key: bool,
    pub(super) data: Bytes,
}

/// An audio frame on its track's sample clock.
#[derive(Debug)]
pub(super) struct AudioSample {
    pub(super) start: u64,
    /// Duration in samples.
    pub(super) duration: u32,
    pub(super) data: Bytes,
}

/// Writes a fragment. A track without samples is left out.
pub(super) fn encode(sequence: u32, video: &[VideoSample], audio: &[AudioSample]) -> Bytes {
    let video_bytes: usize = video.iter().map(|sample| sample.data.len()).sum();
    let audio_bytes: usize = audio.iter().map(|sample| sample.data.len()).sum();
    let header_bytes = header_len(video.len(), audio.len());
    let total = header_bytes + video_bytes + audio_bytes;
    let mut out = Vec::with_capacity(total);

    write_box(&mut out, b"moof", |out| {
        write_full_box(out, b"mfhd", 0, 0, |out| put_u32(out, sequence));
        if !video.is_empty() {
            write_video_traf(out, video, header_bytes);
        }
        if !audio.is_empty() {
            write_audio_traf(out, audio, header_bytes + video_bytes);
        }
    });
    put_u32(
        &mut out,
        len_u32(MDAT_HEADER_BYTES + video_bytes + audio_bytes),
    );
    out.extend_from_slice(b"mdat");
    debug_assert_eq!(out.len(), header_bytes);

    for sample in video {
        out.extend_from_slice(&sample.data);
    }
    for sample in audio {
        out.extend_from_slice(&sample.data);
    }
    debug_assert_eq!(out.len(), total);
    Bytes::from(out)
}

/// Bytes of everything before the payload.
fn header_len(video_frames: usize, audio_frames: usize) -> usize {
    let video = if video_frames == 0 {
        0
    } else {
        VIDEO_TRAF_BYTES + video_frames * VIDEO_ENTRY_BYTES
    };
    let audio = if audio_frames == 0 {
        0
    } else {
        AUDIO_TRAF_BYTES + audio_frames * AUDIO_ENTRY_BYTES
    };
    MOOF_BYTES + video + audio + MDAT_HEADER_BYTES
}

fn write_video_traf(out: &mut Vec<u8>, samples: &[VideoSample], data_offset: usize) {
    let decode_time = u64::try_from(samples[0].at_90k).expect("the timeline starts at 0");
    write_box(out, b"traf", |out| {
        write_full_box(out, b"tfhd", 0, TFHD_DEFAULT_BASE_IS_MOOF, |out| {
            put_u32(out, VIDEO_TRACK)
        });
        write_full_box(out, b"tfdt", 1, 0, |out| put_u64(out, decode_time));
        let flags =
            TRUN_DATA_OFFSET | TRUN_DURATION | TRUN_SIZE | TRUN_FLAGS | TRUN_COMPOSITION_OFFSET;
        // Version 1: composition offsets are signed.
        write_full_box(out, b"trun", 1, flags, |out| {
            put_u32(out, len_u32(samples.len()));
            put_u32(out, len_u32(data_offset));
            for sample in samples {
                put_u32(out, sample.duration_90k);
                put_u32(out, len_u32(sample.data.len()));
                put_u32(
                    out,
                    if sample.key {
                        FLAGS_SYNC
                    } else {
                        FLAGS_DEPENDENT
                    },
                );
                out.extend_from_slice(&sample.cts_90k.to_be_bytes());
            }
        });
    });
}

fn write_audio_traf(out: &mut Vec<u8>, samples: &[AudioSample], data_offset: usize) {
    write_box(out, b"traf", |out| {
        let flags = TFHD_DEFAULT_BASE_IS_MOOF | TFHD_DEFAULT_SAMPLE_FLAGS;
        write_full_box(out, b"tfhd", 0, flags, |out| {
            put_u32(out, AUDIO_TRACK);
            put_u32(out, FLAGS_SYNC);
        });
        write_full_box(out, b"tfdt", 1, 0, |out| put_u64(out, samples[0].start));
        let flags = TRUN_DATA_OFFSET | TRUN_DURATION | TRUN_SIZE;
        write_full_box(out, b"trun", 0, flags, |out| {
            put_u32(out, len_u32(samples.len()));
            put_u32(out, len_u32(data_offset));
            for sample in samples {
                put_u32(out, sample.duration);
                put_u32(out, len_u32(sample.data.len()));
            }
        });
    });
}

fn len_u32(len: usize) -> u32 {
    u32::try_from(len).expect("the packager bounds a part far below 4 GiB")
}

#[cfg(test)]
mod tests {
    use mp4_atom::{DecodeMaybe, Moof, TrunSamples};

    use super::*;

    fn video_frame(at_90k: i64, cts_90k: i32, key: bool, len: usize) -> VideoSample {
        VideoSample {
            at_90k,
            duration_90k: 3_000,
            cts_90k,
            key,
            data: vec![7; len].into(),
        }
    }

    fn frame(start: u64, len: usize) -> AudioSample {
        AudioSample {
            start,
            duration: 1_024,
            data: vec![9; len].into(),
        }
    }

    #[test]
    fn an_independent_reader_finds_every_sample() {
        let video = [
            video_frame(900_000, 6_000, true, 100),
            video_frame(903_000, -3_000, false, 50),
        ];
        let audio = [frame(480_000, 10), frame(481_024, 11), frame(482_048, 12)];
        let fragment = encode(17, &video, &audio);

        let moof = Moof::decode_maybe(&mut fragment.as_ref()).unwrap().unwrap();
        assert_eq!(moof.mfhd.sequence_number, 17);
        assert_eq!(
            moof.traf[0].tfdt.as_ref().unwrap().base_media_decode_time,
            900_000
        );
        assert_eq!(
            moof.traf[1].tfdt.as_ref().unwrap().base_media_decode_time,
            480_000
        );
        let TrunSamples::Explicit(video_frames) = &moof.traf[0].trun[0].samples else {
            panic!("entries are written out")
        };
        let cts: Vec<_> = video_frames.iter().map(|entry| entry.cts).collect();
        assert_eq!(cts, [Some(6_000), Some(-3_000)]);
        for (traf, byte, expected) in [(0, 7, 150), (1, 9, 33)] {
            let offset = moof.traf[traf].trun[0].data_offset.unwrap() as usize;
            assert!(
                fragment[offset..offset + expected]
                    .iter()
                    .all(|&b| b == byte)
            );
        }
    }

    #[test]
    fn a_track_without_samples_is_left_out() {
        for (video, audio, tracks) in [
            (vec![video_frame(0, 0, true, 5)], vec![], vec![VIDEO_TRACK]),
            (vec![], vec![frame(0, 5)], vec![AUDIO_TRACK]),
        ] {
            let fragment = encode(1, &video, &audio);
            let moof = Moof::decode_maybe(&mut fragment.as_ref()).unwrap().unwrap();
            let found: Vec<_> = moof.traf.iter().map(|traf| traf.tfhd.track_id).collect();
            assert_eq!(found, tracks);
            assert_eq!(fragment.len(), header_len(video.len(), audio.len()) + 5);
        }
    }
}
