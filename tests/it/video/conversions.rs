//! Conversions of users' formats through the whole service; ffmpeg is the judge of every result.

use std::path::Path;

use serde_json::Value;
use tokio::task::JoinSet;

use super::patient;
use crate::support::{
    Failure,
    clips::{Probed, check_copied, clip, decodes, on_disk},
    images::{available, look},
    server::Api,
};

/// A clip, what is in it, and what it is converted into.
struct Input {
    name: &'static str,
    /// ffmpeg's, with the words of [`clip`].
    arguments: &'static str,
    /// Size as shown; `None`: no frames.
    size: Option<(u64, u64)>,
    channels: u64,
    /// Duration of frames and of audio, in seconds.
    lasting: (f64, f64),
    targets: &'static str,
}

/// Two seconds of frames and of a tone, as most clips here have them.
const USUAL: Input = Input {
    name: "",
    arguments: "",
    size: Some((160, 90)),
    channels: 1,
    lasting: (2.0, 2.0),
    targets: "",
};

const INPUTS: &[Input] = &[
    Input {
        name: "plain.mp4",
        arguments: "VIDEO AUDIO H264 -c:a aac",
        targets: "webm m4a gif webp",
        ..USUAL
    },
    Input {
        name: "plain.mov",
        arguments: "VIDEO AUDIO H264 -c:a pcm_s16le",
        targets: "mp4 wav",
        ..USUAL
    },
    Input {
        name: "bframes.mkv",
        arguments: "VIDEO AUDIO H264 -bf 2 -c:a libvorbis",
        targets: "mp4 webm ogg",
        ..USUAL
    },
    Input {
        name: "vp9.webm",
        arguments: "VIDEO AUDIO -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -c:a libopus",
        targets: "mp4 mp3",
        ..USUAL
    },
    Input {
        name: "old.avi",
        arguments: "VIDEO AUDIO -c:v mpeg4 -c:a libmp3lame",
        targets: "mp4 mp3",
        ..USUAL
    },
    Input {
        name: "dvd.mpg",
        arguments: "VIDEO AUDIO -c:v mpeg2video -c:a mp2",
        targets: "webm wav",
        ..USUAL
    },
    Input {
        name: "old.wmv",
        arguments: "VIDEO AUDIO -c:v wmv2 -c:a wmav2",
        targets: "mp4 mp3",
        ..USUAL
    },
    Input {
        name: "old.flv",
        arguments: "VIDEO AUDIO -c:v flv -ar 22050 -c:a libmp3lame",
        targets: "mp4 m4a",
        ..USUAL
    },
    Input {
        name: "broadcast.ts",
        arguments: "VIDEO AUDIO H264 -bf 2 -c:a aac",
        targets: "mkv flac",
        ..USUAL
    },
    Input {
        name: "phone.3gp",
        arguments: "-f lavfi -i testsrc2=size=176x144:rate=25:duration=2 AUDIO -vf setsar=1 \
                    -c:v mpeg4 -ar 8000 -ac 1 -c:a aac",
        size: Some((176, 144)),
        targets: "mp4 ogg",
        ..USUAL
    },
    Input {
        name: "prores.mov",
        arguments: "VIDEO AUDIO -c:v prores_ks -c:a pcm_s24le",
        targets: "mp4 flac",
        ..USUAL
    },
    Input {
        name: "hevc.mp4",
        arguments: "VIDEO AUDIO -c:v libx265 -preset ultrafast -tag:v hvc1 -x265-params log-level=error -c:a aac",
        targets: "mov webm gif",
        ..USUAL
    },
    Input {
        name: "surround.mkv",
        arguments: "VIDEO -f lavfi -i anoisesrc=d=2:a=0.1:r=48000,aformat=channel_layouts=5.1 H264 -c:a ac3",
        channels: 6,
        targets: "mp4 webm mp3",
        ..USUAL
    },
    Input {
        name: "silent.mp4",
        arguments: "VIDEO H264",
        channels: 0,
        lasting: (2.0, 0.0),
        targets: "webm mov",
        ..USUAL
    },
    Input {
        name: "audio.m4a",
        arguments: "AUDIO -ac 2 -c:a aac",
        size: None,
        channels: 2,
        lasting: (0.0, 2.0),
        targets: "mp3 wav ogg mp4",
    },
    Input {
        name: "anamorphic.mp4",
        arguments: "VIDEO AUDIO -vf setsar=4/3 H264 -c:a aac",
        size: Some((213, 90)),
        targets: "webm gif",
        ..USUAL
    },
    Input {
        name: "odd.mp4",
        arguments: "-f lavfi -i testsrc2=size=161x91:rate=25:duration=2 AUDIO \
                    -c:v libx264 -preset ultrafast -pix_fmt yuv444p -c:a aac",
        targets: "webm mp4",
        ..USUAL
    },
    Input {
        name: "uneven.mp4",
        arguments: "VIDEO AUDIO -vf select=lt(mod(n\\,10)\\,4)+gt(mod(n\\,10)\\,8) -fps_mode vfr H264 -c:a aac",
        targets: "webm mov",
        ..USUAL
    },
    // The audio ends before the video, whose frames must not end with it.
    Input {
        name: "short-audio.mp4",
        arguments: "-f lavfi -i testsrc2=size=160x90:rate=25:duration=4 AUDIO H264 -c:a aac",
        lasting: (4.0, 2.0),
        targets: "mp4 webm mp3",
        ..USUAL
    },
    Input {
        name: "short-frames.mkv",
        arguments: "VIDEO -f lavfi -i sine=frequency=440:sample_rate=48000:duration=4 H264 -c:a libopus",
        lasting: (2.0, 4.0),
        targets: "mp4 webm wav",
        ..USUAL
    },
];

