//! The official clients, as agents' programs embed them, over standard input and output.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{super::agent::Agent, guide::product_photos};
use crate::support::{
    Failure,
    images::{look, photographs},
    server::{API_KEY, Server},
};

/// Starts the bridge by an agent's configuration, and does its agent's task.
fn task(server: &Server, root: &Path) -> Result<Value, Failure> {
    let call = product_photos()?;
    let mut elsewhere = call.clone();
    elsewhere["filePath"] = "/etc/passwd".into();
    Ok(json!({
        "command": [env!("CARGO_BIN_EXE_sluice"), "mcp", "--url", server.base_url(), "--root", root],
        "env": {"SLUICE_API_KEY": API_KEY},
        "steps": [
            {"list": true},
            {"tool": "run_workflow", "arguments": call},
            {"tool": "run_workflow", "arguments": elsewhere},
            {"tool": "list_workflows"},
            {"tool": "no_such_tool"},
        ],
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_makes_a_workflow_and_runs_it_on_a_local_photograph_in_one_call()
-> Result<(), Failure> {
    let server = Server::start().await?;
    let folder = TempDir::new()?;
    let photograph = photographs(1)?.pop().ok_or("no photograph")?;
    std::fs::copy(photograph, folder.path().join("photo.jpg"))?;
    for agent in Agent::ALL {
        let task = task(&server, folder.path())?;
        let Some(report) = agent.perform(task).await? else {
            continue;
        };
        let done = report["done"].as_array().ok_or("nothing was done")?;
        let tools = done[0]["tools"].as_array().ok_or("no tools")?;
        let run = tools.iter().find(|tool| tool["name"] == "run_workflow");
        let path = &run.ok_or("no run_workflow")?["inputSchema"]["properties"]["filePath"];
        assert_eq!(path["type"], "string", "{agent:?}");
        check_run(agent, &server, &done[1]).await?;
        assert_eq!(done[2]["isError"], true, "{agent:?}: {}", done[2]);
        let rejection = done[2]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(
            rejection.contains("in none of the folders"),
            "{agent:?}: {rejection}"
        );
        let made = &done[3]["structuredContent"]["workflows"][0];
        assert_eq!(made["name"], "Product photos", "{agent:?}: {made}");
        assert_eq!(done[4]["refused"]["code"], -32602, "{agent:?}: {}", done[4]);
    }
    Ok(())
}

/// Checks that the run made a stored WebP of the wide size, and reported the upload and its steps on the way.
async fn check_run(agent: Agent, server: &Server, result: &Value) -> Result<(), Failure> {
    let answer = &result["structuredContent"];
    assert_eq!(answer["status"], "completed", "{agent:?}: {result}");
    let output = &answer["run"]["outputs"][0];
    assert_eq!(output["filename"], "photo.webp", "{agent:?}: {output}");
    assert!(output["storedFileId"].is_string(), "{agent:?}: {output}");
    let url = output["downloadUrl"].as_str().ok_or("no downloadUrl")?;
    let fetched = server.api().fetch(url).await?.expect(200)?;
    assert_eq!(look(&fetched.bytes).await?.size().0, 1200, "{agent:?}");

    let progress = result["progress"].as_array().ok_or("no progress")?;
    let steps = progress.iter().filter_map(|it| it["progress"].as_f64());
    let steps: Vec<f64> = steps.collect();
    assert_eq!(steps.first(), Some(&0.0), "{agent:?}: {progress:?}");
    assert!(steps.last() >= Some(&1.0), "{agent:?}: {progress:?}");
    assert!(steps.is_sorted_by(|a, b| a < b), "{agent:?}: {progress:?}");
    Ok(())
}
