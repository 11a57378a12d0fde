//! Targets that are away, stuck, slow or unwilling; and a service that is killed.

use std::process::Command;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, UdpSocket};

use super::{
    Output, PLAYED, SOON, check_from_key_frame_to_a_cut, listening::Listening, outputs_of,
    relay::Relay, sender,
};
use crate::support::{
    Failure,
    encoder::Publish,
    eventually,
    http::free_port,
    media::{Clip, Recipe, check_contiguous_to_a_cut},
    server::{Input, Server},
    viewer::Viewer,
};

/// Noise, so that it has 10 Mbit/s: a stuck target's socket buffers are soon full.
fn noise() -> Result<(Clip, TempDir), Failure> {
    let folder = tempfile::tempdir()?;
    let flv = folder.path().join("noise.flv");
    let video_frame = "testsrc2=size=640x360:rate=30:duration=20,noise=alls=60:allf=t";
    let made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", video_frame])
        .args(["-f", "lavfi", "-i", "sine=sample_rate=48000:duration=20"])
        .args(["-c:v", "libx264", "-preset", "ultrafast", "-b:v", "10M"])
        .args(["-pix_fmt", "yuv420p", "-g", "30", "-c:a", "aac"])
        .arg(&flv)
        .status()?;
    assert!(made.success());
    let recipe = Recipe::numbered(0).lasting(20);
    let mp4 = flv.clone();
    Ok((Clip { recipe, flv, mp4 }, folder))
}

/// Settings of an input that is watched to its end: an encoder that closes while more is still to be sent resets the
/// connection, its goodbye is lost then, and the broadcast ends with the reconnect window.
fn brief_window() -> Value {
    json!({"reconnectWindowSeconds": 5})
}

/// Publishes the whole clip to the input, and checks that anyone who watches it gets every frame.
async fn is_not_felt(
    source: &Input,
    meanwhile: impl AsyncFnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (clip, _folder) = noise()?;
    let mut watching = Viewer::new(&source.hls_url).start();
    let mut encoder = Publish::new(&clip, &source.rtmp_url())?.start()?;
    meanwhile().await?;
    assert!(encoder.wait(PLAYED).await?.success());
    let seen = watching.until_ended(SOON).await?;
    assert_eq!(
        seen.video_frames(),
        clip.frames() as usize,
        "{}",
        seen.summary()
    );
    Ok(())
}

/// The target accepts and never answers: nothing is read, and the handshake does not end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_target_is_not_felt() -> Result<(), Failure> {
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    let server = sender()
        .env("SLUICE_RESTREAM__ANSWER_TIMEOUT", "2s")
        .start()
        .await?;
    let source = server.api().create(brief_window()).await?;
    let url = format!("rtmp://{}/live/key", silent.local_addr()?);
    let output = Output::add(&server, &source.id, &url).await?;
    is_not_felt(&source, async || {
        let is_reported = |output: &Value| {
            let reason = output["lastError"].as_str().unwrap_or_default();
            reason.contains("the answer to publish took longer than 2s")
        };
        output.wait("it is given up", is_reported).await.map(drop)
    })
    .await
}

/// The target answers SRT with a datagram at which the SRT library panics: a failed connection, and one line of the log
/// for the output.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_srt_target_is_a_failed_connection() -> Result<(), Failure> {
    const HOSTILE: [u8; 16] = [
        0xff, 0xff, 0x00, 0x08, 0xff, 0xff, 0x51, 0xff, 0xbb, 0xff, 0xff, 0xff, 0xff, 0xbb, 0xff,
        0x51,
    ];
    let socket = UdpSocket::bind("127.0.0.1:0").await?;
    let address = socket.local_addr()?;
    let hostile = tokio::spawn(async move {
        let mut datagram = [0; 1500];
        while let Ok((_, from)) = socket.recv_from(&mut datagram).await {
            let _ = socket.send_to(&HOSTILE, from).await;
        }
    });
    let server = sender().start().await?;
    let source = server.api().create(brief_window()).await?;
    let output = Output::add(&server, &source.id, &format!("srt://{address}")).await?;
    is_not_felt(&source, async || {
        let is_reported = |output: &Value| {
            let reason = output["lastError"].as_str().unwrap_or_default();
            reason.contains("the receiver's answer is not understood")
        };
        output.wait("it fails with a reason", is_reported).await?;
        eventually("its panics are counted", SOON, async || {
            let (_, metrics) = server.get("/metrics").await.ok()?;
            let metrics = String::from_utf8_lossy(&metrics);
            let count = metrics
                .lines()
                .find_map(|line| line.strip_prefix("sluice_srt_output_panics "))?;
            (count.parse::<f64>().ok()? >= 3.0).then_some(())
        })
        .await
    })
    .await?;
    hostile.abort();
    let log = server.log();
    assert!(!log.contains("panicked"), "{log}");
    Ok(())
}

