//! Recordings of a signed input are signed, too: every address of the video stream that is made of one.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    jwt::hs256,
    minting::Key,
    on_air, text, token_for,
    walk::{bad_leaves, check_rejection, now_s},
};
use crate::support::{
    Failure, eventually,
    http::client,
    server::{Api, Input, Server},
};

/// Deadline for a short broadcast's recording, in a debug build on a machine with other work.
const STORED: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_of_a_signed_input_plays_with_its_own_token_alone() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let recorded = json!({"requireSignedPlayback": true, "recordMode": "automatic", "reconnectWindowSeconds": 0});
    let (input, mut encoder) = on_air(&api, recorded).await?;
    let of_input = text(&token_for(&api, &input, json!({})).await?, "token")?;
    encoder.stop().await?;
    let stream = recorded_stream(&api, &input).await?;
    assert_eq!(stream["access"], "signed", "{stream}");

    let playback_id = text(&stream, "playbackId")?;
    let key = Key::make(&api).await?;
    let revoked = Key::make(&api).await?;
    revoked.revoke(&api).await?;
    let token = hs256(
        key.secret.as_bytes(),
        &json!({"alg": "HS256", "typ": "JWT", "kid": key.id}),
        &json!({"sub": playback_id, "exp": now_s() + 600}),
    );
    let below = |leave: &str, address: &str| {
        let url = format!("{}/video/v1/{leave}/{address}", server.base_url());
        client().get(url).send()
    };
    let master = below(&token, "master.m3u8").await?.text().await?;
    let mut addresses: Vec<String> = ["master.m3u8", "poster.jpg", "storyboard.vtt"]
        .map(str::to_owned)
        .into();
    let media = master.lines().find(|line| line.ends_with("/media.m3u8"));
    let media = media.ok_or_else(|| format!("no rendition in {master}"))?;
    let folder = media.trim_end_matches("media.m3u8");
    addresses.push(media.to_owned());
    for name in ["init.mp4", "0.m4s"] {
        addresses.push(format!("{folder}{name}"));
    }
    for address in &addresses {
        let answer = below(&token, address).await?;
        // Storyboards come last.
        assert!(
            answer.status() == 200 || address.starts_with("story"),
            "{address}"
        );
        let others = below(&of_input, address).await?;
        assert!(matches!(others.status().as_u16(), 403 | 404), "{address}");
        for bad in bad_leaves(&playback_id, &token, &key, &revoked) {
            let case = format!("{}, {address}", bad.what);
            check_rejection(below(&bad.leave, address).await?, bad.code, &case).await?;
        }
    }
    // Nor does the stream's token open the input.
    let input_url = format!("{}/live/v1/{token}/state", server.base_url());
    assert_eq!(client().get(input_url).send().await?.status(), 404);
    Ok(())
}

/// The stream of the input's recording, once it is ready.
pub(super) async fn recorded_stream(api: &Api, input: &Input) -> Result<Value, Failure> {
    let path = format!("/api/live/inputs/{}/recordings", input.id);
    let recording = eventually("the recording has ended", STORED, async || {
        let (_, answer) = api.call(Method::GET, &path, None).await.ok()?;
        let newest = answer["recordings"].get(0)?.clone();
        let has_ended = newest["status"] == "ready" || newest["status"] == "failed";
        has_ended.then_some(newest)
    })
    .await?;
    let stream_id = text(&recording["files"][0], "streamId")?;
    let path = format!("/api/video/streams/{stream_id}");
    let answer = api.expect(StatusCode::OK, Method::GET, &path, None).await?;
    Ok(answer["stream"].clone())
}
