//! Operations' fields as the API describes them for forms, workflow editors and agents: type, input, values, default.

use serde::Serialize;
use serde_json::Value;

use super::{Field, Kind, POSITIONS, Row};

/// A field of an operation or of a node's `config`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldInfo {
    pub name: &'static str,
    /// Another name that is read as well.
    pub alias: Option<&'static str>,
    /// Type as in JSON Schema: string, integer, number, boolean, object.
    #[serde(rename = "type")]
    pub type_name: &'static str,
    /// Input of a form: text, integer, number, flag, choice, format, position, file, folder, url, condition.
    pub input: &'static str,
    /// Allowed values in words.
    pub allowed: String,
    /// The allowed words, where there is a list; else empty.
    pub values: Vec<&'static str>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    /// Most characters of a text.
    pub max_length: Option<usize>,
    /// Default when it is absent; `None`: the summary says.
    pub default: Option<Value>,
    pub summary: &'static str,
}

impl Row {
    /// The fields as forms show them.
    pub fn described_fields(&self) -> Vec<FieldInfo> {
        self.fields.iter().map(FieldInfo::of).collect()
    }
}

impl FieldInfo {
    /// A field that takes text.
    pub(crate) fn text(
        name: &'static str,
        allowed: impl Into<String>,
        summary: &'static str,
    ) -> Self {
        Self {
            name,
            alias: None,
            type_name: "string",
            input: "text",
            allowed: allowed.into(),
            values: Vec::new(),
            minimum: None,
            maximum: None,
            max_length: None,
            default: None,
            summary,
        }
    }

    pub(crate) fn of(field: &'static Field) -> Self {
        let plain = Self::text(field.name, field.allowed(), field.summary);
        let typed = match field.kind {
            Kind::Text { max_chars } => Self {
                max_length: Some(max_chars),
                ..plain
            },
            Kind::Integer { min, max } => Self {
                type_name: "integer",
                input: "integer",
                minimum: Some(min as f64),
                maximum: Some(max as f64),
                ..plain
            },
            Kind::Number { min, max } => Self {
                type_name: "number",
                input: "number",
                minimum: Some(min),
                maximum: Some(max),
                ..plain
            },
            Kind::Flag => Self {
                type_name: "boolean",
                input: "flag",
                ..plain
            },
            Kind::Position => Self {
                input: "position",
                values: POSITIONS.to_vec(),
                ..plain
            },
            Kind::Choice(words) => Self {
                input: "choice",
                values: words.to_vec(),
                ..plain
            },
            Kind::Format(formats) => Self {
                input: "format",
                values: formats.iter().map(|format| format.name()).collect(),
                ..plain
            },
            Kind::File => Self {
                input: "file",
                ..plain
            },
        };
        Self {
            alias: field.alias,
            default: field.default.map(|text| in_json(typed.type_name, text)),
            ..typed
        }
    }
}

/// Converts a default of the table, which is in a request's words, to JSON.
fn in_json(type_name: &str, text: &str) -> Value {
    match type_name {
        "string" => text.into(),
        _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}
