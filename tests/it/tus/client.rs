//! The official client (`tests/tus`), which knows nothing of this service.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::{line::Line, *};
use crate::{
    files,
    mcp::agent::{is_there, output},
    support::dice::{Dice, seed},
};

const LENGTH: usize = 3_000_000;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tus")
}

/// Returns the client's report of its upload; `None` when it is not installed on a machine where tests may be left out.
async fn perform(mut task: Value, bytes: &[u8]) -> Result<Option<Value>, Failure> {
    let needed = folder().join("node_modules/tus-js-client");
    if !is_there(&needed, "the official tus client")? {
        return Ok(None);
    }
    let scratch = TempDir::with_prefix("sluice-tus-")?;
    let (written, sent) = (
        scratch.path().join("task.json"),
        scratch.path().join("sent"),
    );
    std::fs::write(&sent, bytes)?;
    task["key"] = API_KEY.into();
    task["path"] = sent.to_str().ok_or("a path that is no text")?.into();
    std::fs::write(&written, task.to_string())?;
    let mut command = Command::new("node");
    command.arg(folder().join("client.mjs")).arg(&written);
    let said = output(command, |command| command).await?;
    Ok(Some(serde_json::from_str(&said)?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_gets_through_a_line_that_breaks() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let mut dice = Dice::new(seed()?);
    let cases = [
        json!({}),
        json!({"chunkSize": 100_000}),
        json!({"chunkSize": 100_000, "withCreation": true}),
    ];
    for (n, mut task) in cases.into_iter().enumerate() {
        let bytes = files::noise(n as u64 + 20, LENGTH);
        let line = Line::to(server.addresses().http, 600_000, dice.another()).await?;
        task["endpoint"] = format!("http://{}/api/uploads/tus", line.address).into();
        task["metadata"] = json!({"filename": format!("Zug {n} ü.bin")});
        let Some(said) = perform(task.clone(), &bytes).await? else {
            return Ok(());
        };
        assert!(line.breaks() >= 5, "{task}: {said}");
        let file_id = said["fileId"].as_str().ok_or("no file")?;
        assert!(stored(&api, file_id).await? == bytes, "{task}: {said}");
    }
    let files = files::all_files(&api).await?;
    let mut names: Vec<_> = files.iter().map(|file| file["filename"].as_str()).collect();
    names.sort_unstable();
    let expected = [0, 1, 2].map(|n| format!("Zug {n} ü.bin"));
    assert!(names.into_iter().flatten().eq(&expected), "{files:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_tells_a_length_at_the_end() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let bytes = files::noise(30, LENGTH);
    let task = json!({
        "endpoint": format!("{}/api/uploads/tus", server.base_url()),
        "metadata": {"filename": "stream.bin"}, "chunkSize": 700_000, "deferred": true,
    });
    let Some(said) = perform(task, &bytes).await? else {
        return Ok(());
    };
    let file_id = said["fileId"].as_str().ok_or("no file")?;
    assert!(stored(&api, file_id).await? == bytes, "{said}");
    Ok(())
}
