//! Statistics of a workflow's newest runs: failures, the last run, and how many of them came to each node and took each path.

use sqlx::FromRow;
use uuid::Uuid;

use super::RunStatus;
use crate::{Connection, Error, rows, statement::query_as};

/// Newest runs of a workflow that are looked at for its failures.
const RECENT: u32 = 100;
/// Newest runs of a workflow that are looked at for its nodes.
pub const MOST_COUNTED: u32 = 1_000;

/// The newest runs of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct RecentRuns {
    pub workflow_id: Uuid,
    /// Those of the newest that have completed or failed.
    pub ended: i64,
    pub failed: i64,
    /// `None`: no run is kept.
    pub last_run_id: Option<Uuid>,
    pub last_status: Option<RunStatus>,
}

/// Ends at a node, of several runs.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct NodeCounts {
    pub node_id: String,
    pub completed: i64,
    pub failed: i64,
    pub skipped: i64,
    /// Times a branch took its path `true`.
    pub took_true: i64,
    pub took_false: i64,
}

pub(super) const RECENT_RUNS: &str = "SELECT w.id AS workflow_id,
         (SELECT count(*) FROM (SELECT status FROM workflow_runs INDEXED BY workflow_runs_by_workflow
             WHERE workflow_id = w.id ORDER BY created_at DESC, id DESC LIMIT $2) recent
          WHERE status IN ('completed', 'failed')) AS ended,
         (SELECT count(*) FROM (SELECT status FROM workflow_runs INDEXED BY workflow_runs_by_workflow
             WHERE workflow_id = w.id ORDER BY created_at DESC, id DESC LIMIT $2) recent
          WHERE status = 'failed') AS failed,
         (SELECT id FROM workflow_runs INDEXED BY workflow_runs_by_workflow
             WHERE workflow_id = w.id ORDER BY created_at DESC, id DESC LIMIT 1) AS last_run_id,
         (SELECT status FROM workflow_runs INDEXED BY workflow_runs_by_workflow
             WHERE workflow_id = w.id ORDER BY created_at DESC, id DESC LIMIT 1) AS last_status
     FROM json_each($1) j CROSS JOIN workflows w ON w.id = unhex(j.value)";

/// Returns the newest runs of each of these workflows.
pub async fn recent_runs(
    db: &mut impl Connection,
    workflows: &[Uuid],
) -> Result<Vec<RecentRuns>, Error> {
    Ok(query_as(RECENT_RUNS)
        .bind(rows::ids(workflows)?)
        .bind(RECENT)
        .fetch_all(db)
        .await?)
}

pub(super) const BY_NODE: &str =
    "WITH newest (id, version, is_ended) AS MATERIALIZED (SELECT id, workflow_version, completed_at IS NOT NULL
         FROM workflow_runs INDEXED BY workflow_runs_by_workflow WHERE workflow_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2)
     SELECT s.node_id, count(*) FILTER (WHERE s.status = 'completed') AS completed,
         count(*) FILTER (WHERE s.status = 'failed') AS failed, count(*) FILTER (WHERE s.status = 'skipped') AS skipped,
         count(*) FILTER (WHERE s.branch = 1) AS took_true, count(*) FILTER (WHERE s.branch = 0) AS took_false
     FROM newest n CROSS JOIN workflow_steps s ON s.run_id = n.id
     WHERE n.is_ended AND ($3 IS NULL OR n.version = $3) GROUP BY s.node_id";

/// Counts how the newest runs of a workflow that have ended, of that version or of all, ended at each node.
pub async fn by_node(
    db: &mut impl Connection,
    workflow_id: Uuid,
    version: Option<i64>,
) -> Result<Vec<NodeCounts>, Error> {
    Ok(query_as(BY_NODE)
        .bind(workflow_id)
        .bind(MOST_COUNTED)
        .bind(version)
        .fetch_all(db)
        .await?)
}
