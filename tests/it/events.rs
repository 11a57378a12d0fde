//! Events in the feed: every change once, in order, with rejected, cancelled and killed requests.

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

/// A corrupt PNG.
const BROKEN_PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDRnothing";

/// Type and data of every event so far, after a look at their envelopes.
pub(crate) async fn all_events(api: &Api) -> Result<Vec<(String, Value)>, Failure> {
    let mut all = Vec::new();
    for event in events(api).await? {
        let id = event["id"].as_str().unwrap_or_default();
        assert!(id.starts_with("evt_") && id.len() == 40, "{event}");
        assert!(event["created"].is_i64(), "{event}");
        let kind = event["type"].as_str().ok_or("an event without a type")?;
        all.push((kind.to_owned(), event["data"].clone()));
    }
    Ok(all)
}

/// Returns the events of a job, numbered from 1.
pub(crate) async fn events_of(api: &Api, job_id: &str) -> Result<Vec<(String, Value)>, Failure> {
    let mut events = all_events(api).await?;
    events.retain(|(_, data)| data["jobId"] == job_id);
    check_numbers(&events);
    Ok(events)
}

fn check_numbers(events: &[(String, Value)]) {
    for (index, (kind, data)) in events.iter().enumerate() {
        assert_eq!(data["sequence"], json!(index + 1), "{kind} {data}");
    }
}

pub(crate) fn types(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(kind, _)| kind.as_str()).collect()
}

/// Waits for this many events of the types with this prefix.
async fn wait_for_events(
    api: &Api,
    prefix: &str,
    count: usize,
) -> Result<Vec<(String, Value)>, Failure> {
    let what = format!("{count} events {prefix}*");
    eventually(&what, SOON, async || {
        let mut events = all_events(api).await.ok()?;
        events.retain(|(kind, _)| kind.starts_with(prefix));
        (events.len() >= count).then_some(events)
    })
    .await
}
