//! `/api/workflows/{id}/run`, `…/run-file` and `/api/workflows/runs`: start, list, show, retry, rerun and cancel runs;
//! `workflows.inline_wait`.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use sluice_store::workflows::Run;
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Admitted, input::RunForm};
use crate::{
    application::{
        caller::{Read, Write},
        error::{ApiError, ErrorBody},
        page::row_count,
        workflows::{
            operations::{
                self, RequestContext,
                run_list::{RunPage, RunQuery},
            },
            request::{RerunRun, RetryRun, RunFile},
            run_record::{RunAnswer, RunRecord},
        },
    },
    http::extract::Body,
};

/// A form with exactly one file.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the form for the OpenAPI document")]
pub struct RunUpload {
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// Value of `upload_source` in conditions: `api` without one, or `dashboard` by a session; at most 64 characters.
    upload_source: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct RunList {
    runs: Vec<RunRecord>,
}

/// Run a workflow on a file
///
/// A form with exactly one `file`. The run is charged as one operation, and answered with its outputs when it ends
/// within `workflows.inline_wait` (10 s): completed, failed (its `error` names the step, and the charge is given back)
/// or not let through by the gate. Otherwise it continues without the request, which may be left at any time. The input
/// belongs to the run: no file is stored, unless a storage step does.
#[utoipa::path(post, path = "/api/workflows/{id}/run", tag = "workflows",
    params(("id" = Uuid, Path, description = "The workflow's id")),
    request_body(content = RunUpload, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "The run has ended", body = RunAnswer),
        (status = 202, description = "It continues: ask for the run, or follow its events", body = RunAnswer),
        (status = 400, description = "No form, or not exactly one `file` with bytes in it", body = ErrorBody),
        (status = 402, description = "The month's media operations are used up", body = ErrorBody),
        (status = 409, description = "The workflow is paused", body = ErrorBody),
        (status = 413, description = "Larger than the plan's `image_upload`, for audio and video `video_upload`", body = ErrorBody),
        (status = 503, description = "`workflows.max_queued` runs of the account wait", body = ErrorBody),
        (status = 507, description = "The disk is full", body = ErrorBody)))]
pub async fn run(
    request: HttpRequest,
    Admitted(context, _): Admitted<Write>,
    id: web::Path<Uuid>,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    // Checked before the body, so that a client does not send a file that would not run.
    operations::reject_paused(&context, *id).await?;
    let form = RunForm::read(&request, payload.into_inner(), &context).await?;
    let run = operations::run_upload(&context, *id, form.part, form.source).await?;
    inline(&context, run).await
}

/// Run a workflow on a stored file
///
/// The same as on an upload; the file stays as it is.
#[utoipa::path(post, path = "/api/workflows/{id}/run-file", tag = "workflows", request_body = RunFile,
    params(("id" = Uuid, Path, description = "The workflow's id")),
    responses(
        (status = 200, description = "The run has ended", body = RunAnswer),
        (status = 202, description = "It continues: ask for the run, or follow its events", body = RunAnswer),
        (status = 402, description = "The month's media operations are used up", body = ErrorBody),
        (status = 404, description = "There is no such workflow, or no such file", body = ErrorBody),
        (status = 409, description = "The workflow is paused", body = ErrorBody),
        (status = 503, description = "`workflows.max_queued` runs of the account wait", body = ErrorBody)))]
pub async fn run_file(
    Admitted(context, _): Admitted<Write>,
    id: web::Path<Uuid>,
    Body(request): Body<RunFile>,
) -> Result<HttpResponse, ApiError> {
    let file_id = request.file_id()?;
    let run = operations::run_file(&context, *id, file_id, request.upload_source).await?;
    inline(&context, run).await
}

/// Answers 200 when the run ends in time, else 202.
async fn inline(context: &RequestContext, run: Run) -> Result<HttpResponse, ApiError> {
    let longest = context.handles.config.workflows.inline_wait;
    let answer = operations::awaited(context, run, longest).await?;
    let mut response = match answer.has_ended() {
        true => HttpResponse::Ok(),
        false => HttpResponse::Accepted(),
    };
    Ok(response.json(answer))
}

/// List a workflow's runs
///
/// Runs that have ended are kept for `workflows.keep_runs`.
#[utoipa::path(get, path = "/api/workflows/{id}/run", tag = "workflows", params(
    ("id" = Uuid, Path, description = "The workflow's id"),
    ("limit" = Option<u32>, Query, description = "1 to 100, 50 without one"),
), responses((status = 200, description = "Newest first", body = RunList)))]
pub async fn runs(
    request: HttpRequest,
    Admitted(context, _): Admitted<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let limit = asked_limit(request.query_string())?;
    let runs = operations::runs(&context, *id, limit).await?;
    Ok(HttpResponse::Ok().json(RunList { runs }))
}

fn asked_limit(query: &str) -> Result<Option<u32>, ApiError> {
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "limit")
        .map(|(_, value)| row_count(&value))
        .transpose()
}

