//! One-word conditions of older workflow definitions (`images-only`, `larger-than-100mb` …), read as the new form that
//! they mean.

use serde_json::{Value, json};

use super::condition::{is_spelled, letters};

/// Each word with the field, the operator and the value that it means.
pub const WORDS: &[[&str; 4]] = &[
    ["images-only", "mime", "starts_with", "image/"],
    ["videos-only", "mime", "starts_with", "video/"],
    ["audio-only", "mime", "starts_with", "audio/"],
    [
        "from-google-drive",
        "upload_source",
        "matches",
        "^google[-_ ]?drive$",
    ],
    ["larger-than-100mb", "size_bytes", "gt", "100000000"],
];

/// Returns the condition that a word means; `None` for an unknown one. A media type means itself, and `image/` or
/// `image/*` all that begin so.
pub fn condition(word: &str) -> Option<Value> {
    let word = word.trim();
    if let Some((class, kind)) = word.split_once('/') {
        return match kind {
            "" | "*" if class.is_empty() || class == "*" => None,
            "" | "*" => Some(rule("mime", "starts_with", &format!("{class}/"))),
            _ => Some(rule("mime", "equals", word)),
        };
    }
    let letters = letters(word);
    WORDS
        .iter()
        .find(|[name, ..]| is_spelled(name, &letters))
        .map(|[_, field, operator, value]| rule(field, operator, value))
}

fn rule(field: &str, operator: &str, value: &str) -> Value {
    json!({"field": field, "operator": operator, "value": value})
}
