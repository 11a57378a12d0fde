//! Real encoders publish, and the units are the ones that they sent.

use std::path::Path;

use sluice_ingest::publish::{Ended, Protocol, Rejection};
use sluice_media::unit::{AudioUnit, Unit, VideoUnit};

use crate::{
    ffmpeg::{self, Packet},
    support::{Notes, RecordingAuthorizer, Server},
};

const H264_AAC: &[&str] = &[
    "-c:v", "libx264", "-bf", "2", "-g", "30", "-pix_fmt", "yuv420p", "-c:a", "aac",
];

struct Publish<'a> {
    program: &'a Path,
    codecs: &'a [&'a str],
    /// Options before the output address.
    options: &'a [&'a str],
}

struct Published {
    notes: Notes,
    video: Vec<Packet>,
    audio: Vec<Packet>,
    capture: Vec<u8>,
}

async fn publish(publish: Publish<'_>) -> Published {
    let folder = tempfile::tempdir().unwrap();
    let source = ffmpeg::source(publish.program, folder.path(), publish.codecs).await;
    let authorizer = RecordingAuthorizer::new();
    let mut server = Server::start(&authorizer).await;
    let url = server.url("live", "slug.svc_live_key?token=ignored");
    let arguments = [
        &["-i", &source, "-c", "copy"],
        publish.options,
        &["-f", "flv", &url],
    ]
    .concat();
    let run = ffmpeg::run(publish.program, &arguments).await;
    assert!(run.status.success(), "{}", ffmpeg::stderr(&run));
    server.outcome().await.unwrap();
    Published {
        notes: authorizer.notes(),
        video: ffmpeg::packets(&source, "v").await,
        audio: ffmpeg::packets(&source, "a").await,
        capture: server.received(),
    }
}

fn video_frames(notes: &Notes) -> Vec<&VideoUnit> {
    notes
        .units
        .iter()
        .filter_map(|unit| match unit {
            Unit::Video(video) => Some(video),
            _ => None,
        })
        .collect()
}

fn audio_units(notes: &Notes) -> Vec<&AudioUnit> {
    notes
        .units
        .iter()
        .filter_map(|unit| match unit {
            Unit::Audio(audio) => Some(audio),
            _ => None,
        })
        .collect()
}

fn codecs(notes: &Notes) -> Vec<&'static str> {
    notes
        .units
        .iter()
        .filter_map(|unit| match unit {
            Unit::VideoConfig(config) => Some(config.codec.name()),
            Unit::AudioConfig(config) => Some(config.codec.name()),
            _ => None,
        })
        .collect()
}

/// Every packet of the source arrived once, in order, at its time: FLV rounds to a millisecond, and moves all times by
/// one offset when the first decode time is negative.
fn assert_same(published: &Published) {
    let video_frames = video_frames(&published.notes);
    assert_eq!(video_frames.len(), published.video.len(), "frames");
    let (first, first_sent) = (video_frames[0], published.video[0]);
    for (index, (unit, packet)) in video_frames.iter().zip(&published.video).enumerate() {
        let dts_ms = (unit.dts_90k - first.dts_90k) as f64 / 90.0;
        assert_near(dts_ms, packet.dts_ms - first_sent.dts_ms, "dts", index);
        let cts_ms = f64::from(unit.cts_90k) / 90.0;
        assert_near(cts_ms, packet.pts_ms - packet.dts_ms, "cts", index);
        assert_eq!(unit.key, packet.key, "key flag of frame {index}");
    }
    let audio_units = audio_units(&published.notes);
    assert_eq!(audio_units.len(), published.audio.len(), "audio frames");
    for (index, (unit, packet)) in audio_units.iter().zip(&published.audio).enumerate() {
        let pts_ms = (unit.pts_90k - first.dts_90k) as f64 / 90.0;
        assert_near(pts_ms, packet.pts_ms - first_sent.dts_ms, "pts", index);
    }
}

fn assert_near(got: f64, expected: f64, what: &str, index: usize) {
    assert!(
        (got - expected).abs() <= 1.01,
        "{what} of packet {index}: {got} ms instead of {expected} ms"
    );
}

#[tokio::test]
async fn h264_and_aac_with_b_frames_arrive_whole() {
    let published = publish(Publish {
        program: Path::new(ffmpeg::DEBIAN),
        codecs: H264_AAC,
        options: &[],
    })
    .await;
    assert_same(&published);
    let notes = &published.notes;
    assert!(video_frames(notes).iter().any(|unit| unit.cts_90k > 0));
    assert_eq!(codecs(notes), ["h264", "aac"]);
    assert_eq!(notes.ends, [Ended::Clean]);
    let request = &notes.requests[0];
    assert_eq!(&*request.stream, "slug.svc_live_key");
    let report = notes.report.as_ref().unwrap();
    assert_eq!((report.damaged, &report.last_damage), (0, &None));
    assert!(report.encoder.as_deref().unwrap().starts_with("Lavf"));
    assert_eq!(report.bytes_received, published.capture.len() as u64);
    keep_as_seed("ffmpeg-h264-aac", &published.capture);
}

