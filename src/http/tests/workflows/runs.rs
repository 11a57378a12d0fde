//! Workflow runs that stay queued: accepted, rejected, cancelled and retried.

use std::time::Duration;

use bytesize::ByteSize;
use serde_json::{Value, json};
use sluice_store::api_keys::Scope;

use super::{PNG, Site, UNKNOWN_ID, form, id, path, run_path, storing};
use crate::config::Config;

/// Answers do not wait for runs that never end.
fn impatient(config: &mut Config) {
    config.workflows.inline_wait = Duration::from_millis(1);
}

#[actix_web::test]
async fn a_run_is_safe_once_it_is_answered() {
    let site = Site::open_with(impatient).await;
    let workflow = site.workflow(storing()).await;
    let answer = site.run(&workflow, "photo.png", PNG).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let answer = answer.json();
    let run = &answer["run"];
    assert_eq!(
        (&answer["runId"], &answer["status"]),
        (&run["id"], &run["status"])
    );
    for (field, expected) in [
        ("workflowId", workflow["id"].clone()),
        ("workflowVersion", json!(1)),
        ("number", json!(1)),
        ("status", json!("queued")),
        ("gate", Value::Null),
        ("trigger", json!("api")),
        ("uploadSource", json!("api")),
        ("inputFilename", json!("photo.png")),
        ("inputSize", json!(PNG.len())),
        ("workflowName", json!("Product photos")),
        ("inputMimeType", json!("image/png")),
        ("isInputKept", json!(true)),
        ("sourceFileId", Value::Null),
        ("rerunOf", Value::Null),
        ("log", json!([])),
        ("outputs", json!([])),
        ("error", Value::Null),
        ("errorCode", Value::Null),
        ("errorNodeId", Value::Null),
        ("startedAt", Value::Null),
        ("completedAt", Value::Null),
    ] {
        assert_eq!(run.get(field), Some(&expected), "{field}");
    }
    assert_eq!(site.used().await, 1);
    let shown = site.call("GET", &run_path(&answer), None).await;
    assert_eq!((shown.status, &shown.json()), (200, &answer));
    assert_eq!(json!(site.history(&workflow).await), json!([run]));
    let record = site.call("GET", &path(&workflow), None).await.json();
    assert_eq!(
        (
            &record["workflow"]["runCount"],
            &record["workflow"]["lastRunAt"]
        ),
        (&json!(1), &run["createdAt"])
    );
    // The input is the run's own.
    let files = site.call("GET", "/api/files", None).await.json();
    assert_eq!(files["files"], json!([]));
    site.nothing_temporary_is_left().await;
}

#[actix_web::test]
async fn a_run_ends_once_and_is_tried_again_under_its_id() {
    let site = Site::open_with(impatient).await;
    let workflow = site.workflow(storing()).await;
    let one = run_path(&site.run(&workflow, "photo.png", PNG).await.json());
    let (reader, stranger) = (site.key(Scope::Read).await, site.stranger().await);
    for (key, method, path, status) in [
        (&reader, "GET", one.clone(), 200),
        (&reader, "POST", format!("{one}/cancel"), 403),
        (&reader, "POST", format!("{one}/retry"), 403),
        (&stranger, "GET", one.clone(), 404),
        (&stranger, "GET", format!("{one}/events"), 404),
        (&stranger, "POST", format!("{one}/cancel"), 404),
        (&stranger, "POST", format!("{one}/retry"), 404),
        (
            &reader,
            "GET",
            format!("/api/workflows/runs/{UNKNOWN_ID}"),
            404,
        ),
    ] {
        let answer = site.call_as(key, method, &path, None).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
    }
    let (cancel, retry) = (format!("{one}/cancel"), format!("{one}/retry"));
    let post = async |path: &str, body: Option<Value>| {
        let answer = site.call("POST", path, body).await;
        (answer.status, answer.json())
    };
    let (status, rejected) = post(&retry, None).await;
    assert_eq!(status, 409, "{rejected}");
    let (status, cancelled) = post(&cancel, None).await;
    assert_eq!((status, &cancelled["status"]), (200, &json!("cancelled")));
    assert_eq!(site.used().await, 0);
    let (status, rejected) = post(&cancel, None).await;
    assert_eq!(status, 409, "{rejected}");
    let (status, rejected) = post(&retry, Some(json!({"version": 2}))).await;
    assert_eq!(status, 400, "{rejected}");
    let (status, rejected) = post(&retry, Some(json!({"version": "newest"}))).await;
    assert_eq!(
        (
            status,
            rejected["error"]
                .as_str()
                .unwrap()
                .contains("ran or current")
        ),
        (400, true)
    );

    let saved = site
        .save(json!({"id": id(&workflow), "definition": storing()}))
        .await;
    assert_eq!(saved.status, 200);
    for (version, runs_version) in [(json!("ran"), 1), (Value::Null, 1), (json!("current"), 2)] {
        let (status, queued) = post(&retry, Some(json!({"version": version}))).await;
        assert_eq!(
            (status, &queued["status"], &queued["run"]["workflowVersion"]),
            (202, &json!("queued"), &json!(runs_version)),
            "{queued}"
        );
        assert_eq!(site.used().await, 1);
        assert_eq!(post(&cancel, None).await.0, 200);
    }
    let pause = site
        .call("PATCH", &path(&workflow), Some(json!({"isActive": false})))
        .await;
    assert_eq!(pause.status, 200);
    assert_eq!(post(&retry, None).await.0, 409);
    assert_eq!(site.history(&workflow).await.len(), 1);
}

