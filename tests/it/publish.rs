//! Publishing by RTMP: everything an encoder may send arrives whole at a viewer, and a publisher without permission is
//! rejected in its own protocol.

use std::{sync::Arc, time::Duration};

use reqwest::Method;
use serde_json::json;

use crate::support::{
    Failure,
    encoder::Publish,
    eventually,
    ffprobe::{Stream, probe, probe_bytes},
    media::{Clip, Recipe, check_contiguous, modern_ffmpeg, numbered},
    publisher::{Pace, Publisher},
    server::{Input, Server, Settings},
    skip,
    viewer::{Collection, Viewer},
};

/// For what happens at once, on a machine with other work.
const SOON: Duration = Duration::from_secs(20);
/// Longer than any clip here plays.
const PLAYED: Duration = Duration::from_secs(40);
const BAD_NAME: &str = "NetStream.Publish.BadName";

/// Publishes the clip from its first frame to its last; what a viewer saw of it.
async fn watch(encoder: Publish, input: &Input) -> Result<Arc<Collection>, Failure> {
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = encoder.start()?;
    let status = encoder.wait(PLAYED).await?;
    assert!(status.success(), "{}", encoder.complaints());
    viewing.until_ended(SOON).await
}

/// Every frame of the clip once, in order, and nothing else.
fn check_whole(seen: &Collection, clip: &Clip) -> Result<(), Failure> {
    let ranges = seen.numbers()?;
    assert_eq!(ranges.len(), 1, "one session is one range");
    check_contiguous(&ranges[0], clip.first())?;
    let (video_frames, sent) = (ranges[0].len(), clip.frames());
    assert_eq!(video_frames, sent as usize, "{}", seen.summary());
    Ok(())
}

fn codecs(streams: &[Stream]) -> Vec<&str> {
    streams.iter().map(|stream| stream.codec.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h264_with_b_frames_and_aac() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).lasting(10).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({"name": "Studio"})).await?;
    let mut viewing = Viewer::new(&input.hls_url).with_delta_updates().start();
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;

    let measured = |health: &serde_json::Value| !health["keyFrameIntervalS"].is_null();
    let health = api
        .wait_health(&input.id, "a measured stream", PLAYED, measured)
        .await?;
    assert_eq!(health["protocol"], "rtmp");
    assert_eq!(health["videoCodec"], "h264");
    assert_eq!(health["audioCodec"], "aac");
    assert_eq!(health["bFrames"], true);
    assert_eq!(
        (&health["width"], &health["height"]),
        (&json!(160), &json!(96))
    );
    assert_eq!(health["keyFrameIntervalS"], 2.0);
    let advice = health["advice"].as_array().ok_or("no advice")?;
    assert_eq!(advice.len(), 1, "all is well but for latency: {advice:?}");
    assert!(advice[0].to_string().contains("Max B-frames"), "{advice:?}");

    assert!(
        encoder.wait(PLAYED).await?.success(),
        "{}",
        encoder.complaints()
    );
    let seen = viewing.until_ended(SOON).await?;
    check_whole(&seen, &clip)?;
    let streams = probe(&input.hls_url).await?;
    assert_eq!(codecs(&streams), ["h264", "aac"]);
    assert_eq!(streams[0].packets(), clip.frames() as usize);
    Ok(())
}

