//! Recordings: after failures of encoder, service and disk, a broadcast is one clean asset.

mod faults;
mod life;

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    Failure, eventually,
    ffprobe::{Stream, probe_bytes},
    json::list,
    server::{API_KEY, Api, Input, Server},
};

/// For what happens at once, on a machine with other work.
const SOON: Duration = Duration::from_secs(10);
const PLAYED: Duration = Duration::from_secs(30);
/// Deadline for a short broadcast's recording, in a debug build on a machine with other work.
const STORED: Duration = Duration::from_secs(90);

async fn recorded(api: &Api) -> Result<Input, Failure> {
    api.create(json!({"recordMode": "automatic", "name": "Stage"}))
        .await
}

async fn recordings(api: &Api, input: &Input) -> Result<Vec<Value>, Failure> {
    let path = format!("/api/live/inputs/{}/recordings", input.id);
    let answer = api.expect(StatusCode::OK, Method::GET, &path, None).await?;
    list(&answer["recordings"])
}

/// Waits until the input's newest recording satisfies `met`.
async fn wait_recording(
    api: &Api,
    input: &Input,
    what: &str,
    met: impl Fn(&Value) -> bool,
) -> Result<Value, Failure> {
    eventually(what, STORED, async || {
        let newest = recordings(api, input).await.ok()?.into_iter().next()?;
        met(&newest).then_some(newest)
    })
    .await
}

async fn wait_ready(api: &Api, input: &Input) -> Result<Value, Failure> {
    let ended = |it: &Value| it["status"] == "ready" || it["status"] == "failed";
    let recording = wait_recording(api, input, "the recording is ready", ended).await?;
    match recording["status"] == "ready" {
        true => Ok(recording),
        false => Err(format!("the recording failed: {recording}").into()),
    }
}

/// The bytes of a recording's file, which ffprobe reads without a complaint, and what it finds.
async fn file(
    api: &Api,
    recording: &Value,
    number: usize,
) -> Result<(Bytes, Vec<Stream>), Failure> {
    let id = recording["files"][number]["fileId"]
        .as_str()
        .ok_or_else(|| format!("no file {number} in {recording}"))?;
    let bytes = fetch(api, id).await?;
    let streams = probe_bytes(&bytes).await?;
    Ok((bytes, streams))
}

/// The bytes of a stored file.
async fn fetch(api: &Api, id: &str) -> Result<Bytes, Failure> {
    let key = format!("Bearer {API_KEY}");
    let path = format!("/api/files/{id}");
    let fetched = api.fetch_with(&path, &[("authorization", &key)]).await?;
    Ok(fetched.expect(200)?.bytes)
}

/// The stream of a recording's file.
async fn stream(api: &Api, recording: &Value, number: usize) -> Result<Value, Failure> {
    let id = recording["files"][number]["streamId"]
        .as_str()
        .ok_or_else(|| format!("no stream {number} in {recording}"))?;
    crate::video::streams::show(api, id).await
}

/// The sessions of encoders whose first numbers are far apart. Of one that was cut off frames may be missing at its
/// end.
fn ranges(numbers: &[u32]) -> Vec<Vec<u32>> {
    let mut ranges: Vec<Vec<u32>> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some(range)
                if range
                    .last()
                    .is_some_and(|last| last.abs_diff(*number) < 1_000) =>
            {
                range.push(*number)
            }
            _ => ranges.push(vec![*number]),
        }
    }
    ranges
}

/// The events of that type, oldest first.
async fn events(api: &Api, event_type: &str) -> Result<Vec<Value>, Failure> {
    let path = "/api/events?limit=100";
    let answer = api.expect(StatusCode::OK, Method::GET, path, None).await?;
    let all = list(&answer["events"])?;
    Ok(all
        .iter()
        .filter(|event| event["type"] == event_type)
        .cloned()
        .collect())
}

/// A playlist that must be there.
async fn playlist(server: &Server, input: &Input, name: &str) -> Result<String, Failure> {
    let (status, body) = server.get(&input.playback_path(name)).await?;
    let text = String::from_utf8(body.into())?;
    match status {
        StatusCode::OK => Ok(text),
        status => Err(format!("{name}: {status} {text}").into()),
    }
}
