//! Facts of clips of every container and many codecs.

use sluice_media::{
    av::MediaFacts,
    task::{FailureCode, Limits},
};
use sluice_worker::av::probe::probe;

use crate::clips::{self, AUDIO, H264, LIMITS, VIDEO};

fn facts(name: &str, arguments: &str) -> MediaFacts {
    let path = clips::clip(name, arguments);
    probe(&clips::input(&path), &LIMITS).unwrap_or_else(|failure| panic!("{name}: {failure:?}"))
}

#[test]
fn every_container_is_known() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let both = format!("{VIDEO} {AUDIO} -shortest");
    let [mp4, mov, mkv] = ["aac", "alac", "flac"].map(|codec| format!("{H264} -c:a {codec}"));
    let vp8 = "-c:v libvpx -deadline realtime -c:a libopus";
    let vp9 = "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -c:a libvorbis";
    let prores = "-c:v prores_ks -profile:v 0 -c:a pcm_s16le";
    let hevc = "-c:v libx265 -preset ultrafast -x265-params log-level=none -c:a aac";
    let av1 = "-c:v libaom-av1 -cpu-used 8 -usage realtime -c:a libopus";
    for (name, codecs, container, video, audio) in [
        ("a.mp4", &*mp4, "MP4", "h264", "aac"),
        ("a.mov", &*mov, "QuickTime", "h264", "alac"),
        ("a.mkv", &*mkv, "Matroska", "h264", "flac"),
        ("a.webm", vp8, "WebM", "vp8", "opus"),
        ("b.webm", vp9, "WebM", "vp9", "vorbis"),
        ("a.avi", "-c:v mpeg4 -c:a libmp3lame", "AVI", "mpeg4", "mp3"),
        ("b.avi", "-c:v mjpeg -c:a pcm_s16le", "AVI", "mjpeg", "pcm"),
        (
            "a.mpg",
            "-r 25 -c:v mpeg2video -c:a mp2",
            "MPEG-PS",
            "mpeg2",
            "mp2",
        ),
        ("a.wmv", "-c:v wmv2 -c:a wmav2", "ASF", "wmv2", "wma"),
        (
            "a.flv",
            "-c:v flv1 -c:a libmp3lame -ar 44100",
            "FLV",
            "flv1",
            "mp3",
        ),
        ("a.ts", &*mp4, "MPEG-TS", "h264", "aac"),
        (
            "a.3gp",
            "-s 176x144 -c:v h263 -c:a aac",
            "MP4",
            "h263",
            "aac",
        ),
        ("p.mov", prores, "QuickTime", "prores", "pcm"),
        ("h.mp4", hevc, "MP4", "hevc", "aac"),
        ("av1.mp4", av1, "MP4", "av1", "opus"),
    ] {
        let facts = facts(name, &format!("{both} {codecs}"));
        let found = (
            &*facts.container,
            &*facts.video[0].codec,
            &*facts.audio[0].codec,
        );
        assert_eq!(found, (container, video, audio), "{name}");
        let duration = facts.duration_ms.expect(name);
        assert!((1_900..2_300).contains(&duration), "{name}: {duration} ms");
        assert!(facts.seekable && facts.bitrate.is_some(), "{name}");
    }
}

#[test]
fn audio_alone_is_a_clip() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    for (name, codec, container, known) in [
        ("s.mp3", "-c:a libmp3lame", "MP3", "mp3"),
        // No header says how long it is.
        (
            "t.mp3",
            "-c:a libmp3lame -write_xing 0 -id3v2_version 0",
            "MP3",
            "mp3",
        ),
        ("s.aac", "-c:a aac", "ADTS", "aac"),
        ("s.m4a", "-c:a aac", "MP4", "aac"),
        ("s.ogg", "-c:a libvorbis", "Ogg", "vorbis"),
        ("s.opus", "-c:a libopus", "Ogg", "opus"),
        ("s.flac", "-c:a flac", "FLAC", "flac"),
        ("s.wav", "-c:a pcm_s16le", "WAV", "pcm"),
        ("s.mka", "-c:a ac3", "Matroska", "ac3"),
    ] {
        let facts = facts(name, &format!("{AUDIO} {codec} -metadata title=Hum"));
        let found = (&*facts.container, &*facts.audio[0].codec);
        assert_eq!(found, (container, known), "{name}");
        assert!(facts.video.is_empty(), "{name}");
        let duration = facts.duration_ms.expect(name);
        assert!((1_950..2_120).contains(&duration), "{name}: {duration} ms");
        assert_eq!(facts.audio[0].channels, 1, "{name}");
        if !matches!(name, "t.mp3" | "s.aac") {
            let title = facts.tags.get("title").map(String::as_str);
            assert_eq!(title, Some("Hum"), "{name}");
        }
    }
}

