//! Video streams: made of a clip by a real ladder, played while they grow, checked to the last byte.

mod crash;
mod life;

use std::{path::Path, time::Duration};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    Failure,
    asset::Asset,
    eventually,
    json::{list, text},
    media::{check_contiguous, read_scaled_numbers},
    server::{Api, Server, Settings},
};

const PATH: &str = "/api/video/streams";
/// Deadline for a short clip in a debug build, on a machine with other work: live streams come first, and other tests may run.
const MADE_WITHIN: Duration = Duration::from_secs(180);

/// A service whose workers may take long to start.
pub(crate) async fn service() -> Result<Server, Failure> {
    Settings::new().start().await
}

/// Makes a stream of a clip on this machine's disk; its record.
pub(crate) async fn create(api: &Api, clip: &Path, mut fields: Value) -> Result<Value, Failure> {
    let bytes = std::fs::read(clip)?;
    fields["sourceFileId"] = json!(api.upload_id("clip.mp4", &bytes).await?);
    let answer = api.expect(StatusCode::ACCEPTED, Method::POST, PATH, Some(&fields));
    Ok(answer.await?["stream"].clone())
}

pub(crate) async fn show(api: &Api, id: &str) -> Result<Value, Failure> {
    let path = format!("{PATH}/{id}");
    let answer = api.expect(StatusCode::OK, Method::GET, &path, None).await?;
    Ok(answer["stream"].clone())
}

/// Waits until the record is so; fails when the stream does.
pub(crate) async fn wait(
    api: &Api,
    id: &str,
    what: &str,
    met: impl Fn(&Value) -> bool,
) -> Result<Value, Failure> {
    let record = eventually(what, MADE_WITHIN, async || {
        let record = show(api, id).await.ok()?;
        (met(&record) || record["status"] == "failed").then_some(record)
    })
    .await?;
    match met(&record) {
        true => Ok(record),
        false => Err(format!("{what}: {record}").into()),
    }
}

pub(crate) async fn wait_ready(api: &Api, id: &str) -> Result<Value, Failure> {
    wait(api, id, "the stream is ready", |record| {
        record["status"] == "ready"
    })
    .await
}

/// The types of all events about a stream, sorted.
async fn events_of(api: &Api, id: &str) -> Result<Vec<String>, Failure> {
    let path = "/api/events?limit=100";
    let answer = api.expect(StatusCode::OK, Method::GET, path, None).await?;
    let mut types = Vec::new();
    for event in list(&answer["events"])? {
        if event["data"]["streamId"] == id {
            types.push(text(&event["type"])?);
        }
    }
    types.sort();
    Ok(types)
}

/// Every rendition shows every frame of the clip once, in order.
fn check_numbers(asset: &Asset, frames: u32) -> Result<(), Failure> {
    for rendition in &asset.video_frames {
        let numbers = read_scaled_numbers(&rendition.whole())?;
        check_contiguous(&numbers, 0).map_err(|reason| format!("{}: {reason}", rendition.name))?;
        if numbers.len() != frames as usize {
            return Err(format!("{}: {} frames of {frames}", rendition.name, numbers.len()).into());
        }
    }
    Ok(())
}
