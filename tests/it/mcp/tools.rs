//! The tools one by one, and who may call them.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Talk, line_of};
use crate::support::{
    Failure,
    images::svg,
    server::{Server, Settings},
};

fn small() -> Value {
    line_of(&[
        ("resize", json!({"resizeWidth": 64})),
        ("storage", json!({})),
    ])
}

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array();
    tools
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["name"].as_str())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_is_made_changed_paused_and_deleted() -> Result<(), Failure> {
    let server = Server::start().await?;
    let talk = Talk::to(&server);
    let made = json!({"name": "One", "definition": small()});
    let made = talk.answer("create_workflow", made).await?["workflow"].take();
    assert!(
        made["webhookSecret"]
            .as_str()
            .is_some_and(|it| it.starts_with("whsec_"))
    );
    let id = &made["id"];

    let changed = json!({"id": id, "name": "Two", "version": 1, "outputFormat": "webp"});
    let changed = talk.answer("update_workflow", changed).await?;
    assert_eq!(changed["workflow"]["version"], 2, "{changed}");
    let crossed = json!({"id": id, "name": "Three", "version": 1});
    let said = talk.failure("update_workflow", crossed).await?;
    assert!(said.contains("present version is 2"), "{said}");
    let nameless = talk
        .failure("update_workflow", json!({"name": "Three"}))
        .await?;
    assert!(nameless.contains("id"), "{nameless}");

    let paused = json!({"id": id, "isActive": false});
    let paused = talk.answer("set_workflow_active", paused).await?;
    assert_eq!(paused["workflow"]["isActive"], false);
    let listed = talk.answer("list_workflows", json!({})).await?;
    assert_eq!(
        listed["workflows"][0]["steps"],
        json!(["upload", "convert", "webhook"])
    );
    let whole = talk.answer("list_workflows", json!({"id": id})).await?;
    assert!(whole["workflows"][0]["definition"]["nodes"].is_array());

    let deletion = talk.answer("delete_workflow", json!({"id": id})).await?;
    assert_eq!(
        (&deletion["deleted"], &deletion["versions"]),
        (&json!(false), &json!(2))
    );
    let gone = json!({"id": id, "confirm": true});
    assert_eq!(talk.answer("delete_workflow", gone).await?["deleted"], true);
    let again = talk.failure("delete_workflow", json!({"id": id})).await?;
    assert_eq!(again, "workflow not found");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_file_is_found_and_run_through_a_saved_workflow() -> Result<(), Failure> {
    let server = Server::start().await?;
    let talk = Talk::to(&server);
    let first = talk.upload("drawing.svg", svg("teal")).await?;
    let run = json!({"workflow": {"outputFormat": "png"}, "uploadUrl": first});
    let run = talk.answer("run_workflow", run).await?;
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(run["run"]["uploadSource"], "mcp", "{run}");
    // An upload is used up by its run.
    let twice = json!({"workflow": {"outputFormat": "png"}, "uploadUrl": first});
    talk.failure("run_workflow", twice).await?;

    let stored = json!({"workflow": {"definition": small()}, "uploadUrl": talk.upload("b.svg", svg("red")).await?});
    let stored = talk.answer("run_workflow", stored).await?;
    let workflow = &stored["run"]["workflowId"];
    let files = talk
        .answer("list_files", json!({"mime_prefix": "image/"}))
        .await?;
    let file = &files["files"][0]["id"];
    assert_eq!(*file, stored["run"]["outputs"][0]["storedFileId"]);
    let again = json!({"workflowId": workflow, "fileId": file});
    let again = talk.answer("run_workflow", again).await?;
    let runs = talk
        .answer("list_workflow_runs", json!({"workflowId": workflow}))
        .await?;
    assert_eq!(runs["runs"][0]["id"], again["runId"]);
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(2));
    let shown = talk
        .answer("get_workflow_run", json!({"runId": again["runId"]}))
        .await?;
    assert_eq!(shown["run"]["log"].as_array().map(Vec::len), Some(3));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_run_leaves_no_workflow() -> Result<(), Failure> {
    let server = Server::start().await?;
    let talk = Talk::to(&server);
    let (workflow, unknown) = (
        json!({"definition": small()}),
        "00000000-0000-0000-0000-000000000000",
    );
    let empty = json!({"filename": "a.jpg", "sizeBytes": 3});
    let empty = talk.answer("create_upload_url", empty).await?["uploadUrl"].take();
    let hollow = talk.upload("empty.jpg", Vec::new()).await?;
    for (arguments, words) in [
        (json!({"workflow": workflow}), "uploadUrl"),
        (json!({"fileId": unknown}), "workflowId"),
        (
            json!({"workflow": workflow, "workflowId": unknown, "fileId": unknown}),
            "workflowId",
        ),
        (
            json!({"workflow": workflow, "fileId": unknown, "uploadUrl": "x"}),
            "either",
        ),
        (
            json!({"workflow": workflow, "fileId": unknown}),
            "file not found",
        ),
        (
            json!({"workflowId": unknown, "fileId": unknown}),
            "not found",
        ),
        (
            json!({"workflow": workflow, "uploadUrl": "https://x.example/"}),
            "uploadUrl",
        ),
        (json!({"workflow": workflow, "uploadUrl": empty}), "PUT"),
        (json!({"workflow": workflow, "uploadUrl": hollow}), "empty"),
        (
            json!({"workflow": workflow, "filePath": "/etc/passwd"}),
            "create_upload_url",
        ),
        (
            json!({"workflow": {"id": unknown, "definition": small()}, "fileId": unknown}),
            "workflowId",
        ),
        (
            json!({"workflow": {"definition": {"nodes": [], "edges": []}}, "fileId": unknown}),
            "not found",
        ),
    ] {
        let said = talk.failure("run_workflow", arguments.clone()).await?;
        assert!(said.contains(words), "{arguments}: {said}");
    }
    let listed = talk.answer("list_workflows", json!({})).await?;
    assert_eq!(listed["workflows"], json!([]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn problems_and_operations_are_reported() -> Result<(), Failure> {
    let server = Server::start().await?;
    let talk = Talk::to(&server);
    let wrong = json!({"definition": line_of(&[("resize", json!({"resizeWidth": 0})), ("gif", json!({"fps": 0}))])});
    let linted = talk.answer("lint_workflow", wrong.clone()).await?;
    assert_eq!(linted["valid"], false);
    let problems = linted["problems"].as_array().ok_or("no problems")?;
    assert!(problems.len() >= 2, "{linted}");
    let mut named = wrong;
    named["name"] = "Wrong".into();
    let refused = talk.call("create_workflow", named).await?;
    let detail = refused["content"][1]["text"].as_str().ok_or("no detail")?;
    assert!(
        detail.contains("invalid_definition") && detail.contains("fps"),
        "{detail}"
    );

    let all = talk.answer("list_operations", json!({})).await?;
    let kinds = all["operations"].as_array().ok_or("no operations")?;
    let has = |wanted: &str| kinds.iter().any(|it| it["kind"] == wanted);
    assert!(has("resize") && has("branch") && has("gif") && !has("concat_audio"));
    let one = talk
        .answer("list_operations", json!({"kind": "pdf-preview"}))
        .await?;
    assert_eq!(one["operations"][0]["kind"], "pdf_preview");
    assert!(
        talk.failure("list_operations", json!({"kind": "concat-audio"}))
            .await?
            .contains("resize")
    );

    let live = talk.answer("live_input_health", json!({})).await?;
    assert_eq!(live["liveInputs"][0]["health"]["status"], "idle");
    let one = json!({"liveInputId": live["liveInputs"][0]["id"]});
    assert_eq!(talk.answer("live_input_health", one).await?, live);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_may_only_read_reads() -> Result<(), Failure> {
    let server = Server::start().await?;
    let key = json!({"name": "reader", "scope": "read"});
    let made = server
        .api()
        .expect(StatusCode::CREATED, Method::POST, "/api/keys", Some(&key))
        .await?;
    let key = ["token", "secret"]
        .iter()
        .find_map(|name| made[name].as_str());
    let reader = Talk::with_key(&server, key.ok_or_else(|| format!("no key in {made}"))?);
    let (writes, reads) = (Talk::to(&server), &reader);
    let everything = writes.request("tools/list", json!({})).await?;
    let seen = reads.request("tools/list", json!({})).await?;
    assert!(names(&seen).contains(&"lint_workflow"));
    let hidden = [
        "run_workflow",
        "create_workflow",
        "update_workflow",
        "set_workflow_active",
        "delete_workflow",
        "create_upload_url",
    ];
    for tool in hidden {
        assert!(
            names(&everything).contains(&tool) && !names(&seen).contains(&tool),
            "{tool}"
        );
        let said = reads.failure(tool, json!({})).await?;
        assert!(said.contains("may only read"), "{tool}: {said}");
    }
    assert_eq!(names(&everything).len(), names(&seen).len() + hidden.len());
    reads.answer("list_workflows", json!({})).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_are_counted_with_everybody_else() -> Result<(), Failure> {
    let settings = Settings::new().env("SLUICE_PLANS__UNLIMITED__REQUESTS_PER_MINUTE", "3");
    let server = settings.start().await?;
    let talk = Talk::to(&server);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let mut statuses = Vec::new();
    for _ in 0..8 {
        let answer = talk.message(&ping).send().await?;
        statuses.push(answer.status().as_u16());
    }
    assert!(
        statuses.contains(&200) && statuses.contains(&429),
        "{statuses:?}"
    );
    Ok(())
}
