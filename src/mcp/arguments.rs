//! Arguments of MCP tool calls: both spellings, rejection of names that the tool does not have.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::tools::{CallError, Tool};
use crate::application::{field, object};

/// Arguments of a tool, checked against the tool's own schema for names alone; values are checked as they are read.
#[derive(Debug)]
pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// Rejects names that the tool does not have: a wrong name would otherwise be an argument without effect.
    pub fn of(tool: &Tool, given: Map<String, Value>) -> Result<Self, CallError> {
        let schema = tool.input();
        let known = schema["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        for name in given.keys() {
            let spelt = object::camel_case(name);
            if known.contains_key(&spelt) {
                continue;
            }
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            let shown = field::shorten(name);
            let advice = match (spelt.as_str(), names.is_empty()) {
                ("filePath", _) => "only `sluice mcp` on your own machine reads local files; here, call create_upload_url, PUT the bytes, then pass `uploadUrl`".to_owned(),
                (_, true) => "it takes none".to_owned(),
                (_, false) => format!("use {}", names.join(", ")),
            };
            return Err(CallError::Arguments(format!(
                "{} has no argument `{shown}`: {advice}",
                tool.name
            )));
        }
        Ok(Self(given))
    }

    /// Reads the arguments; the rejection names the missing or wrong one.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, CallError> {
        object::from_object(self.0).map_err(|error| CallError::Arguments(error.to_string()))
    }
}
