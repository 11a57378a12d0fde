//! Fields of dry runs of workflows: request (`definition`, `workflowId`, `fileId`, `facts`) and answer (`path`, `operations`,
//! `output`).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sluice_media::workflow::{DryRun, DryRunStep, ExpectedFile, Operations};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{field, workflows::review::ProblemRecord};

/// A definition and a file: what would happen?
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DryRunWorkflow {
    /// A definition, saved or not; it counts before `workflowId`.
    #[schema(value_type = Option<Object>)]
    pub definition: Option<Map<String, Value>>,
    /// A workflow, of which the present version is followed.
    pub workflow_id: Option<Uuid>,
    /// A stored file of the account; it counts before `facts`.
    pub file_id: Option<Uuid>,
    /// Known facts of a file that is not stored; `{}` when there are none.
    #[schema(value_type = Option<GivenFacts>)]
    pub facts: Option<Map<String, Value>>,
    /// Value of `upload_source` in conditions; without one that of a run by the same caller.
    pub upload_source: Option<String>,
}

/// Facts of a file, by the names of conditions. What is left out is not known.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GivenFacts {
    /// Media type, such as image/png.
    #[serde(alias = "mimeType")]
    pub mime: Option<String>,
    /// Name with its extension.
    pub filename: Option<String>,
    /// Extension without the dot, for a file whose name is not known.
    pub extension: Option<String>,
    /// Size in bytes.
    pub size_bytes: Option<u64>,
    /// Width in pixels; null for a file that has none.
    #[serde(deserialize_with = "field::given")]
    pub width: Option<Option<u32>>,
    /// Height in pixels; null for a file that has none.
    #[serde(deserialize_with = "field::given")]
    pub height: Option<Option<u32>>,
    /// Duration in seconds; null for a file that has none.
    #[serde(deserialize_with = "field::given")]
    pub duration: Option<Option<f64>>,
    /// The same as `uploadSource` beside the facts, which counts first.
    pub upload_source: Option<String>,
}

/// The path and the cost of a run that did not take place: nothing is stored or charged.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct DryRunAnswer {
    /// Answer of the definition's gate for the file: `true`, `false` or `unknown`; null without a gate.
    gate: Option<&'static str>,
    /// Every node: those that the run may come to in the order of the path, then the others. Empty while the definition has
    /// errors.
    path: Vec<PathEntry>,
    operations: ForeseenOperations,
    /// Problems of the definition, as lint answers them.
    problems: Vec<ProblemRecord>,
    /// Files that storage steps would store; when none would, the final file as a download.
    output: Vec<ForeseenOutput>,
}

/// A node in a dry run.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PathEntry {
    node_id: String,
    /// `taken`: every run on such a file comes to it, unless a step before it fails; `notTaken`: none does; `unknown`: that
    /// depends on facts that are not known.
    state: &'static str,
    /// Result of a branch that the run may come to: `true`, `false` or `unknown`; null for all other nodes.
    branch: Option<&'static str>,
    /// True when the step cannot be done on such a file: a run that comes to it fails.
    fails: bool,
    /// Action of the step, or the reason why the run does not come to it, or not for certain.
    because: String,
}

/// Media operations that the run would be charged.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
pub struct ForeseenOperations {
    /// Those that are certain.
    charged: u32,
    /// Those that depend on facts that are not known.
    unknown: u32,
}

/// A file that the run would leave.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForeseenOutput {
    /// The storage node; null for the final file, which is kept as a download.
    node_id: Option<String>,
    /// Folder of the storage node; null at the top.
    folder_id: Option<Uuid>,
    /// `taken` or `unknown`.
    state: &'static str,
    /// Null while it is not known; so are the others.
    filename: Option<String>,
    mime_type: Option<String>,
    size_bytes: Option<u64>,
    width: Option<u32>,
    height: Option<u32>,
    /// Seconds.
    duration: Option<f64>,
}

impl DryRunAnswer {
    /// Answers for a definition with errors, which no run follows.
    pub(crate) fn of_problems(problems: Vec<ProblemRecord>) -> Self {
        Self {
            problems,
            ..Self::default()
        }
    }

    pub(crate) fn of(run: DryRun, problems: Vec<ProblemRecord>) -> Self {
        Self {
            gate: run.gate.map(word),
            path: run.path.into_iter().map(PathEntry::from).collect(),
            operations: run.operations.into(),
            problems,
            output: run.files.into_iter().map(ForeseenOutput::from).collect(),
        }
    }
}

impl From<DryRunStep> for PathEntry {
    fn from(step: DryRunStep) -> Self {
        Self {
            node_id: step.node_id,
            state: step.state.name(),
            branch: step.branch.map(word),
            fails: step.fails,
            because: step.because,
        }
    }
}

impl From<Operations> for ForeseenOperations {
    fn from(operations: Operations) -> Self {
        Self {
            charged: operations.charged,
            unknown: operations.unknown,
        }
    }
}

impl From<ExpectedFile> for ForeseenOutput {
    fn from(file: ExpectedFile) -> Self {
        Self {
            node_id: file.node_id,
            folder_id: file.folder_id,
            state: file.state.name(),
            filename: file.facts.filename,
            mime_type: file.facts.mime,
            size_bytes: file.facts.size_bytes,
            width: file.facts.width,
            height: file.facts.height,
            duration: file.facts.duration_s,
        }
    }
}

fn word(result: Option<bool>) -> &'static str {
    match result {
        Some(true) => "true",
        Some(false) => "false",
        None => "unknown",
    }
}
