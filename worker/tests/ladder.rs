//! Ladders of tiny clips: what is in the files, and where it is cut.
#![cfg(feature = "codecs")]

#[path = "ladder/bench.rs"]
mod bench;
#[path = "av/clips.rs"]
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod clips;

use std::{
    fs,
    path::{Path, PathBuf},
};

use sluice_media::{
    av::ladder::Profile,
    task::{FailureCode, Limits},
};

use bench::{entry, ffmpeg, heights, make, packets, plan};
use clips::{can_be_made, clip};

/// 320×180, 25 frames a second, 7 s.
const VIDEO: &str = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=7";
const AUDIO: &str = "-f lavfi -i sine=frequency=440:duration=7:sample_rate=44100";
const H264: &str = "-c:v libx264 -preset ultrafast -pix_fmt yuv420p";
/// A frame of 25 a second.
const FRAME_S: f64 = 0.04;

#[test]
fn renditions_are_whole_and_cut_at_the_same_frames() {
    if !can_be_made() {
        return;
    }
    clips::start();
    let clip = clip(
        "ladder.mp4",
        &format!("{VIDEO} {AUDIO} {H264} -bf 2 -c:a libmp3lame"),
    );
    let ladder = plan(&clip, &heights(&[90, 120, 180]));
    let run = make("ladder", &clip, &ladder);
    let done = run.result.as_ref().expect("it works");
    assert_eq!(done.outputs.len(), 4);

    let times = run.renditions[0].times();
    assert_eq!(times.len(), 4);
    for (made, rung) in run.renditions.iter().zip(&ladder.video) {
        assert_eq!(made.times(), times);
        let (init, info, copied) = made.init.as_ref().expect("an init section");
        assert!(!copied);
        assert_eq!(
            info.resolution,
            Some((rung.width as u16, rung.height as u16))
        );
        assert_eq!(info.frame_rate, Some(25.0));
        assert_eq!(entry(&made.path, "width"), rung.width.to_string());
        assert_eq!(entry(&made.path, "height"), rung.height.to_string());

        let mut offset = *init;
        let packets = packets(&made.path);
        for (number, segment) in made.segments.iter().enumerate() {
            assert_eq!((segment.number as usize, segment.offset), (number, offset));
            offset += segment.length;
            let first = packets.iter().find(|packet| packet.offset > segment.offset);
            let first = first.expect("a frame");
            assert!(first.key && (first.pts_s - segment.start_90k as f64 / 90_000.0).abs() < 1e-4);
            assert!(first.offset < segment.offset + segment.key_length);
        }
        assert_eq!(offset, fs::metadata(&made.path).unwrap().len());
        let keys = packets.iter().filter(|packet| packet.key).count();
        assert_eq!((packets.len(), keys), (175, 4));
    }
    let audio = &run.renditions[3];
    for (segment, (start, _)) in audio.segments.iter().zip(&times) {
        assert!((segment.start_90k - start).abs() <= 1_100, "{segment:?}");
    }
    let heard: f64 = packets(&audio.path)
        .iter()
        .map(|packet| packet.duration_s)
        .sum();
    assert!((heard - 7.0).abs() < 0.05, "{heard}");
    assert!(run.shares.is_sorted() && run.shares.iter().all(|share| (0.0..=1.0).contains(share)));
}

/// Black and silent until 3.0 s, then white and loud.
const FLASH: &str = "-f lavfi -i color=black:size=160x90:rate=25:duration=5,\
    drawbox=enable='gte(t,3)':color=white:thickness=fill \
    -f lavfi -i aevalsrc=exprs='if(gte(t,3),0.5*sin(2000*PI*t),0)':sample_rate=48000:duration=5";

/// Returns the begin of the audio, in seconds.
fn heard_at(path: &Path) -> f64 {
    let samples = ffmpeg(path, "-f s16le -ac 1 -ar 48000");
    let loud = |sample: &[u8]| i16::from_le_bytes([sample[0], sample[1]]).abs() > 2_000;
    let first = samples.chunks_exact(2).position(loud);
    first.expect("audio") as f64 / 48_000.0
}

