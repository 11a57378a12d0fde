//! Values that a request gives for an operation's fields (camelCase or snake_case, form or JSON), and `FieldError`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Error of a field; answered as a 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FieldError {
    /// Name as it is spelled in the documentation.
    pub field: String,
    /// Names the field, what is allowed and what came.
    pub message: String,
}

impl FieldError {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

/// Field names in camelCase, with the last value given for each. Names may come in either spelling; unknown ones are
/// kept and ignored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(BTreeMap<String, Value>);

impl Params {
    /// Reads a form or a query: numbers and booleans are text, lists are JSON text.
    pub fn from_form<N: AsRef<str>, T: Into<String>>(
        fields: impl IntoIterator<Item = (N, T)>,
    ) -> Self {
        let mut params = Self::default();
        for (name, text) in fields {
            params.set(name.as_ref(), Value::String(text.into()));
        }
        params
    }

    /// Reads a JSON body or a node's `config`.
    pub fn from_json(fields: &Map<String, Value>) -> Self {
        let mut params = Self::default();
        for (name, value) in fields {
            params.set(name, value.clone());
        }
        params
    }

    /// Gives a field a value, in place of an earlier one.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(camel_case(name), value.into());
    }

    /// The value of a field; nothing, `null` and blank text are "not given".
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| match value {
            Value::Null => false,
            Value::String(text) => !text.trim().is_empty(),
            _ => true,
        })
    }

    /// A field's list, one value per file: a JSON array, or text that holds one. `None`: not given, or no list.
    pub(super) fn list(&self, name: &str) -> Option<Vec<Value>> {
        match self.get(name)? {
            Value::Array(values) => Some(values.clone()),
            Value::String(text) if text.trim_start().starts_with('[') => {
                serde_json::from_str(text).ok()
            }
            _ => None,
        }
    }
}

pub(crate) fn camel_case(name: &str) -> String {
    let mut words = name.trim().split('_').filter(|word| !word.is_empty());
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

/// Shortens foreign text for a message to its first 40 characters.
pub(crate) fn shorten(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_mean_one_field_and_empty_means_not_given() {
        let params = Params::from_form([
            ("resize_preset", "email"),
            ("cropLeft", " "),
            ("_", "x"),
            ("quality", "1"),
            ("quality", "2"),
        ]);
        assert_eq!(params.get("resizePreset"), Some(&Value::from("email")));
        assert_eq!(params.get("cropLeft"), None);
        assert_eq!(params.get("quality"), Some(&Value::from("2")));

        let json = serde_json::json!({"target_bytes": 7, "mono": null, "resizePreset": "square"});
        let params = Params::from_json(json.as_object().expect("an object"));
        assert_eq!(params.get("targetBytes"), Some(&Value::from(7)));
        assert_eq!(params.get("mono"), None);
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(shorten("kurz"), "kurz");
        assert_eq!(shorten(&"ä".repeat(50)), format!("{}…", "ä".repeat(40)));
    }
}
