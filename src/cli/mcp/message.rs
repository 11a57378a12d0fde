//! JSON-RPC messages as far as `sluice mcp` reads them: requests, notifications, cancellation, protocol versions. Pure.
//!
//! Everything else about a message is between the client and the service, and goes through as it came.

use serde_json::{Value, json};

use super::error::{BridgeError, Code};

/// The first version without a handshake: each request names its version (`_meta`), and its HTTP headers repeat parts of it.
pub(super) const FIRST_PER_REQUEST: &str = "2026-07-28";
/// Key under which such a request names its version.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// A message of the client.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request(Request),
    /// Cancels the request with this id.
    Cancelled(Value),
    /// Any other notification, to be passed on.
    Notification(Value),
    /// An answer to something that the service never asks.
    Answer,
}

/// A message that wants an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request {
    /// A string or a whole number.
    pub(super) id: Value,
    pub(super) method: String,
    /// All of it, id and method included.
    pub(super) body: Value,
}

/// The error of a message, and the id to answer with, if there is one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) id: Value,
    pub(super) code: Code,
    pub(super) text: &'static str,
}

impl Message {
    /// Reads one line.
    pub(super) fn parse(line: &[u8]) -> Result<Self, Unreadable> {
        let rejected = |id, code, text| Err(Unreadable { id, code, text });
        let Ok(body) = serde_json::from_slice::<Value>(line) else {
            return rejected(Value::Null, Code::Parse, "this line is not JSON");
        };
        if !body.is_object() {
            let text = "a line must hold one JSON-RPC message; there are no batches";
            return rejected(Value::Null, Code::InvalidRequest, text);
        }
        let id = body.get("id").filter(|id| is_id(id)).cloned();
        match (body.get("method"), id) {
            (Some(Value::String(method)), Some(id)) => Ok(Self::Request(Request {
                id,
                method: method.clone(),
                body,
            })),
            (Some(Value::String(_)), None) if body.get("id").is_some() => {
                let text = "the id of a request must be a string or a whole number";
                rejected(Value::Null, Code::InvalidRequest, text)
            }
            (Some(Value::String(method)), None) if method == "notifications/cancelled" => {
                let id = body.pointer("/params/requestId").cloned();
                Ok(Self::Cancelled(id.unwrap_or_default()))
            }
            (Some(Value::String(_)), None) => Ok(Self::Notification(body)),
            (None, Some(_)) if body.get("result").is_some() || body.get("error").is_some() => {
                Ok(Self::Answer)
            }
            (_, id) => {
                let text = "a message needs a method (a string), or an id and a result";
                rejected(id.unwrap_or_default(), Code::InvalidRequest, text)
            }
        }
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

impl Request {
    pub(super) fn is_tool_call(&self) -> bool {
        self.method == "tools/call"
    }

    /// Makes the answer when the service gives none. A tool's failure is a result, so that the model reads what to do.
    pub(super) fn failed(&self, error: &BridgeError) -> Value {
        if !self.is_tool_call() {
            return failure(&self.id, error.code(), &error.to_string());
        }
        let content = json!([{"type": "text", "text": error.to_string()}]);
        let mut result = json!({"content": content, "isError": true});
        if own_version(&self.body).is_some_and(is_per_request) {
            result["resultType"] = "complete".into();
        }
        json!({"jsonrpc": "2.0", "id": self.id, "result": result})
    }

    /// Returns the token under which the client wants progress.
    pub(super) fn progress_token(&self) -> Option<&Value> {
        self.body.pointer("/params/_meta/progressToken")
    }
}

/// The version that a message itself names.
pub(super) fn own_version(body: &Value) -> Option<&str> {
    body.pointer("/params/_meta")?.get(META_VERSION)?.as_str()
}

/// Returns whether requests of this version carry their own handshake. Versions are dates.
pub(super) fn is_per_request(version: &str) -> bool {
    version >= FIRST_PER_REQUEST
}

/// A JSON-RPC error.
pub(super) fn failure(id: &Value, code: Code, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code as i32, "message": text}})
}

/// Makes `notifications/progress`: `fraction` of the first step.
pub(super) fn progress(token: &Value, fraction: f64, text: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": token, "progress": fraction, "message": text},
    })
}

