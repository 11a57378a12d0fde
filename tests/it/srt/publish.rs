//! Media of an encoder arrive whole, and an input is the same one over every protocol.

use std::time::Duration;

use serde_json::{Value, json};
use url::Url;

use super::transmit::Transmit;
use crate::support::{
    Failure,
    encoder::Publish,
    ffprobe::probe,
    media::{Recipe, check_contiguous, check_contiguous_to_a_cut, modern_ffmpeg},
    server::{Input, Server, Settings},
    skip,
    viewer::Viewer,
};

const SOON: Duration = Duration::from_secs(10);
/// Longer than any clip here plays.
const PLAYED: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ffmpeg_publishes_with_the_pasted_address() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).lasting(10).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = Publish::new(&clip, &input.srt_url()?)?.start()?;

    let measured = |health: &Value| {
        health["lineLatencyMs"].is_number() && !health["keyFrameIntervalS"].is_null()
    };
    let health = api
        .wait_health(&input.id, "a measured line", PLAYED, measured)
        .await?;
    assert_eq!(health["protocol"], "srt");
    assert_eq!(
        (&health["videoCodec"], &health["audioCodec"]),
        (&json!("h264"), &json!("aac"))
    );
    assert_eq!(health["bFrames"], true);
    assert_eq!(health["lineLatencyMs"], 400);
    for nothing in ["lostPackets", "discardedPackets", "damagedUnits"] {
        assert_eq!(health[nothing], 0, "{health}");
    }

    assert!(
        encoder.wait(PLAYED).await?.success(),
        "{}",
        encoder.complaints()
    );
    // A clean end ends the broadcast, with all that was still in the receive buffer.
    let seen = viewing.until_ended(SOON).await?;
    let ranges = seen.numbers()?;
    assert_eq!(ranges.len(), 1, "one session is one range");
    check_contiguous(&ranges[0], clip.first())?;
    let missing = clip.frames() as usize - ranges[0].len();
    assert!(
        missing <= 1,
        "{missing} frames are missing: {}",
        seen.summary()
    );
    let streams = probe(&input.hls_url).await?;
    let codecs: Vec<&str> = streams.iter().map(|stream| stream.codec.as_str()).collect();
    assert_eq!(codecs, ["h264", "aac"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn srt_live_transmit_publishes_with_the_pasted_address() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).lasting(10).make()?;
    let server = Server::start().await?;
    let input = server.api().create(json!({})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut transmit = Transmit::start(&clip.flv, &input.srt_url()?)?;
    viewing.until_frames(150, PLAYED).await?;
    transmit.stop().await?;
    let seen = viewing.until_ended(SOON).await?;
    let ranges = seen.numbers()?;
    assert_eq!(ranges.len(), 1, "one session is one range");
    check_contiguous_to_a_cut(&ranges[0], clip.first())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hevc_arrives_too() -> Result<(), Failure> {
    if modern_ffmpeg().is_none() {
        skip("HEVC by SRT", "no ffmpeg that makes it: run `make test`");
        return Ok(());
    }
    let clip = Recipe::hevc_aac().lasting(8).make()?;
    let server = Server::start().await?;
    let input = server.api().create(json!({})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = Publish::new(&clip, &input.srt_url()?)?.start()?;
    assert!(
        encoder.wait(PLAYED).await?.success(),
        "{}",
        encoder.complaints()
    );
    let seen = viewing.until_ended(SOON).await?;
    let ranges = seen.numbers()?;
    assert_eq!(ranges.len(), 1, "one session is one range");
    // The encoder closes its socket without waiting until its last packets have arrived.
    check_contiguous_to_a_cut(&ranges[0], clip.first())
}

/// Publishes a clip to its end, and what ffprobe finds in the playlist.
async fn codecs_of(publish: Publish, input: &Input) -> Result<Vec<String>, Failure> {
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = publish.start()?;
    assert!(
        encoder.wait(PLAYED).await?.success(),
        "{}",
        encoder.complaints()
    );
    let seen = viewing.until_ended(SOON).await?;
    assert_eq!(seen.numbers()?.len(), 1, "one session is one range");
    let streams = probe(&input.hls_url).await?;
    Ok(streams.into_iter().map(|stream| stream.codec).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opus_and_mp3_arrive_too() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).lasting(6).make()?;
    let server = Server::start().await?;
    for (encoder, codec) in [("libopus", "opus"), ("libmp3lame", "mp3")] {
        let input = server.api().create(json!({})).await?;
        let publish = Publish::new(&clip, &input.srt_url()?)?.with_audio(encoder);
        assert_eq!(codecs_of(publish, &input).await?, ["h264", codec]);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_key_and_the_newer_internet_protocol_will_do() -> Result<(), Failure> {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        skip("SRT over IPv6", "this machine has no ::1");
        return Ok(());
    }
    let clip = Recipe::numbered(0).lasting(6).make()?;
    let settings = Settings::new().env("SLUICE_SRT__LISTEN", "[::]:0");
    let server = settings.start().await?;
    for host in ["[::1]", "127.0.0.1"] {
        let input = server.api().create(json!({})).await?;
        let mut url = Url::parse(&input.srt_url()?)?;
        url.set_host(Some(host))?;
        let publish = Publish::new(&clip, &format!("{url}&pbkeylen=32"))?;
        assert_eq!(codecs_of(publish, &input).await?, ["h264", "aac"]);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broadcast_continues_from_rtmp_to_srt_and_back() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut first = Publish::new(&clip, &input.rtmp_url())?.start()?;
    viewing.until_frames(60, PLAYED).await?;
    let by = |protocol: &'static str, sessions: u64| {
        move |health: &Value| health["protocol"] == protocol && health["sessions"] == sessions
    };
    let broadcast = api.health(&input.id).await?["broadcast"].clone();

    // A newer encoder with the right key takes over, over any protocol.
    let mut second = Publish::new(&clip, &input.srt_url()?)?.start()?;
    api.wait_health(&input.id, "SRT has taken over", PLAYED, by("srt", 2))
        .await?;
    first.wait(PLAYED).await?;
    viewing.until_frames(150, PLAYED).await?;

    // A killed encoder sends no shutdown; the reconnect window opens after `srt.idle_timeout`.
    second.kill().await?;
    api.wait_status(&input.id, "reconnecting", PLAYED).await?;
    let mut third = Publish::new(&clip, &input.rtmp_url())?.start()?;
    let health = api
        .wait_health(&input.id, "RTMP is back", PLAYED, by("rtmp", 3))
        .await?;
    assert_eq!(health["broadcast"], broadcast);
    viewing.until_frames(240, PLAYED).await?;
    third.stop().await?;
    let seen = viewing.until_ended(SOON).await?;
    assert_eq!(seen.numbers()?.len(), 3, "{}", seen.summary());
    Ok(())
}
