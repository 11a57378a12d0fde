//! Workflow runs to their end, with steps that need no worker.

use std::time::Duration;

use serde_json::{Value, json};

use super::{PNG, Site, Working, chain, path, request, run_path};
use crate::http::tests::eventually;

/// The log as pairs of node and status.
fn log(run: &Value) -> Vec<(String, String)> {
    let entries = run["log"].as_array().unwrap();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    entries
        .iter()
        .map(|entry| (word(&entry["nodeId"]), word(&entry["status"])))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(node, status)| ((*node).to_owned(), (*status).to_owned()))
        .collect()
}

async fn fetched(site: &Site, address: &Value) -> (u16, Vec<u8>) {
    let path = address
        .as_str()
        .unwrap()
        .strip_prefix("http://media.test:8080")
        .unwrap();
    let answer = site.send(request("GET", path)).await;
    (answer.status, answer.body)
}

#[actix_web::test]
async fn a_short_run_is_answered_with_what_it_stored() {
    let Working { site, _root } = Working::open_with(|_| {}).await;
    let folder = site.folder().await;
    let definition = chain(&[
        ("name", "rename", json!({"pattern": "{original}-{n}"})),
        ("keep", "storage", json!({"folderId": folder})),
        ("post", "webhook", json!({})),
    ]);
    let workflow = site.workflow(definition).await;
    let answer = site.run(&workflow, "photo.png", PNG).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    let run = &answer["run"];
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(
        log(run),
        pairs(&[
            ("up", "completed"),
            ("name", "completed"),
            ("keep", "completed"),
            ("post", "completed")
        ])
    );
    assert!(run["startedAt"].is_string() && run["completedAt"].is_string());
    let output = &run["outputs"][0];
    assert_eq!(
        (
            &output["filename"],
            &output["mimeType"],
            &output["sizeBytes"]
        ),
        (
            &json!("photo-1.png"),
            &json!("image/png"),
            &json!(PNG.len())
        )
    );
    assert_eq!(run["log"][2]["storedFileId"], output["storedFileId"]);
    assert_eq!(
        fetched(&site, &output["downloadUrl"]).await,
        (200, PNG.to_vec())
    );
    let files = site
        .call("GET", &format!("/api/files?folderId={folder}"), None)
        .await
        .json();
    assert_eq!(files["files"][0]["id"], output["storedFileId"]);
    // What a run stored is the user's; the run only names it.
    let file = format!("/api/files/{}", output["storedFileId"].as_str().unwrap());
    assert_eq!(site.call("DELETE", &file, None).await.status, 200);
    let shown = site.call("GET", &run_path(&answer), None).await.json();
    assert_eq!(
        (
            &shown["run"]["outputs"],
            &shown["run"]["log"][2]["storedFileId"]
        ),
        (&json!([]), &Value::Null)
    );
}

#[actix_web::test]
async fn the_last_file_of_a_run_that_stored_none_is_a_download() {
    let Working { site, _root } = Working::open_with(|config| {
        config.workflows.keep_results = Duration::from_secs(60);
    })
    .await;
    let workflow = site
        .workflow(chain(&[("post", "webhook", json!({}))]))
        .await;
    let run = site.run(&workflow, "photo.png", PNG).await.json();
    assert_eq!(run["status"], "completed", "{run}");
    let output = run["run"]["outputs"][0].clone();
    assert_eq!(
        (&output["filename"], &output["storedFileId"]),
        (&json!("photo.png"), &Value::Null)
    );
    assert_eq!(
        fetched(&site, &output["downloadUrl"]).await,
        (200, PNG.to_vec())
    );
    let mut forged = output["downloadUrl"].as_str().unwrap().to_owned();
    let last = forged.pop();
    forged.push(if last == Some('A') { 'B' } else { 'A' });
    assert_eq!(fetched(&site, &json!(forged)).await.0, 404);
    // With its workflow it goes.
    assert_eq!(
        site.call("DELETE", &path(&workflow), None).await.status,
        200
    );
    assert_eq!(fetched(&site, &output["downloadUrl"]).await.0, 404);
}