/// Number of the first bright frame.
fn seen_at(path: &Path) -> usize {
    let video_frames = ffmpeg(
        path,
        "-f rawvideo -pix_fmt gray -vf scale=1:1 -vsync passthrough",
    );
    let first = video_frames.iter().position(|luma| *luma > 128);
    first.expect("a bright frame")
}

#[test]
fn frames_and_audio_stay_together() {
    if !can_be_made() {
        return;
    }
    clips::start();
    for (name, audio, copied) in [
        ("flash-copied.mp4", "-c:a aac -ac 2", true),
        ("flash-aac-mono.mp4", "-c:a aac -ac 1", false),
        ("flash-opus.mkv", "-c:a libopus", false),
        ("flash-pcm.avi", "-c:a pcm_s16le", false),
        ("flash-late.ts", "-c:a mp2 -muxdelay 0", false),
    ] {
        let clip = clip(name, &format!("{FLASH} {H264} -g 50 -bf 2 {audio}"));
        let run = make(name, &clip, &plan(&clip, &heights(&[90])));
        run.result.as_ref().expect("it works");
        let [video_frames, heard] = run.renditions.as_slice() else {
            panic!("two renditions")
        };
        let init = heard.init.as_ref().expect("an init section");
        assert_eq!(init.2, copied, "{name}");
        let start: f64 = entry(&video_frames.path, "start_time").parse().unwrap();
        let seen = start + seen_at(&video_frames.path) as f64 * FRAME_S;
        let apart = seen - heard_at(&heard.path);
        assert!(apart.abs() < 0.025, "{name}: {apart} s");
    }
}

#[test]
fn a_resumed_ladder_is_the_same() {
    if !can_be_made() {
        return;
    }
    clips::start();
    for (name, rate) in [("resumed.mp4", "25"), ("resumed-ntsc.mkv", "30000/1001")] {
        let clip = clip(
            name,
            &format!(
                "-f lavfi -i testsrc2=size=320x180:rate={rate}:duration=7 {AUDIO} {H264} -bf 2 -c:a mp2"
            ),
        );
        let ladder = plan(&clip, &heights(&[90, 120]));
        let whole = make(name, &clip, &ladder);
        whole.result.as_ref().expect("it works");
        let frames = |run: &bench::Run| -> Vec<Vec<u8>> {
            let small = "-f rawvideo -pix_fmt gray -vf scale=32:18 -vsync passthrough";
            run.renditions[..2]
                .iter()
                .map(|made| ffmpeg(&made.path, small))
                .collect()
        };
        let before = frames(&whole);
        for number in [2, 0] {
            let resumed = bench::resume(&clip, &ladder, &whole, number);
            resumed.result.as_ref().expect("it continues");
            for (made, whole) in resumed.renditions[..2].iter().zip(&whole.renditions) {
                assert_eq!(made.init, None, "it is there");
                assert_eq!(made.times(), whole.times()[number as usize..]);
                assert_eq!(made.segments[0].number, number);
                assert_eq!(
                    made.segments[0].offset,
                    whole.segments[number as usize].offset
                );
            }
            assert_eq!(resumed.renditions[2].times(), whole.renditions[2].times());
            // Encoders that begin again choose other bits, but of the same frames.
            for (before, after) in before.iter().zip(frames(&resumed)) {
                assert_eq!(before.len(), after.len());
                for (video_frame, (one, other)) in
                    before.chunks(576).zip(after.chunks(576)).enumerate()
                {
                    let off: u32 = one
                        .iter()
                        .zip(other)
                        .map(|(a, b)| u32::from(a.abs_diff(*b)))
                        .sum();
                    assert!(
                        off < 576 * 12,
                        "{name} from {number}: frame {video_frame} differs by {off}"
                    );
                }
            }
        }
        let mut other = ladder.clone();
        other.video[0].width += 2;
        let refused = bench::resume(&clip, &other, &whole, 1);
        assert_eq!(refused.result.unwrap_err().code, FailureCode::Internal);
    }
}

