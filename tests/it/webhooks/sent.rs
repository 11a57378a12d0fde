//! What was sent, shown to its owner; and a suspended endpoint that is tried at its owner's wish.

use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::{
    SOON, deliveries, endpoint, get, settings, subscribe, text, upload, wait_endpoint_status,
    wait_settled,
};
use crate::support::{
    Failure, eventually,
    json::list,
    receiver::{Behaviour, Receiver},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shown_request_is_what_the_receiver_got() -> Result<(), Failure> {
    let server = settings()
        .env("SLUICE_WEBHOOKS__RETRY_AFTER_S", "1")
        .start()
        .await?;
    let api = server.api();
    let receiver = Receiver::start(Behaviour::status(503)).await?;
    let url = receiver.url("/hook?a=b");
    let hook = subscribe(&api, &url, &["file.uploaded"]).await?;
    upload(&api, 1).await?;
    let failed = eventually("both attempts have failed", SOON, async || {
        let failed = deliveries(&api, "httpStatus=5xx&status=failed")
            .await
            .ok()?;
        failed.into_iter().next()
    });
    let failed = failed.await?;
    let path = format!("/api/webhooks/deliveries/{}", text(&failed["id"])?);
    let request = get(&api, &path).await?["request"].clone();
    let got = receiver.requests();
    assert_eq!(got.len(), 2);
    let last = &got[1];
    assert_eq!(
        (&request["url"], &request["isAsSent"]),
        (&Value::from(url), &Value::from(true))
    );
    assert_eq!(text(&request["body"])?.as_bytes(), last.body);
    for header in list(&request["headers"])? {
        let name = text(&header["name"])?;
        assert_eq!(text(&header["value"])?, last.header(&name), "{name}");
    }
    let event = text(&failed["eventId"])?;
    assert_eq!(
        deliveries(&api, &format!("eventId={event}")).await?,
        std::slice::from_ref(&failed)
    );
    assert!(deliveries(&api, "httpStatus=404").await?.is_empty());
    let shown = get(&api, &format!("/api/events/{event}")).await?;
    assert_eq!(shown["event"], last.json()?);

    let shown = get(&api, &path).await?.to_string();
    assert!(!shown.contains(&hook.secret), "{shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_endpoint_that_is_back_is_released_by_a_try() -> Result<(), Failure> {
    let server = settings()
        .env("SLUICE_WEBHOOKS__RETRY_AFTER_S", "1,1,1,1,1,1,1,1")
        .env("SLUICE_WEBHOOKS__SUSPEND_AFTER", "2")
        .env("SLUICE_WEBHOOKS__SUSPEND_OVER", "100ms")
        .env("SLUICE_WEBHOOKS__PROBE_EVERY", "1h")
        .start()
        .await?;
    let api = server.api();
    let mut receiver = Receiver::start(Behaviour::status(200)).await?;
    let hook = subscribe(&api, &receiver.url("/hook"), &["file.uploaded"]).await?;
    let probe = format!("/api/webhooks/{}/probe", hook.id);
    let (status, refused) = api.call(Method::POST, &probe, None).await?;
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");

    receiver.go_down().await;
    for number in 0..3 {
        upload(&api, number).await?;
    }
    let suspended = wait_endpoint_status(&api, &hook.id, "suspended").await?;
    let waits = eventually("all three wait", SOON, async || {
        let record = endpoint(&api, &hook.id).await.ok()?;
        (record["waiting"] == 3).then_some(record)
    });
    let waits = waits.await?;
    assert_eq!(waits["statusSince"], suspended["statusSince"]);
    assert!(
        text(&waits["statusSince"])? >= text(&waits["createdAt"])?,
        "{waits}"
    );

    // Still down: the try fails, and nothing is lost.
    let tried = api
        .expect(StatusCode::ACCEPTED, Method::POST, &probe, None)
        .await?;
    let oldest = text(&tried["delivery"]["id"])?;
    let attempts = async || {
        let path = format!("/api/webhooks/deliveries/{oldest}");
        list(&get(&api, &path).await.ok()?["attempts"]).ok()
    };
    eventually("the try has failed", SOON, async || {
        let attempts = attempts().await?;
        let last = attempts.last()?;
        (last["isProbe"] == true && last["status"] == "failed").then_some(())
    })
    .await?;
    receiver.come_back().await?;
    api.expect(StatusCode::ACCEPTED, Method::POST, &probe, None)
        .await?;
    receiver.wait_for(3, SOON).await?;
    wait_settled(&api, SOON).await?;
    let active = wait_endpoint_status(&api, &hook.id, "active").await?;
    assert_eq!(
        (&active["waiting"], &active["nextProbeAt"]),
        (&Value::from(0), &Value::Null)
    );
    assert_ne!(active["statusSince"], suspended["statusSince"]);
    Ok(())
}
