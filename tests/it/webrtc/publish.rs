//! WHIP by ffmpeg and Chromium: what comes in is HLS, WebRTC, a recording and an output, under the same rules as by RTMP.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    PLAYED, SOON,
    chromium::{Chromium, HEARD, number},
    offers::offer,
    until_viewers,
};
use crate::support::{
    Failure,
    encoder::Publish,
    eventually,
    http::client,
    json::list,
    media::{Recipe, check_contiguous_to_a_cut, decode, modern_ffmpeg},
    server::{Input, Server, Settings},
    skip,
    viewer::Viewer,
};

const SECONDS: u32 = 40;
/// Longest distance of key frames that the service asks for, with slack for the encoder.
const KEY_FRAME_INTERVAL_S: f64 = 3.0;

/// Frames of ffmpeg arrive one by one, and another encoder takes over within the same broadcast.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ffmpeg_publishes_without_losing_a_frame() -> Result<(), Failure> {
    if modern_ffmpeg().is_none() {
        skip("WHIP by ffmpeg", "no current ffmpeg");
        return Ok(());
    }
    let clip = Recipe::of_webrtc().lasting(SECONDS).make()?;
    // An encoder counts as sending also where a busy machine lets it pause.
    let server = Settings::new()
        .env("SLUICE_LIVE__FRESH_FOR", "60s")
        .start()
        .await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    check_rejections(&server, &input).await?;

    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut first = Publish::new(&clip, &input.whip_url()?)?.start()?;
    viewing.until_frames(120, PLAYED).await?;
    let by = |protocol: &'static str, sessions: u64| {
        move |health: &Value| health["protocol"] == protocol && health["sessions"] == sessions
    };
    let health = api
        .wait_health(&input.id, "by WHIP", SOON, by("whip", 1))
        .await?;
    let broadcast = health["broadcast"].clone();
    let encoder = health["encoder"].as_str().unwrap_or_default().to_owned();

    // A newer encoder with the right key takes over, over any protocol.
    let mut second = Publish::new(&clip, &input.rtmp_url())?.start()?;
    let sends =
        |health: &Value| by("rtmp", 2)(health) && health["bytesReceived"].as_u64() > Some(20_000);
    api.wait_health(&input.id, "RTMP has taken over", SOON, sends)
        .await?;
    // ffmpeg does not see that its session was closed.
    first.kill().await?;
    let displaced = eventually("a conflict", SOON, async || {
        let (status, body) = whip_as(&encoder, &server, &input.obs_stream_key)
            .await
            .ok()?;
        (status == StatusCode::CONFLICT).then_some(body)
    });
    assert!(displaced.await?.contains("another encoder"));
    second.kill().await?;
    api.wait_status(&input.id, "reconnecting", SOON).await?;
    let mut third = Publish::new(&clip, &input.whip_url()?)?.start()?;
    let health = api
        .wait_health(&input.id, "WHIP is back", SOON, by("whip", 3))
        .await?;
    assert_eq!(health["broadcast"], broadcast);
    let so_far = viewing.collected().video_frames();
    viewing.until_frames(so_far + 60, PLAYED).await?;

    // ffmpeg sends DELETE when it is stopped: a clean end.
    third.stop().await?;
    let seen = viewing.until_ended(SOON).await?;
    let ranges = seen.numbers()?;
    assert_eq!(ranges.len(), 3, "{}", seen.summary());
    check_contiguous_to_a_cut(&ranges[0], *ranges[0].first().ok_or("no frame")?)?;
    check_contiguous_to_a_cut(&ranges[2], *ranges[2].first().ok_or("no frame")?)
}

/// Posts an offer to the WHIP address with a bearer token.
async fn whip(server: &Server, key: &str) -> Result<(StatusCode, String), Failure> {
    whip_as("", server, key).await
}

/// Posts an offer as [`whip`] does, in the name of an encoder, by which the service knows it again.
async fn whip_as(
    encoder: &str,
    server: &Server,
    key: &str,
) -> Result<(StatusCode, String), Failure> {
    let answer = client()
        .post(format!("{}/live/whip", server.base_url()))
        .header("User-Agent", encoder)
        .header("Content-Type", "application/sdp")
        .bearer_auth(key)
        .body(offer(1).replace("recvonly", "sendonly"))
        .send()
        .await?;
    Ok((answer.status(), answer.text().await?))
}