#[actix_web::test]
async fn a_run_takes_exactly_one_file() {
    let site = Site::open_with(|config| {
        impatient(config);
        let plan = config.plans.get_mut("unlimited").unwrap();
        plan.image_upload = ByteSize::b(100);
        plan.video_upload = ByteSize::b(200);
    })
    .await;
    let workflow = site.workflow(storing()).await;
    let run = format!("{}/run", path(&workflow));
    let key = site.first.api_key.expose();
    let file = |field: &str, bytes: &[u8]| {
        let whole = form(field, "a.png", bytes);
        whole[..whole.len() - b"--edge--\r\n".len()].to_vec()
    };
    let text = b"--edge\r\nContent-Disposition: form-data; name=\"sourceUrl\"\r\n\r\nhttps://example.org/\r\n".to_vec();
    let source = |text: &str| {
        format!("--edge\r\nContent-Disposition: form-data; name=\"uploadSource\"\r\n\r\n{text}\r\n")
            .into_bytes()
    };
    let large = [PNG, &[0; 80]].concat();
    let clip = [b"\0\0\0\x18ftypisom\0\0\0\0isommp42", &[0; 150][..]].concat();
    let cases: [(Vec<Vec<u8>>, u16, &str); 11] = [
        (vec![], 400, "exactly one"),
        (vec![text], 400, "exactly one"),
        (vec![file("file", b"")], 400, "is empty"),
        (vec![file("files", PNG)], 400, "`files`"),
        (
            vec![file("file", PNG), file("file", PNG)],
            400,
            "too many files",
        ),
        (
            vec![file("file", PNG), file("watermarkFile", PNG)],
            400,
            "too many files",
        ),
        (vec![file("file", &large)], 413, "image_upload of the plan"),
        (
            vec![file("file", &[&clip, &[0; 51][..]].concat())],
            413,
            "video_upload of the plan",
        ),
        (
            vec![file("file", PNG), source(&"x".repeat(65))],
            400,
            "uploadSource",
        ),
        (vec![file("file", PNG), source("google-drive")], 202, ""),
        (vec![file("file", &clip)], 202, ""),
    ];
    for (parts, status, said) in cases {
        let body = [&parts.concat()[..], b"--edge--\r\n"].concat();
        let answer = site.send_form(key, &run, body).await;
        assert_eq!(answer.status, status, "{said}: {answer:?}");
        assert!(
            answer.status == 202 || answer.error().contains(said),
            "{}",
            answer.error()
        );
    }
    let no_form = site.call("POST", &run, Some(json!({"file": "x"}))).await;
    assert_eq!(
        (
            no_form.status,
            no_form.error().contains("multipart/form-data")
        ),
        (400, true)
    );
    let nowhere = format!("/api/workflows/{UNKNOWN_ID}/run");
    assert_eq!(
        site.send_form(key, &nowhere, form("file", "a.png", PNG))
            .await
            .status,
        404
    );
    assert_eq!(site.used().await, 2);
    let sources: Vec<Value> = site
        .history(&workflow)
        .await
        .iter()
        .map(|run| run["uploadSource"].clone())
        .collect();
    assert_eq!(sources, [json!("api"), json!("google-drive")]);
    site.nothing_temporary_is_left().await;
}

