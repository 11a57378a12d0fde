//! The official clients make and run a workflow on a photograph in one call.

use serde_json::{Value, json};

use super::{agent::Agent, line_of};
use crate::support::{
    Failure, http,
    images::{look, photographs},
    server::{API_KEY, Server},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_makes_and_runs_a_workflow_in_one_call() -> Result<(), Failure> {
    let server = Server::start().await?;
    let photograph = photographs(1)?.pop().ok_or("no photograph")?;
    let size = std::fs::metadata(&photograph)?.len();
    let definition = line_of(&[
        ("resize", json!({"resizeWidth": 320})),
        ("convert", json!({"format": "webp"})),
        ("storage", json!({})),
    ]);
    let task = json!({
        "url": format!("{}/mcp", server.base_url()),
        "key": API_KEY,
        "steps": [
            {"list": true},
            {"tool": "create_upload_url", "arguments": {"filename": "photo.jpg", "sizeBytes": size}},
            {"put": photograph},
            {"tool": "run_workflow", "arguments": {
                "workflow": {"name": "Small WebP", "definition": definition},
                "uploadUrl": "$uploadUrl",
            }},
            {"tool": "list_workflows"},
            {"tool": "no_such_tool"},
            {"tool": "get_job", "arguments": {"jobId": "00000000-0000-0000-0000-000000000000"}},
            {"tool": "get_job", "arguments": {"jobID": "x"}},
        ],
    });
    for agent in Agent::ALL {
        let Some(report) = agent.perform(task.clone()).await? else {
            continue;
        };
        let done = report["done"].as_array().ok_or("nothing was done")?;
        assert_eq!(done[2]["status"], 200, "{agent:?}");
        check_run(agent, &done[3]).await?;
        let made = &done[4]["structuredContent"]["workflows"][0];
        assert_eq!(made["name"], "Small WebP", "{agent:?}");
        assert_eq!(done[5]["refused"]["code"], -32602, "{agent:?}: {}", done[5]);
        for failed in &done[6..] {
            assert_eq!(failed["isError"], true, "{agent:?}: {failed}");
        }
        assert_eq!(done[6]["content"][0]["text"], "job not found");
        check_listed(&done[0]);
    }
    Ok(())
}

/// Checks that the run made a stored WebP of the size asked for, and reported its steps on the way.
async fn check_run(agent: Agent, result: &Value) -> Result<(), Failure> {
    let answer = &result["structuredContent"];
    assert_eq!(answer["status"], "completed", "{agent:?}: {result}");
    let output = &answer["run"]["outputs"][0];
    assert_eq!(output["mimeType"], "image/webp", "{agent:?}: {output}");
    assert!(output["storedFileId"].is_string(), "{agent:?}: {output}");
    let url = output["downloadUrl"].as_str().ok_or("no downloadUrl")?;
    let bytes = http::client().get(url).send().await?.bytes().await?;
    assert_eq!(look(&bytes).await?.size().0, 320, "{agent:?}");

    let progress = result["progress"].as_array().ok_or("no progress")?;
    let steps: Vec<f64> = progress
        .iter()
        .filter_map(|it| it["progress"].as_f64())
        .collect();
    assert_eq!(steps.first(), Some(&0.0), "{agent:?}: {progress:?}");
    assert!(steps.is_sorted_by(|a, b| a < b), "{agent:?}: {progress:?}");
    Ok(())
}

/// The clients hold every answer to the schema that its tool announces.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_keeps_to_its_schema() -> Result<(), Failure> {
    let server = Server::start().await?;
    let photograph = photographs(1)?.pop().ok_or("no photograph")?;
    let size = std::fs::metadata(&photograph)?.len();
    let calls = [
        ("list_operations", json!({})),
        ("live_input_health", json!({})),
        (
            "lint_workflow",
            json!({"definition": {"nodes": [], "edges": []}}),
        ),
        (
            "create_workflow",
            json!({"name": "One", "compressionMode": 70}),
        ),
        (
            "update_workflow",
            json!({"id": "$workflowId", "outputFormat": "png"}),
        ),
        ("list_workflows", json!({})),
        ("list_workflows", json!({"id": "$workflowId"})),
        (
            "run_workflow",
            json!({"workflowId": "$workflowId", "uploadUrl": "$uploadUrl"}),
        ),
        ("get_workflow_run", json!({"runId": "$runId"})),
        ("list_workflow_runs", json!({"workflowId": "$workflowId"})),
        ("list_files", json!({})),
        (
            "set_workflow_active",
            json!({"id": "$workflowId", "isActive": false}),
        ),
        ("delete_workflow", json!({"id": "$workflowId"})),
        (
            "delete_workflow",
            json!({"id": "$workflowId", "confirm": true}),
        ),
    ];
    let upload = json!({"filename": "photo.jpg", "sizeBytes": size});
    let mut steps = vec![
        json!({"list": true}),
        json!({"tool": "create_upload_url", "arguments": upload}),
        json!({"put": photograph}),
    ];
    let calls = calls.map(|(tool, arguments)| json!({"tool": tool, "arguments": arguments}));
    steps.extend(calls);
    let url = format!("{}/mcp", server.base_url());
    let task = json!({"url": url, "key": API_KEY, "steps": steps});
    for agent in Agent::ALL {
        let Some(report) = agent.perform(task.clone()).await? else {
            continue;
        };
        let done = report["done"].as_array().ok_or("nothing was done")?;
        assert_eq!(done.len(), steps.len());
        for (step, answer) in steps.iter().zip(done).skip(3) {
            assert_eq!(answer["isError"], false, "{agent:?}: {step}: {answer}");
        }
    }
    Ok(())
}

fn check_listed(listed: &Value) {
    let tools = listed["tools"].as_array().map(Vec::as_slice);
    let delete = tools.into_iter().flatten().find(|tool| {
        let name = &tool["name"];
        assert!(tool["title"].is_string(), "{name}");
        name == "delete_workflow"
    });
    let hints = &delete.expect("it is listed")["annotations"];
    assert_eq!(hints["destructiveHint"], true);
    assert_eq!(hints["readOnlyHint"], false);
}