#[test]
fn video_frames_are_described() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let moving =
        |size: &str, rate: &str| format!("-f lavfi -i testsrc2=size={size}:rate={rate}:duration=1");
    let track = |name: &str, arguments: &str| facts(name, arguments).video.remove(0);

    let wide = track(
        "wide.mp4",
        &format!("{} -vf setsar=4/3 {H264}", moving("120x90", "10")),
    );
    assert_eq!((wide.pixel_aspect, wide.shown_size()), ((4, 3), (160, 90)));

    let odd = "-f lavfi -i testsrc=size=161x91:rate=10:duration=1 -c:v ffv1 -pix_fmt yuv444p";
    let odd = track("odd.mkv", odd);
    assert_eq!((odd.width, odd.height), (161, 91));

    let ntsc = format!("{} {H264}", moving("160x90", "30000/1001"));
    assert_eq!(track("ntsc.mp4", &ntsc).frame_rate, (30_000, 1_001));

    let fields = format!(
        "{} {H264} -flags +ildct+ilme -x264-params interlaced=1",
        moving("160x96", "25")
    );
    assert!(track("fields.mp4", &fields).interlaced);

    let deep = format!(
        "{} -c:v libx265 -preset ultrafast -pix_fmt yuv420p10le -x265-params \
         log-level=none:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc",
        moving("160x90", "10")
    );
    let deep = track("deep.mp4", &deep);
    assert_eq!(
        (deep.bits_per_sample, deep.hdr.as_deref()),
        (Some(10), Some("HDR10"))
    );
    let colour = deep.colour.expect("colours");
    assert_eq!(
        [
            colour.primaries,
            colour.transfer,
            colour.matrix,
            colour.range
        ],
        ["bt2020", "smpte2084", "bt2020nc", "limited"]
    );
}

/// The matrix of a track's header (ISO/IEC 14496-12 section 8.3.2): 16.16 numbers a, b, u, c, d.
#[test]
fn turned_frames_are_known() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let upright = clips::clip("upright.mp4", &format!("{VIDEO} {H264}"));
    let upright = std::fs::read(upright).expect("a clip");
    let header = upright.windows(4).position(|window| window == b"tkhd");
    let matrix = header.expect("a track") + 4 + 40;
    for ([a, b, c, d], rotation) in [
        ([1, 0, 0, 1], 0),
        ([0, 1, -1, 0], 90),
        ([-1, 0, 0, -1], 180),
        ([0, -1, 1, 0], 270),
        // Mirrored, and no turn that is known.
        ([-1, 0, 0, 1], 0),
        ([7, 3, 2, 9], 0),
    ] {
        let mut turned = upright.clone();
        for (index, number) in [a, b, 0, c, d].into_iter().enumerate() {
            let number = i32::wrapping_shl(number, 16).to_be_bytes();
            let place = matrix + index * 4;
            turned[place..place + 4].copy_from_slice(&number);
        }
        let path = clips::bytes("turned.mp4", &turned);
        let facts = probe(&clips::input(&path), &LIMITS).expect("facts");
        assert_eq!(facts.video[0].rotation, rotation, "{:?}", [a, b, c, d]);
    }
}

#[test]
fn audio_is_described() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let surround = facts(
        "surround.mkv",
        &format!("{AUDIO} -ac 6 -c:a ac3 -metadata:s:a language=deu"),
    );
    let track = &surround.audio[0];
    assert_eq!((track.channels, track.language.as_deref()), (6, Some("de")));

    let deep = facts("deep.wav", &format!("{AUDIO} -c:a pcm_s24le -ar 96000"));
    let track = &deep.audio[0];
    assert_eq!(
        (track.bits_per_sample, track.sample_rate),
        (Some(24), 96_000)
    );

    let song = clips::clip("song.mp3", &format!("{AUDIO} -c:a libmp3lame"));
    let cover = "-f lavfi -i color=red:size=64x64:duration=1 -map 0 -map 1 -frames:v 1";
    let covered = facts(
        "covered.mp3",
        &format!("-i {} {cover} -c:a copy -c:v mjpeg", song.display()),
    );
    assert!(covered.video_track().is_none(), "{covered:?}");
    let cover = &covered.video[0];
    assert_eq!((cover.is_cover, &*cover.codec), (true, "mjpeg"));
}

