//! Kinds of input into formats.

use std::path::PathBuf;

use sluice_media::format::Format;

use crate::{
    clips::{AUDIO, H264, VIDEO, alone, can_be_made, clip},
    made::{complaints, convert, to},
};

/// A name, ffmpeg's arguments, whether there are frames, how many channels of audio, and the size shown.
type Recipe = (&'static str, &'static str, bool, u32, (i64, i64));

const INPUTS: &[Recipe] = &[
    ("plain.mp4", "P S H -c:a aac -b:a 64k", true, 1, (160, 90)),
    (
        "bframes.mkv",
        "P S H -bf 2 -c:a libvorbis",
        true,
        1,
        (160, 90),
    ),
    ("silent.mov", "P -c:v prores_ks", true, 0, (160, 90)),
    (
        "hevc.mp4",
        "P S -c:v libx265 -preset ultrafast -x265-params log-level=error -c:a aac",
        true,
        1,
        (160, 90),
    ),
    (
        "vp8.webm",
        "P S -c:v libvpx -deadline realtime -c:a libopus",
        true,
        1,
        (160, 90),
    ),
    (
        "old.avi",
        "P S -c:v mpeg4 -c:a libmp3lame",
        true,
        1,
        (160, 90),
    ),
    (
        "h264.avi",
        "P S H -bf 2 -c:a libmp3lame",
        true,
        1,
        (160, 90),
    ),
    ("old.wmv", "P S -c:v wmv2 -c:a wmav2", true, 1, (160, 90)),
    (
        "old.flv",
        "P S -c:v flv -ar 22050 -c:a libmp3lame",
        true,
        1,
        (160, 90),
    ),
    ("broadcast.ts", "P S H -bf 2 -c:a aac", true, 1, (160, 90)),
    (
        "dvd.mpg",
        "-f lavfi -i testsrc2=size=176x144:rate=25:duration=2 S -c:v mpeg2video -c:a mp2",
        true,
        1,
        (176, 144),
    ),
    (
        "phone.3gp",
        "-f lavfi -i testsrc2=size=176x144:rate=15:duration=2 S -c:v h263 -ar 8000 -ac 1 -c:a aac",
        true,
        1,
        (192, 144),
    ),
    (
        "surround.mkv",
        "P -f lavfi -i anoisesrc=d=2:a=0.1,aformat=channel_layouts=5.1 H -c:a ac3",
        true,
        6,
        (160, 90),
    ),
    (
        "odd.mp4",
        "-f lavfi -i testsrc2=size=161x91:rate=10:duration=2 -c:v libx264 -preset ultrafast -pix_fmt yuv444p",
        true,
        0,
        (160, 90),
    ),
    ("anamorphic.mp4", "P -vf setsar=4/3 H", true, 0, (213, 90)),
    ("song.mp3", "S -c:a libmp3lame", false, 1, (-1, -1)),
    ("song.flac", "S -ac 2 -c:a flac", false, 2, (-1, -1)),
    ("song.wav", "S -c:a pcm_s24le", false, 1, (-1, -1)),
    ("song.ogg", "S -ar 48000 -c:a libopus", false, 1, (-1, -1)),
];

const TARGETS: &[(Format, &str, &str)] = &[
    (Format::Mp4, "h264 hevc av1", "aac mp3"),
    (Format::Mov, "h264 hevc", "aac mp3"),
    (
        Format::Mkv,
        "h264 hevc vp8 mpeg4 mpeg2video",
        "aac mp3 mp2 opus vorbis flac ac3",
    ),
    (Format::Webm, "vp8 vp9", "opus vorbis"),
    (Format::Mp3, "", "mp3"),
    (Format::Ogg, "", "opus vorbis"),
    (Format::M4a, "", "aac"),
    (Format::Flac, "", "flac"),
    (Format::Wav, "", "pcm_s16le pcm_s24le"),
];

fn input(name: &str, recipe: &str) -> PathBuf {
    let arguments: Vec<&str> = recipe
        .split_whitespace()
        .map(|word| match word {
            "P" => VIDEO,
            "S" => AUDIO,
            "H" => H264,
            word => word,
        })
        .collect();
    clip(&format!("matrix-{name}"), &arguments.join(" "))
}

#[test]
fn every_input_becomes_what_is_asked() {
    if !can_be_made() {
        return;
    }
    let _alone = alone();
    let mut wrong = Vec::new();
    for (index, (name, recipe, has_video_frames, channels, size)) in INPUTS.iter().enumerate() {
        let path = input(name, recipe);
        for (number, (format, video, audio)) in TARGETS.iter().enumerate() {
            // Each input becomes what is asked for most, and three of the others in turn.
            if *format != Format::Mp4 && (number + index) % 3 != 0 {
                continue;
            }
            if *channels == 0 && video.is_empty() {
                continue;
            }
            let what = format!("{name} to {}", format.name());
            let made = match convert(&path, to(*format)) {
                Ok(made) => made,
                Err(failure) => {
                    wrong.push(format!("{what}: {failure:?}"));
                    continue;
                }
            };
            let found = made.probed();
            let mut expect = |is_right: bool, text: String| {
                if !is_right {
                    wrong.push(format!("{what}: {text}"));
                }
            };
            let video_frames = found.codec("video");
            if *has_video_frames && !video.is_empty() {
                expect(
                    video.split(' ').any(|codec| codec == video_frames),
                    format!("frames are {video_frames}"),
                );
                let shown = found.shown_size();
                expect(
                    (shown.0 - size.0).abs() <= 1 && shown.1 - size.1 <= 1,
                    format!("{shown:?}"),
                );
            } else {
                expect(
                    video_frames.is_empty(),
                    format!("frames are {video_frames}"),
                );
            }
            let codec_found = found.codec("audio");
            if *channels > 0 {
                expect(
                    audio.split(' ').any(|codec| codec == codec_found),
                    format!("audio is {codec_found}"),
                );
                let kept = if *format == Format::Mp3 {
                    (*channels).min(2)
                } else {
                    *channels
                };
                expect(
                    found.number("audio", "channels") == i64::from(kept),
                    format!("{} channels", found.number("audio", "channels")),
                );
            } else {
                expect(codec_found.is_empty(), format!("audio is {codec_found}"));
            }
            // ffmpeg's AVI with MPEG-4 frames lasts a frame longer.
            expect(
                (found.duration_s() - 2.0).abs() < 0.21,
                format!("{} s", found.duration_s()),
            );
            let reported = made.done.outputs[0].duration_ms.unwrap_or(0);
            expect(
                reported.abs_diff(2_000) < 210,
                format!("{reported} ms reported"),
            );
            let head = std::fs::read(&made.path).expect("the result");
            expect(
                Format::sniff(&head[..head.len().min(4096)]) == Some(*format),
                "sniffed as another".to_owned(),
            );
            let complaints = complaints(&made.path);
            expect(complaints.is_empty(), complaints);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