/// A frame, or a frame of audio; ffmpeg's AVI lasts a frame longer than its frames.
const TOLERANCE_S: f64 = 0.14;
/// Requests at a time, so that results are judged while others are made.
const AT_ONCE: usize = 2;

/// Names of codecs as ffprobe has them, of frames and of audio.
fn codecs(target: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match target {
        "mp4" | "mov" => (&["h264", "hevc"], &["aac", "mp3"]),
        "mkv" => (&["h264", "hevc", "vp9"], &["aac", "opus", "vorbis", "ac3"]),
        "webm" => (&["vp9"], &["opus", "vorbis"]),
        "mp3" => (&[], &["mp3"]),
        "m4a" => (&[], &["aac"]),
        "ogg" => (&[], &["opus", "vorbis"]),
        "flac" => (&[], &["flac"]),
        "wav" => (&[], &["pcm_s16le", "pcm_s24le"]),
        _ => (&["gif", "webp"], &[]),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_users_have_becomes_what_they_ask_for() -> Result<(), Failure> {
    if !available("what_users_have_becomes_what_they_ask_for")? {
        return Ok(());
    }
    let server = patient().await?;
    let mut waiting = INPUTS.iter().flat_map(|input| {
        let targets = input.targets.split(' ');
        targets.map(move |target| (input, target))
    });
    let mut wrong = Vec::new();
    let mut under_way = JoinSet::new();
    loop {
        while under_way.len() < AT_ONCE {
            let Some((input, target)) = waiting.next() else {
                break;
            };
            let api = server.api();
            under_way.spawn(async move {
                let judged = convert(&api, input, target).await;
                judged.map_err(|reason| format!("{} to {target}: {reason}", input.name))
            });
        }
        match under_way.join_next().await {
            Some(outcome) => wrong.extend(outcome?.err()),
            None => break,
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

async fn convert(api: &Api, input: &'static Input, target: &str) -> Result<(), Failure> {
    let path = tokio::task::spawn_blocking(|| clip(input.name, input.arguments)).await??;
    let (record, bytes) = api
        .convert(input.name, &std::fs::read(path)?, &[("format", target)])
        .await?;
    // Debian's ffmpeg does not read moving WebP.
    if target == "webp" || target == "gif" {
        return judge_moving(input, &record, &bytes).await;
    }
    let file = on_disk(&bytes, target)?;
    judge(input, target, &record, file.path()).await?;
    decodes(file.path()).await
}

async fn judge(input: &Input, target: &str, record: &Value, result: &Path) -> Result<(), Failure> {
    let found = Probed::of(result).await?;
    let (video, audio) = codecs(target);
    let shown = input.size.filter(|_| !video.is_empty());
    let expected_s = match shown {
        Some(_) => input.lasting.0.max(input.lasting.1),
        None => input.lasting.1,
    };
    let reported = &record["duration"];
    for (whose, duration_s) in [
        ("ffprobe's", found.duration_s()),
        ("reported", reported.as_f64().unwrap_or_default()),
    ] {
        if (duration_s - expected_s).abs() > TOLERANCE_S {
            return Err(format!("{whose} duration: {duration_s} s of {expected_s} s").into());
        }
    }
    check_codec(&found, "video", shown.map(|_| video))?;
    if let Some(size) = shown {
        check_size(found.shown_size(), size)?;
        let reported = (record["width"].as_u64(), record["height"].as_u64());
        let reported = reported.0.zip(reported.1);
        check_size(reported.ok_or_else(|| format!("no size: {record}"))?, size)?;
    }
    check_codec(&found, "audio", (input.channels > 0).then_some(audio))?;
    // LAME has two channels at most.
    let channels = match target {
        "mp3" => input.channels.min(2),
        _ => input.channels,
    };
    match found.channels() == channels {
        true => Ok(()),
        false => Err(format!("{} channels of {channels}", found.channels()).into()),
    }
}

fn check_codec(found: &Probed, kind: &str, allowed: Option<&[&str]>) -> Result<(), Failure> {
    let codec = found.codec(kind);
    match allowed.map_or(codec.is_empty(), |all| all.contains(&codec)) {
        true => Ok(()),
        false => Err(format!("{kind} is {codec:?}, not one of {allowed:?}").into()),
    }
}

/// Sides are rounded to even ones.
fn check_size(found: (u64, u64), expected: (u64, u64)) -> Result<(), Failure> {
    let is_near = |found: u64, expected: u64| found.abs_diff(expected) <= 1;
    match is_near(found.0, expected.0) && is_near(found.1, expected.1) {
        true => Ok(()),
        false => Err(format!("{found:?} instead of {expected:?}").into()),
    }
}

/// Checks a moving image of 12 frames a second.
async fn judge_moving(input: &Input, record: &Value, bytes: &[u8]) -> Result<(), Failure> {
    let video_frame = look(bytes).await?;
    let size = (video_frame.width.into(), video_frame.height.into());
    check_size(size, input.size.ok_or("audio cannot be looked at")?)?;
    let lasts_s = f64::from(video_frame.delays.iter().sum::<u32>()) / 1000.0;
    let expected_s = input.lasting.0;
    if (lasts_s - expected_s).abs() > TOLERANCE_S || video_frame.frames < 20 {
        let frames = video_frame.frames;
        return Err(format!("{frames} frames, {lasts_s} s of {expected_s} s: {record}").into());
    }
    Ok(())
}

/// A phone held upright: its flag stays where frames are copied, and is obeyed where they are encoded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turned_phone_is_upright_everywhere() -> Result<(), Failure> {
    let upright = clip("plain.mp4", "VIDEO AUDIO H264 -c:a aac")?;
    let turned = format!("-i {} -c copy -metadata:s:v rotate=90", upright.display());
    let turned = std::fs::read(clip("turned.mp4", &turned)?)?;
    let server = patient().await?;
    let api = server.api();
    for (target, quality) in [
        ("mp4", ""),
        ("mp4", "60"),
        ("mov", ""),
        ("webm", ""),
        ("mkv", "50"),
    ] {
        let fields = [("format", target), ("compression", quality)];
        let (_, bytes) = api.convert("turned.mp4", &turned, &fields).await?;
        let file = on_disk(&bytes, target)?;
        let found = Probed::of(file.path()).await?;
        assert_eq!(found.shown_size(), (90, 160), "{target} {quality}");
        decodes(file.path()).await?;
    }
    let fields = [("format", "gif")];
    let (record, _) = api.convert("turned.mp4", &turned, &fields).await?;
    let size = (record["width"].as_u64(), record["height"].as_u64());
    assert_eq!(size, (Some(90), Some(160)), "{record}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fits_is_copied_bit_by_bit() -> Result<(), Failure> {
    let server = patient().await?;
    let api = server.api();
    for (name, arguments, targets) in [
        (
            "plain.mp4",
            "VIDEO AUDIO H264 -c:a aac",
            &["mkv", "mov", "mp4"][..],
        ),
        (
            "copied.mkv",
            "VIDEO AUDIO H264 -bf 2 -c:a aac",
            &["mp4", "mov"],
        ),
        (
            "hevc.mp4",
            "VIDEO AUDIO -c:v libx265 -preset ultrafast -tag:v hvc1 -x265-params log-level=error -c:a aac",
            &["mov", "mkv"],
        ),
        (
            "vp9.webm",
            "VIDEO AUDIO -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -c:a libopus",
            &["mkv", "webm"],
        ),
    ] {
        let source = clip(name, arguments)?;
        let bytes = std::fs::read(&source)?;
        for target in targets {
            let (_, copied) = api.convert(name, &bytes, &[("format", target)]).await?;
            let copied = on_disk(&copied, target)?;
            for kind in ["v", "a"] {
                let checked = check_copied(&source, copied.path(), kind).await;
                checked.map_err(|reason| format!("{name} to {target}: {reason}"))?;
            }
            decodes(copied.path()).await?;
        }
    }
    Ok(())
}
