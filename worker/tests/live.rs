//! Re-encoding of live streams: what comes out of every source, key frames on demand, damage.
#![cfg(feature = "codecs")]

#[path = "av/clips.rs"]
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod clips;
#[path = "live/material.rs"]
mod material;

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    process::Command,
    sync::mpsc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use sluice_media::{
    av::{
        AvTask,
        live::{FromLive, LiveProgress, LiveTrack, LiveVideo, ToLive},
    },
    task::{Done, Failure},
    unit::Unit,
};
use sluice_worker::av;

use clips::{LIMITS, can_be_made, clip, ffmpeg, folder};
use material::{byte_stream, ogg, times, units};

/// For conditions; a debug build on a busy machine.
const SOON: Duration = Duration::from_secs(60);
const FULL_HD: LiveVideo = LiveVideo {
    max_width: 1_920,
    max_height: 1_080,
    max_rate: 60,
    max_bitrate: 6_000_000,
};
/// Frames that a decoder may hold back, since others may be shown before them.
const MOST_HELD: usize = 10;
/// Pace of the clips.
const FRAME: Duration = Duration::from_millis(40);
/// 320×180, 25 frames a second, 4 s.
const VIDEO: &str = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=4";

/// A worker's work on a thread of this process.
struct Live {
    socket: UnixStream,
    messages: mpsc::Receiver<FromLive>,
    video: Vec<(bool, i64, Bytes)>,
    audio: Vec<(i64, Bytes)>,
    progress: LiveProgress,
    undecodable: Vec<(LiveTrack, String)>,
    work: Option<JoinHandle<Result<Done, Failure>>>,
}

impl Live {
    fn start(video: bool, audio: bool) -> Self {
        clips::start();
        let (socket, theirs) = UnixStream::pair().unwrap();
        let work = thread::spawn(move || {
            av::perform(
                &AvTask::Live,
                vec![theirs.into()],
                Vec::new(),
                &LIMITS,
                &mut |_| {},
            )
        });
        let (sender, messages) = mpsc::channel();
        let mut reading = socket.try_clone().unwrap();
        thread::spawn(move || {
            let (mut chunk, mut input) = (vec![0; 65_536], BytesMut::new());
            loop {
                let length = reading.read(&mut chunk).unwrap_or(0);
                input.extend_from_slice(&chunk[..length]);
                while let Some(message) = FromLive::decode(&mut input).expect("well formed") {
                    let _ = sender.send(message);
                }
                if length == 0 {
                    return;
                }
            }
        });
        let mut this = Self {
            socket,
            messages,
            video: Vec::new(),
            audio: Vec::new(),
            progress: LiveProgress::default(),
            undecodable: Vec::new(),
            work: Some(work),
        };
        if video {
            let (encoder, work) = (0, FULL_HD);
            this.send(&ToLive::StartVideo { encoder, work });
        }
        if audio {
            this.send(&ToLive::StartAudio { bitrate: 96_000 });
        }
        this
    }