/// The target takes the stream, and then nothing more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stuck_target_is_not_felt() -> Result<(), Failure> {
    let server = sender()
        .env("SLUICE_RESTREAM__WRITE_TIMEOUT", "2s")
        .start()
        .await?;
    let api = server.api();
    let (source, target) = (
        api.create(brief_window()).await?,
        api.create(json!({})).await?,
    );
    let relay = Relay::start(server.addresses().rtmp)?;
    let url = format!("rtmp://{}/live/{}", relay.address, target.obs_stream_key);
    let output = Output::add(&server, &source.id, &url).await?;
    is_not_felt(&source, async || {
        let flows = |output: &Value| output["sentBytes"].as_u64() > Some(100_000);
        output.wait("the target takes it", flows).await?;
        relay.set_rate(0);
        let is_reported = |output: &Value| {
            let reason = output["lastError"].as_str().unwrap_or_default();
            reason.contains("taking the stream took longer than 2s")
        };
        output.wait("it is given up", is_reported).await?;
        // Once the target reads again, the output continues.
        relay.set_rate(u64::MAX);
        output.wait_status("live").await.map(drop)
    })
    .await
}

/// The target takes less than comes: it gets as much as it can take, from key frame to key frame.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_target_gets_less() -> Result<(), Failure> {
    let server = sender()
        .env("SLUICE_RESTREAM__BUFFER", "500ms")
        .env("SLUICE_RESTREAM__WRITE_TIMEOUT", "30s")
        .start()
        .await?;
    let source = server.api().create(brief_window()).await?;
    let port = free_port()?;
    let url = format!("rtmp://127.0.0.1:{port}/live/key");
    let listening = Listening::start(&["-listen", "1"], &url, "taken.flv")?;
    let relay = Relay::start(([127, 0, 0, 1], port).into())?;
    let url = format!("rtmp://{}/live/key", relay.address);
    let output = Output::add(&server, &source.id, &url).await?;
    is_not_felt(&source, async || {
        output.wait_status("live").await?;
        relay.set_rate(300_000);
        let is_behind = |output: &Value| output["droppedUnits"].as_u64() > Some(0);
        output.wait("frames are left out", is_behind).await?;
        relay.set_rate(u64::MAX);
        let record = output.wait_status("live").await?;
        assert_eq!(record["lastError"], Value::Null, "{record}");
        Ok(())
    })
    .await?;
    // No frame without those that it refers to.
    listening.decode().await
}

