//! `sluice mcp` with a running service, as the programs of agents start it.

mod clients;
mod faults;
mod files;
mod guide;
mod talk;

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{
    command::{Call, sluice},
    server::API_KEY,
};
use talk::Talk;

/// A user's machine: its settings are not those of the service.
fn bridge(arguments: &[&str]) -> Call {
    let all = [&["mcp"], arguments].concat();
    sluice(&all).env("SLUICE_API_KEY", API_KEY)
}

/// Makes a bridge for the service at this address, with a folder that may be sent from.
fn bridge_to(url: &str, root: &Path) -> Call {
    bridge(&["--url", url, "--root", &root.display().to_string()])
}

fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// A call of a tool.
fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    request(
        id,
        "tools/call",
        json!({"name": tool, "arguments": arguments}),
    )
}

fn initialize(id: impl Into<Value>) -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    request(id, "initialize", params)
}

/// Returns the message of a tool that failed.
fn failure(answer: &Value) -> &str {
    let result = &answer["result"];
    match result["isError"].as_bool() {
        Some(true) => result["content"][0]["text"].as_str().unwrap_or_default(),
        _ => panic!("{answer} is no failure of a tool"),
    }
}
