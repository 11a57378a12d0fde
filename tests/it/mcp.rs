//! `/mcp` as agents meet it: the official clients, the conformance suite, and what no client would send.

pub(crate) mod agent;
mod clients;
mod conformance;
mod messages;
mod stdio;
mod tools;
mod waiting;

use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use crate::support::{
    Failure,
    definition::{chain, node},
    http,
    server::{API_KEY, Server},
};

/// Speaks to a service's `/mcp` as a program without a library does.
#[derive(Clone)]
struct Talk {
    url: String,
    key: String,
    client: reqwest::Client,
}

impl Talk {
    fn to(server: &Server) -> Self {
        Self::with_key(server, API_KEY)
    }

    fn with_key(server: &Server, key: &str) -> Self {
        Self {
            url: format!("{}/mcp", server.base_url()),
            key: key.to_owned(),
            client: http::client(),
        }
    }

    /// A message on its way, as the latest revision with a handshake sends it.
    fn message(&self, message: &Value) -> RequestBuilder {
        self.client
            .post(&self.url)
            .bearer_auth(&self.key)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25")
            .json(message)
    }

    /// Returns the answer to a request; progress notifications before it are skipped.
    async fn ask(&self, message: &Value) -> Result<Value, Failure> {
        let answer = self.message(message).send().await?;
        last(answer).await
    }

    async fn request(&self, method: &str, params: Value) -> Result<Value, Failure> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.ask(&message).await
    }

    /// The result of a tool.
    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        let answer = self.ask(&called(1, tool, arguments)).await?;
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(format!("{tool}: {answer}").into()),
        }
    }

    /// Returns the answer of a tool that succeeded.
    async fn answer(&self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        let result = self.call(tool, arguments).await?;
        match result["isError"].as_bool() {
            Some(false) => Ok(result["structuredContent"].clone()),
            _ => Err(format!("{tool}: {result}").into()),
        }
    }

    /// Returns the message of a tool that failed.
    async fn failure(&self, tool: &str, arguments: Value) -> Result<String, Failure> {
        let result = self.call(tool, arguments).await?;
        match result["isError"].as_bool() {
            Some(true) => Ok(text(&result).to_owned()),
            _ => Err(format!("{tool} did not fail: {result}").into()),
        }
    }

    /// Sends a file as an agent's program does: an address, the bytes, and what a run takes.
    async fn upload(&self, filename: &str, bytes: Vec<u8>) -> Result<String, Failure> {
        let wanted = json!({"filename": filename, "sizeBytes": bytes.len()});
        let made = self.answer("create_upload_url", wanted).await?;
        let url = made["uploadUrl"].as_str().ok_or("no uploadUrl")?.to_owned();
        let put = self.client.put(&url).body(bytes).send().await?;
        assert_eq!(put.status(), 200);
        Ok(url)
    }
}

/// A call of a tool, as a message.
fn called(id: u64, tool: &str, arguments: Value) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    })
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// The last message of an answer: a body of JSON, or the last event of a stream.
async fn last(answer: Response) -> Result<Value, Failure> {
    let body = answer.text().await?;
    let events = body.lines().filter_map(|line| line.strip_prefix("data:"));
    let last = events.map(str::trim).rfind(|data| !data.is_empty());
    let last = last.unwrap_or(&body);
    serde_json::from_str(last).map_err(|error| format!("{error}: {body}").into())
}

/// A definition of these kinds with their configurations, one after the other behind an upload.
fn line_of(steps: &[(&str, Value)]) -> Value {
    let numbered = steps.iter().enumerate();
    let nodes =
        numbered.map(|(at, (kind, config))| node(&format!("{kind}-{at}"), kind, config.clone()));
    chain(nodes.collect())
}
