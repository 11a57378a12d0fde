//! Notifications of a workflow: its subscribers, its own address, and subscribers to failures.

use std::{sync::Arc, time::Duration};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sluice_actors::webhooks::signature;

use super::{SOON, Workflow, begin, chain, create, get, node, output, run_to, save, wait_ended};
use crate::{
    support::{
        Failure, eventually,
        images::svg,
        json::{each, number, text},
        receiver::{Behaviour, Receiver, Request},
        server::Server,
    },
    webhooks::{deliveries, delivery, settings, subscribe, wait_settled},
};

async fn start() -> Result<Server, Failure> {
    let settings = settings().env("SLUICE_WEBHOOKS__RETRY_AFTER_S", "1,1");
    settings.start().await
}

/// Makes a workflow to PNG and into storage, which notifies `url` or subscribers alone.
fn posting(url: Option<&str>) -> Value {
    chain(vec![
        node("png", "convert", json!({"format": "png"})),
        node("keep", "storage", json!({})),
        node(
            "tell",
            "webhook",
            url.map_or(json!({}), |url| json!({"url": url})),
        ),
    ])
}

/// Checks the signature as a receiver does.
fn check_signature(request: &Request, secret: &str) {
    let now_s = jiff::Timestamp::now().as_second();
    let checked = signature::verify(
        secret,
        request.header(signature::SIGNATURE_HEADER),
        &request.body,
        now_s,
        signature::DEFAULT_TOLERANCE_S,
    );
    assert_eq!(checked, Ok(()), "{request:?}");
}

/// Checks the event of a completed run, which every receiver gets.
fn check_completed(request: &Request, workflow: &Workflow, run: &Value) -> Result<(), Failure> {
    let envelope = request.json()?;
    assert_eq!(envelope["type"], "workflow.completed");
    assert_eq!(request.header("service-event"), "workflow.completed");
    let data = &envelope["data"];
    assert_eq!(
        (
            &data["workflowId"],
            &data["runId"],
            &data["name"],
            &data["status"]
        ),
        (
            &json!(workflow.id),
            &run["id"],
            &workflow.record["name"],
            &json!("completed")
        ),
        "{data}"
    );
    let (sent, shown) = (output(data)?, output(run)?);
    for field in ["filename", "mimeType", "sizeBytes", "storedFileId"] {
        assert_eq!(sent[field], shown[field], "{field}");
    }
    number(&data["sequence"])?;
    Ok(())
}

