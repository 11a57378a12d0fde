//! Movies of live's own init sections and fragments, read back by another implementation.

use std::sync::Arc;

use bytes::Bytes;
use mp4_atom::{DecodeMaybe as _, Ftyp, Moov};

use super::{
    super::{
        Output, Packager, PackagerSettings,
        tests::encoder::{audio_config, video_config},
    },
    *,
};
use crate::{
    codec::{AudioConfig, VideoConfig},
    unit::{AudioUnit, Unit, VideoUnit},
};

/// Files of a packager: init sections by number, and each fragment with the number of its own.
#[derive(Default)]
struct Made {
    inits: Vec<Bytes>,
    fragments: Vec<(u32, Bytes)>,
    open: u32,
}

impl Made {
    fn take(&mut self, outputs: &mut Vec<Output>) {
        for output in outputs.drain(..) {
            match output {
                Output::Init(init) => self.inits.push(init.data),
                Output::Part(part) => {
                    if let Some(start) = part.segment {
                        self.open = start.init;
                    }
                    self.fragments.push((self.open, part.data));
                }
                Output::SegmentEnd { .. } => {}
            }
        }
    }

    fn movie(&self) -> MovieHeader {
        let mut movie = Movie::new();
        let mut open = None;
        for (init, fragment) in &self.fragments {
            if open != Some(*init) {
                let described = Described::parse(&self.inits[*init as usize]).unwrap();
                movie.describe(&described);
                open = Some(*init);
            }
            let (moof, mdat) = split(fragment);
            let parsed = Fragment::parse(moof, mdat.len() as u64 - 8).unwrap();
            movie.push(&parsed, moof.len() as u64, mdat.len() as u64 - 8);
        }
        movie.finish()
    }
}

fn split(fragment: &[u8]) -> (&[u8], &[u8]) {
    let moof = BoxHeader::parse(fragment).unwrap();
    fragment.split_at(moof.size as usize)
}

fn packager() -> Packager {
    let settings = PackagerSettings {
        part_target: std::time::Duration::from_millis(200),
        segment_min: std::time::Duration::from_millis(1_900),
        target_duration_s: 4,
        track_wait: std::time::Duration::from_secs(1),
    };
    Packager::new(settings, None)
}

fn publish(
    packager: &mut Packager,
    made: &mut Made,
    config: &Arc<VideoConfig>,
    audio: &Arc<AudioConfig>,
    video_frames: i64,
) {
    let mut out = Vec::new();
    packager.begin_session(&mut out);
    packager.push(Unit::VideoConfig(config.clone()), 0, &mut out);
    packager.push(Unit::AudioConfig(audio.clone()), 0, &mut out);
    for number in 0..video_frames {
        let video_frame = VideoUnit {
            dts_90k: number * 3_000,
            cts_90k: 3_000,
            key: number % 30 == 0,
            data: Bytes::from(vec![number as u8; 50 + number as usize]),
        };
        packager.push(Unit::Video(video_frame), number * 33, &mut out);
        for frame in number * 47 / 30..(number + 1) * 47 / 30 {
            let frame = AudioUnit {
                pts_90k: frame * 1_920,
                data: Bytes::from(vec![0xa5; 20]),
            };
            packager.push(Unit::Audio(frame), number * 33, &mut out);
        }
    }
    packager.end_session(&mut out);
    made.take(&mut out);
}

fn read(header: &MovieHeader) -> Moov {
    let mut rest = header.bytes.as_slice();
    Ftyp::decode_maybe(&mut rest).unwrap().unwrap();
    Moov::decode_maybe(&mut rest).unwrap().unwrap()
}

