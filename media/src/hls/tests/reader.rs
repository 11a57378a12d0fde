//! Reads a packager's outputs back by another implementation's boxes (mp4-atom), and checks what must hold always.

use mp4_atom::{DecodeMaybe, Moof, TrunSamples};

use super::super::{Output, Part};

/// A sample as a player would see it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    /// In the track's timescale.
    pub(super) dts: u64,
    pub(super) duration: u32,
    pub(super) cts: i64,
    pub(super) key: bool,
    pub(super) data: Vec<u8>,
}

/// A part with its samples.
#[derive(Clone, Debug)]
pub(super) struct ReadPart {
    pub(super) part: Part,
    pub(super) video: Vec<Sample>,
    pub(super) audio: Vec<Sample>,
}

/// A segment from its first part to its end.
#[derive(Clone, Debug)]
pub(super) struct ReadSegment {
    pub(super) parts: Vec<ReadPart>,
    pub(super) ended: bool,
}

impl ReadSegment {
    pub(super) fn duration_s(&self) -> f64 {
        let ticks: u64 = self
            .parts
            .iter()
            .map(|part| u64::from(part.part.duration_90k))
            .sum();
        ticks as f64 / 90_000.0
    }

    pub(super) fn discontinuity(&self) -> bool {
        self.parts[0].part.segment.unwrap().discontinuity
    }

    pub(super) fn starts_with_key(&self) -> bool {
        self.parts[0].part.independent
    }

    pub(super) fn init(&self) -> u32 {
        self.parts[0].part.segment.unwrap().init
    }
}

fn read_part(part: &Part) -> ReadPart {
    let data = part.data.as_ref();
    let moof = Moof::decode_maybe(&mut &data[..]).unwrap().unwrap();
    let mut read = ReadPart {
        part: part.clone(),
        video: Vec::new(),
        audio: Vec::new(),
    };
    let mut end_of_payload = 0;
    for traf in &moof.traf {
        let mut dts = traf.tfdt.as_ref().unwrap().base_media_decode_time;
        let run = &traf.trun[0];
        let mut offset = run.data_offset.unwrap() as usize;
        let TrunSamples::Explicit(entries) = &run.samples else {
            panic!("no entries")
        };
        let samples = if traf.tfhd.track_id == 1 {
            &mut read.video
        } else {
            &mut read.audio
        };
        for entry in entries {
            let size = entry.size.unwrap() as usize;
            samples.push(Sample {
                dts,
                duration: entry.duration.unwrap(),
                cts: entry.cts.unwrap_or(0),
                key: entry.flags == Some(0x0200_0000),
                data: data[offset..offset + size].to_vec(),
            });
            dts += u64::from(entry.duration.unwrap());
            offset += size;
        }
        end_of_payload = offset;
    }
    assert_eq!(
        end_of_payload,
        data.len(),
        "the payload is exactly the samples'"
    );
    assert!(
        !read.video.is_empty() || !read.audio.is_empty(),
        "an empty part"
    );
    read
}

/// Groups parts to segments; checks numbering.
pub(super) fn segments(outputs: &[Output]) -> Vec<ReadSegment> {
    let mut segments: Vec<ReadSegment> = Vec::new();
    let mut inits = Vec::new();
    for output in outputs {
        match output {
            Output::Init(init) => inits.push(init.number),
            Output::Part(part) => {
                assert_eq!(part.segment.is_some(), part.index == 0);
                if part.index == 0 {
                    assert!(
                        segments.last().is_none_or(|last| last.ended),
                        "one open segment"
                    );
                    assert!(
                        inits.contains(&part.segment.unwrap().init),
                        "init comes first"
                    );
                    segments.push(ReadSegment {
                        parts: Vec::new(),
                        ended: false,
                    });
                }
                let segment = segments.last_mut().unwrap();
                assert!(!segment.ended);
                assert_eq!(part.index as usize, segment.parts.len());
                segment.parts.push(read_part(part));
            }
            Output::SegmentEnd { msn } => {
                let segment = segments.last_mut().unwrap();
                assert!(!std::mem::replace(&mut segment.ended, true));
                assert_eq!(segment.parts[0].part.msn, *msn);
            }
        }
    }
    let numbers: Vec<u64> = segments
        .iter()
        .map(|segment| segment.parts[0].part.msn)
        .collect();
    assert!(
        numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "numbers: {numbers:?}"
    );
    segments
}

/// All samples of a track in order.
pub(super) fn video(segments: &[ReadSegment]) -> Vec<Sample> {
    let parts = segments.iter().flat_map(|segment| &segment.parts);
    parts.flat_map(|part| part.video.clone()).collect()
}

pub(super) fn audio(segments: &[ReadSegment]) -> Vec<Sample> {
    let parts = segments.iter().flat_map(|segment| &segment.parts);
    parts.flat_map(|part| part.audio.clone()).collect()
}

/// Checks the invariants of every stream, however broken its publisher: nothing overlaps or goes back, targets are
/// kept, part times are gapless up to jumps.
pub(super) fn check_always(segments: &[ReadSegment], target_duration_s: u32) {
    for track in [video(segments), audio(segments)] {
        for pair in track.windows(2) {
            assert!(
                pair[0].dts + u64::from(pair[0].duration) <= pair[1].dts,
                "overlap: {pair:?}"
            );
        }
    }
    let parts: Vec<&ReadPart> = segments.iter().flat_map(|segment| &segment.parts).collect();
    for pair in parts.windows(2) {
        let end = pair[0].part.start_90k + i64::from(pair[0].part.duration_90k);
        assert!(end <= pair[1].part.start_90k, "parts overlap");
        assert_eq!(pair[0].part.part_target_90k, pair[1].part.part_target_90k);
    }
    for part in &parts {
        assert!(part.part.duration_90k > 0);
        let video_frames = part.video.len();
        let long = part.part.duration_90k > part.part.part_target_90k;
        assert!(
            !long || video_frames == 1 || video_frames == 0,
            "{video_frames} frames in a long part"
        );
        let independent = part
            .video
            .first()
            .map_or(part.part.independent, |first| first.key);
        assert_eq!(part.part.independent, independent);
    }
    for segment in segments {
        let rounded = segment.duration_s().round();
        assert!(
            rounded <= f64::from(target_duration_s),
            "EXTINF {}",
            segment.duration_s()
        );
    }
}

/// For regular streams: every part but a segment's last is at least 85 % of the target, none above it.
pub(super) fn check_full_parts(segments: &[ReadSegment]) {
    for segment in segments {
        let (last, full) = segment.parts.split_last().unwrap();
        assert!(last.part.duration_90k <= last.part.part_target_90k);
        for part in full {
            let (duration, target) = (part.part.duration_90k, part.part.part_target_90k);
            assert!(duration <= target, "{duration} > {target}");
            assert!(
                f64::from(duration) >= 0.85 * f64::from(target),
                "{duration} short of {target}"
            );
        }
    }
}