#[actix_web::test]
async fn what_the_plan_and_the_queue_do_not_allow_is_rejected_before_it_costs() {
    let site = Site::open_with(|config| {
        impatient(config);
        config
            .plans
            .get_mut("unlimited")
            .unwrap()
            .operations_per_month = 2;
        config.workflows.max_active_per_workflow = 1;
        config.workflows.max_queued = 1;
    })
    .await;
    let workflow = site.workflow(storing()).await;
    for _ in 0..2 {
        assert_eq!(site.run(&workflow, "a.png", PNG).await.status, 202);
    }
    let busy = site.run(&workflow, "a.png", PNG).await;
    assert_eq!(
        (busy.status, busy.header("retry-after")),
        (503, "10"),
        "{busy:?}"
    );
    assert!(
        busy.error().contains("workflows.max_queued"),
        "{}",
        busy.error()
    );

    let other = site.workflow(storing()).await;
    let used_up = site.run(&other, "a.png", PNG).await;
    assert_eq!(used_up.status, 402, "{used_up:?}");
    let used_up = used_up.json();
    assert_eq!(
        (&used_up["code"], &used_up["upgradeUrl"]),
        (
            &json!("operations_used_up"),
            &json!("http://media.test:8080/app/settings/usage")
        )
    );
    assert_eq!(site.used().await, 2);
    assert!(site.history(&other).await.is_empty());
}

#[actix_web::test]
async fn a_stored_file_is_run_as_it_is() {
    let site = Site::open_with(impatient).await;
    let workflow = site.workflow(storing()).await;
    let file = site.stored("photo.png", PNG).await;
    let run = format!("{}/run-file", path(&workflow));
    let post = async |body: Value| site.call("POST", &run, Some(body)).await;
    let answer = post(json!({"file_id": file["id"]})).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let answer = answer.json();
    assert_eq!(
        (
            &answer["run"]["trigger"],
            &answer["run"]["uploadSource"],
            &answer["run"]["inputFilename"]
        ),
        (&json!("file"), &json!("storage"), &json!("photo.png"))
    );
    let sourced = post(json!({"fileId": file["id"], "uploadSource": "google-drive"}))
        .await
        .json();
    assert_eq!(sourced["run"]["uploadSource"], "google-drive");
    let empty = site.stored("empty.txt", b"").await;
    for (body, status) in [
        (json!({}), 400),
        (json!({"fileId": "x"}), 400),
        (json!({"fileId": UNKNOWN_ID}), 404),
        (json!({"fileId": empty["id"]}), 400),
    ] {
        assert_eq!(post(body.clone()).await.status, status, "{body}");
    }
    // The run has its bytes, whatever becomes of the file.
    let gone = site
        .call("DELETE", &format!("/api/files/{}", id(&file)), None)
        .await;
    assert_eq!(gone.status, 200);
    assert_eq!(site.call("GET", &run_path(&answer), None).await.status, 200);
    let history = format!("{}/run?limit=1", path(&workflow));
    let newest = site.call("GET", &history, None).await.json();
    let mut kept = sourced["run"].clone();
    kept["sourceFileId"] = Value::Null;
    assert_eq!(newest["runs"], json!([kept]));
    let wrong = format!("{}/run?limit=0", path(&workflow));
    assert_eq!(site.call("GET", &wrong, None).await.status, 400);
}

#[actix_web::test]
async fn deleting_a_workflow_gives_its_runs_back() {
    let site = Site::open_with(|config| {
        impatient(config);
        config.workflows.max_active_per_workflow = 1;
    })
    .await;
    let workflow = site.workflow(storing()).await;
    let first = site.run(&workflow, "a.png", PNG).await.json();
    site.run(&workflow, "b.png", PNG).await;
    assert_eq!(site.used().await, 2);
    let deleted = site.call("DELETE", &path(&workflow), None).await;
    assert_eq!(deleted.status, 200, "{deleted:?}");
    assert_eq!(site.used().await, 0);
    assert_eq!(site.call("GET", &run_path(&first), None).await.status, 404);
}

#[actix_web::test]
async fn a_run_is_followed() {
    let site = Site::open_with(|config| {
        impatient(config);
        config.workflows.max_followers = 1;
    })
    .await;
    let workflow = site.workflow(storing()).await;
    let run = site.run(&workflow, "a.png", PNG).await.json();
    let events = format!("{}/events", run_path(&run));
    site.call("POST", &format!("{}/cancel", run_path(&run)), None)
        .await;
    let followed = site.call("GET", &events, None).await;
    assert_eq!(followed.header("content-type"), "text/event-stream");
    let text = String::from_utf8(followed.body).unwrap();
    let (names, data): (Vec<&str>, Vec<Value>) = text
        .split_terminator("\n\n")
        .map(|event| {
            let (name, data) = event.split_once('\n').unwrap();
            let data = data.strip_prefix("data: ").unwrap();
            (name, serde_json::from_str::<Value>(data).unwrap())
        })
        .unzip();
    assert_eq!(names, ["event: progress", "event: end"], "{text}");
    assert_eq!(
        data[0],
        json!({"runId": run["runId"], "status": "cancelled", "stepsDone": 0, "stepsTotal": 0, "current": null,
            "currentNodeId": null, "stepProgress": null, "queuePlace": null})
    );
    let shown = site.call("GET", &run_path(&run), None).await.json();
    assert_eq!(data[1], shown);
}
