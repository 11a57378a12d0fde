//! Cuts, copies and files that break off.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sluice_media::{
    av::{Range, Transcode, VideoWork},
    format::Format,
    task::FailureCode,
};

use crate::{
    clips::{H264, alone, bytes, can_be_made, clip},
    made::{Made, convert, ffmpeg, luma, to},
};

/// Frames of which each is a little brighter than the one before: 25 a second, 4 seconds.
const NUMBERED: &str = "-f lavfi -i color=gray:size=64x64:rate=25:duration=4,format=yuv420p,geq=lum=20+N*2:cb=128:cr=128";
const LONG_AUDIO: &str = "-f lavfi -i sine=frequency=440:duration=4";

/// A clip of numbered frames with a key frame each 25.
fn numbered(name: &str) -> PathBuf {
    clip(
        name,
        &format!(
            "{NUMBERED} {LONG_AUDIO} -c:v libx264 -preset veryfast -crf 10 -g 25 -bf 2 -c:a aac"
        ),
    )
}

/// The numbers of the frames in a result.
fn numbers(path: &Path) -> Vec<u8> {
    luma(path)
        .into_iter()
        .map(|luma| luma.saturating_sub(19) / 2)
        .collect()
}

fn cut(path: &Path, format: Format, start_s: f64, duration_s: f64, accurate: bool) -> Made {
    let task = Transcode {
        range: Some(Range {
            start_s,
            duration_s: Some(duration_s),
            accurate,
        }),
        ..to(format)
    };
    convert(path, task).unwrap_or_else(|failure| panic!("{start_s}+{duration_s}: {failure:?}"))
}

#[test]
fn an_exact_cut_begins_and_ends_with_the_frames_asked_for() {
    if !can_be_made() {
        return;
    }
    let _alone = alone();
    let clip = numbered("numbered.mp4");
    for (format, start_s, duration_s, first, count) in [
        (Format::Mp4, 0.0, 1.0, 0, 25),
        (Format::Mp4, 1.4, 0.6, 35, 15),
        (Format::Mkv, 1.4, 0.6, 35, 15),
        (Format::Webm, 2.52, 0.2, 63, 5),
        (Format::Mov, 3.8, 9.0, 95, 5),
    ] {
        let made = cut(&clip, format, start_s, duration_s, true);
        let found = numbers(&made.path);
        let expected: Vec<u8> = (first..first + count).collect();
        let is_near = found.len() == expected.len()
            && found
                .iter()
                .zip(&expected)
                .all(|(one, other)| one.abs_diff(*other) <= 1);
        assert!(is_near, "{format:?} {start_s}+{duration_s}: {found:?}");
        let probed = made.probed();
        let expected_s = f64::from(count) / 25.0;
        assert!(
            (probed.duration_s() - expected_s).abs() < 0.05,
            "{format:?} {start_s}: {}",
            probed.duration_s()
        );
        assert!(!probed.codec("audio").is_empty());
    }
}

#[test]
fn a_fast_cut_copies_from_the_key_frame_on() {
    if !can_be_made() {
        return;
    }
    let _alone = alone();
    let clip = numbered("numbered-fast.mp4");
    for format in [Format::Mp4, Format::Mkv] {
        let made = cut(&clip, format, 1.4, 1.0, false);
        let found = numbers(&made.path);
        assert!(found[0].abs_diff(25) <= 1, "{format:?}: {found:?}");
        assert!(
            (33..=40).contains(&found.len()),
            "{format:?}: {} frames",
            found.len()
        );
        assert!(found.windows(2).all(|two| two[0] <= two[1]), "{found:?}");
    }
}

#[test]
fn a_copy_has_the_same_packets_and_plays_from_its_first_bytes() {
    if !can_be_made() {
        return;
    }
    let _alone = alone();
    let clip = clip(
        "remux.mkv",
        &format!("{NUMBERED} {LONG_AUDIO} {H264} -bf 2 -c:a aac -metadata title=Plain"),
    );
    let hashes = |path: &Path, track: &str| {
        // Both containers' form of packets is the same; times and sizes of time differ.
        let text = ffmpeg(path, &format!("-map 0:{track} -c copy -f framemd5"));
        let text = String::from_utf8(text).expect("text");
        let hashes = text.lines().filter(|line| !line.starts_with('#'));
        hashes
            .filter_map(|line| line.rsplit(',').next().map(|hash| hash.trim().to_owned()))
            // The parameter sets in front of the first frame go into the container's header.
            .skip(1)
            .collect::<Vec<_>>()
    };
    let source = (hashes(&clip, "v"), hashes(&clip, "a"));
    assert_eq!(source.0.len(), 99);
    for format in [Format::Mp4, Format::Mov, Format::Mkv] {
        let made = convert(&clip, to(format)).expect("a copy");
        assert_eq!(hashes(&made.path, "v"), source.0, "{format:?}");
        assert_eq!(hashes(&made.path, "a"), source.1, "{format:?}");
        assert_eq!(numbers(&made.path), numbers(&clip));
        assert_eq!(made.probed().tag("title"), Some("Plain"), "{format:?}");
        if format != Format::Mkv {
            let file = fs::read(&made.path).expect("the result");
            let at = |kind: &[u8]| {
                file.windows(4)
                    .position(|four| four == kind)
                    .expect("a box")
            };
            assert!(at(b"moov") < at(b"mdat"));
        }
    }
    let bare = convert(
        &clip,
        Transcode {
            keep_tags: false,
            ..to(Format::Mp4)
        },
    )
    .expect("a copy");
    assert_eq!(bare.probed().tag("title"), None);
}

#[test]
fn a_file_that_breaks_off_is_no_short_result() {
    if !can_be_made() {
        return;
    }
    let _alone = alone();
    let whole = clip(
        "whole.mp4",
        &format!("{NUMBERED} {LONG_AUDIO} {H264} -c:a aac -movflags +faststart"),
    );
    let whole = fs::read(whole).expect("a clip");
    let broken = bytes("broken.mp4", &whole[..whole.len() / 2]);
    let again = Transcode {
        video: Some(VideoWork {
            again: true,
            ..VideoWork::default()
        }),
        ..to(Format::Mp4)
    };
    for task in [to(Format::Mp4), to(Format::Mp3), again] {
        let failure = convert(&broken, task.clone()).expect_err("it breaks off");
        assert_eq!(failure.code, FailureCode::Undecodable, "{failure}");
        assert!(failure.message.contains("of 4.0 s"), "{failure}");
    }
}

#[test]
fn what_cannot_be_is_said() {
    if !can_be_made() {
        return;
    }
    let _alone = alone();
    let clip = numbered("numbered-said.mp4");
    let from = |start_s| Transcode {
        range: Some(Range {
            start_s,
            duration_s: Some(1.0),
            accurate: true,
        }),
        ..to(Format::Mp4)
    };
    let failure = convert(&clip, from(4.5)).expect_err("behind the end");
    assert_eq!(failure.code, FailureCode::Impossible);
    let failure = convert(&clip, to(Format::Gif)).expect_err("no such target");
    assert_eq!(failure.code, FailureCode::Impossible);
}