    fn send(&mut self, message: &ToLive) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        self.socket.write_all(&bytes).unwrap();
    }

    fn push(&mut self, units: &[Unit], is_old: bool) {
        for unit in units {
            self.send(&match unit.clone() {
                Unit::VideoConfig(config) => ToLive::VideoConfig {
                    codec: config.codec,
                    record: config.record.clone(),
                },
                Unit::AudioConfig(config) => ToLive::AudioConfig {
                    codec: config.codec,
                    record: config.record.clone(),
                },
                Unit::Video(frame) => ToLive::Video {
                    key: frame.key,
                    is_old,
                    dts_90k: frame.dts_90k,
                    cts_90k: frame.cts_90k,
                    data: frame.data,
                },
                Unit::Audio(frame) => ToLive::Audio {
                    pts_90k: frame.pts_90k,
                    data: frame.data,
                },
            });
        }
    }

    /// Reads until a condition holds.
    fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + SOON;
        while !holds(self) {
            match self.messages.recv_timeout(Duration::from_millis(100)) {
                Ok(FromLive::Video {
                    key, pts_90k, data, ..
                }) => self.video.push((key, pts_90k, data)),
                Ok(FromLive::Audio { pts_90k, data }) => self.audio.push((pts_90k, data)),
                Ok(FromLive::Progress(progress)) => self.progress = progress,
                Ok(FromLive::Undecodable { track, reason }) => {
                    self.undecodable.push((track, reason));
                }
                Err(_) => {}
            }
            assert!(
                Instant::now() < deadline,
                "{what}: {} frames, {} packets, {:?} {:?}",
                self.video.len(),
                self.audio.len(),
                self.progress,
                self.undecodable
            );
        }
    }

    /// Pushes units at their pace, and waits until their frames have come or were dropped.
    fn push_paced(&mut self, units: &[Unit]) {
        let pushed = units
            .iter()
            .filter(|it| matches!(it, Unit::Video(_)))
            .count();
        let goal = self.video.len() + self.progress.dropped as usize + pushed;
        for unit in units {
            self.push(std::slice::from_ref(unit), false);
            if let Unit::Video(_) = unit {
                thread::sleep(FRAME);
            }
        }
        self.until("frames come out", |live| {
            live.video.len() + live.progress.dropped as usize + MOST_HELD >= goal
        });
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let ended = self.work.take().map(JoinHandle::join);
        if !thread::panicking() {
            assert!(matches!(ended, Some(Ok(Ok(_)))), "{ended:?}");
        }
    }
}

