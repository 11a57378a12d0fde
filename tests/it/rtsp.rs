//! A live input that is fetched from an RTSP server (GStreamer's).

use std::{process::Stdio, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::support::{
    Failure,
    encoder::Publish,
    http::free_port,
    media::Recipe,
    server::{Server, Settings},
    viewer::Viewer,
};

const PLAYED: Duration = Duration::from_secs(40);
const LAUNCH: &str = "( videotestsrc is-live=true ! video/x-raw,format=I420,width=320,height=180,framerate=30/1 ! \
    x264enc bframes=3 b-adapt=false b-pyramid=true ref=4 key-int-max=30 speed-preset=veryfast ! \
    video/x-h264,profile=main ! h264parse ! rtph264pay name=pay0 pt=96 config-interval=-1 \
    audiotestsrc is-live=true ! audio/x-raw,rate=48000,channels=2 ! avenc_aac ! rtpmp4gpay name=pay1 pt=97 )";

/// A camera that wants a user name and password.
struct Camera {
    child: Child,
}

impl Camera {
    async fn start(port: u16) -> Result<Self, Failure> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/ingest/tests/rtsp/serve.py");
        let mut child = Command::new("/usr/bin/python3")
            .args([script, "tcp", LAUNCH])
            .env("RTSP_LOGIN", "viewer:secret")
            .env("RTSP_PORT", port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let said = child.stdout.take().ok_or("no output")?;
        let line = tokio::time::timeout(PLAYED, BufReader::new(said).lines().next_line()).await??;
        line.ok_or("GStreamer's RTSP server is not installed: scripts/install.sh test")?;
        Ok(Self { child })
    }

    async fn kill(mut self) -> Result<(), Failure> {
        Ok(self.child.kill().await?)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_camera_is_watched_and_comes_back() -> Result<(), Failure> {
    let port = free_port()?;
    let url = format!("rtsp://viewer:secret@127.0.0.1:{port}/stream?token=hidden");
    let server = Settings::new()
        .reaching_this_machine()
        .env("SLUICE_RTSP__RETRY_LONGEST", "1s")
        .start()
        .await?;
    let api = server.api();
    // No one is there yet: health says why, and the input is tried again.
    let input = api.create(json!({"pullUrl": url})).await?;
    let failing = |health: &Value| health["trouble"]["pull"].is_string();
    api.wait_health(&input.id, "the camera is not there", PLAYED, failing)
        .await?;
    let record = api.get(&input.id).await?;
    assert_eq!(
        record["pullUrl"],
        format!("rtsp://••••@127.0.0.1:{port}/stream?••••")
    );

    let camera = Camera::start(port).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let measured = |health: &Value| {
        let is_known = |field: &str| !health[field].is_null();
        health["protocol"] == "rtsp" && is_known("keyFrameIntervalS") && is_known("bFrames")
    };
    let health = api
        .wait_health(&input.id, "a measured camera", PLAYED, measured)
        .await?;
    let codecs = (&health["videoCodec"], &health["audioCodec"]);
    assert_eq!(codecs, (&json!("h264"), &json!("aac")));
    assert_eq!(health["bFrames"], true);
    assert_eq!(health["trouble"]["pull"], Value::Null);
    let broadcast = health["broadcast"].clone();
    let (_, metrics) = server.get("/metrics").await?;
    let metrics = String::from_utf8_lossy(&metrics).into_owned();
    for (protocol, publishers) in [("rtmp", 0), ("rtsp", 1)] {
        let line = format!("sluice_live_publishers{{protocol=\"{protocol}\"}} {publishers}\n");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }

    camera.kill().await?;
    api.wait_status(&input.id, "reconnecting", PLAYED).await?;
    let camera = Camera::start(port).await?;
    let again = |health: &Value| health["sessions"] == 2 && health["status"] == "live";
    let health = api
        .wait_health(&input.id, "the camera is back", PLAYED, again)
        .await?;
    assert_eq!(health["broadcast"], broadcast);

    // An encoder takes over, and the camera waits.
    let clip = Recipe::numbered(0).make()?;
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    let taken =
        |health: &Value| health["protocol"] == "rtmp" && health["trouble"]["pull"].is_string();
    api.wait_health(&input.id, "the encoder has the input", PLAYED, taken)
        .await?;
    encoder.kill().await?;
    let back = |health: &Value| health["protocol"] == "rtsp" && health["status"] == "live";
    api.wait_health(&input.id, "the camera has it again", PLAYED, back)
        .await?;

    // Without its source the broadcast ends.
    api.patch(&input.id, json!({"pullUrl": null})).await?;
    viewing.until_ended(PLAYED).await?;
    camera.kill().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn private_networks_are_not_dialled() -> Result<(), Failure> {
    let server = Server::start().await?;
    let refused = server
        .api()
        .create(json!({"pullUrl": "rtsp://127.0.0.1/1"}))
        .await;
    let message = refused.err().ok_or("it was accepted")?.to_string();
    assert!(message.contains("outbound.allow"), "{message}");
    Ok(())
}