/// Writes a message of the service on one line. Line ends occur only between the parts of a JSON text, never inside a
/// string (RFC 8259 §7), so its meaning does not change.
pub(super) fn on_one_line(mut message: Vec<u8>) -> Vec<u8> {
    for byte in &mut message {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_distinguished() {
        let request = |id: Value, method: &str, body: &str| {
            Ok(Message::Request(Request {
                id,
                method: method.to_owned(),
                body: serde_json::from_str(body).unwrap(),
            }))
        };
        let rejected = |id: Value, code| Err((id, code));
        for (line, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
                request(
                    "a".into(),
                    "ping",
                    r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
                ),
            ),
            (
                r#"{"id":0,"method":"m"}"#,
                request(0.into(), "m", r#"{"id":0,"method":"m"}"#),
            ),
            (
                r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#,
                Ok(Message::Cancelled(7.into())),
            ),
            (
                r#"{"method":"notifications/cancelled"}"#,
                Ok(Message::Cancelled(Value::Null)),
            ),
            (
                r#"{"method":"notifications/initialized"}"#,
                Ok(Message::Notification(
                    json!({"method": "notifications/initialized"}),
                )),
            ),
            (r#"{"id":1,"result":{}}"#, Ok(Message::Answer)),
            (r#"{"id":1,"error":{}}"#, Ok(Message::Answer)),
            ("", rejected(Value::Null, Code::Parse)),
            ("{", rejected(Value::Null, Code::Parse)),
            ("[]", rejected(Value::Null, Code::InvalidRequest)),
            (
                r#"[{"id":1,"method":"m"}]"#,
                rejected(Value::Null, Code::InvalidRequest),
            ),
            ("{}", rejected(Value::Null, Code::InvalidRequest)),
            (r#"{"id":1}"#, rejected(1.into(), Code::InvalidRequest)),
            (
                r#"{"id":1,"method":2}"#,
                rejected(1.into(), Code::InvalidRequest),
            ),
            (
                r#"{"id":null,"method":"m"}"#,
                rejected(Value::Null, Code::InvalidRequest),
            ),
            (
                r#"{"id":1.5,"method":"m"}"#,
                rejected(Value::Null, Code::InvalidRequest),
            ),
            (
                r#"{"id":{},"method":"m"}"#,
                rejected(Value::Null, Code::InvalidRequest),
            ),
        ] {
            let parsed = Message::parse(line.as_bytes());
            let parsed = parsed.map_err(|rejection| (rejection.id, rejection.code));
            assert_eq!(parsed, expected, "{line}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let rejection = Message::parse(deep.as_bytes()).unwrap_err();
        assert_eq!(rejection.code, Code::Parse);
    }

    #[test]
    fn failures_of_tools_are_results_for_the_model() {
        for (line, answer) in [
            (
                r#"{"id":3,"method":"tools/list"}"#,
                json!({"jsonrpc": "2.0", "id": 3, "error": {"code": -32000, "message": BridgeError::Busy(2).to_string()}}),
            ),
            (
                r#"{"id":"x","method":"tools/call"}"#,
                json!({"jsonrpc": "2.0", "id": "x", "result":
                    {"isError": true, "content": [{"type": "text", "text": BridgeError::Busy(2).to_string()}]}}),
            ),
            (
                r#"{"id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
                json!({"jsonrpc": "2.0", "id": 1, "result":
                    {"resultType": "complete", "isError": true, "content": [{"type": "text", "text": BridgeError::Busy(2).to_string()}]}}),
            ),
        ] {
            let Ok(Message::Request(request)) = Message::parse(line.as_bytes()) else {
                panic!("{line} is a request");
            };
            assert_eq!(request.failed(&BridgeError::Busy(2)), answer, "{line}");
        }
    }

    #[test]
    fn a_message_is_put_on_one_line() {
        let pretty = serde_json::to_string_pretty(&json!({"a": "b\nc\r", "d": [1, 2]})).unwrap();
        let line = on_one_line(pretty.replace('\n', "\r\n").into_bytes());
        assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
        let read: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(read, json!({"a": "b\nc\r", "d": [1, 2]}));
    }
}