#[tokio::test]
async fn extended_timestamps_and_wraps_go_straight_on() {
    for (name, offset) in [("2^24 ms", "16776"), ("2^31 ms", "2147482.5")] {
        let published = publish(Publish {
            program: Path::new(ffmpeg::DEBIAN),
            codecs: H264_AAC,
            options: &["-output_ts_offset", offset],
        })
        .await;
        let first_ms = video_frames(&published.notes)[0].dts_90k / 90;
        let expected_ms = offset.parse::<f64>().unwrap() * 1000.0;
        assert!(
            (first_ms as f64 - expected_ms).abs() < 200.0,
            "{name}: starts at {first_ms}"
        );
        assert_same(&published);
    }
}

#[tokio::test]
async fn a_current_ffmpeg_publishes_enhanced_rtmp() {
    let Some(program) = ffmpeg::current().await else {
        eprintln!(
            "no current ffmpeg on this machine: enhanced RTMP is tested with crafted bytes only"
        );
        return;
    };
    let cases: [(&str, &[&str], &[&str]); 3] = [
        (
            "ffmpeg-hevc-aac",
            &[
                "-c:v",
                "libx265",
                "-preset",
                "ultrafast",
                "-x265-params",
                "bframes=2:keyint=30:log-level=error",
                "-tag:v",
                "hvc1",
                "-c:a",
                "aac",
            ],
            &["hevc", "aac"],
        ),
        (
            "ffmpeg-av1-opus",
            &[
                "-c:v",
                "libsvtav1",
                "-preset",
                "12",
                "-g",
                "30",
                "-c:a",
                "libopus",
            ],
            &["av1", "opus"],
        ),
        ("ffmpeg-current-h264-aac", H264_AAC, &["h264", "aac"]),
    ];
    for (name, encoders, expected) in cases {
        let published = publish(Publish {
            program: &program,
            codecs: encoders,
            options: &[],
        })
        .await;
        assert_eq!(codecs(&published.notes), expected, "{name}");
        let report = published.notes.report.as_ref().unwrap();
        assert_eq!((report.damaged, &report.last_damage), (0, &None), "{name}");
        assert_eq!(published.notes.ends, [Ended::Clean], "{name}");
        assert_same(&published);
        keep_as_seed(name, &published.capture);
    }
}

#[tokio::test]
async fn a_refused_publisher_reads_why() {
    let folder = tempfile::tempdir().unwrap();
    let source = ffmpeg::source(ffmpeg::DEBIAN, folder.path(), H264_AAC).await;
    let cases = [
        ("live", Some(Rejection::Unauthorized), "unknown stream key"),
        (
            "live",
            Some(Rejection::Conflict),
            "another encoder uses this key",
        ),
        ("live/inner", None, "must end in /live"),
        ("other", None, "must end in /live"),
    ];
    for (app, rejection, reason) in cases {
        let authorizer = match rejection {
            Some(rejection) => RecordingAuthorizer::refusing(rejection),
            None => RecordingAuthorizer::new(),
        };
        let mut server = Server::start(&authorizer).await;
        let url = server.url(app, "slug.wrong");
        let arguments = ["-i", &source, "-c", "copy", "-f", "flv", &url];
        let run = ffmpeg::run(ffmpeg::DEBIAN, &arguments).await;
        assert!(!run.status.success(), "{app}");
        let stderr = ffmpeg::stderr(&run);
        assert!(stderr.contains(reason), "{app}: {stderr}");
        assert!(server.outcome().await.is_err(), "{app}");
        assert!(authorizer.notes().units.is_empty(), "{app}");
    }
}

#[tokio::test]
async fn rtmps_is_the_same_behind_tls() {
    let folder = tempfile::tempdir().unwrap();
    let source = ffmpeg::source(ffmpeg::DEBIAN, folder.path(), H264_AAC).await;
    let authorizer = RecordingAuthorizer::new();
    let mut server = Server::start_tls(&authorizer).await;
    let url = server.url("live", "slug.key").replace("rtmp:", "rtmps:");
    let arguments = ["-i", &source, "-c", "copy", "-f", "flv", &url];
    let run = ffmpeg::run(ffmpeg::DEBIAN, &arguments).await;
    assert!(run.status.success(), "{}", ffmpeg::stderr(&run));
    server.outcome().await.unwrap();
    let notes = authorizer.notes();
    assert_eq!(notes.requests[0].protocol, Protocol::Rtmps);
    assert_eq!(
        video_frames(&notes).len(),
        ffmpeg::packets(&source, "v").await.len()
    );
    assert_eq!(notes.ends, [Ended::Clean]);
}

/// Keeps a capture as a seed of the fuzz targets, when `SLUICE_WRITE_CORPUS` is set.
fn keep_as_seed(name: &str, capture: &[u8]) {
    if std::env::var_os("SLUICE_WRITE_CORPUS").is_none() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/rtmp_session");
    std::fs::create_dir_all(&folder).unwrap();
    // The opening and the first frames: enough to reach every kind of message, short enough to mutate well.
    let kept = capture.len().min(24 << 10);
    std::fs::write(folder.join(name), &capture[..kept]).unwrap();
}
