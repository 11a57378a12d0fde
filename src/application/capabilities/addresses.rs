//! `cdnParameters` of `GET /api/catalogue`: parameters of image addresses with aliases, ranges, defaults.

use serde::Serialize;
use serde_json::Value;
use sluice_media::variant::Parameter;
use utoipa::ToSchema;

/// A parameter of a delivery URL.
#[derive(Debug, Serialize, ToSchema)]
pub struct CdnParameter {
    name: &'static str,
    aliases: &'static [&'static str],
    /// Type as in JSON Schema: `string`, `integer`, `number` or `boolean`.
    #[serde(rename = "type")]
    type_name: &'static str,
    /// Input of a form: `integer`, `number`, `flag`, `choice`, `quality` (a number, or a word of `values`), `colour` or `point`.
    input: &'static str,
    /// Panel of a form: `size`, `format`, `crop`, `turn`, `colour` or `source`.
    group: &'static str,
    /// Allowed values in words.
    allowed: String,
    /// The allowed words, where there is a list.
    values: &'static [&'static str],
    minimum: Option<f64>,
    maximum: Option<f64>,
    /// Smallest difference between two numbers that counts.
    step: Option<f64>,
    /// Value that means the same as none; null: the summary says.
    default: Option<Value>,
    summary: &'static str,
}

impl From<Parameter> for CdnParameter {
    fn from(parameter: Parameter) -> Self {
        let control = parameter.control;
        let range = control.range();
        let in_json = |text: &str| match control.type_name() {
            "string" => Value::from(text),
            _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        };
        Self {
            name: parameter.name,
            aliases: parameter.aliases,
            type_name: control.type_name(),
            input: control.name(),
            group: parameter.panel.name(),
            allowed: parameter.allowed,
            values: control.words(),
            minimum: range.map(|(min, _)| min),
            maximum: range.map(|(_, max)| max),
            step: control.step(),
            default: parameter.default.map(in_json),
            summary: parameter.summary,
        }
    }
}
