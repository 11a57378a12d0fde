//! `/api/workflows`: list, save, lint, dry run, show, pause, delete, rotate the secret, versions; default `limit`.
//!
//! The handlers read requests and write answers; the work is in [`operations`], which agents' tools call too.

mod description;
mod events;
mod input;
mod running;

use std::{future::Ready, marker::PhantomData};

use actix_web::{FromRequest, HttpRequest, HttpResponse, dev::Payload, web};
use serde::Serialize;
use sluice_store::Listed;
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

pub(super) use description::describe;
pub use events::{__path_events, events};
pub use running::{
    __path_all_runs, __path_cancel, __path_rerun, __path_retry, __path_run, __path_run_file,
    __path_runs, __path_show_run, all_runs, cancel, rerun, retry, run, run_file, runs, show_run,
};

use super::{
    context,
    extract::{Body, PageQuery},
};
use crate::application::{
    answer::Success,
    caller::{Caller, Needs, Read, Write},
    context::WorkflowContext,
    error::ApiError,
    field,
    page::next_cursor,
    reached::Reached,
    workflows::{
        dry_run_record::{DryRunAnswer, DryRunWorkflow},
        operations::{self, RequestContext},
        record::{
            RecentRunsRecord, VersionRecord, WholeVersion, WorkflowRecord, WorkflowStatistics,
        },
        request::{ChangeWorkflow, LintWorkflow, SaveWorkflow},
        review::LintAnswer,
    },
};

/// Workflows of one page when the client names no limit: each comes with its whole definition.
const DEFAULT_LIMIT: u32 = 50;

/// The context of a caller with the scope of `S`.
pub struct Admitted<S>(RequestContext, PhantomData<S>);

impl<S: Needs> FromRequest for Admitted<S> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let caller = Caller::<S>::from_request(request, payload).into_inner();
        std::future::ready(caller.map(|caller| {
            let handles = context::of::<WorkflowContext>(request).clone().into_inner();
            let context = RequestContext::of(handles, &caller, Reached::of(request));
            Self(context, PhantomData)
        }))
    }
}

#[derive(Serialize, ToSchema)]
pub struct WorkflowAnswer {
    workflow: WorkflowRecord,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowList {
    workflows: Vec<WorkflowRecord>,
    /// The newest runs of each of these workflows.
    recent_runs: Vec<RecentRunsRecord>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct VersionList {
    versions: Vec<VersionRecord>,
}

#[derive(Serialize, ToSchema)]
pub struct VersionAnswer {
    version: WholeVersion,
}

/// List workflows
#[utoipa::path(get, path = "/api/workflows", tag = "workflows", params(
    ("limit" = Option<u32>, Query, description = "1 to 100, 50 without one"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before"),
), responses((status = 200, description = "Newest first", body = WorkflowList)))]
pub async fn list(
    Admitted(context, _): Admitted<Read>,
    PageQuery(page): PageQuery<DEFAULT_LIMIT>,
) -> Result<HttpResponse, ApiError> {
    let rows = operations::list(&context, page).await?;
    let next_cursor = next_cursor(&rows, page, Listed::cursor);
    let recent_runs = operations::recent_runs(&context, &rows).await?;
    let workflows = rows.into_iter().map(WorkflowRecord::of);
    Ok(HttpResponse::Ok().json(WorkflowList {
        workflows: workflows.collect::<Result<_, _>>()?,
        recent_runs,
        next_cursor,
    }))
}

