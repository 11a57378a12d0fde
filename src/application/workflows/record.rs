//! Fields of workflows and their versions in answers: `definition`, `version`, `webhookSecret`, `runCount`.

use serde::Serialize;
use serde_json::{Value, value::RawValue};
use sluice_store::workflows::{
    Version, Workflow,
    run_statistics::{NodeCounts, RecentRuns},
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{answer::Timestamp, error::ApiError};

/// A workflow.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowRecord {
    pub id: Uuid,
    pub name: String,
    /// `false`: paused. No run begins, triggers are silent; accepted runs continue.
    pub is_active: bool,
    /// Definition as it was saved, with fields unknown to the service; made from the short form when that was saved.
    #[schema(value_type = Object)]
    pub definition: Box<RawValue>,
    /// Version, which rises by one with every save. Send it back with a change to get 409 when another saved in
    /// between.
    pub version: i64,
    /// Template of the short form: `convert-post`, `compress-post` or `convert-compress-post`. Null for a workflow that
    /// was saved by its definition.
    pub template: Option<String>,
    /// Format of the short form to convert to.
    pub output_format: Option<String>,
    /// Compression of the short form: `high`, `balanced`, `ultra`, or the encoder's quality 1 to 100.
    #[schema(value_type = Option<Value>)]
    pub compression_mode: Option<Value>,
    /// `whsec_…`, which signs what is posted to `webhookUrl` and to the `url` of a node; shown at the making and when it is
    /// rotated, null otherwise.
    pub webhook_secret: Option<String>,
    /// Runs since the making.
    pub run_count: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub last_run_at: Option<Timestamp>,
}

impl WorkflowRecord {
    /// Makes the record without the secret.
    pub(crate) fn of(workflow: Workflow) -> Result<Self, ApiError> {
        let compression_mode = workflow.compression_mode.as_deref().map(parsed);
        Ok(Self {
            definition: written(workflow.definition)?,
            compression_mode: compression_mode.transpose()?,
            id: workflow.id,
            name: workflow.name,
            is_active: workflow.is_active,
            version: workflow.version,
            template: workflow.template,
            output_format: workflow.output_format,
            webhook_secret: None,
            run_count: workflow.run_count,
            created_at: Timestamp(workflow.created_at),
            updated_at: Timestamp(workflow.updated_at),
            last_run_at: workflow.last_run_at.map(Timestamp),
        })
    }

    /// Makes the record with the secret, for the answer to the client that has just made it.
    pub(crate) fn with_secret(workflow: Workflow) -> Result<Self, ApiError> {
        let secret = workflow.webhook_secret.expose().to_owned();
        Ok(Self {
            webhook_secret: Some(secret),
            ..Self::of(workflow)?
        })
    }
}

/// Keeps JSON that was written here as text: parsed, small values would need many times its memory.
pub(crate) fn written(text: String) -> Result<Box<RawValue>, ApiError> {
    RawValue::from_string(text).map_err(ApiError::internal)
}

/// Parses JSON that was written here.
pub(crate) fn parsed(text: &str) -> Result<Value, ApiError> {
    serde_json::from_str(text).map_err(ApiError::internal)
}

/// The newest runs of a workflow, at most 100.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecentRunsRecord {
    workflow_id: Uuid,
    /// Those that have completed or failed.
    ended: i64,
    failed: i64,
    /// The newest; null when no run is kept.
    last_run_id: Option<Uuid>,
    /// `queued`, `processing`, `completed`, `failed` or `cancelled`.
    last_status: Option<&'static str>,
}

impl From<RecentRuns> for RecentRunsRecord {
    fn from(recent: RecentRuns) -> Self {
        Self {
            workflow_id: recent.workflow_id,
            ended: recent.ended,
            failed: recent.failed,
            last_run_id: recent.last_run_id,
            last_status: recent.last_status.map(|status| status.as_str()),
        }
    }
}

/// Counts of the newest runs of a workflow that have ended, at most 1000, by node.
#[derive(Debug, Serialize, ToSchema)]
pub struct WorkflowStatistics {
    pub(crate) nodes: Vec<NodeStatistics>,
}

/// Numbers of runs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatistics {
    node_id: String,
    completed: i64,
    failed: i64,
    skipped: i64,
    /// Runs in which a branch took its `true` path.
    took_true: i64,
    took_false: i64,
}

impl From<NodeCounts> for NodeStatistics {
    fn from(counts: NodeCounts) -> Self {
        Self {
            node_id: counts.node_id,
            completed: counts.completed,
            failed: counts.failed,
            skipped: counts.skipped,
            took_true: counts.took_true,
            took_false: counts.took_false,
        }
    }
}

/// A version of a workflow, without its definition.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionRecord {
    pub version: i64,
    pub created_at: Timestamp,
}

impl From<Version> for VersionRecord {
    fn from(info: Version) -> Self {
        Self {
            version: info.version,
            created_at: Timestamp(info.created_at),
        }
    }
}

/// A version of a workflow.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WholeVersion {
    pub version: i64,
    /// Definition as it was saved.
    #[schema(value_type = Object)]
    pub definition: Box<RawValue>,
}
