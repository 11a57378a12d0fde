//! Check of an MCP message before the transport: JSON-RPC 2.0, no batches, `id`, longest `id` and `progressToken`.
//!
//! Pure. Batches went with MCP 2025-06-18; an `id` is a text or a whole number, never null. What is sent back with every
//! answer and every report of progress is bounded.

use rmcp::{
    ErrorData,
    model::{ClientJsonRpcMessage, ClientNotification, GetMeta as _, JsonRpcError, RequestId},
};
use serde_json::Value;

/// Longest `id` that is a text, and longest progress token: both are kept while a call lasts and are sent with each
/// event of it.
const MAX_LABEL_BYTES: usize = 256;

/// Kind of a message, for the gate.
#[derive(Debug, PartialEq)]
pub enum Message {
    /// Cancels the request with this id.
    Cancelled(RequestId),
    /// Message that names its revision of the protocol (2026-07-28 and later).
    Versioned,
    Other,
}

/// The error for bytes that are no message; its `id` is the message's own where that is known.
pub type Rejection = Box<JsonRpcError>;

/// Reads one message.
pub fn read(bytes: &[u8]) -> Result<Message, Rejection> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let text = format!("the body is not JSON: {error}");
        rejection(None, ErrorData::parse_error(text, None))
    })?;
    let id = check_shape(&value)?;
    let message: ClientJsonRpcMessage = serde_json::from_value(value).map_err(|error| {
        invalid(
            id,
            &format!("the message is not one of JSON-RPC 2.0: {error}"),
        )
    })?;
    Ok(match message {
        ClientJsonRpcMessage::Notification(notification) => match notification.notification {
            ClientNotification::CancelledNotification(cancelled) => cancelled
                .params
                .request_id
                .map_or(Message::Other, Message::Cancelled),
            _ => Message::Other,
        },
        ClientJsonRpcMessage::Request(request) => {
            match request.request.get_meta().protocol_version() {
                Some(_) => Message::Versioned,
                None => Message::Other,
            }
        }
        _ => Message::Other,
    })
}

/// The id of the message, when it has one.
fn check_shape(value: &Value) -> Result<Option<RequestId>, Rejection> {
    let message = match value {
        Value::Object(message) => message,
        Value::Array(_) => {
            return Err(invalid(
                None,
                "batches are not part of MCP: send one message in a request",
            ));
        }
        _ => return Err(invalid(None, "a message is a JSON object")),
    };
    let id = match message.get("id") {
        None => None,
        Some(id) if is_long(id) => {
            let text = format!("id must have at most {MAX_LABEL_BYTES} bytes");
            return Err(invalid(None, &text));
        }
        Some(id) => Some(serde_json::from_value(id.clone()).map_err(|_| {
            invalid(
                None,
                "id must be a text or a whole number; a notification has none",
            )
        })?),
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid(id, "jsonrpc must be \"2.0\""));
    }
    if value
        .pointer("/params/_meta/progressToken")
        .is_some_and(is_long)
    {
        let text = format!("progressToken must have at most {MAX_LABEL_BYTES} bytes");
        return Err(invalid(id, &text));
    }
    let is_answer = message.contains_key("result") || message.contains_key("error");
    if !is_answer && !message.get("method").is_some_and(Value::is_string) {
        return Err(invalid(id, "method is missing: the name of a method"));
    }
    Ok(id)
}

fn is_long(label: &Value) -> bool {
    label
        .as_str()
        .is_some_and(|text| text.len() > MAX_LABEL_BYTES)
}

fn invalid(id: Option<RequestId>, text: &str) -> Rejection {
    rejection(id, ErrorData::invalid_request(text.to_owned(), None))
}

fn rejection(id: Option<RequestId>, error: ErrorData) -> Rejection {
    Box::new(JsonRpcError::new(id, error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_message_is_rejected_with_its_reason() {
        let deep = "[".repeat(100_000);
        let cases: [(&str, i32, &str); 11] = [
            ("", -32700, "EOF"),
            ("{", -32700, "EOF"),
            (&deep, -32700, "recursion limit"),
            ("[]", -32600, "batches"),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
                -32600,
                "batches",
            ),
            ("7", -32600, "JSON object"),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                -32600,
                "id must be",
            ),
            (
                r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
                -32600,
                "id must be",
            ),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
                -32600,
                "jsonrpc must be",
            ),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600, "method is missing"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
                -32600,
                "method is missing",
            ),
        ];
        for (body, code, text) in cases {
            let error = read(body.as_bytes()).unwrap_err().error;
            assert_eq!(error.code.0, code, "{body:.60}: {error:?}");
            assert!(error.message.contains(text), "{body:.60}: {error:?}");
        }
    }

    #[test]
    fn what_every_answer_repeats_is_bounded() {
        let message = |id: &str, token: &str| json!({"jsonrpc": "2.0", "id": id, "method": "ping", "params": {"_meta": {"progressToken": token}}});
        let (most, long) = ("x".repeat(MAX_LABEL_BYTES), "x".repeat(MAX_LABEL_BYTES + 1));
        for (id, token, rejected) in [
            (&most, &most, None),
            (&long, &most, Some("id must have")),
            (&most, &long, Some("progressToken must have")),
        ] {
            let found = read(message(id, token).to_string().as_bytes());
            let text = found.err().map(|rejection| rejection.error.message);
            let is_as_expected = match (&text, rejected) {
                (None, None) => true,
                (Some(text), Some(words)) => text.starts_with(words),
                _ => false,
            };
            assert!(is_as_expected, "{text:?}, expected {rejected:?}");
        }
    }

    #[test]
    fn a_rejection_names_the_message_when_it_can() {
        let rejection = read(br#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#).unwrap_err();
        assert_eq!(rejection.id, Some(RequestId::String("a".into())));
    }

    #[test]
    fn messages_are_distinguished() {
        let versioned = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let cases = [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
                Message::Other,
            ),
            (r#"{"jsonrpc":"2.0","method":"tools/list"}"#, Message::Other),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Message::Other),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#,
                Message::Cancelled(RequestId::Number(5)),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
                Message::Other,
            ),
            (versioned, Message::Versioned),
        ];
        for (body, expected) in cases {
            assert_eq!(read(body.as_bytes()).unwrap(), expected, "{body}");
        }
    }
}