/// List runs of all workflows
///
/// Runs that have ended are kept for `workflows.keep_runs`. `counts` are those of the query without its `status`.
#[utoipa::path(get, path = "/api/workflows/runs", tag = "workflows", params(
    ("workflowId" = Option<Uuid>, Query, description = "Only those of this workflow"),
    ("status" = Option<String>, Query, description = "`queued`, `processing`, `completed`, `failed` or `cancelled`"),
    ("trigger" = Option<String>, Query, description = "`api`, `file`, `folder` or `mcp`"),
    ("since" = Option<String>, Query, description = "Only those made at this time or later: ISO 8601, or Unix seconds"),
    ("until" = Option<String>, Query, description = "Only those made before this time"),
    ("q" = Option<String>, Query, description = "Part of the input's name or of the workflow's, without case of ASCII letters; 1 to 120 characters"),
    ("sort" = Option<String>, Query, description = "`created` (without one) or `duration`; runs that have not begun or not ended count as the shortest"),
    ("order" = Option<String>, Query, description = "`asc` or `desc` (without one)"),
    ("limit" = Option<u32>, Query, description = "1 to 100, 50 without one"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before, with the same `sort` and `order`"),
), responses(
    (status = 200, description = "Newest first without a `sort`", body = RunPage),
    (status = 404, description = "There is no workflow with this id", body = ErrorBody)))]
pub async fn all_runs(
    request: HttpRequest,
    Admitted(context, _): Admitted<Read>,
) -> Result<HttpResponse, ApiError> {
    let query = RunQuery::parse(request.query_string())?;
    let page = operations::all_runs(&context, query).await?;
    Ok(HttpResponse::Ok().json(page))
}

/// Show a run
///
/// Its log names each step of the path so far and, once it has ended, the steps on the paths that it did not take.
#[utoipa::path(get, path = "/api/workflows/runs/{runId}", tag = "workflows",
    params(("runId" = Uuid, Path, description = "The run's id")),
    responses((status = 200, description = "The run", body = RunAnswer)))]
pub async fn show_run(
    Admitted(context, _): Admitted<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let answer = operations::show_run(&context, *id).await?;
    Ok(HttpResponse::Ok().json(answer))
}

/// Try a run again
///
/// One that failed or was cancelled, under the same id and charged again. Finished steps stay: it continues at the
/// first one that is not. With `version` `current` it follows the present definition, as far as that has the same
/// steps, and repeats the rest.
#[utoipa::path(post, path = "/api/workflows/runs/{runId}/retry", tag = "workflows", request_body = RetryRun,
    params(("runId" = Uuid, Path, description = "The run's id")),
    responses(
        (status = 202, description = "It is queued", body = RunAnswer),
        (status = 402, description = "The month's media operations are used up", body = ErrorBody),
        (status = 409, description = "It has not failed, its input is gone (`workflows.keep_results`), or the workflow is paused", body = ErrorBody),
        (status = 503, description = "`workflows.max_queued` runs of the account wait", body = ErrorBody)))]
pub async fn retry(
    Admitted(context, _): Admitted<Write>,
    id: web::Path<Uuid>,
    Body(request): Body<RetryRun>,
) -> Result<HttpResponse, ApiError> {
    let answer = operations::retry(&context, *id, request.checked()?).await?;
    Ok(HttpResponse::Accepted().json(answer))
}

/// Run again
///
/// A new run of the workflow on the input of one that has ended, from the first step: charged, answered and followed as every other
/// run. With `version` `ran` it does what that run did, with `current` what the workflow says now. The other run stays as it is.
#[utoipa::path(post, path = "/api/workflows/{id}/runs/{runId}/rerun", tag = "workflows", request_body = RerunRun,
    params(("id" = Uuid, Path, description = "The workflow's id"), ("runId" = Uuid, Path, description = "A run of the workflow")),
    responses(
        (status = 200, description = "The new run has ended", body = RunAnswer),
        (status = 202, description = "It continues: ask for the run, or follow its events", body = RunAnswer),
        (status = 402, description = "The month's media operations are used up", body = ErrorBody),
        (status = 404, description = "The workflow has no such run, or the version is kept no more", body = ErrorBody),
        (status = 409, description = "The run has not ended, its input is gone (`workflows.keep_results`), or the workflow is paused", body = ErrorBody),
        (status = 503, description = "`workflows.max_queued` runs of the account wait", body = ErrorBody)))]
pub async fn rerun(
    Admitted(context, _): Admitted<Write>,
    path: web::Path<(Uuid, Uuid)>,
    Body(request): Body<RerunRun>,
) -> Result<HttpResponse, ApiError> {
    let (id, run_id) = path.into_inner();
    let run = operations::rerun(&context, id, run_id, request.checked()?).await?;
    inline(&context, run).await
}

/// Cancel a run
///
/// One that waits or is worked on; what runs for it ends at once, and its charge is given back. Files that it has stored stay.
#[utoipa::path(post, path = "/api/workflows/runs/{runId}/cancel", tag = "workflows",
    params(("runId" = Uuid, Path, description = "The run's id")),
    responses(
        (status = 200, description = "The cancelled run", body = RunAnswer),
        (status = 409, description = "It has ended", body = ErrorBody)))]
pub async fn cancel(
    Admitted(context, _): Admitted<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let answer = operations::cancel(&context, *id).await?;
    Ok(HttpResponse::Ok().json(answer))
}
