use super::*;
use crate::{
    av::{AudioTrack, AudioWork, Range},
    task::{Fit, Gravity, Resize, Watermark},
};

fn video(codec: &str) -> VideoTrack {
    VideoTrack {
        codec: codec.to_owned(),
        width: 640,
        height: 360,
        pixel_aspect: (1, 1),
        frame_rate: (25, 1),
        ..VideoTrack::default()
    }
}

fn audio(codec: &str) -> AudioTrack {
    AudioTrack {
        codec: codec.to_owned(),
        channels: 2,
        sample_rate: 44_100,
        ..AudioTrack::default()
    }
}

fn clip(video: Option<VideoTrack>, audio: Option<AudioTrack>) -> MediaFacts {
    MediaFacts {
        duration_ms: Some(12_000),
        video: video.into_iter().collect(),
        audio: audio.into_iter().collect(),
        ..MediaFacts::default()
    }
}

fn to(format: Format) -> Transcode {
    Transcode {
        format,
        range: None,
        video: Some(VideoWork::default()),
        audio: AudioWork::default(),
        keep_tags: true,
    }
}

fn resize(width: u32, height: u32, fit: Fit) -> Resize {
    Resize::new(
        (width > 0).then_some(width),
        (height > 0).then_some(height),
        fit,
    )
}

fn way<Encoding>(way: &Option<Strategy<Encoding>>) -> &'static str {
    match way {
        None => "-",
        Some(Strategy::Copy) => "copy",
        Some(Strategy::Encode(_)) => "encode",
    }
}

#[test]
fn tracks_are_copied_where_the_container_takes_them() {
    let cases = [
        ("h264", "aac", Format::Mp4, "copy", "copy"),
        ("h264", "aac", Format::Mov, "copy", "copy"),
        ("h264", "aac", Format::Mkv, "copy", "copy"),
        ("h264", "aac", Format::Webm, "encode", "encode"),
        ("vp9", "opus", Format::Webm, "copy", "copy"),
        ("vp9", "opus", Format::Mp4, "encode", "encode"),
        ("vp9", "opus", Format::Mkv, "copy", "copy"),
        ("hevc", "ac3", Format::Mp4, "copy", "encode"),
        ("av1", "mp3", Format::Mp4, "copy", "copy"),
        ("av1", "alac", Format::Mov, "encode", "copy"),
        ("prores", "pcm", Format::Mov, "encode", "encode"),
        ("wmv3", "wma", Format::Mkv, "encode", "encode"),
        ("h264", "aac", Format::M4a, "-", "copy"),
        ("h264", "mp3", Format::Mp3, "-", "copy"),
        ("h264", "opus", Format::Ogg, "-", "copy"),
        ("h264", "flac", Format::Flac, "-", "encode"),
        ("h264", "pcm", Format::Wav, "-", "encode"),
    ];
    for (video_frames, audio_codec, format, video_way, audio_way) in cases {
        let facts = clip(Some(video(video_frames)), Some(audio(audio_codec)));
        let plan = plan(&facts, &to(format)).expect("a plan");
        assert_eq!(
            (way(&plan.video), way(&plan.audio)),
            (video_way, audio_way),
            "{video_frames} {audio_codec} to {format:?}"
        );
    }
}