#[test]
fn another_reader_finds_every_sample_over_two_sessions() {
    let (video, audio) = (video_config(None, 40), audio_config(48_000));
    let (mut packager, mut made) = (packager(), Made::default());
    publish(&mut packager, &mut made, &video, &audio, 75);
    publish(&mut packager, &mut made, &video, &audio, 45);
    let header = made.movie();
    let moov = read(&header);
    assert_eq!(moov.trak.len(), 2);
    let stbl = &moov.trak[0].mdia.minf.stbl;
    let sizes = match &stbl.stsz.samples {
        mp4_atom::StszSamples::Different { sizes } => sizes.clone(),
        other => panic!("sizes are listed: {other:?}"),
    };
    let expected: Vec<u32> = (0..75).chain(0..45).map(|number| 50 + number).collect();
    assert_eq!(sizes, expected);
    let ticks: u64 = stbl
        .stts
        .entries
        .iter()
        .map(|run| u64::from(run.sample_count) * u64::from(run.sample_delta))
        .sum();
    assert!((360_000..363_000).contains(&ticks), "{ticks}");
    assert_eq!(stbl.stss.as_ref().unwrap().entries, [1, 31, 61, 76, 106]);
    assert_eq!(stbl.stsd.codecs.len(), 1, "the same parameter sets");
    let payload: u64 = made
        .fragments
        .iter()
        .map(|(_, fragment)| split(fragment).1.len() as u64 - 8)
        .sum();
    assert_eq!(header.payload_bytes, payload);
    assert!((4_000..4_050).contains(&header.duration_ms));
    // The bytes of the first and of the last frame are where the tables point.
    let file: Vec<u8> = header
        .bytes
        .iter()
        .copied()
        .chain(
            made.fragments
                .iter()
                .flat_map(|(_, fragment)| split(fragment).1[8..].to_vec()),
        )
        .collect();
    let offsets = &stbl.co64.as_ref().unwrap().entries;
    let first = offsets[0] as usize;
    assert!(file[first..first + 50].iter().all(|&byte| byte == 0));
    assert_eq!(file.len() as u64, header.file_bytes());
}

#[test]
fn a_session_is_shown_after_the_one_before_it() {
    let described = {
        let (mut packager, mut made) = (packager(), Made::default());
        publish(
            &mut packager,
            &mut made,
            &video_config(None, 40),
            &audio_config(48_000),
            30,
        );
        Described::parse(&made.inits[0]).unwrap()
    };
    let run = |start: u64, cts: &[i32]| Run {
        track: 1,
        start,
        data_offset: 108,
        samples: cts
            .iter()
            .map(|cts| Sample {
                duration: 3_000,
                size: 1,
                cts: *cts,
                key: false,
            })
            .collect(),
    };
    let mut movie = Movie::new();
    movie.describe(&described);
    // The encoder was killed before the frames that are shown between these.
    let cut_off = run(0, &[6_000, 12_000]);
    movie.push(
        &Fragment {
            runs: vec![cut_off],
        },
        100,
        2,
    );
    movie.join();
    let next = run(6_000, &[6_000, 6_000]);
    movie.push(&Fragment { runs: vec![next] }, 100, 2);
    let moov = read(&movie.finish());
    let stbl = &moov.trak[0].mdia.minf.stbl;
    // 0, 3000, then 12000 in place of 6000: shown at 18000, when the last one is over.
    let durations: Vec<(u32, u32)> = stbl
        .stts
        .entries
        .iter()
        .map(|run| (run.sample_count, run.sample_delta))
        .collect();
    assert_eq!(durations, [(1, 3_000), (1, 9_000), (2, 3_000)]);
    // From the first frame that is shown to the end of the last one: a reader cuts off the rest.
    let edits = moov.trak[0].edts.as_ref().unwrap().elst.as_ref().unwrap();
    let edits: Vec<(u64, Option<u64>)> = edits
        .entries
        .iter()
        .map(|edit| (edit.segment_duration, edit.media_time))
        .collect();
    assert_eq!(edits, [(18_000, Some(6_000))]);
    assert_eq!(moov.mvhd.duration, 18_000);
}

