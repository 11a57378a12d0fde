//! Payloads of `workflow.completed` and `workflow.failed`, with the outputs of the run.

use serde::Serialize;
use uuid::Uuid;

/// `workflow.completed`: a run is complete and its webhook step has been done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowCompleted {
    pub workflow_id: Uuid,
    pub run_id: Uuid,
    /// Name of the workflow.
    pub name: String,
    /// `completed`.
    pub status: &'static str,
    /// Files that the run's storage steps stored, or its last output.
    pub outputs: Vec<RunOutput>,
}

/// `workflow.failed`: a run failed or was cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowFailed {
    pub workflow_id: Uuid,
    pub run_id: Uuid,
    pub name: String,
    /// `failed` or `cancelled`.
    pub status: &'static str,
    pub error: String,
    pub outputs: Vec<RunOutput>,
}

/// An output of a run, which has one for each of its nodes at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunOutput {
    pub filename: String,
    pub mime_type: String,
    pub size_bytes: u64,
    pub stored_file_id: Option<Uuid>,
}