async fn one(receiver: &Receiver) -> Result<Arc<Request>, Failure> {
    Ok(receiver.wait_for(1, SOON).await?.remove(0))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completed_run_is_reported_to_subscribers_and_to_its_own_address() -> Result<(), Failure>
{
    let server = start().await?;
    let api = server.api();
    let ok = || Receiver::start(Behaviour::status(200));
    let (by_name, by_star, own, by_default, deaf) = (
        ok().await?,
        ok().await?,
        ok().await?,
        ok().await?,
        ok().await?,
    );
    let subscribed = [
        (&by_name, "workflow.completed"),
        (&by_star, "*"),
        (&deaf, "workflow.failed"),
    ];
    let mut secrets = Vec::new();
    for (receiver, event_type) in subscribed {
        secrets.push(
            subscribe(&api, &receiver.url("/"), &[event_type])
                .await?
                .secret,
        );
    }
    let definition = posting(Some(&own.url("/own")));
    let workflow = create(&api, "photos", &definition).await?;
    let run = run_to(&api, &workflow, "a.svg", &svg("red"), "completed").await?;

    let (name, star) = (one(&by_name).await?, by_star.wait_for(2, SOON).await?);
    let star = star
        .iter()
        .find(|it| it.header("service-event") == "workflow.completed");
    let star = star.ok_or("no workflow.completed for *")?;
    let own_request = one(&own).await?;
    let mut ids = Vec::new();
    for (request, secret) in [
        (&name, &secrets[0]),
        (star, &secrets[1]),
        (&own_request, &workflow.secret),
    ] {
        check_signature(request, secret);
        check_completed(request, &workflow, &run)?;
        ids.push(request.event_id());
    }
    assert!(ids.iter().all(|id| *id == ids[0]), "one event: {ids:?}");
    assert_eq!(own_request.path, "/own");

    // The definition's own address, when the node has none.
    let mut definition = posting(None);
    definition["webhookUrl"] = json!(by_default.url("/default"));
    let workflow = create(&api, "more photos", &definition).await?;
    let run = run_to(&api, &workflow, "b.svg", &svg("red"), "completed").await?;
    let request = one(&by_default).await?;
    check_signature(&request, &workflow.secret);
    check_completed(&request, &workflow, &run)?;

    // A workflow's own addresses are no endpoints of the account.
    let listed = get(&api, "/api/webhooks").await?;
    assert_eq!(each(&listed["webhooks"], "url")?.len(), 3, "{listed}");
    wait_settled(&api, SOON).await?;
    assert_eq!((own.count(), by_default.count(), deaf.count()), (1, 1, 0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_to_an_own_address_are_tried_again_listed_and_replayed() -> Result<(), Failure> {
    let server = start().await?;
    let api = server.api();
    let receiver = Receiver::start(Behaviour::fail_first(2, 500)).await?;
    let url = receiver.url("/own");
    let workflow = create(&api, "photos", &posting(Some(&url))).await?;
    run_to(&api, &workflow, "a.svg", &svg("red"), "completed").await?;

    let requests = receiver.wait_for(3, SOON).await?;
    wait_settled(&api, SOON).await?;
    let listed = deliveries(&api, "eventType=workflow.completed").await?;
    let [record] = &listed[..] else {
        return Err(format!("not one delivery: {listed:?}").into());
    };
    assert_eq!(
        (
            &record["endpointUrl"],
            &record["status"],
            &record["attemptCount"]
        ),
        (&json!(url), &json!("delivered"), &json!(3)),
        "{record}"
    );
    let id = text(&record["id"])?;
    let (_, attempts) = delivery(&api, &id).await?;
    let statuses: Vec<_> = attempts.iter().map(|it| it["httpStatus"].clone()).collect();
    assert_eq!(statuses, [json!(500), json!(500), json!(200)]);

    let path = format!("/api/webhooks/deliveries/{id}/retry");
    api.expect(StatusCode::ACCEPTED, Method::POST, &path, None)
        .await?;
    let replayed = receiver.wait_for(4, SOON).await?;
    for request in &replayed {
        check_signature(request, &workflow.secret);
        assert_eq!(
            (request.event_id(), &request.body),
            (requests[0].event_id(), &requests[0].body)
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotated_secret_signs_what_is_posted_afterwards() -> Result<(), Failure> {
    let server = start().await?;
    let api = server.api();
    let receiver = Receiver::start(Behaviour::status(200)).await?;
    let workflow = create(&api, "photos", &posting(Some(&receiver.url("/")))).await?;
    let path = format!("/api/workflows/{}/rotate-secret", workflow.id);
    let rotated = api
        .expect(StatusCode::OK, Method::POST, &path, None)
        .await?;
    let secret = find_secret(&rotated).ok_or_else(|| format!("no secret in {rotated}"))?;
    assert_ne!(secret, workflow.secret);
    let record = get(&api, &format!("/api/workflows/{}", workflow.id)).await?;
    assert!(
        !record.to_string().contains(&secret),
        "shown again: {record}"
    );
    run_to(&api, &workflow, "a.svg", &svg("red"), "completed").await?;
    check_signature(&*one(&receiver).await?, &secret);
    Ok(())
}

fn find_secret(answer: &Value) -> Option<String> {
    let places = [
        &answer["workflow"]["webhookSecret"],
        &answer["webhookSecret"],
        &answer["secret"],
    ];
    places.iter().find_map(|it| text(it).ok())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_run_is_reported_to_those_who_ask_for_failures() -> Result<(), Failure> {
    let server = start().await?;
    let api = server.api();
    let ok = || Receiver::start(Behaviour::status(200));
    let (failures, star, own) = (ok().await?, ok().await?, ok().await?);
    let hook = subscribe(&api, &failures.url("/"), &["workflow.failed"]).await?;
    subscribe(&api, &star.url("/"), &["*"]).await?;
    // Stored before the step that fails, and kept.
    let definition = chain(vec![
        node("keep", "storage", json!({})),
        node("page", "pdf_preview", json!({"page": 1})),
        node("tell", "webhook", json!({"url": own.url("/own")})),
    ]);
    let workflow = create(&api, "no such page", &definition).await?;
    let run = run_to(&api, &workflow, "a.svg", &svg("red"), "failed").await?;

    let request = one(&failures).await?;
    check_signature(&request, &hook.secret);
    let envelope = request.json()?;
    let data = &envelope["data"];
    assert_eq!(
        (
            &envelope["type"],
            &data["workflowId"],
            &data["runId"],
            &data["status"]
        ),
        (
            &json!("workflow.failed"),
            &json!(workflow.id),
            &run["id"],
            &json!("failed")
        ),
        "{envelope}"
    );
    assert_eq!(data["error"], run["error"]);
    assert!(text(&run["error"])?.contains("page"), "{run}");
    assert_eq!(output(data)?["storedFileId"], output(&run)?["storedFileId"]);
    wait_settled(&api, SOON).await?;
    // Only the event of the stored file arrived.
    let types: Vec<_> = star
        .requests()
        .iter()
        .map(|it| it.header("service-event").to_owned())
        .collect();
    assert_eq!((types, own.count()), (vec!["file.uploaded".to_owned()], 0));
    Ok(())
}

/// A save makes the new address the workflow's; the old one gets no more events.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_address_takes_the_place_of_the_old_one() -> Result<(), Failure> {
    let server = start().await?;
    let api = server.api();
    let (old, new) = (
        Receiver::start(Behaviour::status(200)).await?,
        Receiver::start(Behaviour::status(200)).await?,
    );
    let workflow = create(&api, "photos", &posting(Some(&old.url("/")))).await?;
    save(&api, &workflow, &posting(Some(&new.url("/")))).await?;
    run_to(&api, &workflow, "a.svg", &svg("red"), "completed").await?;
    check_signature(&*one(&new).await?, &workflow.secret);
    assert_eq!(old.count(), 0);
    Ok(())
}

/// Deleted, it posts no more: what waits for a receiver that is down ends with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_workflow_posts_no_more() -> Result<(), Failure> {
    let settings = settings().env("SLUICE_WEBHOOKS__RETRY_AFTER_S", "600,600");
    let server = settings.start().await?;
    let api = server.api();
    let receiver = Receiver::start(Behaviour::status(500)).await?;
    let workflow = create(&api, "photos", &posting(Some(&receiver.url("/")))).await?;
    let id = begin(&api, &workflow, "a.svg", &svg("red")).await?;
    let run = wait_ended(&api, &id).await?;
    receiver.wait_for(1, SOON).await?;
    let path = format!("/api/workflows/{}", workflow.id);
    api.expect(StatusCode::OK, Method::DELETE, &path, None)
        .await?;
    eventually("no delivery waits", Duration::from_secs(10), async || {
        let waiting = deliveries(&api, "status=retrying").await.ok()?;
        waiting.is_empty().then_some(())
    })
    .await?;
    let (status, _) = api
        .call(Method::GET, &format!("/api/workflows/runs/{id}"), None)
        .await?;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let stored = text(&output(&run)?["storedFileId"])?;
    let files = crate::files::all_files(&api).await?;
    assert!(
        files.iter().any(|file| file["id"] == json!(stored)),
        "stored files stay"
    );
    Ok(())
}
