//! Runs that are run again on the same input.

use std::time::Duration;

use serde_json::{Value, json};
use sluice_store::api_keys::Scope;

use super::{PNG, Site, UNKNOWN_ID, Working, chain, id, path, run_path, storing};

#[actix_web::test]
async fn a_run_is_run_again_as_it_ran_or_as_the_workflow_is_now() {
    let working = Working::open_with(|_| {}).await;
    let site = &working.site;
    let workflow = site.workflow(storing()).await;
    let first = site.run(&workflow, "photo.png", PNG).await;
    assert_eq!(first.status, 200, "{first:?}");
    let first = first.json();
    let renaming = chain(&[
        ("name", "rename", json!({"pattern": "{original} again"})),
        ("keep", "storage", json!({})),
    ]);
    let saved = site
        .save(json!({"id": id(&workflow), "definition": renaming}))
        .await;
    assert_eq!(saved.status, 200);
    let rerun = format!(
        "{}/runs/{}/rerun",
        path(&workflow),
        first["runId"].as_str().unwrap()
    );
    for (body, version, number, name) in [
        (Some(json!({"version": "ran"})), 1, 2, "photo.png"),
        (Some(json!({"version": "current"})), 2, 3, "photo again.png"),
        (None, 1, 4, "photo.png"),
    ] {
        let again = site.call("POST", &rerun, body).await;
        assert_eq!(again.status, 200, "{again:?}");
        let again = again.json();
        let run = &again["run"];
        assert_ne!(again["runId"], first["runId"]);
        assert_eq!(run["workflowVersion"], version);
        assert_eq!(run["number"], number);
        assert_eq!(run["rerunOf"], first["runId"]);
        assert_eq!(run["uploadSource"], first["run"]["uploadSource"]);
        assert_eq!(run["outputs"][0]["filename"], name);
        assert_eq!(site.used().await, number);
    }
    let list = site.call("GET", "/api/workflows", None).await.json();
    let recent = &list["recentRuns"][0];
    assert_eq!(recent["workflowId"], workflow["id"]);
    assert_eq!(
        (&recent["ended"], &recent["failed"]),
        (&json!(4), &json!(0))
    );
    assert_eq!(recent["lastStatus"], "completed");
    for (query, status, kept) in [("", 200, 4), ("?version=1", 200, 3), ("?version=x", 400, 0)] {
        let statistics = format!("{}/statistics{query}", path(&workflow));
        let answer = site.call("GET", &statistics, None).await;
        assert_eq!(answer.status, status, "{query}");
        let answer = answer.json();
        let nodes = answer["nodes"].as_array().into_iter().flatten();
        let completed: i64 = nodes
            .filter(|node| node["nodeId"] == "keep")
            .filter_map(|node| node["completed"].as_i64())
            .sum();
        assert_eq!(completed, kept, "{query}");
    }
    let shown = site.call("GET", &run_path(&first), None).await.json();
    assert_eq!(
        shown["run"]["log"], first["run"]["log"],
        "it stays as it is"
    );
}

#[actix_web::test]
async fn what_cannot_be_run_again_is_rejected_and_costs_nothing() {
    let site = Site::open_with(|config| {
        config.workflows.inline_wait = Duration::from_millis(1);
        config
            .plans
            .get_mut("unlimited")
            .unwrap()
            .operations_per_month = 1;
    })
    .await;
    let (workflow, other) = (
        site.workflow(storing()).await,
        site.workflow(storing()).await,
    );
    let run = site.run(&workflow, "photo.png", PNG).await.json();
    let (reader, stranger) = (site.key(Scope::Read).await, site.stranger().await);
    let rerun = |workflow: &Value| {
        let run = run["runId"].as_str().unwrap();
        format!("{}/runs/{run}/rerun", path(workflow))
    };
    let unfinished = site.call("POST", &rerun(&workflow), None).await;
    assert_eq!(unfinished.status, 409, "{unfinished:?}");
    assert!(unfinished.error().contains("has ended"), "{unfinished:?}");
    let cancel = format!("{}/cancel", run_path(&run));
    assert_eq!(site.call("POST", &cancel, None).await.status, 200);
    for (key, path, body, status) in [
        (&reader, rerun(&workflow), json!({}), 403),
        (&stranger, rerun(&workflow), json!({}), 404),
    ] {
        let answer = site.call_as(key, "POST", &path, Some(body)).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    let unknown = format!("{}/runs/{UNKNOWN_ID}/rerun", path(&workflow));
    for (path, body, status) in [
        (rerun(&other), json!({}), 404),
        (unknown, json!({}), 404),
        (rerun(&workflow), json!({"version": "newest"}), 400),
    ] {
        let answer = site.call("POST", &path, Some(body)).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
    assert_eq!(site.used().await, 0);
    assert_eq!(site.call("POST", &rerun(&workflow), None).await.status, 202);
    assert_eq!(site.call("POST", &rerun(&workflow), None).await.status, 402);
    let pause = json!({"isActive": false});
    let paused = site.call("PATCH", &path(&workflow), Some(pause)).await;
    assert_eq!(paused.status, 200);
    assert_eq!(site.call("POST", &rerun(&workflow), None).await.status, 409);
    assert_eq!(site.used().await, 1);
}
