//! Short forms of workflows (`convert-post`, `compress-post`, `convert-compress-post`): `outputFormat`,
//! `compressionMode`.

use serde_json::{Value, json};

use super::problem::{Code, Place, Problem};
use crate::{format::Format, operation::can_compress};

words! {
    /// The workflows that have a short form; all of them post at the end.
    pub enum Template {
        ConvertPost = "convert-post",
        CompressPost = "compress-post",
        ConvertCompressPost = "convert-compress-post",
    }
}

/// A short form as a request gives it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Short {
    /// Template; `None`: it follows from the other two.
    pub template: Option<Template>,
    /// Target format; not used by compress-post, which keeps the format.
    pub output_format: Option<String>,
    /// high, balanced, ultra (how hard), or 1 to 100 (the encoder's quality); balanced when missing.
    pub compression_mode: Option<Value>,
}

impl Template {
    /// Parses its name, with hyphens or underscores.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let word = text.trim().replace('_', "-").to_lowercase();
        let is_called = |template: &&Self| template.name() == word;
        Self::ALL.iter().find(is_called).copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|template| template.name()).collect();
            rejected(
                "template",
                format!(
                    "template must be one of {}, got `{}`",
                    names.join(", "),
                    crate::operation::shorten(text)
                ),
            )
        })
    }

    fn converts(self) -> bool {
        self != Self::CompressPost
    }

    fn compresses(self) -> bool {
        self != Self::ConvertPost
    }
}

/// Generates the definition of a short form. The format's name is checked with the definition, as any node's.
pub fn generate(short: &Short) -> Result<Value, Problem> {
    let template = template(short)?;
    let quality = short.compression_mode.as_ref().map(quality).transpose()?;
    let mut nodes = vec![json!({"id": "upload", "data": {"kind": "upload", "title": "Upload"}})];
    if template.converts() {
        let format = output_format(short, template)?;
        let mut config = json!({"format": format});
        // Where a compression follows, it alone is to lose anything that is seen.
        if let Some(quality) = quality
            && !template.compresses()
        {
            config["compression"] = quality.into();
        }
        nodes.push(json!({
            "id": "convert", "data": {"kind": "convert", "title": "Convert", "config": config}
        }));
    }
    if template.compresses() {
        nodes.push(json!({
            "id": "compress",
            "data": {
                "kind": "compress", "title": "Compress",
                "config": {"quality": quality.unwrap_or(BALANCED)}
            }
        }));
    }
    nodes.push(json!({"id": "webhook", "data": {"kind": "webhook", "title": "Webhook"}}));
    let edges: Vec<Value> = nodes
        .windows(2)
        .map(|pair| json!({"source": pair[0]["id"], "target": pair[1]["id"]}))
        .collect();
    Ok(json!({"nodes": nodes, "edges": edges}))
}

/// Qualities of the compression words.
const BALANCED: u8 = 82;
const HIGH: u8 = 70;
const ULTRA: u8 = 55;

fn template(short: &Short) -> Result<Template, Problem> {
    match (
        short.template,
        &short.output_format,
        &short.compression_mode,
    ) {
        (Some(template), _, _) => Ok(template),
        (None, Some(_), Some(_)) => Ok(Template::ConvertCompressPost),
        (None, Some(_), None) => Ok(Template::ConvertPost),
        (None, None, Some(_)) => Ok(Template::CompressPost),
        (None, None, None) => Err(rejected(
            "definition",
            "give a definition, or a short form: template, outputFormat, compressionMode",
        )),
    }
}

fn output_format(short: &Short, template: Template) -> Result<&str, Problem> {
    let text = short.output_format.as_deref().map(str::trim);
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Err(rejected(
            "outputFormat",
            format!(
                "template {} needs outputFormat: give the format to make, as `webp`",
                template.name()
            ),
        ));
    };
    match Format::parse(text) {
        Some(format) if template.compresses() && !can_compress(format) => Err(rejected(
            "outputFormat",
            format!(
                "{} cannot be compressed: give another outputFormat, or use template convert-post",
                format.name()
            ),
        )),
        _ => Ok(text),
    }
}

fn quality(mode: &Value) -> Result<u8, Problem> {
    let text = match mode {
        Value::String(text) => text.trim().to_lowercase(),
        other => other.to_string(),
    };
    let number = || {
        text.parse()
            .ok()
            .filter(|quality| (1..=100).contains(quality))
    };
    match text.as_str() {
        "balanced" => Ok(BALANCED),
        "high" => Ok(HIGH),
        "ultra" => Ok(ULTRA),
        _ => number().ok_or_else(|| {
            rejected(
                "compressionMode",
                format!(
                    "compressionMode must be high, balanced, ultra or a whole number from 1 to 100, got `{}`",
                    crate::operation::shorten(&text)
                ),
            )
        }),
    }
}

fn rejected(field: &str, message: impl AsRef<str>) -> Problem {
    Place::definition().problem(Code::InvalidShortForm, Some(field), message)
}