#[test]
fn limits_are_named() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let input = clips::input(&clips::usual());
    let side = Limits {
        max_side: 159,
        ..LIMITS
    };
    let duration = Limits {
        max_duration_ms: 1_500,
        ..LIMITS
    };
    for (limits, name) in [
        (side, "av_workers.max_side"),
        (duration, "av_workers.max_duration"),
    ] {
        let failure = probe(&input, &limits).expect_err(name);
        assert_eq!(failure.code, FailureCode::TooLarge);
        assert!(failure.message.contains(name), "{failure:?}");
    }
}

/// Larger than any decoder takes: not of an unknown type, but too large.
#[test]
fn frames_that_only_their_container_calls_huge_are_too_large() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    for (name, arguments) in [
        ("huge.mp4", format!("{VIDEO} {H264}")),
        (
            "huge-with-audio.mp4",
            format!("{VIDEO} {AUDIO} {H264} -c:a aac -shortest"),
        ),
    ] {
        let mut bytes = std::fs::read(clips::clip(name, &arguments)).expect("a clip");
        let place = |kind: &[u8], from: usize| {
            let mut kinds = bytes[from..].windows(4);
            from + kinds.position(|window| window == kind).expect("a box")
        };
        // Sizes of the track, 16.16, and of its samples (ISO/IEC 14496-12 sections 8.3.2 and 12.1.3).
        let track = place(b"tkhd", 0) + 80;
        let samples = place(b"avc1", place(b"stsd", 0)) + 28;
        for at in [track, track + 4] {
            bytes[at..at + 4].copy_from_slice(&[0xff, 0xff, 0, 0]);
        }
        bytes[samples..samples + 4].copy_from_slice(&[0xff; 4]);
        let input = clips::input(&clips::bytes(&format!("declared-{name}"), &bytes));
        let failure = probe(&input, &LIMITS).expect_err("too large");
        assert_eq!(failure.code, FailureCode::TooLarge, "{name}: {failure}");
        for part in ["65535×65535", "av_workers.max_side"] {
            assert!(failure.message.contains(part), "{name}: {failure}");
        }
    }
}

#[test]
fn a_webm_that_grew_has_a_duration() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let live = format!("{VIDEO} -c:v libvpx -deadline realtime -live 1");
    let duration = facts("live.webm", &live).duration_ms.expect("a duration");
    assert!((1_900..2_200).contains(&duration), "{duration} ms");
}

/// One Ogg file behind the other, as in recorded radio.
#[test]
fn a_chain_is_as_long_as_its_parts() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    for (name, first, second, codec, rate, channels) in [
        (
            "chain.opus",
            "-c:a libopus",
            "-c:a libopus",
            "opus",
            48_000,
            1,
        ),
        (
            "chain.ogg",
            "-c:a libvorbis",
            "-c:a libvorbis -ar 48000 -ac 2",
            "vorbis",
            44_100,
            1,
        ),
    ] {
        let chain = clips::chain(name, &[first, second, first]);
        let facts = probe(&clips::input(&chain), &LIMITS).expect(name);
        assert_eq!((&*facts.container, facts.parts), ("Ogg", Some(3)), "{name}");
        let track = &facts.audio[0];
        let found = (&*track.codec, track.sample_rate, track.channels);
        assert_eq!(found, (codec, rate, channels), "{name}");
        let duration = facts.duration_ms.expect(name);
        assert!((5_950..6_050).contains(&duration), "{name}: {duration} ms");
    }
    let part = std::fs::read(clips::clip("part.ogg", &format!("{AUDIO} -c:a libvorbis")));
    let part = part.expect("a clip");
    let twice = clips::bytes("twice.ogg", &part.repeat(2));
    let failure = probe(&clips::input(&twice), &LIMITS).expect_err("the same stream twice");
    assert_eq!(failure.code, FailureCode::Impossible);
    assert!(failure.message.contains("one by one"), "{failure}");
}