#[test]
fn whatever_is_to_change_is_encoded_and_the_rest_is_not() {
    let range = |start_s, accurate| {
        Some(Range {
            start_s,
            duration_s: Some(2.0),
            accurate,
        })
    };
    let work = |work: VideoWork| Transcode {
        video: Some(work),
        ..to(Format::Mp4)
    };
    let with_audio = |audio: AudioWork| Transcode {
        audio,
        ..to(Format::Mp4)
    };
    let mark = Watermark {
        text: Some("x".to_owned()),
        image: None,
        position: 5,
        opacity: 1.0,
        margin: 0,
        width: None,
    };
    let cases = [
        ("nothing", to(Format::Mp4), "copy", "copy"),
        (
            "an exact cut",
            Transcode {
                range: range(3.0, true),
                ..to(Format::Mp4)
            },
            "encode",
            "encode",
        ),
        (
            "a fast cut",
            Transcode {
                range: range(3.0, false),
                ..to(Format::Mp4)
            },
            "copy",
            "copy",
        ),
        (
            "again",
            work(VideoWork {
                again: true,
                ..VideoWork::default()
            }),
            "encode",
            "copy",
        ),
        (
            "its own size",
            work(VideoWork {
                resize: Some(resize(1920, 1080, Fit::Inside)),
                ..VideoWork::default()
            }),
            "copy",
            "copy",
        ),
        (
            "a smaller size",
            work(VideoWork {
                resize: Some(resize(320, 0, Fit::Inside)),
                ..VideoWork::default()
            }),
            "encode",
            "copy",
        ),
        (
            "a watermark",
            work(VideoWork {
                watermark: Some(mark),
                ..VideoWork::default()
            }),
            "encode",
            "copy",
        ),
        (
            "louder",
            with_audio(AudioWork {
                volume: 2.0,
                ..AudioWork::default()
            }),
            "copy",
            "encode",
        ),
        (
            "a bitrate for what is encoded",
            with_audio(AudioWork {
                bitrate_kbps: Some(96),
                ..AudioWork::default()
            }),
            "copy",
            "copy",
        ),
        (
            "a bitrate",
            with_audio(AudioWork {
                again: true,
                bitrate_kbps: Some(96),
                ..AudioWork::default()
            }),
            "copy",
            "encode",
        ),
        (
            "no frames",
            Transcode {
                video: None,
                ..to(Format::Mp4)
            },
            "-",
            "copy",
        ),
    ];
    for (what, asked, video_way, audio_way) in cases {
        let facts = clip(Some(video("h264")), Some(audio("aac")));
        let plan = plan(&facts, &asked).expect(what);
        assert_eq!(
            (way(&plan.video), way(&plan.audio)),
            (video_way, audio_way),
            "{what}"
        );
        assert_eq!(plan.begins_at_key(), video_way != "encode", "{what}");
    }
}

#[test]
fn the_parts_of_a_chain_are_encoded() {
    let mut facts = clip(None, Some(audio("opus")));
    for (parts, expected) in [(None, "copy"), (Some(2), "encode")] {
        facts.parts = parts;
        let plan = plan(&facts, &to(Format::Ogg)).expect("a plan");
        assert_eq!(way(&plan.audio), expected, "{parts:?}");
    }
}

#[test]
fn frames_without_times_are_encoded() {
    for (format, codec, expected) in [
        (Format::Avi, "h264", "encode"),
        (Format::Avi, "vp8", "copy"),
        (Format::Mp4, "h264", "copy"),
    ] {
        let facts = MediaFacts {
            format: Some(format),
            ..clip(Some(video(codec)), None)
        };
        let plan = plan(&facts, &to(Format::Mkv)).expect("a plan");
        assert_eq!(way(&plan.video), expected, "{format:?} {codec}");
    }
}

