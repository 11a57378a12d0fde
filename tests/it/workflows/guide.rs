//! The commands of the guide, pasted into a shell in a folder with a photograph.

use std::time::Duration;

use serde_json::{Value, json};

use super::{ENDED, nodes, output};
use crate::{
    support::{
        Failure,
        document::{blocks, section},
        eventually,
        http::free_port,
        images::photographs,
        json::{each, list},
        server::{API_KEY, Server},
        shell::Shell,
    },
    webhooks::{get, settings},
};

const GUIDE: &str = include_str!("../../../docs/guide/workflows.md");
/// Longest time of all commands, in a debug build on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// Runs them to their end in a folder with `photo.jpg`; their background processes live as long as the shell.
async fn paste(server: &Server, script: &str) -> Result<Shell, Failure> {
    let path = photographs(1)?.pop().ok_or("no photograph")?;
    let photograph = std::fs::read(path)?;
    let environment = [("KEY", API_KEY), ("SLUICE", &server.base_url())];
    let mut shell = Shell::start_beside(&[("photo.jpg", &photograph)], script, &environment)?;
    shell.succeed(DEADLINE).await?;
    Ok(shell)
}

/// Returns the output that a command wrote with `tee`.
fn written(shell: &Shell, name: &str) -> Result<Value, Failure> {
    let text = shell.read(name);
    serde_json::from_str(&text).map_err(|error| format!("{name}: {error} in {text}").into())
}

fn is_webp(shell: &Shell, name: &str) -> Result<bool, Failure> {
    let bytes = std::fs::read(shell.folder().join(name))?;
    Ok(bytes.starts_with(b"RIFF") && bytes[8..].starts_with(b"WEBP"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guides_first_workflow_runs() -> Result<(), Failure> {
    let section = section(GUIDE, "Workflows in five minutes").ok_or("no section")?;
    let server = settings().start().await?;
    let shell = paste(&server, &blocks(section, "sh").concat()).await?;
    let run = &written(&shell, "run.json")?["run"];
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(
        nodes(run, "completed"),
        ["upload", "wide", "large", "webp", "keep"]
    );
    assert_eq!(nodes(run, "skipped"), ["small"]);
    assert_eq!(output(run)?["width"], 1200);
    assert!(is_webp(&shell, "shop.webp")?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guides_product_photos_run() -> Result<(), Failure> {
    let section = section(GUIDE, "Product photos").ok_or("no section")?;
    let port = free_port()?.to_string();
    let script = blocks(section, "sh").concat().replace("9000", &port);
    let server = settings().start().await?;
    let shell = paste(&server, &script).await?;

    assert_eq!(
        written(&shell, "lint.json")?,
        json!({"problems": [], "valid": true})
    );
    for (name, completed, skipped, width) in [
        ("photo.json", "large", "small", 1200),
        ("drawing.json", "small", "large", 800),
    ] {
        let run = &written(&shell, name)?["run"];
        assert_eq!(run["status"], "completed", "{run}");
        assert_eq!(
            nodes(run, "completed"),
            ["upload", "wide", completed, "webp", "keep", "tell"]
        );
        assert_eq!(nodes(run, "skipped"), [skipped]);
        let output = output(run)?;
        assert_eq!(
            (&output["width"], &output["mimeType"]),
            (&json!(width), &json!("image/webp"))
        );
        let stem = name.trim_end_matches(".json");
        assert_eq!(output["filename"], format!("{stem}-{width}.webp"));
    }
    let notes = &written(&shell, "notes.json")?["run"];
    assert_eq!(
        (&notes["gate"], &notes["outputs"]),
        (&json!(false), &json!([])),
        "{notes}"
    );
    assert_eq!(nodes(notes, "completed"), [""; 0]);
    assert!(is_webp(&shell, "photo.webp")?);
    assert_eq!(list(&written(&shell, "runs.json")?["runs"])?.len(), 3);
    assert_eq!(written(&shell, "saved.json")?["workflow"]["version"], 2);
    let ended = &written(&shell, "ended.json")?["run"];
    assert_eq!(
        (&ended["status"], &ended["workflowVersion"]),
        (&json!("failed"), &json!(2)),
        "{ended}"
    );

    let workflow = written(&shell, "workflow.json")?["workflow"]["id"].clone();
    let path = format!(
        "/api/workflows/{}/run",
        workflow.as_str().unwrap_or_default()
    );
    let api = server.api();
    eventually("the upload was run", ENDED, async || {
        let runs = get(&api, &path).await.ok()?;
        let triggers = each(&runs["runs"], "trigger").ok()?;
        (triggers.iter().filter(|it| **it == "folder").count() == 1).then_some(())
    })
    .await?;
    let said = eventually("the shop was notified", ENDED, async || {
        let said = shell.read("output");
        (said.matches("verified workflow.completed").count() == 3).then_some(said)
    });
    assert!(!said.await?.contains("REFUSED"));
    Ok(())
}