/// Make or replace a workflow
///
/// Without `id` a new one, whose `webhookSecret` is shown this once; with `id` that one is replaced, and fields that
/// are left out stay. Each save makes a version; runs keep the one they began with. The whole definition is checked,
/// and all its problems are reported at once; addresses are checked as those of webhooks are.
#[utoipa::path(post, path = "/api/workflows", tag = "workflows", request_body = SaveWorkflow, responses(
    (status = 200, description = "Replaced", body = WorkflowAnswer),
    (status = 201, description = "Made", body = WorkflowAnswer),
    (status = 400, description = "A field, or the definition, is wrong; the text names it. Code `invalid_definition`: `detail` lists all problems of the definition", body = crate::application::error::ErrorBody),
    (status = 404, description = "There is no workflow with this id", body = crate::application::error::ErrorBody),
    (status = 409, description = "Another save came first (`version` is the present one), or the account has as many workflows as it may have (`workflows.max_workflows`)", body = crate::application::error::ErrorBody),
    (status = 413, description = "The definition is larger than `workflows.max_definition`", body = crate::application::error::ErrorBody)))]
pub async fn save(
    Admitted(context, _): Admitted<Write>,
    Body(request): Body<SaveWorkflow>,
) -> Result<HttpResponse, ApiError> {
    let saved = operations::create_or_replace(&context, request).await?;
    let mut response = match saved.is_new {
        true => HttpResponse::Created(),
        false => HttpResponse::Ok(),
    };
    Ok(response.json(WorkflowAnswer {
        workflow: saved.workflow,
    }))
}

/// Check a definition
///
/// Lists what a save would reject, and what it would accept though it is probably not meant. Takes what `POST /api/workflows`
/// takes, or a definition by itself; saves nothing.
#[utoipa::path(post, path = "/api/workflows/lint", tag = "workflows", request_body = SaveWorkflow,
    responses((status = 200, description = "All problems; an empty list when there are none", body = LintAnswer)))]
pub async fn lint(
    Admitted(context, _): Admitted<Read>,
    Body(request): Body<LintWorkflow>,
) -> Result<HttpResponse, ApiError> {
    let found = operations::lint(&context, request).await?;
    Ok(HttpResponse::Ok().json(found))
}

/// Try a definition without a run
///
/// Follows a definition, saved or not, with a stored file or with facts of one: which path a run would take, what it would be
/// charged and what it would leave. Nothing is done, stored or charged. A fact that a step changes is unknown behind it; a branch
/// that depends on an unknown fact may take either path. What is certain holds for every run on such a file, unless one of its
/// steps fails for a reason that only its bytes show.
#[utoipa::path(post, path = "/api/workflows/dry-run", tag = "workflows", request_body = DryRunWorkflow, responses(
    (status = 200, description = "The path, as far as it is known; empty while the definition has errors", body = DryRunAnswer),
    (status = 400, description = "No definition or no file, or a fact is wrong", body = crate::application::error::ErrorBody),
    (status = 404, description = "There is no such workflow, or no such file", body = crate::application::error::ErrorBody),
    (status = 413, description = "The definition is larger than `workflows.max_definition`", body = crate::application::error::ErrorBody)))]
pub async fn dry_run(
    Admitted(context, _): Admitted<Read>,
    Body(request): Body<DryRunWorkflow>,
) -> Result<HttpResponse, ApiError> {
    let answer = operations::dry_run(&context, request).await?;
    Ok(HttpResponse::Ok().json(answer))
}

/// Show a workflow
#[utoipa::path(get, path = "/api/workflows/{id}", tag = "workflows", params(("id" = Uuid, Path, description = "The workflow's id")),
    responses((status = 200, description = "The workflow", body = WorkflowAnswer)))]
pub async fn show(
    Admitted(context, _): Admitted<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let workflow = operations::show(&context, *id).await?;
    Ok(HttpResponse::Ok().json(WorkflowAnswer { workflow }))
}

/// Pause or resume a workflow
///
/// A paused one takes no runs (409) and its trigger is silent; accepted runs continue. Makes no version.
#[utoipa::path(patch, path = "/api/workflows/{id}", tag = "workflows", request_body = ChangeWorkflow,
    params(("id" = Uuid, Path, description = "The workflow's id")),
    responses((status = 200, description = "The workflow as it is now", body = WorkflowAnswer)))]
