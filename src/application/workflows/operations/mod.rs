//! Use cases of workflows for REST and MCP: list, show, pause, delete, rotate the secret, versions, dry runs, lists of runs.
//!
//! They answer with records, so that a handler or a tool only has to serialize them. Every rejection is an [`ApiError`]
//! whose text says what to change.

mod dry_run;
pub(crate) mod run_list;
pub(crate) mod runs;
pub(crate) mod saving;

use std::sync::Arc;

use sluice_store::{
    Page, duration_ms, now_ms,
    workflows::{self, Workflow, run_statistics},
    write_tx,
};
use uuid::Uuid;

pub(crate) use crate::application::workflows::operations::dry_run::dry_run;
pub(crate) use crate::application::workflows::operations::run_list::all_runs;
pub(crate) use crate::application::workflows::operations::runs::{
    Input, allowance, awaited, cancel, check_input, reject_paused, rerun, retry, run_file, run_on,
    run_upload, runs, show_run,
};
pub(crate) use crate::application::workflows::operations::saving::{create_or_replace, lint};

use crate::{
    application::{
        caller::Caller,
        context::WorkflowContext,
        error::ApiError,
        reached::Reached,
        workflows::record::{
            NodeStatistics, RecentRunsRecord, VersionRecord, WholeVersion, WorkflowRecord,
            WorkflowStatistics, written,
        },
    },
    config::Plan,
};

/// Most versions in a list. Beyond the newest those are kept that runs of the history name.
const MOST_VERSIONS: u32 = 1_000;

/// Interface by which a person or a program calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    Api,
    Dashboard,
    Mcp,
}

/// The caller, the plan, and the address with which answers begin.
pub(crate) struct RequestContext {
    pub handles: Arc<WorkflowContext>,
    pub reached: Reached,
    pub account_id: Uuid,
    pub plan: Plan,
    pub client: Client,
}

impl RequestContext {
    /// Makes the context of a REST caller; agents have another `client`.
    pub(crate) fn of<S>(
        handles: Arc<WorkflowContext>,
        caller: &Caller<S>,
        reached: Reached,
    ) -> Self {
        Self {
            account_id: caller.account_id(),
            plan: caller.plan(&handles),
            handles,
            reached,
            client: match caller.is_session() {
                true => Client::Dashboard,
                false => Client::Api,
            },
        }
    }
}

/// The account's workflows, newest first.
pub(crate) async fn list(context: &RequestContext, page: Page) -> Result<Vec<Workflow>, ApiError> {
    let mut db = context.handles.store.read().await?;
    Ok(workflows::list(&mut db, context.account_id, page).await?)
}

/// Returns the newest runs of each of these workflows, for a list of them.
pub(crate) async fn recent_runs(
    context: &RequestContext,
    listed: &[Workflow],
) -> Result<Vec<RecentRunsRecord>, ApiError> {
    let ids: Vec<Uuid> = listed.iter().map(|workflow| workflow.id).collect();
    let mut db = context.handles.store.read().await?;
    let recent = run_statistics::recent_runs(&mut db, &ids).await?;
    Ok(recent.into_iter().map(RecentRunsRecord::from).collect())
}

/// Counts how the newest runs of a workflow ended at each node, of that version or of all.
pub(crate) async fn statistics(
    context: &RequestContext,
    id: Uuid,
    version: Option<i64>,
) -> Result<WorkflowStatistics, ApiError> {
    let workflow = find(context, id).await?;
    let mut db = context.handles.store.read().await?;
    let nodes = run_statistics::by_node(&mut db, workflow.id, version).await?;
    Ok(WorkflowStatistics {
        nodes: nodes.into_iter().map(NodeStatistics::from).collect(),
    })
}

/// Returns a workflow; `NotFound` for one that is unknown or another account's.
pub(crate) async fn show(context: &RequestContext, id: Uuid) -> Result<WorkflowRecord, ApiError> {
    WorkflowRecord::of(find(context, id).await?)
}

/// Pauses or resumes a workflow.
pub(crate) async fn set_active(
    context: &RequestContext,
    id: Uuid,
    is_active: bool,
) -> Result<WorkflowRecord, ApiError> {
    let account_id = context.account_id;
    let changed = write_tx!(context.handles.store, account_id, |tx| {
        workflows::set_active(tx, account_id, id, is_active, now_ms()).await
    })?;
    WorkflowRecord::of(changed)
}

/// Deletes a workflow with its versions and runs; unfinished ones are cancelled. What they stored stays.
pub(crate) async fn delete(context: &RequestContext, id: Uuid) -> Result<(), ApiError> {
    context
        .handles
        .workflows
        .delete(context.account_id, id)
        .await?;
    context.handles.webhooks.nudge();
    Ok(())
}

/// Makes another webhook secret, which the record shows; for `webhooks.secret_overlap` the one before signs too.
pub(crate) async fn rotate_secret(
    context: &RequestContext,
    id: Uuid,
) -> Result<WorkflowRecord, ApiError> {
    let account_id = context.account_id;
    let overlap_ms = duration_ms(context.handles.config.webhooks.secret_overlap);
    let rotated = write_tx!(context.handles.store, account_id, |tx| {
        workflows::rotate_secret(tx, account_id, id, overlap_ms, now_ms()).await
    })?;
    WorkflowRecord::with_secret(rotated)
}

/// The versions that are kept, newest first.
pub(crate) async fn versions(
    context: &RequestContext,
    id: Uuid,
) -> Result<Vec<VersionRecord>, ApiError> {
    let mut db = context.handles.store.read().await?;
    let kept = workflows::versions(&mut db, context.account_id, id, MOST_VERSIONS).await?;
    Ok(kept.into_iter().map(VersionRecord::from).collect())
}

/// Returns a version of [`versions`], with its definition.
pub(crate) async fn version(
    context: &RequestContext,
    id: Uuid,
    version: i64,
) -> Result<WholeVersion, ApiError> {
    let workflow = find(context, id).await?;
    let mut db = context.handles.store.read().await?;
    let definition = workflows::definition_of(&mut db, workflow.id, version).await?;
    Ok(WholeVersion {
        version,
        definition: written(definition)?,
    })
}

async fn find(context: &RequestContext, id: Uuid) -> Result<Workflow, ApiError> {
    let mut db = context.handles.store.read().await?;
    Ok(workflows::get(&mut db, context.account_id, id).await?)
}
