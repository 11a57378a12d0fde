//! Receivers that are away for a while: nothing is lost, and what waited begins in the order of the events.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{
    OPEN, SOON, deliveries, delivery, endpoint, settings, subscribe, text, upload,
    wait_endpoint_status, wait_settled,
};
use crate::support::{
    Failure, eventually,
    receiver::{Behaviour, Receiver},
    server::{Api, Settings},
};

/// `webhooks.max_per_endpoint` by default: so far may two requests that begin at once change places.
const AT_A_TIME: usize = 4;
const RELEASED_WITHIN: Duration = Duration::from_secs(30);

/// Gives up and comes back within seconds instead of minutes.
fn impatient() -> Settings {
    settings()
        .env("SLUICE_WEBHOOKS__RETRY_AFTER_S", "1,1,1,1,1,1,1,1")
        .env("SLUICE_WEBHOOKS__SUSPEND_AFTER", "3")
        .env("SLUICE_WEBHOOKS__SUSPEND_OVER", "1s")
        .env("SLUICE_WEBHOOKS__PROBE_EVERY", "1s")
}

/// Returns the files in a receiver's requests, each at its first place.
fn received(receiver: &Receiver) -> Result<Vec<String>, Failure> {
    let mut files = Vec::new();
    for request in receiver.requests() {
        let file = text(&request.json()?["data"]["fileId"])?;
        if !files.contains(&file) {
            files.push(file);
        }
    }
    Ok(files)
}

/// Checks that no file is farther from its place than parallel requests explain.
fn check_order(received: &[String], expected: &[String]) {
    assert_eq!(received.len(), expected.len());
    for (place, file) in expected.iter().enumerate() {
        let at = received.iter().position(|other| other == file);
        let at = at.unwrap_or_else(|| panic!("file {place} never came"));
        assert!(
            at.abs_diff(place) < AT_A_TIME,
            "file {place} came as number {at}"
        );
    }
}

