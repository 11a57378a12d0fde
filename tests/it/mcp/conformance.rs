//! The protocol's own conformance suite against the service.
//!
//! Of the suite's server scenarios those run here that ask nothing of a server but tools. Left out: what calls tools of
//! the suite's own "everything" server (`tools-call-*`, `json-schema-2020-12`, `elicitation-*`, `server-sse-polling`),
//! and what asks for things that this server does not offer and does not announce (logging, completion, resources,
//! prompts; sessions: `server-sse-multiple-streams`). The suite knows no credential; `with-key.mjs` adds it on the way.

use tokio::process::Command;

use super::agent::{folder, is_there, node_modules, output};
use crate::support::{
    Failure,
    server::{API_KEY, Server},
    skip,
};

const SCENARIOS: [&str; 4] = [
    "server-initialize",
    "ping",
    "tools-list",
    "dns-rebinding-protection",
];

/// The suite's libraries need it.
const OLDEST_NODE: u32 = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_conformance_suite_finds_no_fault() -> Result<(), Failure> {
    let scenario = "the conformance suite of MCP";
    let suite = node_modules().join("conformance/dist/index.js");
    if !is_there(&suite, scenario)? {
        return Ok(());
    }
    let node = node_version().await?;
    if node < OLDEST_NODE {
        skip(scenario, &format!("node is {node}, it needs {OLDEST_NODE}"));
        return Ok(());
    }
    let server = Server::start().await?;
    for scenario in SCENARIOS {
        let mut command = Command::new("node");
        command
            .arg(folder().join("with-key.mjs"))
            .args([&server.base_url(), API_KEY, "node"])
            .arg(&suite)
            .args(["server", "--url", "URL", "--scenario", scenario]);
        let said = output(command, |command| command).await;
        let said = said.map_err(|failure| format!("{scenario}: {failure}"))?;
        assert!(said.contains("0 failed, 0 warnings"), "{scenario}: {said}");
        assert!(!said.contains("Passed: 0/"), "{scenario}: {said}");
    }
    Ok(())
}

async fn node_version() -> Result<u32, Failure> {
    let said = output(Command::new("node"), |node| node.arg("--version")).await?;
    let major = said.trim().trim_start_matches('v').split('.').next();
    Ok(major.unwrap_or_default().parse()?)
}