/// HEVC, AV1 and Opus come by enhanced RTMP, which Debian's ffmpeg does not speak.
async fn enhanced_rtmp(
    recipe: Recipe,
    expected: [&str; 2],
    strings: [&str; 2],
) -> Result<(), Failure> {
    if modern_ffmpeg().is_none() {
        skip(expected[0], "no ffmpeg that publishes it: run `make test`");
        return Ok(());
    }
    let clip = recipe.lasting(8).make()?;
    let server = Server::start().await?;
    let input = server.api().create(json!({})).await?;
    let seen = watch(Publish::new(&clip, &input.rtmp_url())?, &input).await?;

    check_whole(&seen, &clip)?;
    let declared = seen.multivariant.as_ref().map(|list| list.codecs.clone());
    let declared = declared.unwrap_or_default();
    let matching = declared.iter().zip(strings);
    assert!(
        declared.len() == 2
            && matching
                .into_iter()
                .all(|(codec, start)| codec.starts_with(start)),
        "{declared:?}"
    );
    let streams = probe_bytes(&seen.ranges()[0].bytes()).await?;
    assert_eq!(codecs(&streams), expected);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hevc_and_aac() -> Result<(), Failure> {
    enhanced_rtmp(Recipe::hevc_aac(), ["hevc", "aac"], ["hvc1.", "mp4a.40.2"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn av1_and_opus() -> Result<(), Failure> {
    enhanced_rtmp(Recipe::av1_opus(), ["av1", "opus"], ["av01.", "opus"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_tls() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).lasting(10).make()?;
    let server = Settings::new().tls().start().await?;
    let input = server.api().create(json!({})).await?;
    let seen = watch(Publish::new(&clip, &input.rtmps_url()?)?, &input).await?;
    check_whole(&seen, &clip)
}

async fn frame_rate(rate: (u32, u32)) -> Result<(), Failure> {
    let clip = Recipe::at_rate(rate).lasting(8).make()?;
    let server = Server::start().await?;
    let input = server.api().create(json!({})).await?;
    let seen = watch(Publish::new(&clip, &input.rtmp_url())?, &input).await?;

    check_whole(&seen, &clip)?;
    let expected = f64::from(rate.0) / f64::from(rate.1);
    let declared = seen.multivariant.as_ref().and_then(|list| list.frame_rate);
    assert!(
        declared.is_some_and(|declared| (declared - expected).abs() < 0.01),
        "{declared:?} where {expected} was sent"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_24_frames_per_second() -> Result<(), Failure> {
    frame_rate((24, 1)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_29_97_frames_per_second() -> Result<(), Failure> {
    frame_rate((30_000, 1001)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_60_frames_per_second() -> Result<(), Failure> {
    frame_rate((60, 1)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn video_alone_is_a_normal_broadcast() -> Result<(), Failure> {
    let clip = Recipe::video_only().lasting(8).make()?;
    let server = Server::start().await?;
    let input = server.api().create(json!({})).await?;
    let seen = watch(Publish::new(&clip, &input.rtmp_url())?, &input).await?;
    check_whole(&seen, &clip)?;
    let streams = probe_bytes(&seen.ranges()[0].bytes()).await?;
    assert_eq!(codecs(&streams), ["h264"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn audio_alone_is_a_normal_broadcast() -> Result<(), Failure> {
    let clip = Recipe::audio_only().lasting(10).make()?;
    let server = Server::start().await?;
    let input = server.api().create(json!({})).await?;
    let seen = watch(Publish::new(&clip, &input.rtmp_url())?, &input).await?;
    assert_eq!(seen.ranges().len(), 1);
    let streams = probe_bytes(&seen.ranges()[0].bytes()).await?;
    assert_eq!(codecs(&streams), ["aac"]);
    // 48 000 samples a second in frames of 1024, with the encoder's lead-in and the last, part-filled frame.
    let frames = streams[0].packets();
    assert!((469..=471).contains(&frames), "{frames} frames of 10 s");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn audio_that_comes_late_joins_with_one_discontinuity() -> Result<(), Failure> {
    let server = Server::start().await?;
    let input = server.api().create(json!({})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = Publisher::open_muted(&input.target(), &numbered(0)).await?;
    encoder.send_frames(100, Pace::RealTime).await?;
    encoder.unmute().await?;
    encoder.send_frames(220, Pace::RealTime).await?;
    let sent = encoder.end().await?;
    let seen = viewing.until_ended(SOON).await?;

    let ranges = seen.ranges();
    assert_eq!(ranges.len(), 2, "{}", seen.summary());
    assert_eq!(codecs(&probe_bytes(&ranges[0].bytes()).await?), ["h264"]);
    assert_eq!(
        codecs(&probe_bytes(&ranges[1].bytes()).await?),
        ["h264", "aac"]
    );
    assert_eq!(seen.numbers()?.concat(), sent.video_frames);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rare_key_frames_cost_no_segment_its_length() -> Result<(), Failure> {
    let clip = Recipe::long_groups().lasting(12).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    let advised =
        |health: &serde_json::Value| health["advice"].to_string().contains("Keyframe Interval");
    api.wait_health(&input.id, "advice on key frames", PLAYED, advised)
        .await?;
    assert!(
        encoder.wait(PLAYED).await?.success(),
        "{}",
        encoder.complaints()
    );

    // The viewer itself checks that no segment is longer than the target duration.
    let seen = viewing.until_ended(SOON).await?;
    check_whole(&seen, &clip)?;
    let first = server.playlist(&input).await?.ok_or("no playlist")?;
    assert_eq!(first.target_duration_s, 4, "an input's first broadcast");
    assert!(seen.pieces.len() >= 3, "{}", seen.summary());

    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(30, Pace::RealTime).await?;
    let second = eventually("the next broadcast", SOON, async || {
        server.playlist(&input).await.ok().flatten()
    })
    .await?;
    assert_eq!(
        second.target_duration_s, 6,
        "the longest allowed, by what was learned"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standard_latency_is_a_plain_playlist() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).lasting(10).make()?;
    let server = Server::start().await?;
    let input = server.api().create(json!({"latency": "standard"})).await?;
    let seen = watch(Publish::new(&clip, &input.rtmp_url())?, &input).await?;
    check_whole(&seen, &clip)?;
    let list = server.playlist(&input).await?.ok_or("no playlist")?;
    assert_eq!(list.part_target_s, None);
    assert!(list.segments.iter().all(|segment| segment.parts.is_empty()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_key_is_refused_with_a_reason() -> Result<(), Failure> {
    let clip = numbered(0);
    let server = Server::start().await?;
    let input = server.api().create(json!({})).await?;
    let slug = input.obs_stream_key.split('.').next().unwrap_or_default();
    let other = server.api().create(json!({})).await?;
    let (_, other_key) = other.obs_stream_key.split_once('.').ok_or("no dot")?;
    for stream in [
        "",
        "test",
        slug,
        &format!("{slug}.svc_live_wrong"),
        &format!("{slug}.{other_key}"),
    ] {
        let mut target = input.target();
        target.stream = stream.to_owned();
        let rejection = Publisher::expect_rejection(&target, &clip).await?;
        assert_eq!(rejection.code, BAD_NAME, "{stream:?}");
        assert!(
            rejection.description.contains("unknown stream key"),
            "{rejection:?}"
        );
    }

    let url = format!("{}/{slug}.svc_live_wrong", input.obs_server);
    let mut encoder = Publish::new(&clip, &url)?.start()?;
    assert!(!encoder.wait(SOON).await?.success());
    assert!(
        encoder.complaints().contains("unknown stream key"),
        "{}",
        encoder.complaints()
    );
    assert_eq!(server.playlist(&input).await?, None);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disabling_ends_the_publish_and_the_broadcast() -> Result<(), Failure> {
    let clip = numbered(0);
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    viewing.until_frames(30, PLAYED).await?;

    api.patch(&input.id, json!({"enabled": false})).await?;
    assert!(
        !encoder.wait(SOON).await?.success(),
        "the encoder was sent away"
    );
    viewing.until_ended(SOON).await?;
    api.wait_status(&input.id, "idle", SOON).await?;
    let rejection = Publisher::expect_rejection(&input.target(), &clip).await?;
    assert_eq!(rejection.code, BAD_NAME);
    assert!(rejection.description.contains("disabled"), "{rejection:?}");

    api.patch(&input.id, json!({"enabled": true})).await?;
    Publisher::open(&input.target(), &clip).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotating_the_key_ends_the_publish_and_the_new_key_continues() -> Result<(), Failure> {
    let clip = numbered(0);
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    viewing.until_frames(30, PLAYED).await?;

    let rotated = api.rotate(&input.id).await?;
    assert!(
        !encoder.wait(SOON).await?.success(),
        "the encoder was sent away"
    );
    api.wait_status(&input.id, "reconnecting", SOON).await?;
    let rejection = Publisher::expect_rejection(&input.target(), &clip).await?;
    assert_eq!(rejection.code, BAD_NAME);

    let mut encoder = Publisher::open(&rotated.target(), &numbered(20_000)).await?;
    encoder.send_frames(30, Pace::RealTime).await?;
    let sent = encoder.end().await?;
    let ranges = viewing.until_ended(SOON).await?.numbers()?;
    assert_eq!(ranges.len(), 2, "the same playlist continues");
    assert_eq!(ranges[1], sent.video_frames);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_ends_the_publish_and_leaves_nothing() -> Result<(), Failure> {
    let clip = numbered(0);
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    viewing.until_frames(30, PLAYED).await?;
    drop(viewing);

    api.delete(&input.id).await?;
    assert!(
        !encoder.wait(SOON).await?.success(),
        "the encoder was sent away"
    );
    assert_eq!(server.playlist(&input).await?, None);
    let path = format!("/api/live/inputs/{}", input.id);
    let (status, _) = api.call(Method::GET, &path, None).await?;
    assert_eq!(status, 404);
    let rejection = Publisher::expect_rejection(&input.target(), &clip).await?;
    assert_eq!(rejection.code, BAD_NAME);
    let folder = server.data_dir().join("live").join(&input.id);
    eventually("the broadcast's files are gone", SOON, async || {
        let left = std::fs::read_dir(&folder).map_or(0, Iterator::count);
        (left == 0).then_some(())
    })
    .await
}