#[test]
fn new_parameter_sets_are_further_sample_entries() {
    let audio = audio_config(48_000);
    let (mut packager, mut made) = (packager(), Made::default());
    for version in [40, 41, 40] {
        publish(
            &mut packager,
            &mut made,
            &video_config(None, version),
            &audio,
            30,
        );
    }
    let moov = read(&made.movie());
    let stbl = &moov.trak[0].mdia.minf.stbl;
    assert_eq!(stbl.stsd.codecs.len(), 2);
    let entries: Vec<u32> = stbl
        .stsc
        .entries
        .iter()
        .map(|run| run.sample_description_index)
        .collect();
    let mut changes = entries.clone();
    changes.dedup();
    assert_eq!(changes, [1, 2, 1], "{entries:?}");
}

#[test]
fn what_is_spoiled_is_refused_and_never_read_beyond() {
    let (video, audio) = (video_config(None, 40), audio_config(48_000));
    let (mut packager, mut made) = (packager(), Made::default());
    publish(&mut packager, &mut made, &video, &audio, 60);
    let (moof, mdat) = split(&made.fragments[0].1);
    let payload = mdat.len() as u64 - 8;
    assert!(Fragment::parse(moof, payload - 1).is_err(), "too short");
    for length in 0..moof.len() {
        assert!(Fragment::parse(&moof[..length], payload).is_err());
    }
    for at in 0..moof.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut spoiled = moof.to_vec();
            spoiled[at] ^= flip;
            if let Ok(fragment) = Fragment::parse(&spoiled, payload) {
                let inside =
                    |run: &Run| run.data_offset + run.bytes() <= moof.len() as u64 + 8 + payload;
                assert!(fragment.runs.iter().all(inside));
            }
        }
    }
    let init = &made.inits[0];
    for length in 0..init.len() {
        let _ = Described::parse(&init[..length]);
    }
}

#[test]
fn only_codecs_divide_a_recording() {
    for (one, other, same) in [
        ("avc1.64001f,mp4a.40.2", "avc1.42c01e,mp4a.40.5", true),
        ("avc1.64001f,mp4a.40.2", "avc1.64001f,mp4a.6B", false),
        ("avc1.64001f,mp4a.40.2", "hvc1.1.6.L93.B0,mp4a.40.2", false),
        ("avc1.64001f", "avc1.64001f,mp4a.40.2", false),
        ("mp4a.40.2", "opus", false),
    ] {
        assert_eq!(signature(one) == signature(other), same, "{one} {other}");
    }
}

#[test]
fn the_event_playlist_only_grows() {
    let segment = |msn, init, discontinuity| SegmentEntry {
        msn,
        init,
        discontinuity,
        program_date_time_ms: 1_000 * msn as i64,
        start_90k: 0,
        duration_90k: 180_000,
        len: 10,
    };
    let mut playlist = EventPlaylist::new("b1".into(), 4);
    playlist.push(&segment(1, 0, false));
    let before = playlist.render(false);
    playlist.push(&segment(34, 1, true));
    let after = playlist.render(false);
    assert!(after.starts_with(&before));
    let text = String::from_utf8(playlist.render(true).to_vec()).unwrap();
    assert!(text.contains("#EXT-X-PLAYLIST-TYPE:EVENT\n"));
    assert!(text.contains("#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"b1/init1.mp4\"\n"));
    assert!(text.ends_with("b1/34.m4s\n#EXT-X-ENDLIST\n"), "{text}");
}

#[test]
fn damaged_lines_of_an_index_are_passed_over() {
    let mut index = Vec::new();
    let entries = [
        Entry::Stopped {
            reason: "the disk is full".into(),
        },
        Entry::Ended,
    ];
    entries.iter().for_each(|entry| encode(entry, &mut index));
    assert_eq!(decode(&index).collect::<Vec<_>>(), entries);
    assert_eq!(decode(&index[..index.len() - 1]).count(), 1);
    index[20] ^= 1;
    assert_eq!(decode(&index).collect::<Vec<_>>(), entries[1..]);
}
