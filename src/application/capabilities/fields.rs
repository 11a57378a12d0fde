//! `tools` and `kinds` of `GET /api/catalogue`: operations, workflow nodes and their fields.

use serde::Serialize;
use serde_json::Value;
use sluice_media::{
    operation::{FieldInfo, Row},
    workflow::KindInfo,
};
use utoipa::ToSchema;

/// A field of an operation, or of the `config` of a node.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldRecord {
    name: &'static str,
    /// Another name that is read as well.
    alias: Option<&'static str>,
    /// Type as in JSON Schema: `string`, `integer`, `number`, `boolean` or `object`.
    #[serde(rename = "type")]
    type_name: &'static str,
    /// Input of a form: `text`, `integer`, `number`, `flag`, `choice`, `format`, `position`, `file`, `folder`, `url` or `condition`.
    input: &'static str,
    /// Allowed values in words.
    allowed: String,
    /// The allowed words, where there is a list.
    values: Vec<&'static str>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    /// Most characters of a text.
    max_length: Option<usize>,
    /// Null: what an absent field means is in the summary.
    default: Option<Value>,
    summary: &'static str,
}

/// A kind of node of a workflow.
#[derive(Debug, Serialize, ToSchema)]
pub struct KindRecord {
    /// The word for `data.kind`.
    kind: &'static str,
    summary: &'static str,
    /// Files that it accepts, in words; empty: any.
    accepts: Vec<&'static str>,
    fields: Vec<FieldRecord>,
}

/// An operation on files.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRecord {
    name: &'static str,
    /// Its kind as a node; null when it cannot be one.
    kind: Option<&'static str>,
    /// Path that a form with files is posted to.
    path: String,
    summary: &'static str,
    /// Classes that it accepts: `raster`, `vector`, `document`, `video`, `audio`, `archive`.
    accepts: Vec<&'static str>,
    /// Least number of files for one operation, a watermark's own image counted.
    min_files: usize,
    max_files: usize,
    fields: Vec<FieldRecord>,
}

impl From<FieldInfo> for FieldRecord {
    fn from(info: FieldInfo) -> Self {
        Self {
            name: info.name,
            alias: info.alias,
            type_name: info.type_name,
            input: info.input,
            allowed: info.allowed,
            values: info.values,
            minimum: info.minimum,
            maximum: info.maximum,
            max_length: info.max_length,
            default: info.default,
            summary: info.summary,
        }
    }
}

impl From<KindInfo> for KindRecord {
    fn from(info: KindInfo) -> Self {
        Self {
            kind: info.kind,
            summary: info.summary,
            accepts: info.accepts,
            fields: info.fields.into_iter().map(FieldRecord::from).collect(),
        }
    }
}

impl From<&'static Row> for ToolRecord {
    fn from(row: &'static Row) -> Self {
        let fields = row.described_fields();
        Self {
            name: row.tool,
            kind: row.node,
            path: path(row.tool),
            summary: row.summary,
            accepts: row.accepts.iter().map(|class| class.name()).collect(),
            min_files: row.min_files,
            max_files: row.max_files,
            fields: fields.into_iter().map(FieldRecord::from).collect(),
        }
    }
}

/// The two batch operations have paths of their own, which take many files.
fn path(tool: &str) -> String {
    match tool {
        "convert" | "compress" => format!("/api/{tool}"),
        tool => format!("/api/media/{tool}"),
    }
}