#[test]
fn a_container_that_cannot_say_that_frames_are_turned_gets_them_turned() {
    for (format, expected) in [
        (Format::Mp4, "copy"),
        (Format::Mov, "copy"),
        (Format::Mkv, "encode"),
    ] {
        let turned = VideoTrack {
            rotation: 90,
            ..video("h264")
        };
        let plan = plan(&clip(Some(turned), None), &to(format)).expect("a plan");
        assert_eq!(way(&plan.video), expected, "{format:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_its_reason() {
    let cover = VideoTrack {
        is_cover: true,
        ..video("mjpeg")
    };
    let from_behind = Transcode {
        range: Some(Range {
            start_s: 12.0,
            duration_s: None,
            accurate: true,
        }),
        ..to(Format::Mp4)
    };
    let cases = [
        (
            clip(None, None),
            to(Format::Mp4),
            FailureCode::UnsupportedType,
            "neither",
        ),
        (
            clip(Some(cover), None),
            to(Format::Mp4),
            FailureCode::UnsupportedType,
            "neither",
        ),
        (
            clip(Some(video("h264")), None),
            to(Format::Mp3),
            FailureCode::Impossible,
            "no audio",
        ),
        (
            clip(Some(video("h264")), None),
            to(Format::Avi),
            FailureCode::Impossible,
            "not as avi",
        ),
        (
            clip(Some(video("h264")), None),
            from_behind,
            FailureCode::Impossible,
            "12.000",
        ),
    ];
    for (facts, asked, code, word) in cases {
        let failure = plan(&facts, &asked).expect_err(word);
        assert_eq!(failure.code, code, "{failure}");
        assert!(failure.message.contains(word), "{failure}");
    }
}

#[test]
fn quality_becomes_the_encoders_own_figure() {
    for (quality, rate_factor, level, bitrate) in [
        (0, 50, 63, 100_000),
        (1, 50, 63, 100_000),
        (82, 23, 33, 1_935_360),
        (100, 17, 26, 3_870_720),
        (255, 17, 26, 3_870_720),
    ] {
        assert_eq!(VideoCodec::h264(quality), VideoCodec::H264 { rate_factor });
        let vp9 = VideoCodec::vp9(quality, (1280, 720), Some(30.0));
        assert_eq!(vp9, VideoCodec::Vp9 { level, bitrate });
    }
}

#[test]
fn audio_gets_what_its_codec_takes() {
    let track = |codec: &str, channels, sample_rate, bits| AudioTrack {
        channels,
        sample_rate,
        bits_per_sample: Some(bits),
        ..audio(codec)
    };
    let cases = [
        (
            Format::Mp4,
            track("ac3", 6, 48_000, 16),
            None,
            (48_000, 6, Some(384_000), 16),
        ),
        (
            Format::Mp4,
            track("pcm", 1, 7_000, 8),
            None,
            (8_000, 1, Some(48_000), 16),
        ),
        (
            Format::M4a,
            track("flac", 2, 96_000, 24),
            None,
            (48_000, 2, Some(128_000), 24),
        ),
        (
            Format::Mp3,
            track("dts", 6, 96_000, 24),
            None,
            (48_000, 2, Some(192_000), 16),
        ),
        (
            Format::Mp3,
            track("pcm", 1, 22_050, 16),
            Some(320),
            (22_050, 1, Some(160_000), 16),
        ),
        (
            Format::Mp3,
            track("aac", 2, 44_100, 32),
            Some(130),
            (44_100, 2, Some(128_000), 16),
        ),
        (
            Format::Webm,
            track("aac", 5, 44_100, 32),
            None,
            (48_000, 2, Some(128_000), 16),
        ),
        (
            Format::Ogg,
            track("aac", 8, 44_100, 32),
            Some(9_999),
            (48_000, 6, Some(1_536_000), 16),
        ),
        (
            Format::Flac,
            track("pcm", 9, 384_000, 24),
            Some(1),
            (192_000, 8, None, 24),
        ),
        (
            Format::Wav,
            track("aac", 0, 0, 32),
            None,
            (48_000, 1, None, 16),
        ),
    ];
    for (format, track, kbps, expected) in cases {
        let audio = AudioEncoding::of(format, &track, kbps);
        let found = (audio.rate, audio.channels, audio.bitrate, audio.bits);
        assert_eq!(found, expected, "{track:?} to {format:?}");
    }
}

#[test]
fn shapes_are_even_square_and_upright() {
    let track = |width, height, rotation, pixel_aspect| VideoTrack {
        width,
        height,
        rotation,
        pixel_aspect,
        ..video("h264")
    };
    let square = (1, 1);
    let cases = [
        // (track, resize, cut left/right/top/bottom, scaled, size)
        (
            track(640, 360, 0, square),
            None,
            [0, 0, 0, 0],
            None,
            (640, 360),
        ),
        (
            track(161, 91, 0, square),
            None,
            [0, 1, 0, 1],
            None,
            (160, 90),
        ),
        (
            track(161, 91, 90, square),
            None,
            [0, 1, 0, 1],
            None,
            (90, 160),
        ),
        (
            track(1, 1, 0, square),
            None,
            [0, 0, 0, 0],
            Some((2, 2)),
            (2, 2),
        ),
        (
            track(720, 576, 0, (64, 45)),
            None,
            [0, 0, 0, 0],
            Some((1024, 576)),
            (1024, 576),
        ),
        (
            track(720, 576, 270, (64, 45)),
            None,
            [0, 0, 0, 0],
            Some((1024, 576)),
            (576, 1024),
        ),
        (
            track(640, 360, 0, square),
            Some(resize(320, 0, Fit::Inside)),
            [0, 0, 0, 0],
            Some((320, 180)),
            (320, 180),
        ),
        (
            track(640, 360, 0, square),
            Some(resize(100, 100, Fit::Cover)),
            [140, 140, 0, 0],
            Some((100, 100)),
            (100, 100),
        ),
        (
            track(640, 360, 90, square),
            Some(resize(100, 100, Fit::Cover)),
            [140, 140, 0, 0],
            Some((100, 100)),
            (100, 100),
        ),
        (
            track(640, 360, 0, square),
            Some(resize(200, 200, Fit::Contain)),
            [0, 0, 0, 0],
            Some((200, 112)),
            (200, 200),
        ),
        (
            track(640, 360, 0, square),
            Some(resize(101, 51, Fit::Fill)),
            [0, 0, 0, 0],
            Some((100, 50)),
            (100, 50),
        ),
    ];
    for (track, asked, [left, right, top, bottom], scaled, size) in cases {
        let shape = Shape::of(&track, asked.as_ref());
        let cut = CropOffsets {
            left,
            right,
            top,
            bottom,
        };
        assert_eq!(
            (
                shape.cut,
                shape.is_scaled.then(|| shape.coded_size()),
                shape.size()
            ),
            (cut, scaled, size),
            "{track:?} {asked:?}"
        );
    }
}

#[test]
fn a_side_that_stays_is_found_again_in_turned_frames() {
    let at_left = Resize {
        gravity: Gravity::Point { x: 0.0, y: 0.5 },
        ..resize(90, 90, Fit::Cover)
    };
    // Upright, the left edge stays: of the coded frame that is the bottom, the right and the top.
    for (rotation, width, height, expected) in [
        (0, 160, 90, [0, 70, 0, 0]),
        (90, 90, 160, [0, 0, 70, 0]),
        (180, 160, 90, [70, 0, 0, 0]),
        (270, 90, 160, [0, 0, 0, 70]),
    ] {
        let track = VideoTrack {
            width,
            height,
            rotation,
            ..video("h264")
        };
        let CropOffsets {
            left,
            right,
            top,
            bottom,
        } = Shape::of(&track, Some(&at_left)).cut;
        assert_eq!([left, right, top, bottom], expected, "{rotation}");
    }
}

/// The result would be a copy, and an operation would be charged for it.
#[test]
fn a_change_of_a_track_that_is_not_there_is_refused() {
    let video_frames = || Some(video("h264"));
    let aac = || Some(audio("aac"));
    let brighter = VideoWork {
        adjust: Adjust {
            brightness: 2.0,
            ..Adjust::default()
        },
        ..VideoWork::default()
    };
    let louder = AudioWork {
        volume: 2.0,
        ..AudioWork::default()
    };
    for (facts, video, audio, is_refused) in [
        (
            clip(None, aac()),
            brighter.clone(),
            AudioWork::default(),
            true,
        ),
        (clip(None, aac()), brighter.clone(), louder, false),
        (
            clip(video_frames(), None),
            VideoWork::default(),
            louder,
            true,
        ),
        (clip(video_frames(), None), brighter.clone(), louder, false),
        (
            clip(video_frames(), aac()),
            VideoWork::default(),
            louder,
            false,
        ),
        (
            clip(None, aac()),
            VideoWork::default(),
            AudioWork::default(),
            false,
        ),
    ] {
        let asked = Transcode {
            video: Some(video),
            audio,
            ..to(Format::Mp4)
        };
        let code = plan(&facts, &asked).err().map(|failure| failure.code);
        assert_eq!(
            code,
            is_refused.then_some(FailureCode::Invalid),
            "{asked:?}"
        );
    }
}
