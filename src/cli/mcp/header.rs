//! HTTP headers of `sluice mcp`'s requests: `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name`.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;
use sluice_actors::outbound::{HeaderName, HeaderValue};

use super::message::{is_per_request, own_version};

/// Beginning and end of a value that a header cannot hold as it is.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// The headers of a message, its credential aside. `agreed` is the version of the handshake, once there was one; a message
/// that names a version itself goes by that.
pub(super) fn headers(body: &Value, agreed: Option<&str>) -> Vec<(HeaderName, HeaderValue)> {
    let accept = "application/json, text/event-stream";
    let mut headers = vec![
        (
            name("content-type"),
            HeaderValue::from_static("application/json"),
        ),
        (name("accept"), HeaderValue::from_static(accept)),
    ];
    let Some(version) = own_version(body).or(agreed) else {
        return headers;
    };
    let mut add = |header, value: &str| {
        let value = HeaderValue::try_from(value).ok();
        headers.extend(value.map(|value| (name(header), value)));
    };
    add("mcp-protocol-version", version);
    if is_per_request(version) {
        if let Some(method) = body["method"].as_str() {
            add("mcp-method", method);
        }
        if let Some(subject) = subject(body) {
            add("mcp-name", &encoded(subject));
        }
    }
    headers
}

fn name(name: &'static str) -> HeaderName {
    HeaderName::from_static(name)
}

/// Returns the subject of a request, which `Mcp-Name` repeats.
fn subject(body: &Value) -> Option<&str> {
    let field = match body["method"].as_str()? {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    body["params"][field].as_str()
}

/// Returns the value, or its Base64 where it would not arrive unchanged.
fn encoded(value: &str) -> String {
    let (before, after) = ENCODED;
    let looks_encoded = value.starts_with(before) && value.ends_with(after);
    let is_padded = value.starts_with(' ') || value.ends_with(' ');
    let is_visible = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let is_plain = is_visible && !is_padded && !looks_encoded;
    match is_plain {
        true => value.to_owned(),
        false => format!("{before}{}{after}", BASE64_STANDARD.encode(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn headers_follow_the_version() {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        let call =
            |tool: &str| json!({"method": "tools/call", "params": {"name": tool, "_meta": meta}});
        for (body, agreed, expected) in [
            (json!({"method": "initialize"}), None, &[][..]),
            (
                json!({"method": "tools/call", "params": {"name": "a"}}),
                Some("2025-11-25"),
                &[("mcp-protocol-version", "2025-11-25")],
            ),
            (
                json!({"method": "tools/list", "params": {"_meta": meta}}),
                None,
                &[
                    ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", "tools/list"),
                ],
            ),
            (
                call("run_workflow"),
                Some("2025-11-25"),
                &[
                    ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", "tools/call"),
                    ("mcp-name", "run_workflow"),
                ],
            ),
            (
                call("caf\u{e9}\n"),
                None,
                &[
                    ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", "tools/call"),
                    ("mcp-name", "=?base64?Y2Fmw6kK?="),
                ],
            ),
            (
                call(" a"),
                None,
                &[
                    ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", "tools/call"),
                    ("mcp-name", "=?base64?IGE=?="),
                ],
            ),
            // What can be no header is left out, and the service says that it is missing.
            (json!({"method": "x"}), Some("1\n2"), &[]),
        ] {
            let headers = headers(&body, agreed);
            let found = headers[2..].iter();
            let found: Vec<_> = found
                .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
                .collect();
            assert_eq!(found, expected, "{body} {agreed:?}");
        }
    }
}