/// Two dozen frames with an hour between two of them, in a Matroska file that says it lasts 4 s.
fn liar() -> PathBuf {
    let honest = clip(
        "honest.mkv",
        &format!(
            "-f lavfi -i testsrc2=size=64x36:rate=10:duration=4 -vf setpts='if(gt(N,20),PTS+3600/TB,PTS)' -vsync passthrough \
             {H264} -bf 0"
        ),
    );
    let mut bytes = fs::read(honest).unwrap();
    // The element and its length, RFC 9559 section 5.1.2.10; milliseconds.
    let duration = bytes
        .windows(3)
        .position(|at| at == [0x44, 0x89, 0x88])
        .unwrap();
    bytes[duration + 3..duration + 11].copy_from_slice(&4_000_f64.to_be_bytes());
    let path = clips::folder().join("liar.mkv");
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_source_lasts_no_longer_than_it_may_whatever_it_says() {
    if !can_be_made() {
        return;
    }
    clips::start();
    let clip = liar();
    let ladder = plan(&clip, &heights(&[90]));
    let paths = [clips::folder().join("liar.0.mp4")];
    fs::write(&paths[0], []).unwrap();
    let limits = Limits {
        max_duration_ms: 30_000,
        ..clips::LIMITS
    };
    let run = bench::run(&clip, &ladder, &paths, &limits);
    let failure = run.result.expect_err("it runs for an hour");
    assert_eq!(failure.code, FailureCode::TooLarge, "{}", failure.message);
    assert!(
        failure.message.contains("av_workers.max_duration"),
        "{}",
        failure.message
    );
    assert_eq!(run.renditions[0].segments.len(), 15);
}

#[test]
fn a_source_that_fits_is_repackaged() {
    if !can_be_made() {
        return;
    }
    clips::start();
    let sums = |path: &Path| -> Vec<String> {
        let text = String::from_utf8(ffmpeg(path, "-c copy -f framemd5")).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| line.rsplit(',').next().unwrap().trim().to_owned())
            .collect()
    };
    for (name, keys, copied) in [
        ("copied.mp4", "-g 50 -bf 3", true),
        ("copied.mkv", "-g 30 -bf 2", true),
        ("copied.ts", "-g 25", true),
        ("far.mp4", "-g 500", false),
    ] {
        let clip = clip(name, &format!("{VIDEO} {H264} {keys} -b:v 150k"));
        let ladder = plan(&clip, &Profile::SourceMax);
        assert!(ladder.video[0].copy, "{name} might fit");
        let run = make(name, &clip, &ladder);
        run.result.as_ref().expect("it works");
        let [made] = run.renditions.as_slice() else {
            panic!("one rendition")
        };
        assert_eq!(made.init.as_ref().unwrap().2, copied, "{name}");
        let packets = packets(&made.path);
        let first = packets
            .iter()
            .map(|packet| packet.pts_s)
            .fold(f64::MAX, f64::min);
        let last = packets
            .iter()
            .map(|packet| packet.pts_s)
            .fold(0.0, f64::max);
        assert!(
            first.abs() < 1e-4 && (last - 6.96).abs() <= FRAME_S,
            "{name}: {first} to {last}"
        );
        for segment in &made.segments {
            assert!(segment.duration_90k < 225_000, "{name}: {segment:?}");
            let first = packets.iter().find(|packet| packet.offset > segment.offset);
            assert!(first.unwrap().key, "{name}");
        }
        if copied && !name.ends_with("ts") {
            assert_eq!(sums(&made.path), sums(&clip), "{name}");
        }
        if copied {
            let resumed = bench::resume(&clip, &ladder, &run, 1);
            resumed.result.as_ref().expect("it continues");
            assert_eq!(resumed.renditions[0].segments, made.segments[1..]);
        }
    }
}

