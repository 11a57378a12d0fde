//! Long work on clips as jobs: progress, place in the queue, cancelled jobs, and a kill of the service.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{nothing_is_left, processes_of_clips};
use crate::{
    events::{events_of, types},
    support::{
        Failure,
        clips::{decodes, on_disk},
        eventually,
        json::text,
        media::{Recipe, check_contiguous, read_scaled_numbers},
        server::{Api, Form, Server, Settings},
    },
};

/// Deadline for conversions in a debug build, on a machine with other work.
const ENDED: Duration = Duration::from_secs(120);
/// Longest time of an ended process, on a machine with other work.
const GONE: Duration = Duration::from_secs(10);
const SECONDS: u32 = 20;

/// A clip that keeps an encoder busy for some seconds.
fn long() -> Result<Vec<u8>, Failure> {
    Ok(std::fs::read(
        Recipe::numbered(0).lasting(SECONDS).enlarged(4)?,
    )?)
}

async fn one_at_a_time() -> Result<Server, Failure> {
    Settings::new()
        .env("SLUICE_AV_WORKERS__JOBS", "1")
        .start()
        .await
}

fn to(format: &str, bytes: &[u8]) -> Form {
    Form::new()
        .file("file", "long.mp4", bytes)
        .fields(&[("format", format), ("compression", "70")])
}

async fn job(api: &Api, id: &str) -> Result<Value, Failure> {
    let path = format!("/api/jobs/{id}");
    api.expect(StatusCode::OK, Method::GET, &path, None).await
}

/// Waits until the job is somewhere between its ends, beyond that percentage.
async fn until_beyond(api: &Api, id: &str, percent: u64) -> Result<u64, Failure> {
    eventually("the job continues", ENDED, async || {
        let job = job(api, id).await.ok()?;
        job["progress"].as_u64().filter(|now| *now > percent)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_job_tells_its_share_and_the_next_its_place() -> Result<(), Failure> {
    let bytes = long()?;
    let server = one_at_a_time().await?;
    let api = server.api();
    let first = api.submit(to("mp4", &bytes)).await?;
    let begun = until_beyond(&api, &first, 0).await?;
    let next = api.submit(to("mov", &bytes)).await?;
    let last = api.submit(to("mkv", &bytes)).await?;
    for (id, place) in [(&next, 1), (&last, 2)] {
        eventually("its place is reported", ENDED, async || {
            let job = job(&api, id).await.ok()?;
            (job["queuePlace"] == json!(place)).then_some(())
        })
        .await?;
    }
    let further = until_beyond(&api, &first, begun).await?;
    let (status, cancelled) = api
        .call(Method::DELETE, &format!("/api/jobs/{next}"), None)
        .await?;
    assert_eq!(status, StatusCode::OK, "{cancelled}");
    eventually("the last one moves up", ENDED, async || {
        let job = job(&api, &last).await.ok()?;
        (job["queuePlace"] != json!(2)).then_some(())
    })
    .await?;
    let done = api.wait_job(&first, ENDED).await?;
    assert!(begun < further && further <= 100, "{begun} {further}");
    assert_eq!(
        (&done["status"], &done["progress"], &done["queuePlace"]),
        (&json!("completed"), &json!(100), &Value::Null),
        "{done}"
    );
    let path = format!("/api/jobs/{last}");
    api.call(Method::DELETE, &path, None).await?;
    nothing_is_left(&server, GONE).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_job_ends_its_process_and_leaves_nothing() -> Result<(), Failure> {
    let bytes = long()?;
    let server = one_at_a_time().await?;
    let api = server.api();
    let id = api.submit(to("webm", &bytes)).await?;
    until_beyond(&api, &id, 0).await?;
    assert_eq!(processes_of_clips(&server)?.len(), 1);
    let (status, cancelled) = api
        .call(Method::DELETE, &format!("/api/jobs/{id}"), None)
        .await?;
    assert_eq!(status, StatusCode::OK, "{cancelled}");
    nothing_is_left(&server, GONE).await?;
    assert_eq!(job(&api, &id).await?["status"], "cancelled");
    assert_eq!(api.operations_used().await?, 0, "it is refunded");
    let events = events_of(&api, &id).await?;
    assert_eq!(types(&events), ["conversion.started", "conversion.failed"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_conversion_is_done_after_the_next_start() -> Result<(), Failure> {
    let bytes = long()?;
    let mut server = one_at_a_time().await?;
    let api = server.api();
    let id = api.submit(to("mp4", &bytes)).await?;
    let share = until_beyond(&api, &id, 10).await?;
    server.kill().await?;
    assert!(share < 100, "killed too late");
    server.restart().await?;
    let api = server.api();
    let done = api.wait_job(&id, ENDED).await?;
    assert_eq!(done["status"], "completed", "{done}");
    let url = text(&done["results"][0]["downloadUrl"])?;
    let result = api.fetch(&url).await?.expect(200)?.bytes;
    let numbers = read_scaled_numbers(&result)?;
    check_contiguous(&numbers, 0)?;
    assert_eq!(numbers.len() as u32, 30 * SECONDS);
    decodes(on_disk(&result, "mp4")?.path()).await?;
    assert_eq!(api.operations_used().await?, 1);
    let events = events_of(&api, &id).await?;
    assert_eq!(
        types(&events),
        [
            "conversion.started",
            "conversion.progress",
            "conversion.completed"
        ]
    );
    nothing_is_left(&server, GONE).await
}