/// The target is killed in mid-stream, and started again; `url` gives its address.
async fn comes_back(url: impl Fn(&Input) -> Result<String, Failure>) -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let server = sender().start().await?;
    let mut receiver = Server::start().await?;
    let source = server.api().create(json!({})).await?;
    let target = receiver.api().create(json!({})).await?;
    let output = Output::add(&server, &source.id, &url(&target)?).await?;
    let mut watching = Viewer::new(&target.hls_url).tolerate_outages().start();
    let mut encoder = Publish::new(&clip, &source.rtmp_url())?.start()?;
    watching.until_frames(60, PLAYED).await?;
    receiver.kill().await?;
    let record = output.wait_status("waiting").await?;
    assert!(record["lastError"].is_string(), "{record}");
    let advice = server.api().health(&source.id).await?["advice"].to_string();
    assert!(advice.contains("does not go out"), "{advice}");
    receiver.restart().await?;
    output.wait_status("live").await?;
    let before = watching.collected().video_frames();
    watching.until_frames(before + 90, PLAYED).await?;
    encoder.stop().await?;
    let seen = watching.until_ended(SOON).await?;
    let ranges = seen.numbers()?;
    assert_eq!(ranges.len(), 2, "{}", seen.summary());
    check_from_key_frame_to_a_cut(&ranges[0])?;
    check_from_key_frame_to_a_cut(&ranges[1])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_comes_back_gets_it_from_a_key_frame_on() -> Result<(), Failure> {
    comes_back(|target| Ok(target.rtmp_url())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_does_one_by_srt() -> Result<(), Failure> {
    comes_back(Input::srt_url).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outputs_continue_after_a_killed_service() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let mut server = sender().start().await?;
    let receiver = Server::start().await?;
    let source = server.api().create(json!({})).await?;
    let target = receiver.api().create(json!({})).await?;
    Output::add(&server, &source.id, &target.rtmp_url()).await?;
    let mut watching = Viewer::new(&target.hls_url).start();
    let _first = Publish::new(&clip, &source.rtmp_url())?.start()?;
    watching.until_frames(60, PLAYED).await?;
    server.kill().await?;
    receiver
        .api()
        .wait_status(&target.id, "reconnecting", SOON)
        .await?;
    server.restart().await?;
    let mut encoder = Publish::new(&clip, &source.rtmp_url())?.start()?;
    receiver
        .api()
        .wait_status(&target.id, "live", PLAYED)
        .await?;
    let before = watching.collected().video_frames();
    watching.until_frames(before + 60, PLAYED).await?;
    encoder.stop().await?;
    let ranges = watching.until_ended(SOON).await?.numbers()?;
    assert_eq!(ranges.len(), 2);
    check_contiguous_to_a_cut(&ranges[1], 0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejection_is_reported_and_no_secret_with_it() -> Result<(), Failure> {
    const SECRET: &str = "wrong-key-that-none-shall-see";
    let clip = Recipe::numbered(0).make()?;
    let server = sender().start().await?;
    let api = server.api();
    let (source, target) = (api.create(json!({})).await?, api.create(json!({})).await?);
    let url = format!("{}/{SECRET}?token={SECRET}", target.obs_server);
    let output = Output::add(&server, &source.id, &url).await?;
    let srt = target.srt_url()?;
    let (place, _) = srt.split_once('?').ok_or("no query")?;
    let url = format!("{place}?streamid=publish:x:{SECRET}&passphrase={SECRET}");
    let other = Output::add(&server, &source.id, &url).await?;
    // A healthy output besides them.
    let third = api.create(json!({})).await?;
    let mut watching = Viewer::new(&third.hls_url).start();
    Output::add(&server, &source.id, &third.rtmp_url()).await?;
    let mut encoder = Publish::new(&clip, &source.rtmp_url())?.start()?;
    let refused = |output: &Value| output["retries"].as_u64() > Some(1);
    let record = output.wait("RTMP refuses it", refused).await?;
    let message = record["lastError"].as_str().unwrap_or_default();
    assert!(message.contains("unknown stream key"), "{message}");
    assert_eq!(record["url"], format!("{}/••••", target.obs_server));
    let record = other.wait("SRT refuses it", refused).await?;
    let message = record["lastError"].as_str().unwrap_or_default();
    assert!(message.contains("rejected"), "{message}");
    assert_eq!(
        record["url"],
        format!("{place}?streamid=••••&passphrase=••••")
    );

    let path = outputs_of(&source.id);
    let list = api.expect(StatusCode::OK, Method::GET, &path, None).await?;
    assert_eq!(list["outputs"].as_array().map(Vec::len), Some(3));
    let health = api.health(&source.id).await?;
    for (place, text) in [
        ("the list", list.to_string()),
        ("health", health.to_string()),
        ("the log", server.log()),
    ] {
        assert!(!text.contains(SECRET), "{place}: {text}");
    }
    watching.until_frames(60, PLAYED).await?;
    encoder.stop().await?;
    let seen = watching.until_ended(SOON).await?;
    let numbers = seen.numbers()?.remove(0);
    check_from_key_frame_to_a_cut(&numbers)
}
