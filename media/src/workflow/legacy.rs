//! One-word conditions of older workflow definitions (`images-only`, `larger-than-100mb` …), read as the new form that
//! they mean.

use serde_json::{Value, json};

use super::condition::{is_spelled, letters};

/// A word and its meaning.
pub struct Word {
    pub name: &'static str,
    pub field: &'static str,
    pub operator: &'static str,
    pub value: &'static str,
}

pub const WORDS: &[Word] = &[
    Word {
        name: "images-only",
        field: "mime",
        operator: "starts_with",
        value: "image/",
    },
    Word {
        name: "videos-only",
        field: "mime",
        operator: "starts_with",
        value: "video/",
    },
    Word {
        name: "audio-only",
        field: "mime",
        operator: "starts_with",
        value: "audio/",
    },
    Word {
        name: "from-google-drive",
        field: "upload_source",
        operator: "matches",
        value: "^google[-_ ]?drive$",
    },
    Word {
        name: "larger-than-100mb",
        field: "size_bytes",
        operator: "gt",
        value: "100000000",
    },
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
        .find(|known| is_spelled(known.name, &letters))
        .map(|known| rule(known.field, known.operator, known.value))
}

fn rule(field: &str, operator: &str, value: &str) -> Value {
    json!({"field": field, "operator": operator, "value": value})
}
