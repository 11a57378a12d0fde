//! Webhooks as their owner and their receivers see them: every event arrives, in spite of crashes and faulty receivers.

mod clock;
mod crash;
mod faults;
mod listen;
mod outage;
mod rest;
mod sent;
mod verify;

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    Failure, eventually,
    json::{list, text},
    server::{Api, Settings},
};

/// For what happens at once, on a machine with other work.
const SOON: Duration = Duration::from_secs(30);

/// States of a delivery before it has ended.
const OPEN: [&str; 3] = ["pending", "delivering", "retrying"];

/// A service that may reach receivers on this machine.
pub(crate) fn settings() -> Settings {
    Settings::new().reaching_this_machine()
}

/// An endpoint as its owner knows it after making it.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) id: String,
    pub(crate) secret: String,
}

pub(crate) async fn get(api: &Api, path: &str) -> Result<Value, Failure> {
    api.expect(StatusCode::OK, Method::GET, path, None).await
}

pub(crate) async fn subscribe(
    api: &Api,
    url: &str,
    event_types: &[&str],
) -> Result<Endpoint, Failure> {
    let body = json!({"url": url, "eventTypes": event_types});
    let path = "/api/webhooks";
    let made = api.expect(StatusCode::CREATED, Method::POST, path, Some(&body));
    let answer = made.await?;
    Ok(Endpoint {
        id: text(&answer["webhook"]["id"])?,
        secret: text(&answer["secret"])?,
    })
}

/// The endpoint's record.
async fn endpoint(api: &Api, id: &str) -> Result<Value, Failure> {
    Ok(get(api, &format!("/api/webhooks/{id}")).await?["webhook"].clone())
}

async fn wait_endpoint_status(api: &Api, id: &str, status: &str) -> Result<Value, Failure> {
    let what = format!("endpoint {id} is {status}");
    eventually(&what, SOON, async || {
        let record = endpoint(api, id).await.ok()?;
        (record["status"] == status).then_some(record)
    })
    .await
}

/// All deliveries that the filters leave, newest first; `filters` as in a query, for instance `status=failed`.
pub(crate) async fn deliveries(api: &Api, filters: &str) -> Result<Vec<Value>, Failure> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/api/webhooks/deliveries?limit=100&{filters}{cursor}");
        let page = get(api, &path).await?;
        all.extend(list(&page["deliveries"])?);
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(all),
        }
    }
}

/// The delivery's record and its attempts, the first one first.
pub(crate) async fn delivery(api: &Api, id: &str) -> Result<(Value, Vec<Value>), Failure> {
    let answer = get(api, &format!("/api/webhooks/deliveries/{id}")).await?;
    Ok((answer["delivery"].clone(), list(&answer["attempts"])?))
}

/// Waits until nothing is due, waiting or on its way any more.
pub(crate) async fn wait_settled(api: &Api, deadline: Duration) -> Result<(), Failure> {
    eventually("all deliveries have ended", deadline, async || {
        for status in OPEN {
            let path = format!("/api/webhooks/deliveries?limit=1&status={status}");
            let page = get(api, &path).await.ok()?;
            if !page["deliveries"].as_array()?.is_empty() {
                return None;
            }
        }
        // A delivery may have changed its state between two of these requests; an ended one does not change.
        let all = deliveries(api, "").await.ok()?;
        let is_open = |delivery: &Value| OPEN.iter().any(|status| delivery["status"] == *status);
        (!all.iter().any(is_open)).then_some(())
    })
    .await
}

/// The whole feed, oldest first.
pub(crate) async fn events(api: &Api) -> Result<Vec<Value>, Failure> {
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let page = get(api, &format!("/api/events?limit=100{after}")).await?;
        let events = list(&page["events"])?;
        if events.is_empty() {
            return Ok(all);
        }
        all.extend(events);
        after = format!("&after={}", text(&page["nextCursor"])?);
    }
}

/// Stores a small file; its id.
async fn upload(api: &Api, number: usize) -> Result<String, Failure> {
    let bytes = format!("contents of file {number}");
    api.upload_id(&format!("{number}.txt"), bytes.as_bytes())
        .await
}
