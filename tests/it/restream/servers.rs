//! Real receivers: inputs of our own over each protocol, and ffmpeg as a server.

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{
    Output, PLAYED, SOON, check_from_key_frame, check_taken, listening::Listening, outputs_of,
    sender,
};
use crate::support::{
    Failure,
    encoder::Publish,
    http::free_port,
    media::{Recipe, check_contiguous, check_contiguous_to_a_cut, modern_ffmpeg},
    server::{Input, Server, Settings},
    skip,
    viewer::Viewer,
};

/// Publishes a clip to one input and watches it at another one, whose address `url` gives.
async fn is_forwarded(
    server: &Server,
    receiver: &Server,
    recipe: Recipe,
    url: impl Fn(&Input) -> Result<String, Failure>,
) -> Result<(), Failure> {
    let clip = recipe.lasting(12).make()?;
    let source = server.api().create(json!({})).await?;
    let target = receiver.api().create(json!({})).await?;
    let output = Output::add(server, &source.id, &url(&target)?).await?;
    assert_eq!(output.get().await?["status"], "idle");
    let mut viewing = Viewer::new(&target.hls_url).start();
    let mut encoder = Publish::new(&clip, &source.rtmp_url())?.start()?;
    let record = output.wait_status("live").await?;
    assert_eq!(record["lastError"], json!(null));
    viewing.until_frames(60, PLAYED).await?;
    assert!(
        encoder.wait(PLAYED).await?.success(),
        "{}",
        encoder.complaints()
    );
    // The end of the broadcast is the end of the target's, with all that came before it.
    let seen = viewing.until_ended(SOON).await?;
    let numbers = check_taken(&seen)?;
    let missing = clip.frames() - 1 - numbers.last().copied().unwrap_or_default();
    assert!(missing <= 1, "{missing} frames are missing at the end");
    let record = output.wait_status("idle").await?;
    assert_eq!(record["droppedUnits"], 0, "{record}");
    assert!(record["sentBytes"].as_u64() > Some(10_000), "{record}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_continues_by_rtmp() -> Result<(), Failure> {
    let server = sender().start().await?;
    is_forwarded(
        &server,
        &server,
        Recipe::numbered(0),
        |it| Ok(it.rtmp_url()),
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_continues_by_rtmps() -> Result<(), Failure> {
    let receiver = Settings::new().tls().start().await?;
    let folder = receiver.data_dir().parent().ok_or("a folder")?;
    let certificate = folder.join("cert.pem").display().to_string();
    let server = sender()
        .env("SLUICE_OUTBOUND__CA_FILE", &certificate)
        .start()
        .await?;
    is_forwarded(&server, &receiver, Recipe::numbered(0), |it| it.rtmps_url()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_continues_by_srt() -> Result<(), Failure> {
    let server = sender().start().await?;
    is_forwarded(&server, &server, Recipe::numbered(0), |it| it.srt_url()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn newer_codecs_continue() -> Result<(), Failure> {
    if modern_ffmpeg().is_none() {
        skip(
            "HEVC and AV1 to outputs",
            "no ffmpeg that makes them: run `make test`",
        );
        return Ok(());
    }
    let server = sender().start().await?;
    is_forwarded(&server, &server, Recipe::hevc_aac(), |it| Ok(it.rtmp_url())).await?;
    is_forwarded(&server, &server, Recipe::hevc_aac(), |it| it.srt_url()).await?;
    is_forwarded(&server, &server, Recipe::av1_opus(), |it| Ok(it.rtmp_url())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_codec_that_srt_does_not_carry_is_reported() -> Result<(), Failure> {
    if modern_ffmpeg().is_none() {
        skip("AV1 to SRT", "no ffmpeg that makes it: run `make test`");
        return Ok(());
    }
    let clip = Recipe::av1_opus().lasting(12).make()?;
    let server = sender().start().await?;
    let source = server.api().create(json!({})).await?;
    let target = server.api().create(json!({})).await?;
    let output = Output::add(&server, &source.id, &target.srt_url()?).await?;
    let _encoder = Publish::new(&clip, &source.rtmp_url())?.start()?;
    output
        .wait("AV1 is refused", |output| {
            let reason = output["lastError"].as_str().unwrap_or_default();
            reason.contains("AV1 video cannot be sent in MPEG-TS")
        })
        .await?;
    Ok(())
}

async fn goes_to_ffmpeg(listening: Listening, url: &str) -> Result<(), Failure> {
    let clip = Recipe::numbered(0).lasting(12).make()?;
    let server = sender().start().await?;
    let source = server.api().create(json!({})).await?;
    let output = Output::add(&server, &source.id, url).await?;
    let mut encoder = Publish::new(&clip, &source.rtmp_url())?.start()?;
    output.wait_status("live").await?;
    assert!(encoder.wait(PLAYED).await?.success());
    let numbers = listening.numbers().await?;
    check_from_key_frame(&numbers)?;
    assert!(numbers.len() > 120, "{} frames", numbers.len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ffmpeg_takes_it_by_rtmp() -> Result<(), Failure> {
    let url = format!("rtmp://127.0.0.1:{}/live/key", free_port()?);
    let listening = Listening::start(&["-listen", "1"], &url, "taken.flv")?;
    goes_to_ffmpeg(listening, &url).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ffmpeg_takes_it_by_srt() -> Result<(), Failure> {
    let secret = "passphrase=0123456789abcdef";
    let place = format!("srt://127.0.0.1:{}", free_port()?);
    let listened = format!("{place}?mode=listener&{secret}");
    let listening = Listening::start(&[], &listened, "taken.ts")?;
    goes_to_ffmpeg(listening, &format!("{place}?{secret}&latency=200")).await
}

/// The target's connection stays while encoders come and go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_encoder_continues_in_the_same_connection() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).lasting(12).make()?;
    let url = format!("rtmp://127.0.0.1:{}/live/key", free_port()?);
    let listening = Listening::start(&["-listen", "1"], &url, "taken.flv")?;
    let server = sender().start().await?;
    let api = server.api();
    let source = api.create(json!({})).await?;
    let output = Output::add(&server, &source.id, &url).await?;
    let mut watching = Viewer::new(&source.hls_url).start();
    let mut first = Publish::new(&clip, &source.rtmp_url())?.start()?;
    output.wait_status("live").await?;
    let before = watching.collected().video_frames();
    watching.until_frames(before + 90, PLAYED).await?;
    first.kill().await?;
    api.wait_status(&source.id, "reconnecting", SOON).await?;
    assert_eq!(output.get().await?["status"], "live");
    let mut second = Publish::new(&clip, &source.rtmp_url())?.start()?;
    assert!(second.wait(PLAYED).await?.success());
    let numbers = listening.numbers().await?;
    // The first encoder's frames up to its kill, then all of the second one's.
    let again = numbers.iter().rposition(|number| *number == 0);
    let (one, other) = numbers.split_at(again.ok_or("no second beginning")?);
    assert!(one.len() > 30, "{numbers:?}");
    check_contiguous_to_a_cut(one, one[0])?;
    check_contiguous(other, 0)?;
    assert!(other.len() + 1 >= clip.frames() as usize, "{numbers:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn private_networks_are_not_dialled() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    for url in [
        "rtmp://127.0.0.1/live/key",
        "rtmps://10.0.0.1/live/key",
        "srt://[::1]:8890?streamid=key",
    ] {
        let body = json!({"url": url});
        let refused = api
            .expect(
                StatusCode::BAD_REQUEST,
                Method::POST,
                &outputs_of(&input.id),
                Some(&body),
            )
            .await?;
        let message = refused["error"].as_str().unwrap_or_default();
        assert!(message.contains("outbound.allow"), "{url}: {message}");
    }
    Ok(())
}
