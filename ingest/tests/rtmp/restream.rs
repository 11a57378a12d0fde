//! Restreaming: units that arrived are published to our own server, which must receive the same units.

use std::{path::Path, time::Duration};

use sluice_ingest::{
    publish::{Ended, Rejection},
    rtmp::publish::{Failure, Patience, PublishTarget, Publisher},
};
use sluice_media::unit::Unit;
use tokio::net::{TcpListener, TcpStream};

use crate::{
    ffmpeg,
    support::{DEADLINE, Notes, RecordingAuthorizer, Server},
};

const PATIENCE: Patience = Patience {
    answer: DEADLINE,
    write: DEADLINE,
};
const SECRET: &str = "slug.svc_live_secret";

fn target(server: &Server) -> PublishTarget {
    PublishTarget {
        app: "live".into(),
        stream: SECRET.into(),
        tc_url: format!("rtmp://{}/live", server.address).into(),
    }
}

async fn open(server: &Server) -> Result<Publisher<TcpStream>, Failure> {
    let socket = TcpStream::connect(server.address).await.unwrap();
    Publisher::open(socket, target(server), PATIENCE).await
}

/// Publishes a clip of these codecs by ffmpeg; returns what arrived, and what arrived after restreaming.
async fn published_twice(program: &Path, codecs: &[&str]) -> (Notes, Notes) {
    let folder = tempfile::tempdir().unwrap();
    let source = ffmpeg::source(program, folder.path(), codecs).await;
    let authorizer = RecordingAuthorizer::new();
    let mut server = Server::start(&authorizer).await;
    let url = server.url("live", SECRET);
    let run = ffmpeg::run(program, &["-i", &source, "-c", "copy", "-f", "flv", &url]).await;
    assert!(run.status.success(), "{}", ffmpeg::stderr(&run));
    server.outcome().await.unwrap();
    let first = authorizer.notes();

    let authorizer = RecordingAuthorizer::new();
    let mut server = Server::start(&authorizer).await;
    let mut publisher = open(&server).await.unwrap();
    let mut sent = 0;
    for units in first.units.chunks(7) {
        sent += publisher.send(units).await.unwrap();
    }
    publisher.close().await;
    server.outcome().await.unwrap();
    let second = authorizer.notes();
    let received = second.report.as_ref().unwrap().bytes_received;
    assert!(sent > 0 && sent < received, "{sent} of {received} bytes");
    (first, second)
}

/// A unit's place in the comparison, without its type's `Debug` of many bytes.
fn facts(units: &[Unit], video: bool) -> Vec<(i64, i64, bool, bytes::Bytes)> {
    let fact = |unit: &Unit| match unit {
        Unit::VideoConfig(config) if video => Some((0, 0, false, config.record.clone())),
        Unit::AudioConfig(config) if !video => Some((0, 0, false, config.record.clone())),
        Unit::Video(unit) if video => {
            let cts_90k = i64::from(unit.cts_90k);
            Some((unit.dts_90k, cts_90k, unit.key, unit.data.clone()))
        }
        Unit::Audio(unit) if !video => Some((unit.pts_90k, 0, false, unit.data.clone())),
        _ => None,
    };
    units.iter().filter_map(fact).collect()
}

fn assert_same(first: &Notes, second: &Notes) {
    for video in [true, false] {
        let (first, second) = (facts(&first.units, video), facts(&second.units, video));
        assert!(first.len() > 30, "{} units", first.len());
        assert!(first == second, "units differ (video: {video})");
    }
    assert_eq!(second.ends, [Ended::Clean]);
    let report = second.report.as_ref().unwrap();
    assert_eq!((report.damaged, &report.last_damage), (0, &None));
    assert_eq!(report.encoder.as_deref(), Some("Sluice"));
}

#[tokio::test]
async fn h264_and_aac_continue_as_they_came() {
    let codecs = ["-c:v", "libx264", "-bf", "2", "-g", "30", "-c:a", "aac"];
    let (first, second) = published_twice(Path::new(ffmpeg::DEBIAN), &codecs).await;
    assert_same(&first, &second);
}

#[tokio::test]
async fn mp3_continues_as_it_came() {
    let codecs = ["-c:v", "libx264", "-g", "30", "-c:a", "libmp3lame"];
    let (first, second) = published_twice(Path::new(ffmpeg::DEBIAN), &codecs).await;
    assert_same(&first, &second);
}

#[tokio::test]
async fn the_codecs_of_enhanced_rtmp_continue_as_they_came() {
    let Some(program) = ffmpeg::current().await else {
        eprintln!("SKIPPED: HEVC, AV1 and Opus, for want of a current ffmpeg");
        return;
    };
    for codecs in [
        [
            "-c:v", "libx265", "-g", "30", "-c:a", "aac", "-tag:v", "hvc1",
        ],
        [
            "-c:v",
            "libsvtav1",
            "-g",
            "30",
            "-c:a",
            "libopus",
            "-preset",
            "12",
        ],
    ] {
        let (first, second) = published_twice(&program, &codecs).await;
        assert_same(&first, &second);
    }
}

#[tokio::test]
async fn a_rejection_is_reported_in_the_words_of_the_server() {
    let authorizer = RecordingAuthorizer::refusing(Rejection::Unauthorized);
    let server = Server::start(&authorizer).await;
    let rejection = open(&server).await.unwrap_err().to_string();
    assert!(
        rejection.contains(Rejection::Unauthorized.message()),
        "{rejection}"
    );
}

#[tokio::test]
async fn a_server_that_ends_the_publish_is_heard() {
    let authorizer = RecordingAuthorizer::new();
    let server = Server::start(&authorizer).await;
    let mut publisher = open(&server).await.unwrap();
    authorizer.close_all();
    let ended = async {
        loop {
            // Answers of the server to earlier messages.
            publisher.attend().await?;
            publisher.send(&[]).await?;
        }
    };
    let ended: Result<(), Failure> = tokio::time::timeout(DEADLINE, ended).await.unwrap();
    assert!(matches!(ended, Err(Failure::Ended(_))), "{ended:?}");
}

/// Checks a server that accepts the connection and never answers.
#[tokio::test(start_paused = true)]
async fn a_silent_server_is_waited_for_within_bounds() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let target = PublishTarget {
        app: "live".into(),
        stream: SECRET.into(),
        tc_url: "rtmp://silent.test/live".into(),
    };
    let patience = Patience {
        answer: Duration::from_secs(10),
        ..PATIENCE
    };
    let failure = Publisher::open(socket, target, patience).await.unwrap_err();
    assert!(matches!(failure, Failure::TimedOut { .. }), "{failure}");
}
