//! Events in the feed: every change has one event, in order, also after rejections, cancellations and kills.

mod files;
mod jobs;
mod live;
mod tools;

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    support::{Failure, eventually, images::svg, json::text, server::Api},
    webhooks::events,
};

/// For what happens at once, on a machine with other work.
const SOON: Duration = Duration::from_secs(30);
/// For conversions, on a machine with other work.
const CONVERTED: Duration = Duration::from_secs(120);

/// Bytes that begin like a PNG and are none.
const BROKEN_PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDRnothing";

/// Type and data of every event so far, after a look at their envelopes.
pub(crate) async fn told(api: &Api) -> Result<Vec<(String, Value)>, Failure> {
    let mut told = Vec::new();
    for event in events(api).await? {
        let id = event["id"].as_str().unwrap_or_default();
        assert!(id.starts_with("evt_") && id.len() == 40, "{event}");
        assert!(event["created"].is_i64(), "{event}");
        let kind = event["type"].as_str().ok_or("an event without a type")?;
        told.push((kind.to_owned(), event["data"].clone()));
    }
    Ok(told)
}

/// Returns the events of a job, numbered from 1.
pub(crate) async fn told_of(api: &Api, job_id: &str) -> Result<Vec<(String, Value)>, Failure> {
    let mut told = told(api).await?;
    told.retain(|(_, data)| data["jobId"] == job_id);
    check_numbers(&told);
    Ok(told)
}

fn check_numbers(told: &[(String, Value)]) {
    for (index, (kind, data)) in told.iter().enumerate() {
        assert_eq!(data["sequence"], json!(index + 1), "{kind} {data}");
    }
}

pub(crate) fn types(told: &[(String, Value)]) -> Vec<&str> {
    told.iter().map(|(kind, _)| kind.as_str()).collect()
}

/// Waits until the feed has this many events of the types that begin so.
async fn until_told(
    api: &Api,
    prefix: &str,
    count: usize,
) -> Result<Vec<(String, Value)>, Failure> {
    let what = format!("{count} events {prefix}*");
    eventually(&what, SOON, async || {
        let mut told = told(api).await.ok()?;
        told.retain(|(kind, _)| kind.starts_with(prefix));
        (told.len() >= count).then_some(told)
    })
    .await
}