#[actix_web::test]
async fn the_log_names_the_path_and_what_lies_beside_it() {
    let Working { site, _root } = Working::open_with(|_| {}).await;
    let definition = json!({
        "nodes": [
            {"id": "up", "data": {"kind": "upload"}},
            {"id": "small", "data": {"kind": "branch", "title": "Small?"}},
            {"id": "keep", "data": {"kind": "storage"}},
            {"id": "other", "data": {"kind": "rename"}},
        ],
        "edges": [
            {"source": "up", "target": "small"},
            {"source": "small", "target": "keep", "kind": "true"},
            {"source": "small", "target": "other", "kind": "false"},
        ],
        "uploadGate": {"logic": "and", "conditions": [{"field": "mime", "operator": "starts-with", "value": "image/"}]},
        "branchConditions": {"small": {"logic": "and", "conditions": [{"field": "size_bytes", "operator": "lt", "value": 1000}]}},
    });
    let workflow = site.workflow(definition).await;
    let run = site.run(&workflow, "photo.png", PNG).await.json()["run"].clone();
    assert_eq!(
        log(&run),
        pairs(&[
            ("up", "completed"),
            ("small", "completed"),
            ("keep", "completed"),
            ("other", "skipped")
        ])
    );
    assert_eq!(
        (
            &run["gate"],
            &run["log"][1]["branch"],
            &run["log"][2]["branch"]
        ),
        (&json!(true), &json!(true), &Value::Null)
    );
    let turned_away = site.run(&workflow, "notes.txt", b"words").await;
    assert_eq!(turned_away.status, 200);
    let run = turned_away.json()["run"].clone();
    assert_eq!(
        (&run["status"], &run["gate"], &run["outputs"]),
        (&json!("completed"), &json!(false), &json!([]))
    );
    assert!(
        log(&run).iter().all(|(_, status)| status == "skipped"),
        "{run}"
    );
}

#[actix_web::test]
async fn an_upload_into_its_folder_runs_a_workflow() {
    let Working { site, _root } = Working::open_with(|config| {
        let plan = config.plans.get_mut("unlimited").unwrap();
        plan.operations_per_month = 2;
        plan.image_upload = bytesize::ByteSize::b(100);
    })
    .await;
    let folder = site.folder().await;
    let mut definition = chain(&[("keep", "storage", json!({"folderId": folder}))]);
    definition["trigger"] = json!({"folderId": folder});
    let workflow = site.workflow(definition).await;
    let upload = async |name: &str, bytes: &[u8]| {
        let asked = json!({"filename": name, "sizeBytes": bytes.len(), "folderId": folder});
        let made = site.call("POST", "/api/uploads", Some(asked)).await.json();
        let address = made["upload"]["signedUrl"].as_str().unwrap();
        let address = address.strip_prefix("http://media.test:8080").unwrap();
        let put = site
            .send(request("PUT", address).set_payload(bytes.to_vec()))
            .await;
        assert_eq!(put.status, 200, "{put:?}");
        site.call(
            "POST",
            "/api/uploads/complete",
            Some(made["complete"]["body"].clone()),
        )
        .await
    };
    let outside = site.stored("elsewhere.png", PNG).await;
    assert_eq!(outside["folder_id"], Value::Null);
    assert!(site.history(&workflow).await.is_empty());
    for name in ["first.png", "second.png", "third.png"] {
        assert_eq!(upload(name, PNG).await.status, 200);
    }
    assert_eq!(
        upload("large.png", &[PNG, &[0; 80]].concat()).await.status,
        200
    );
    let have_ended = async || {
        let runs = site.history(&workflow).await;
        // What they store there begins no further ones.
        runs.len() == 4 && runs.iter().all(|run| run["completedAt"].is_string())
    };
    eventually("the runs of the uploads have not ended", have_ended).await;
    let runs = site.history(&workflow).await;
    let listed: Vec<(&str, &str, &str)> = runs
        .iter()
        .map(|run| {
            let word = |field: &str| run[field].as_str().unwrap();
            (word("inputFilename"), word("trigger"), word("status"))
        })
        .collect();
    assert_eq!(
        listed,
        [
            ("large.png", "folder", "failed"),
            ("third.png", "folder", "failed"),
            ("second.png", "folder", "completed"),
            ("first.png", "folder", "completed"),
        ]
    );
    assert_eq!(
        (&runs[0]["errorCode"], &runs[1]["errorCode"]),
        (&json!("too_large"), &json!("operations_used_up"))
    );
    let record = site.call("GET", &path(&workflow), None).await.json();
    assert_eq!(record["workflow"]["runCount"], 4);
}
