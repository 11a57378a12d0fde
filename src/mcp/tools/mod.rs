//! Table of the MCP tools: what a model reads about each, its effect, and the function behind it.

mod definition;
mod files;
mod jobs;
mod live;
mod runs;
mod workflows;

use futures_util::future::BoxFuture;
use rmcp::model::ToolAnnotations;
use serde::Serialize;
use serde_json::{Value, json};

use super::{arguments::Arguments, schema, server::Call};
use crate::application::error::ApiError;

/// Effect of a tool on the account, which clients show to their users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Reads,
    /// Makes something new each time.
    Adds,
    /// Sets what may be set again; once more has no further effect.
    Sets,
    /// Replaces what was there.
    Replaces,
    Deletes,
}

/// Reason why a call failed.
#[derive(Debug)]
pub enum CallError {
    /// The arguments are not of the tool's schema.
    Arguments(String),
    /// The error that REST would answer.
    Api(ApiError),
}

impl<E: Into<ApiError>> From<E> for CallError {
    fn from(error: E) -> Self {
        Self::Api(error.into())
    }
}

/// Result of a call.
pub type Outcome = Result<Value, CallError>;

/// A tool of the server.
pub struct Tool {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    pub effect: Effect,
    /// True when it may reach the world outside: webhooks.
    pub reaches_out: bool,
    input: fn() -> Value,
    pub output: Option<fn() -> Value>,
    pub call: for<'a> fn(&'a Call, Arguments) -> BoxFuture<'a, Outcome>,
}

impl Tool {
    /// Returns the schema of its arguments.
    pub fn input(&self) -> Value {
        (self.input)()
    }

    pub fn only_reads(&self) -> bool {
        self.effect == Effect::Reads
    }

    pub fn annotations(&self) -> ToolAnnotations {
        let is_destructive = matches!(self.effect, Effect::Replaces | Effect::Deletes);
        let is_idempotent = !matches!(self.effect, Effect::Adds | Effect::Replaces);
        ToolAnnotations::with_title(self.title)
            .read_only(self.only_reads())
            .destructive(is_destructive)
            .idempotent(is_idempotent)
            .open_world(self.reaches_out)
    }
}

/// All tools in the order of `tools/list`.
pub static ALL: &[Tool] = &[
    runs::RUN_WORKFLOW,
    files::CREATE_UPLOAD_URL,
    runs::GET_WORKFLOW_RUN,
    definition::LIST_OPERATIONS,
    workflows::LINT_WORKFLOW,
    workflows::LIST_WORKFLOWS,
    workflows::CREATE_WORKFLOW,
    workflows::UPDATE_WORKFLOW,
    workflows::SET_WORKFLOW_ACTIVE,
    workflows::DELETE_WORKFLOW,
    runs::LIST_WORKFLOW_RUNS,
    files::LIST_FILES,
    jobs::GET_JOB,
    live::LIVE_INPUT_HEALTH,
];

/// Returns the tool of this name.
pub fn named(name: &str) -> Option<&'static Tool> {
    ALL.iter().find(|tool| tool.name == name)
}

/// Serializes an answer.
fn shown(answer: impl Serialize) -> Outcome {
    serde_json::to_value(answer).map_err(|error| CallError::Api(ApiError::internal(error)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_tool_is_fit_for_models() {
        let mut names = HashSet::new();
        for tool in ALL {
            assert!(names.insert(tool.name), "{} is listed twice", tool.name);
            assert!(
                tool.name
                    .bytes()
                    .all(|it| it.is_ascii_lowercase() || it == b'_')
            );
            assert!(
                (20..=900).contains(&tool.description.len()),
                "{}",
                tool.name
            );
            let input = tool.input();
            assert_eq!(input["type"], "object", "{}", tool.name);
            assert_eq!(input["additionalProperties"], false, "{}", tool.name);
            let properties = input["properties"].as_object().unwrap();
            for name in input["required"].as_array().unwrap() {
                assert!(properties.contains_key(name.as_str().unwrap()), "{name}");
            }
            for (name, property) in properties {
                let said = property["description"].as_str().unwrap_or_default();
                assert!(!said.is_empty(), "{}.{name} says nothing", tool.name);
            }
            let size = input.to_string().len();
            assert!(size < 6_000, "{}: {size} bytes of schema", tool.name);
            if let Some(output) = tool.output {
                assert_eq!(output()["type"], "object", "{}", tool.name);
            }
        }
    }
}