async fn waiting(api: &Api, endpoint: &str) -> Result<usize, Failure> {
    let mut waiting = 0;
    for record in deliveries(api, &format!("endpointId={endpoint}")).await? {
        waiting += usize::from(OPEN.iter().any(|status| record["status"] == *status));
    }
    Ok(waiting)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_was_down_gets_everything_when_it_is_back_in_order() -> Result<(), Failure>
{
    let server = impatient().start().await?;
    let api = server.api();
    let mut receiver = Receiver::start(Behaviour::status(200)).await?;
    let hook = subscribe(&api, &receiver.url("/hook"), &["file.uploaded"]).await?;
    let mut files = vec![upload(&api, 0).await?];
    receiver.wait_for(1, SOON).await?;

    receiver.go_down().await;
    // Events continue before, during and after the suspension.
    let suspended = eventually("the endpoint is suspended", SOON, async || {
        files.push(upload(&api, files.len()).await.ok()?);
        let record = endpoint(&api, &hook.id).await.ok()?;
        (record["status"] == "suspended").then_some(record)
    });
    let suspended = suspended.await?;
    assert!(suspended["statusReason"].is_string(), "{suspended}");
    assert!(suspended["consecutiveFailures"].as_u64() >= Some(3));
    assert_eq!(suspended["isActive"], true, "its owner did not pause it");
    for _ in 0..40 {
        files.push(upload(&api, files.len()).await?);
    }
    let away = files.len() - 1;
    assert_eq!(
        waiting(&api, &hook.id).await?,
        away,
        "nothing is given up and nothing is lost"
    );
    let newest = deliveries(&api, &format!("endpointId={}", hook.id)).await?;
    assert_eq!(newest[0]["attemptCount"], 0, "held back unspent");

    receiver.come_back().await?;
    receiver.wait_for(files.len(), RELEASED_WITHIN).await?;
    let active = wait_endpoint_status(&api, &hook.id, "active").await?;
    assert_eq!(active["consecutiveFailures"], 0);
    assert!(active["statusReason"].is_null(), "{active}");
    wait_settled(&api, SOON).await?;
    check_order(&received(&receiver)?, &files);
    assert_eq!(receiver.count(), files.len(), "each of them once");

    let all = deliveries(&api, "status=delivered").await?;
    assert_eq!(all.len(), files.len());
    // The oldest that waited was the probe, several times.
    let probed = &all[files.len() - 2];
    let (_, attempts) = delivery(&api, &text(&probed["id"])?).await?;
    assert!(attempts.iter().any(|attempt| attempt["isProbe"] == true));
    assert_eq!(
        attempts.last().map(|it| &it["status"]),
        Some(&json!("delivered"))
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_suspended_endpoint_survives_a_kill() -> Result<(), Failure> {
    let mut server = impatient().start().await?;
    let api = server.api();
    let mut receiver = Receiver::start(Behaviour::status(200)).await?;
    let hook = subscribe(&api, &receiver.url("/hook"), &["file.uploaded"]).await?;
    receiver.go_down().await;
    let mut files = Vec::new();
    for number in 0..10 {
        files.push(upload(&api, number).await?);
    }
    wait_endpoint_status(&api, &hook.id, "suspended").await?;
    server.kill().await?;
    server.restart().await?;
    let api = server.api();
    assert_eq!(endpoint(&api, &hook.id).await?["status"], "suspended");
    files.push(upload(&api, 10).await?);

    receiver.come_back().await?;
    receiver.wait_for(files.len(), RELEASED_WITHIN).await?;
    wait_settled(&api, SOON).await?;
    check_order(&received(&receiver)?, &files);
    wait_endpoint_status(&api, &hook.id, "active").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_answers_gone_is_paused_until_its_owner_resumes_it() -> Result<(), Failure>
{
    let server = impatient().start().await?;
    let api = server.api();
    let receiver = Receiver::start(Behaviour::status(410)).await?;
    let hook = subscribe(&api, &receiver.url("/hook"), &["file.uploaded"]).await?;
    upload(&api, 0).await?;
    let paused = wait_endpoint_status(&api, &hook.id, "paused").await?;
    assert_eq!(paused["isActive"], false);
    let reason = text(&paused["statusReason"])?;
    assert!(reason.contains("410"), "{reason}");
    let failed = deliveries(&api, "status=failed").await?;
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["httpStatus"], 410);

    upload(&api, 1).await?;
    let all = deliveries(&api, "").await?;
    assert_eq!(all.len(), 1, "a paused endpoint gets no new deliveries");

    receiver.behave(Behaviour::status(200));
    let path = format!("/api/webhooks/{}", hook.id);
    let resume = json!({"isActive": true});
    api.expect(StatusCode::OK, Method::PATCH, &path, Some(&resume))
        .await?;
    let file = upload(&api, 2).await?;
    receiver.wait_for(2, SOON).await?;
    assert_eq!(received(&receiver)?.last(), Some(&file));
    let active = wait_endpoint_status(&api, &hook.id, "active").await?;
    assert!(active["statusReason"].is_null(), "{active}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_in_mid_delivery_the_outcomes_are_recorded() -> Result<(), Failure> {
    let mut server = settings()
        // Far beyond the pause, on a machine with other work.
        .env("SLUICE_WEBHOOKS__TIMEOUT", "8s")
        .start()
        .await?;
    let api = server.api();
    let pause = Duration::from_millis(1500);
    let slow = Receiver::start(Behaviour::after(pause, Behaviour::status(200))).await?;
    let hanging = Receiver::start(Behaviour::Hang).await?;
    subscribe(&api, &slow.url("/slow"), &["file.uploaded"]).await?;
    subscribe(&api, &hanging.url("/hang"), &["file.uploaded"]).await?;
    upload(&api, 0).await?;
    slow.wait_for(1, SOON).await?;
    hanging.wait_for(1, SOON).await?;

    let status = server.terminate().await?;
    assert!(status.success(), "{status}");
    hanging.behave(Behaviour::status(200));
    server.restart().await?;
    let api = server.api();
    for record in deliveries(&api, "").await? {
        let (record, attempts) = delivery(&api, &text(&record["id"])?).await?;
        let expected = match text(&record["endpointUrl"])?.ends_with("/slow") {
            true => "delivered",
            false => "failed",
        };
        assert_eq!(attempts[0]["status"], expected, "{attempts:?}");
        assert!(attempts[0]["endedAt"].is_string(), "{attempts:?}");
    }
    assert_eq!(slow.count(), 1, "and not sent again");
    Ok(())
}