pub async fn change(
    Admitted(context, _): Admitted<Write>,
    id: web::Path<Uuid>,
    Body(request): Body<ChangeWorkflow>,
) -> Result<HttpResponse, ApiError> {
    let workflow = operations::set_active(&context, *id, request.checked()?).await?;
    Ok(HttpResponse::Ok().json(WorkflowAnswer { workflow }))
}

/// Delete a workflow
///
/// With its versions and its history. Unfinished runs are cancelled and given back; files that runs stored stay.
#[utoipa::path(delete, path = "/api/workflows/{id}", tag = "workflows",
    params(("id" = Uuid, Path, description = "The workflow's id")),
    responses((status = 200, description = "Deleted", body = Success)))]
pub async fn delete(
    Admitted(context, _): Admitted<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    operations::delete(&context, *id).await?;
    Ok(HttpResponse::Ok().json(Success::default()))
}

/// Rotate the webhook secret
///
/// `webhookSecret` of the answer signs from now on what is posted to the definition's own addresses; for 24 hours
/// (`webhooks.secret_overlap`) the one before signs too.
#[utoipa::path(post, path = "/api/workflows/{id}/rotate-secret", tag = "workflows",
    params(("id" = Uuid, Path, description = "The workflow's id")),
    responses((status = 200, description = "The workflow with its new secret, shown once", body = WorkflowAnswer)))]
pub async fn rotate_secret(
    Admitted(context, _): Admitted<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let workflow = operations::rotate_secret(&context, *id).await?;
    Ok(HttpResponse::Ok().json(WorkflowAnswer { workflow }))
}

/// Count a workflow's runs by node
///
/// Counts how many runs came to each node and took each path of a branch: of the newest 1000, those that have ended.
#[utoipa::path(get, path = "/api/workflows/{id}/statistics", tag = "workflows", params(
    ("id" = Uuid, Path, description = "The workflow's id"),
    ("version" = Option<i64>, Query, description = "Only runs of this version"),
), responses((status = 200, description = "A count for each node that a log names", body = WorkflowStatistics)))]
pub async fn statistics(
    request: HttpRequest,
    Admitted(context, _): Admitted<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let version = asked_version(request.query_string())?;
    let counts = operations::statistics(&context, *id, version).await?;
    Ok(HttpResponse::Ok().json(counts))
}

fn asked_version(query: &str) -> Result<Option<i64>, ApiError> {
    let mut given = form_urlencoded::parse(query.as_bytes());
    let given = given.find(|(name, value)| name == "version" && !value.is_empty());
    given
        .map(|(_, text)| {
            let version = text.parse().ok();
            version.ok_or_else(|| field::wrong("version", "the number of a version", &text))
        })
        .transpose()
}

/// List a workflow's versions
///
/// Those that are kept: the newest `workflows.keep_versions`, and older ones that a run in the history has run.
#[utoipa::path(get, path = "/api/workflows/{id}/versions", tag = "workflows",
    params(("id" = Uuid, Path, description = "The workflow's id")),
    responses((status = 200, description = "Newest first", body = VersionList)))]
pub async fn versions(
    Admitted(context, _): Admitted<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let versions = operations::versions(&context, *id).await?;
    Ok(HttpResponse::Ok().json(VersionList { versions }))
}

/// Show a version of a workflow
#[utoipa::path(get, path = "/api/workflows/{id}/versions/{version}", tag = "workflows",
    params(("id" = Uuid, Path, description = "The workflow's id"), ("version" = i64, Path, description = "1 for the first save")),
    responses((status = 200, description = "The version with its definition", body = VersionAnswer)))]
pub async fn version(
    Admitted(context, _): Admitted<Read>,
    path: web::Path<(Uuid, i64)>,
) -> Result<HttpResponse, ApiError> {
    let (id, version) = path.into_inner();
    let version = operations::version(&context, id, version).await?;
    Ok(HttpResponse::Ok().json(VersionAnswer { version }))
}
