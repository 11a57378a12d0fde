//! Commands of the guide about agents.

use std::time::Duration;

use serde_json::Value;

use crate::support::{
    Failure,
    document::{blocks, section},
    images::photographs,
    server::{API_KEY, Server},
    shell::Shell,
};

const GUIDE: &str = include_str!("../../../../docs/guide/agents.md");
/// In a debug build on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// The arguments of the guide's one call.
pub(super) fn product_photos() -> Result<Value, Failure> {
    let section = section(GUIDE, "An example").ok_or("no example")?;
    let call = blocks(section, "json").concat();
    Ok(serde_json::from_str(&call)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guides_messages_are_answered() -> Result<(), Failure> {
    let section = section(GUIDE, "Try it without an agent").ok_or("no section")?;
    let script = blocks(section, "sh").concat();
    let script = script.replace(
        " sluice mcp",
        &format!(" {} mcp", env!("CARGO_BIN_EXE_sluice")),
    );
    let server = Server::start().await?;
    let photograph = std::fs::read(photographs(1)?.pop().ok_or("no photograph")?)?;
    let environment = [("KEY", API_KEY), ("SLUICE", &server.base_url())];
    let mut shell = Shell::start_beside(&[("photo.jpg", &photograph)], &script, &environment)?;
    shell.succeed(DEADLINE).await?;
    let answers = shell.read("answers.jsonl");
    let run = answers.lines().find(|line| line.contains("photo.webp"));
    assert!(
        run.is_some_and(|run| run.contains("\"completed\"")),
        "{answers}"
    );
    assert_eq!(answers.lines().count(), 2, "{answers}");
    let workflows = shell.read("workflows.txt");
    assert!(workflows.contains("To WebP"), "{workflows}");
    Ok(())
}
