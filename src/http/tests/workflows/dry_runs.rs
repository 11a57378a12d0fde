//! Dry runs: on definitions and workflows, stored files and facts; nothing is stored or charged.

use serde_json::{Value, json};
use sluice_store::api_keys::Scope;

use super::{PNG, Site, UNKNOWN_ID, chain, id, storing};

fn branching() -> Value {
    let mut definition = chain(&[
        ("wide", "branch", json!({})),
        ("small", "resize", json!({"resizeWidth": 800})),
        ("keep", "storage", json!({})),
    ]);
    definition["edges"][1]["kind"] = json!("true");
    definition["branchConditions"] =
        json!({"wide": {"conditions": [{"field": "width", "operator": "gt", "value": 1200}]}});
    definition
}

#[actix_web::test]
async fn a_definition_is_followed_with_facts_and_nothing_is_left_of_it() {
    let site = Site::open().await;
    let reader = site.key(Scope::Read).await;
    let facts = json!({"mime": "image/jpeg", "filename": "beach.jpg", "width": 4032});
    let body = json!({"definition": branching(), "facts": facts});
    let answer = site
        .call_as(&reader, "POST", "/api/workflows/dry-run", Some(body))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    assert_eq!(answer["gate"], Value::Null);
    assert_eq!(
        answer["path"],
        json!([
            {"nodeId": "up", "state": "taken", "branch": null, "fails": false, "because": "takes in beach.jpg"},
            {"nodeId": "wide", "state": "taken", "branch": "true", "fails": false,
                "because": "takes the `true` path: width is 4032"},
            {"nodeId": "small", "state": "taken", "branch": null, "fails": false, "because": "makes beach.jpg"},
            {"nodeId": "keep", "state": "taken", "branch": null, "fails": false, "because": "stores beach.jpg"},
        ])
    );
    assert_eq!(answer["operations"], json!({"charged": 1, "unknown": 0}));
    assert_eq!(answer["problems"][0]["code"], "missing_branch_edge");
    assert_eq!(
        answer["output"],
        json!([{"nodeId": "keep", "folderId": null, "state": "taken", "filename": "beach.jpg", "mimeType": "image/jpeg",
            "sizeBytes": null, "width": null, "height": null, "duration": null}])
    );
    assert_eq!(site.used().await, 0);
    let workflows = site.call("GET", "/api/workflows", None).await.json();
    assert_eq!(workflows["workflows"], json!([]));
    let runs = site.call("GET", "/api/workflows/runs", None).await.json();
    assert_eq!(runs["counts"]["total"], 0);
}

#[actix_web::test]
async fn a_workflow_is_followed_with_a_stored_file() {
    let site = Site::open().await;
    let workflow = site.workflow(branching()).await;
    // No worker has measured the image here.
    let image = site.stored("photo.png", PNG).await;
    let text = site.stored("notes.txt", b"no image").await;
    let dry_run = async |file: &Value| {
        let body = json!({"workflowId": id(&workflow), "fileId": id(file)});
        let answer = site
            .call("POST", "/api/workflows/dry-run", Some(body))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    let unknown = dry_run(&image).await;
    assert_eq!(unknown["path"][1]["branch"], "unknown");
    assert_eq!(unknown["path"][2]["state"], "unknown");
    assert_eq!(
        unknown["path"][2]["because"],
        "only on the `true` path of `Branch`"
    );
    let narrow = dry_run(&text).await;
    assert_eq!(narrow["path"][1]["branch"], "false");
    assert_eq!(narrow["path"][2]["state"], "notTaken");
    assert_eq!(narrow["output"][0]["nodeId"], Value::Null);
    assert_eq!(narrow["output"][0]["filename"], "notes.txt");
}

#[actix_web::test]
async fn what_cannot_be_followed_is_named() {
    let site = Site::open().await;
    let workflow = site.workflow(storing()).await;
    let stranger = site.stranger().await;
    let broken = chain(&[("odd", "teleport", json!({}))]);
    let post = async |body: Value| {
        let answer = site
            .call("POST", "/api/workflows/dry-run", Some(body))
            .await;
        (answer.status, answer.json())
    };
    let (status, answer) = post(json!({"definition": broken, "facts": {}})).await;
    assert_eq!((status, &answer["path"]), (200, &json!([])), "{answer}");
    assert_eq!(answer["problems"][0]["code"], "unknown_kind");
    assert_eq!(answer["operations"], json!({"charged": 0, "unknown": 0}));
    for (body, status, said) in [
        (json!({}), 400, "fileId is missing"),
        (json!({"facts": {}}), 400, "definition is missing"),
        (json!({"definition": [], "facts": {}}), 400, "definition"),
        (
            json!({"workflowId": id(&workflow), "facts": {"width": "wide"}}),
            400,
            "facts: width",
        ),
        (
            json!({"workflowId": id(&workflow), "facts": {}, "uploadSource": "x".repeat(65)}),
            400,
            "uploadSource",
        ),
        (json!({"workflowId": UNKNOWN_ID, "facts": {}}), 404, ""),
        (
            json!({"workflowId": id(&workflow), "fileId": UNKNOWN_ID}),
            404,
            "",
        ),
    ] {
        let (got, answer) = post(body.clone()).await;
        assert_eq!(got, status, "{body}: {answer}");
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains(said), "{error}");
    }
    let of_another = json!({"workflowId": id(&workflow), "facts": {}});
    let answer = site
        .call_as(
            &stranger,
            "POST",
            "/api/workflows/dry-run",
            Some(of_another),
        )
        .await;
    assert_eq!(answer.status, 404);
}