/// Returns an entry of ffprobe's about the only stream of a file.
fn entry(path: &Path, name: &str) -> String {
    let output = Command::new("ffprobe")
        .args([
            "-v",
            "error",
            "-count_frames",
            "-of",
            "csv=p=0",
            "-show_entries",
        ])
        .arg(format!("stream={name}"))
        .arg(path)
        .output()
        .expect("ffprobe runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn written(name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = folder().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn every_video_becomes_a_baseline_stream_with_its_times() {
    if !can_be_made() {
        return;
    }
    let cases = [
        (
            "b-frames.mp4",
            "-c:v libx264 -preset fast -bf 3 -pix_fmt yuv420p -g 50",
        ),
        (
            "deep.mp4",
            "-c:v libx264 -preset fast -bf 3 -pix_fmt yuv422p10le -g 50",
        ),
        (
            "fields.mp4",
            "-vf tinterlace=interleave_top -c:v libx264 -preset fast -flags +ildct+ilme -pix_fmt yuv420p",
        ),
        (
            "main10.mp4",
            "-c:v libx265 -preset ultrafast -x265-params log-level=none -pix_fmt yuv420p10le -tag:v hvc1 -g 50",
        ),
        (
            "av1.mp4",
            "-c:v libaom-av1 -cpu-used 8 -pix_fmt yuv420p -g 50",
        ),
    ];
    for (name, coding) in cases {
        let source = units(&clip(name, &format!("{VIDEO} {coding}")));
        let expected = times(&source, true);
        let mut live = Live::start(true, false);
        live.push_paced(&source);
        let made: Vec<i64> = live.video.iter().map(|(_, pts, _)| *pts).collect();
        assert!(made.is_sorted_by(|a, b| a < b), "{name}: {made:?}");
        let strange: Vec<_> = made.iter().filter(|it| !expected.contains(it)).collect();
        assert!(strange.is_empty(), "{name}: {strange:?} of {expected:?}");
        assert!(live.video[0].0, "{name}: a key frame first");
        let keys = live.video.iter().filter(|(key, _, _)| *key);
        let longest = keys
            .map(|(_, pts, _)| *pts)
            .collect::<Vec<_>>()
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .max();
        assert!(
            longest.is_some_and(|it| it <= 2 * 90_000 + 9_000),
            "{name}: {longest:?}"
        );

        let path = written(
            &format!("{name}.h264"),
            &byte_stream(live.video.iter().map(|(_, _, data)| data)),
        );
        assert_eq!(entry(&path, "profile"), "Constrained Baseline", "{name}");
        assert_eq!(entry(&path, "pix_fmt"), "yuv420p", "{name}");
        assert_eq!(entry(&path, "has_b_frames"), "0", "{name}");
        assert_eq!(entry(&path, "nb_read_frames"), live.video.len().to_string());
        assert!(!ffmpeg(&path, "-f rawvideo -vf scale=16:16").is_empty());
    }
}

/// Silent for 2 s, then loud.
const LATE: &str = "aevalsrc=exprs='if(gte(t,2),0.5*sin(2000*PI*t),0)':duration=4:sample_rate";

#[test]
fn every_audio_becomes_opus_in_time() {
    if !can_be_made() {
        return;
    }
    for (name, arguments) in [
        (
            "aac48.mp4",
            format!("-f lavfi -i {LATE}=48000 -c:a aac -ac 2"),
        ),
        (
            "aac44.mp4",
            format!("-f lavfi -i {LATE}=44100 -c:a aac -ac 1"),
        ),
        (
            "six.mp4",
            format!("-f lavfi -i {LATE}=48000 -c:a aac -ac 6"),
        ),
        (
            "mp3.mp4",
            format!("-f lavfi -i {LATE}=44100 -c:a libmp3lame -ac 2"),
        ),
        (
            "opus6.mp4",
            format!("-f lavfi -i {LATE}=48000 -c:a libopus -ac 6 -mapping_family 1"),
        ),
    ] {
        let source = units(&clip(name, &arguments));
        let expected = times(&source, false);
        let mut live = Live::start(false, true);
        live.push(&source, false);
        live.until(name, |live| live.audio.len() >= 190);
        assert_eq!(live.undecodable, []);
        let made: Vec<i64> = live.audio.iter().map(|(pts, _)| *pts).collect();
        let steps = made.windows(2).all(|pair| pair[1] - pair[0] == 1_800);
        assert!(steps, "{name}: {made:?}");
        assert!(
            (made[0] + 585 - expected[0]).abs() <= 90,
            "{name}: {}",
            made[0]
        );

        let packets = live.audio.iter().map(|(_, data)| data);
        let path = written(&format!("{name}.ogg"), &ogg(packets));
        let samples = ffmpeg(&path, "-f s16le -ac 1 -ar 48000");
        let loud = |sample: &[u8]| i16::from_le_bytes([sample[0], sample[1]]).abs() > 1_500;
        let first = samples.chunks_exact(2).position(loud).expect("audio");
        // The clip's zero is behind the priming of its encoder, of which the packets' times know.
        let heard_s = first as f64 / 48_000.0 + made[0] as f64 / 90_000.0;
        assert!((heard_s - 2.0).abs() < 0.01, "{name}: {heard_s}");
    }
}

#[test]
fn key_frames_come_on_demand_and_encoders_and_sources_change() {
    if !can_be_made() {
        return;
    }
    let source = units(&clip(
        "demand.mp4",
        &format!("{VIDEO} -c:v libx264 -bf 2 -g 25 -pix_fmt yuv420p"),
    ));
    let mut live = Live::start(true, false);
    // The first second is in the past: it is decoded, and not encoded.
    live.push(&source[..26], true);
    live.push_paced(&source[26..60]);
    let expected = times(&source, true);
    assert!(
        live.video[0].0 && live.video[0].1 > expected[20],
        "{:?}",
        live.video[0].1
    );
    thread::sleep(Duration::from_millis(600));
    live.send(&ToLive::WantKeyFrame(0));
    let before = live.video.len();
    live.push_paced(&source[60..]);
    let keys = |live: &Live, from: usize| live.video[from..].iter().filter(|it| it.0).count();
    assert!(
        keys(&live, before) >= 1,
        "{} of {}",
        keys(&live, before),
        live.video.len()
    );

    // Another size in the middle, from the same clock's beginning.
    let other = units(&clip(
        "other.mp4",
        "-f lavfi -i testsrc2=size=640x360:rate=25:duration=2 -c:v libx264 -g 25 -pix_fmt yuv420p",
    ));
    let before = live.video.len();
    live.push_paced(&other);
    live.until("the last frames", |live| {
        live.video
            .last()
            .is_some_and(|it| it.1 > 90_000 && it.1 < 180_000)
    });
    let start =
        (before.max(1)..live.video.len()).find(|at| live.video[*at].1 < live.video[at - 1].1);
    let start = start.expect("a frame of the other clip");
    assert!(live.video[start].0 && live.video[start].1 <= 9_000);
    live.send(&ToLive::StopVideo(0));
    live.push(&source, false);
    live.until("all is taken", |live| live.progress.video_taken >= 250);
    let (encoder, work) = (
        7,
        LiveVideo {
            max_width: 160,
            max_height: 90,
            ..FULL_HD
        },
    );
    live.send(&ToLive::StartVideo { encoder, work });
    let before = live.video.len();
    live.push_paced(&source);
    assert!(live.video[before].0 && live.video.len() > before + 10);
    let path = written(
        "small.h264",
        &byte_stream(live.video[before..].iter().map(|(_, _, data)| data)),
    );
    assert_eq!(entry(&path, "width"), "160");
}

/// A viewer who joins late in a long group of pictures must not wait for the next one.
#[test]
fn a_long_group_in_the_past_is_decoded_whole() {
    if !can_be_made() {
        return;
    }
    let source = units(&clip(
        "long-group.mp4",
        "-f lavfi -i testsrc2=size=1280x720:rate=25:duration=8 -c:v libx264 -bf 2 -g 1000 -pix_fmt yuv420p",
    ));
    let expected = times(&source, true);
    let recent = source.len() - 25;
    let mut live = Live::start(true, false);
    live.push(&source[..recent], true);
    live.push_paced(&source[recent..]);
    // Those that the encoder leaves out while it starts.
    assert!(live.progress.dropped < 25, "{:?}", live.progress);
    assert!(
        live.video[0].0 && live.video[0].1 > expected[expected.len() - 30],
        "{:?}",
        live.video[0].1
    );
}

#[test]
fn damage_ends_nothing() {
    if !can_be_made() {
        return;
    }
    let source = units(&clip(
        "damage.mp4",
        &format!("{VIDEO} -c:v libx264 -bf 2 -g 25 -pix_fmt yuv420p"),
    ));
    let mut live = Live::start(true, true);
    let garbage = |unit: &Unit, number: usize| match unit {
        Unit::Video(frame) => {
            let mut data = frame.data.to_vec();
            for (index, byte) in data.iter_mut().enumerate().skip(4) {
                *byte ^= (index * 31 + number * 7) as u8;
            }
            let data = data.into();
            Unit::Video(sluice_media::unit::VideoUnit {
                data,
                ..frame.clone()
            })
        }
        other => other.clone(),
    };
    let damaged: Vec<Unit> = source
        .iter()
        .enumerate()
        .map(|(number, unit)| garbage(unit, number))
        .collect();
    live.push(&damaged, false);
    live.push(&source, false);
    live.until("all is taken", |live| live.progress.video_taken >= 200);
    live.push_paced(&source);
    assert!(live.video.iter().any(|(_, pts, _)| *pts > 3 * 90_000));
    live.send(&ToLive::VideoConfig {
        codec: sluice_media::codec::VideoCodec::Avc,
        record: Bytes::from_static(b"\x01\x42"),
    });
    live.until("a report", |live| !live.undecodable.is_empty());
    assert_eq!(live.undecodable[0].0, LiveTrack::Video);
}