async fn check_rejections(server: &Server, input: &Input) -> Result<(), Failure> {
    let api = server.api();
    let (slug, _) = input.obs_stream_key.split_once('.').ok_or("no slug")?;
    let wrong = [
        format!("{slug}.svc_live_{}", "x".repeat(32)),
        format!("unknown.svc_live_{}", "x".repeat(32)),
        "what is this?".to_owned(),
    ];
    let mut bodies = Vec::new();
    for key in wrong {
        let (status, body) = whip(server, &key).await?;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{body}");
        bodies.push(body);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "the cause is not said");
    let disabled = api.create(json!({})).await?;
    api.patch(&disabled.id, json!({"enabled": false})).await?;
    let (status, body) = whip(server, &disabled.obs_stream_key).await?;
    assert_eq!(status, StatusCode::FORBIDDEN, "{body}");
    // ffmpeg gives up where the gateway does not run yet.
    let other = api.create(json!({})).await?;
    eventually("the gateway runs", SOON, async || {
        let (status, _) = whip(server, &other.obs_stream_key).await.ok()?;
        (status != StatusCode::SERVICE_UNAVAILABLE).then_some(())
    })
    .await
}

/// A browser's camera is watched, recorded and forwarded as an encoder's stream is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_publishes_to_everything() -> Result<(), Failure> {
    let Some(mut chromium) = Chromium::open().await? else {
        return Ok(());
    };
    let server = Settings::new().reaching_this_machine().start().await?;
    let api = server.api();
    let input = api.create(json!({"recordMode": "automatic"})).await?;
    let target = api.create(json!({"name": "target"})).await?;
    let path = format!("/api/live/inputs/{}/outputs", input.id);
    let output = json!({"url": target.rtmp_url()});
    api.expect(StatusCode::CREATED, Method::POST, &path, Some(&output))
        .await?;

    let (slug, key) = input.obs_stream_key.split_once('.').ok_or("no slug")?;
    let page = format!("{}/live/publish/{slug}#key={key}", server.base_url());
    chromium.publish("camera", &page).await?;
    chromium.expect_player("camera", "state", "live").await?;
    chromium.expect("camera", "encoded", 30.0).await?;
    // Segments end at key frames, which a browser sends only when it is asked for them.
    check_hls(&server, &input).await?;
    chromium.view("viewer", &input.whep_url()?).await?;
    chromium.expect("viewer", "decoded", 30.0).await?;
    let seen = chromium.expect("viewer", "audioEnergy", HEARD).await?;
    assert_eq!(number(&seen, "connections"), 1.0);
    check_hls(&server, &target).await?;
    // The mean of the last ones, which a pause of a busy machine raises for a while.
    api.wait_health(&input.id, "key frames come in time", PLAYED, |health| {
        let interval = health["keyFrameIntervalS"].as_f64();
        interval.is_some_and(|interval| interval <= KEY_FRAME_INTERVAL_S)
    })
    .await?;
    let health = until_viewers(&api, &input.id, 1).await?;
    assert_eq!(health["webrtc"]["branch"]["video"], "copied", "{health}");

    chromium.stop("camera").await?;
    api.wait_status(&input.id, "idle", SOON).await?;
    chromium.expect_closed("viewer").await?;
    let path = format!("/api/live/inputs/{}/recordings", input.id);
    let recording = eventually("the recording is ready", PLAYED, async || {
        let answer = api.expect(StatusCode::OK, Method::GET, &path, None).await;
        let newest = list(&answer.ok()?["recordings"]).ok()?.into_iter().next()?;
        ["ready", "failed"]
            .contains(&newest["status"].as_str()?)
            .then_some(newest)
    })
    .await?;
    assert_eq!(recording["status"], "ready", "{recording}");
    Ok(())
}

/// Waits for two segments, which must decode. The frames of a browser come unevenly, and parts are not as even as the strict viewer
/// wants them.
async fn check_hls(server: &Server, input: &Input) -> Result<(), Failure> {
    let (init, segments) = eventually("two segments", PLAYED, async || {
        let (status, body) = server.get(&input.playback_path("media.m3u8")).await.ok()?;
        let text = String::from_utf8(body.into()).ok()?;
        // A browser begins with small frames: each size has an init section.
        let (_, newest) = text.rsplit_once("#EXT-X-MAP:URI=\"")?;
        let (init, after) = newest.split_once('"')?;
        let segments = after.lines().filter(|line| is_segment(line));
        let segments: Vec<String> = segments.map(str::to_owned).collect();
        let has_two = status == StatusCode::OK && segments.len() >= 2;
        has_two.then(|| (init.to_owned(), segments))
    })
    .await?;
    let mut media = Vec::new();
    for name in [init].into_iter().chain(segments) {
        let (status, bytes) = server.get(&input.playback_path(&name)).await?;
        assert_eq!(status, StatusCode::OK, "{name}");
        media.extend_from_slice(&bytes);
    }
    decode(&media)
}

fn is_segment(line: &str) -> bool {
    !line.starts_with('#') && line.ends_with(".m4s")
}
