//! Playback authorization of a live input, viewer counts, and the current frame.

mod frames;
pub(crate) mod jwt;
pub(crate) mod minting;
mod owner;
mod recordings;
mod viewers;
mod walk;

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Failure,
    encoder::{Ffmpeg, Publish},
    media::Recipe,
    server::{Api, Input, Server},
};

/// Deadline for a broadcast to be live, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longer than any scenario here.
const SECONDS: u32 = 240;

/// An input on air in real time, by ffmpeg.
async fn on_air(api: &Api, fields: Value) -> Result<(Input, Ffmpeg), Failure> {
    let clip = Recipe::numbered(0).lasting(SECONDS).make()?;
    let input = api.create(fields).await?;
    let encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    api.wait_health(&input.id, "a whole segment", PATIENCE, |health| {
        health["keyFrameIntervalS"].is_number()
    })
    .await?;
    Ok((input, encoder))
}

/// The answer of `playback-token`.
async fn token_for(api: &Api, input: &Input, fields: Value) -> Result<Value, Failure> {
    let path = format!("/api/live/inputs/{}/playback-token", input.id);
    let made = api.call(Method::POST, &path, Some(&fields)).await?;
    match made {
        (status, made) if status == 200 => Ok(made),
        (status, rejection) => Err(format!("{path}: {status} {rejection}").into()),
    }
}

fn text(value: &Value, field: &str) -> Result<String, Failure> {
    let text = value[field].as_str();
    Ok(text
        .ok_or_else(|| format!("no {field} in {value}"))?
        .to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_closes_the_moment_it_is_signed() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let (input, mut encoder) = on_air(&api, json!({})).await?;
    let path = input.playback_path("index.m3u8");
    assert_eq!(server.get(&path).await?.0, 200);
    let record = api
        .patch(&input.id, json!({"requireSignedPlayback": true}))
        .await?;
    assert_eq!(record["requireSignedPlayback"], true);
    assert_eq!(server.get(&path).await?.0, 403);
    let made = token_for(&api, &input, json!({"expiresIn": 60})).await?;
    let watched = reqwest::get(text(&made, "hlsUrl")?).await?;
    assert_eq!(watched.status(), 200);
    api.patch(&input.id, json!({"requireSignedPlayback": false}))
        .await?;
    assert_eq!(server.get(&path).await?.0, 200);
    encoder.kill().await
}