#[test]
fn odd_sources_become_plain_renditions() {
    if !can_be_made() {
        return;
    }
    clips::start();
    let small = "-f lavfi -i testsrc2=size=160x90:rate=30:duration=4";
    let tone = "-f lavfi -i sine=frequency=440:duration=4";
    let upright = clip("upright.mp4", &format!("{small} {H264}"));
    let turned = format!("-i {} -c copy -metadata:s:v rotate=90", upright.display());
    let cases = [
        (
            "variable.mp4",
            format!("{small} -vf select='lt(mod(n,9),5)' -vsync vfr {H264}"),
            Some((160, 90)),
            4.0,
        ),
        ("turned.mp4", turned, Some((90, 160)), 4.0),
        (
            "odd.mkv",
            "-f lavfi -i testsrc2=size=161x91:rate=10:duration=4 -c:v ffv1".to_owned(),
            Some((160, 90)),
            4.0,
        ),
        (
            "interlaced.mpg",
            "-f lavfi -i testsrc2=size=160x96:rate=25:duration=4 -c:v mpeg2video -flags +ilme+ildct".to_owned(),
            Some((160, 96)),
            4.0,
        ),
        (
            "anamorphic.mp4",
            format!("{small} -vf setsar=4/3 {H264}"),
            Some((212, 90)),
            4.0,
        ),
        ("song.mp3", format!("{tone} -c:a libmp3lame"), None, 4.0),
        ("surround.mka", format!("{tone} -ac 6 -c:a ac3"), None, 4.0),
        (
            "late.mkv",
            format!("{small} -itsoffset 1.5 {tone} {H264} -c:a libopus"),
            Some((160, 90)),
            5.5,
        ),
    ];
    for (name, arguments, size, seconds) in cases {
        let clip = clip(name, &arguments);
        let ladder = plan(&clip, &Profile::Basic);
        assert_eq!(
            ladder.video.first().map(|rung| (rung.width, rung.height)),
            size,
            "{name}"
        );
        let run = make(name, &clip, &ladder);
        let done = run.result.as_ref().expect("it works");
        let longest = done
            .outputs
            .iter()
            .filter_map(|output| output.duration_ms)
            .max();
        let lasted = longest.expect("a duration") as f64 / 1_000.0;
        assert!((lasted - seconds).abs() < 0.15, "{name}: {lasted} s");
        for made in &run.renditions {
            let packets = packets(&made.path);
            let sum: f64 = packets.iter().map(|packet| packet.duration_s).sum();
            let declared: i64 = made
                .segments
                .iter()
                .map(|segment| i64::from(segment.duration_90k))
                .sum();
            assert!(
                (sum - declared as f64 / 90_000.0).abs() < 0.03,
                "{name}: {sum} {declared}"
            );
            if made.init.as_ref().unwrap().1.has_video {
                let keys = packets.iter().filter(|packet| packet.key).count();
                assert!(keys >= made.segments.len(), "{name}");
                assert_eq!(entry(&made.path, "sample_aspect_ratio"), "1:1", "{name}");
            } else {
                assert_eq!(entry(&made.path, "channels"), "2", "{name}");
                ffmpeg(&made.path, "-f null");
            }
        }
        assert!(!run.shares.is_empty());
    }
}

#[test]
fn damage_and_limits_are_failures() {
    if !can_be_made() {
        return;
    }
    clips::start();
    let clip = clip(
        "whole.mp4",
        &format!("{VIDEO} {AUDIO} {H264} -g 25 -c:a libmp3lame -movflags +faststart"),
    );
    let ladder = plan(&clip, &heights(&[90]));
    let bytes = fs::read(&clip).unwrap();
    let half = clips::bytes("half.mp4", &bytes[..bytes.len() / 2]);
    let failure = make("half", &half, &ladder).result.unwrap_err();
    assert_eq!(failure.code, FailureCode::Undecodable, "{failure}");

    let paths: Vec<PathBuf> = (0..2)
        .map(|index| clips::bytes(&format!("small.{index}.mp4"), &[]))
        .collect();
    let limits = sluice_media::task::Limits {
        max_output_bytes: 30_000,
        ..clips::LIMITS
    };
    let failure = bench::run(&clip, &ladder, &paths, &limits)
        .result
        .unwrap_err();
    assert_eq!(failure.code, FailureCode::TooLarge, "{failure}");
}
