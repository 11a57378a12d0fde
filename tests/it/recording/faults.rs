//! The service is killed in mid broadcast, and the disk runs full: the recording keeps what had reached the service.

use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::{
    PLAYED, SOON, events, file, ranges, recorded, recordings, stream, wait_ready, wait_recording,
};
use crate::support::{
    Failure,
    encoder::Publish,
    media::{check_contiguous_to_a_cut, numbered, read_numbers},
    publisher::{Pace, Publisher},
    server::{Server, Settings},
    skip,
    small_disk::SmallDisk,
    viewer::Viewer,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_mid_broadcast_the_recording_continues_with_it() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let api = server.api();
    let input = recorded(&api).await?;
    let mut viewing = Viewer::new(&input.hls_url).tolerate_outages().start();
    let mut encoder = Publish::new(&numbered(0), &input.rtmp_url())?.start()?;
    viewing.until_frames(160, PLAYED).await?;
    server.kill().await?;
    let before = viewing.collected().numbers()?;
    encoder.wait(SOON).await?;
    server.restart().await?;

    let mut encoder = Publish::new(&numbered(20_000), &input.rtmp_url())?.start()?;
    viewing.until_frames(before[0].len() + 90, PLAYED).await?;
    server.kill().await?;
    encoder.wait(SOON).await?;
    server.restart().await?;

    let mut encoder = Publish::new(&numbered(40_000), &input.rtmp_url())?.start()?;
    api.wait_status(&input.id, "live", SOON).await?;
    let so_far = viewing.collected().video_frames();
    viewing.until_frames(so_far + 60, PLAYED).await?;
    encoder.stop().await?;
    let seen = viewing.until_ended(SOON).await?.numbers()?;

    let recording = wait_ready(&api, &input).await?;
    assert_eq!(
        recordings(&api, &input).await?.len(),
        1,
        "one for the broadcast"
    );
    let (bytes, _) = file(&api, &recording, 0).await?;
    let kept = ranges(&read_numbers(&bytes)?);
    assert_eq!(kept.len(), 3, "{kept:?}");
    for ((kept, seen), first) in kept.iter().zip(&seen).zip([0, 20_000, 40_000]) {
        check_contiguous_to_a_cut(kept, first)?;
        assert!(kept.len() >= seen.len(), "nothing that was seen is missing");
    }
    assert_eq!(stream(&api, &recording, 0).await?["status"], "ready");
    assert_eq!(events(&api, "live.input.recording.ready").await?.len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_and_no_one_returns_what_had_come_is_kept() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let api = server.api();
    let input = api
        .create(json!({"recordMode": "automatic", "reconnectWindowSeconds": 2}))
        .await?;
    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(135, Pace::RealTime).await?;
    let listed = |text: &str| text.matches("#EXT-X-PART:").count();
    let (_, body) = server.get(&input.playback_path("media.m3u8")).await?;
    let parts = listed(std::str::from_utf8(&body)?);
    server.kill().await?;
    server.restart().await?;
    let recording = wait_ready(&api, &input).await?;
    let (bytes, _) = file(&api, &recording, 0).await?;
    let numbers = read_numbers(&bytes)?;
    check_contiguous_to_a_cut(&numbers, 0)?;
    // Six frames a part; a part was on its way, and the last frame waits for the next.
    assert!(
        numbers.len() >= 135 - 2 * 6 - 1,
        "{} frames, {parts} parts",
        numbers.len()
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_stops_the_recording_and_not_the_stream() -> Result<(), Failure> {
    let folder = TempDir::new()?;
    let Some(disk) = SmallDisk::mount(folder.path().join("data"), 192).await? else {
        skip(
            "a full disk under a recording",
            "no right to mount a small file system",
        );
        return Ok(());
    };
    let server = Settings::new()
        .data_dir(disk.path())
        .env("SLUICE_STORE__MIN_FREE", "50%")
        .start()
        .await?;
    let api = server.api();
    let input = recorded(&api).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(150, Pace::RealTime).await?;

    // Below `store.min_free`, but the database continues.
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![1; 130 << 20])?;
    encoder.send_frames(300, Pace::RealTime).await?;
    let is_reported = |health: &serde_json::Value| {
        health["recording"] == "stopped" && health["trouble"]["recording"].is_string()
    };
    let health = api
        .wait_health(&input.id, "the stop", SOON, is_reported)
        .await?;
    assert_eq!(health["status"], "live");
    encoder.send_frames(360, Pace::RealTime).await?;
    let sent = encoder.end().await?;
    assert_eq!(
        viewing.until_ended(SOON).await?.numbers()?,
        [sent.video_frames]
    );

    let waits = |it: &serde_json::Value| it["error"].is_string();
    let waiting = wait_recording(&api, &input, "it waits for room", waits).await?;
    assert_eq!(waiting["status"], "processing");
    assert!(waiting["stoppedReason"].is_string(), "{waiting}");
    std::fs::remove_file(ballast)?;
    let recording = wait_ready(&api, &input).await?;
    let (bytes, _) = file(&api, &recording, 0).await?;
    let numbers = read_numbers(&bytes)?;
    check_contiguous_to_a_cut(&numbers, 0)?;
    assert!((100..300).contains(&numbers.len()), "{}", numbers.len());
    assert_eq!(recording["error"], serde_json::Value::Null);
    tokio::time::timeout(Duration::from_secs(5), server.get("/readyz")).await??;
    Ok(())
}
