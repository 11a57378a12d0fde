//! Runs of workflows: start on an upload or stored file, wait, list, `retry`, `rerun`, cancel; `uploadSource`, `workflows.max_queued`.
//!
//! A run is committed with its charge and its input before any answer; a waiting request waits for its row, and may
//! disconnect.

use std::time::Duration;

use sluice_actors::workflow::{Request, RetryVersion};
use sluice_media::format::Format;
use sluice_store::{
    files,
    jobs::Allowance,
    uploads::{self, Upload},
    work::Lane,
    workflows::{self, Retried, Run, RunInput, Submitted, Trigger},
    write_tx,
};
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    application::{
        error::ApiError,
        files::kind::mime_type,
        part::{Part, SizeLimit, SizeLimits},
        uploads::by_signed_url,
        workflows::{
            operations::{Client, RequestContext, find},
            run_record::{self, RunAnswer, RunRecord},
        },
    },
    config::Plan,
};

/// Longest `upload_source`, in characters.
const MAX_SOURCE: usize = 64;
/// `Retry-After` when `workflows.max_queued` is reached.
const FULL_RETRY_AFTER_S: u64 = 10;
/// Runs in a list without a `limit`, the newest.
pub(super) const DEFAULT_LIMIT: u32 = 50;

/// Answers 404 and 409 for a workflow that would not run, before anything large is read for it.
pub(crate) async fn reject_paused(
    context: &RequestContext,
    workflow_id: Uuid,
) -> Result<(), ApiError> {
    match find(context, workflow_id).await?.is_active {
        true => Ok(()),
        false => Err(paused()),
    }
}

/// Runs a workflow on a file that came with the request. `source` is the value of `upload_source` in conditions.
///
/// 402 when the month's operations are used up, 404, 409 for a paused workflow, 413 for a file beyond the plan's size, 503
/// when `workflows.max_queued` runs of the account wait.
pub(crate) async fn run_upload(
    context: &RequestContext,
    workflow_id: Uuid,
    part: Part,
    source: Option<String>,
) -> Result<Run, ApiError> {
    let mime_type = mime_type(part.spool.head(), &part.filename);
    // Checked before the upload is flushed to the disk.
    input_limit(&context.plan, mime_type).check(&part.filename, part.spool.len())?;
    let upload = part.spool.seal().await?;
    let blob = *upload.blob();
    let input = RunInput {
        blob: blob.hash,
        filename: part.filename,
        size: i64::try_from(blob.size).unwrap_or(i64::MAX),
        mime_type: mime_type.to_owned(),
    };
    let request = context.run(workflow_id, input, source, context.client.source())?;
    let submitted = context
        .handles
        .workflows
        .submit(request, Some(upload))
        .await?;
    context.accepted(submitted)
}

/// Runs a workflow on a stored file; rejections as [`run_upload`]'s.
pub(crate) async fn run_file(
    context: &RequestContext,
    workflow_id: Uuid,
    file_id: Uuid,
    source: Option<String>,
) -> Result<Run, ApiError> {
    let mut db = context.handles.store.read().await?;
    let file = files::get(&mut db, context.account_id, file_id).await?;
    drop(db);
    let input = RunInput {
        blob: file.blob,
        filename: file.filename,
        size: file.size_bytes,
        mime_type: file.mime_type,
    };
    let trigger = match context.client {
        Client::Mcp => Trigger::Mcp,
        Client::Api | Client::Dashboard => Trigger::File,
    };
    let request = Request {
        trigger,
        generation: file.generation,
        source_file_id: Some(file.id),
        ..context.run(workflow_id, input, source, "storage")?
    };
    let submitted = context.handles.workflows.submit(request, None).await?;
    context.accepted(submitted)
}

/// Runs a workflow on the bytes that were put to the `signedUrl` of a direct upload; the upload is used up by it, and no file
/// is made. Rejections as [`run_upload`]'s; 400 for an address of something else, 409 while the bytes are missing.
pub(crate) async fn run_taken_upload(
    context: &RequestContext,
    workflow_id: Uuid,
    upload_url: &str,
    source: Option<String>,
) -> Result<Run, ApiError> {
    let upload = by_signed_url(&context.handles, context.account_id, upload_url).await?;
    let (account_id, upload_id) = (context.account_id, upload.id);
    let request = context.run(
        workflow_id,
        bytes_of(upload)?,
        source,
        context.client.source(),
    )?;
    let engine = context.handles.workflows.clone();
    let submitted = write_tx!(context.handles.store, account_id, |tx| {
        let blob = request.input.blob;
        let submitted = engine.submit_in(tx, request, None).await?;
        if let Submitted::New(_) = submitted {
            let taken = uploads::take(tx, account_id, upload_id).await?;
            check_unchanged(taken.blob == blob)?;
        }
        Ok(submitted)
    })?;
    context.handles.workflows.announce();
    context.accepted(submitted)
}

/// Input of a run, named by the request.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// The id of a stored file.
    File(Uuid),
    /// The `signedUrl` of a direct upload.
    Upload(String),
}

/// Answers 400, 403, 404 or 409 for an input that is not there, before anything is done for it.
pub(crate) async fn check_input(context: &RequestContext, input: &Input) -> Result<(), ApiError> {
    match input {
        Input::File(id) => {
            let mut db = context.handles.store.read().await?;
            files::get(&mut db, context.account_id, *id).await?;
        }
        Input::Upload(url) => {
            bytes_of(by_signed_url(&context.handles, context.account_id, url).await?)?;
        }
    }
    Ok(())
}

/// Runs a workflow on its input: [`run_file`] or [`run_taken_upload`].
pub(crate) async fn run_on(
    context: &RequestContext,
    workflow_id: Uuid,
    input: Input,
    source: Option<String>,
) -> Result<Run, ApiError> {
    match input {
        Input::File(id) => run_file(context, workflow_id, id, source).await,
        Input::Upload(url) => run_taken_upload(context, workflow_id, &url, source).await,
    }
}

/// The bytes of a direct upload; 409 while they are missing.
fn bytes_of(upload: Upload) -> Result<RunInput, ApiError> {
    let (Some(blob), Some(mime_type)) = (upload.blob_hash, upload.mime_type) else {
        return Err(ApiError::Conflict(
            "the bytes of this upload have not arrived, or were used before: PUT them to its signedUrl first".to_owned(),
        ));
    };
    Ok(RunInput {
        blob,
        filename: upload.filename,
        size: upload.size_bytes,
        mime_type,
    })
}

fn check_unchanged(is_same: bool) -> Result<(), sluice_store::Error> {
    match is_same {
        true => Ok(()),
        false => Err(sluice_store::Error::Conflict(
            "other bytes were put to this upload meanwhile: try again".to_owned(),
        )),
    }
}

/// Returns the run once it has ended, or as it is when `longest` is over or the service stops. The run continues
/// whatever becomes of the request.
pub(crate) async fn awaited(
    context: &RequestContext,
    run: Run,
    longest: Duration,
) -> Result<RunAnswer, ApiError> {
    let deadline = Instant::now() + longest;
    let run = tokio::select! {
        // The run is committed whether the store can be read or not; a client that got an error would request it twice.
        ended = context.handles.workflows.wait(run.id, deadline) => ended.unwrap_or(run),
        () = context.handles.closing.cancelled() => run,
    };
    run_record::answer(&context.handles, &context.reached, run).await
}

/// Returns a run of the account, with its log and outputs.
pub(crate) async fn show_run(
    context: &RequestContext,
    run_id: Uuid,
) -> Result<RunAnswer, ApiError> {
    let mut db = context.handles.store.read().await?;
    let run = workflows::get_run(&mut db, context.account_id, run_id).await?;
    drop(db);
    run_record::answer(&context.handles, &context.reached, run).await
}

/// Lists the newest runs of a workflow, 50 of them without a `limit`.
pub(crate) async fn runs(
    context: &RequestContext,
    workflow_id: Uuid,
    limit: Option<u32>,
) -> Result<Vec<RunRecord>, ApiError> {
    let workflow = find(context, workflow_id).await?;
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    let mut db = context.handles.store.read().await?;
    let runs = workflows::list_runs(&mut db, context.account_id, workflow.id, limit).await?;
    drop(db);
    run_record::records(&context.handles, &context.reached, runs).await
}

/// Queues a run again that failed or was cancelled; it is charged again, and steps that are done stay done. 409 for another
/// one, for one whose input has expired, and when the workflow is paused; else rejections as [`run_upload`]'s.
pub(crate) async fn retry(
    context: &RequestContext,
    run_id: Uuid,
    version: RetryVersion,
) -> Result<RunAnswer, ApiError> {
    let mut db = context.handles.store.read().await?;
    let run = workflows::get_run(&mut db, context.account_id, run_id).await?;
    drop(db);
    let limit = input_limit(&context.plan, &run.input_mime);
    limit.check(&run.input_filename, run.input_size.unsigned_abs())?;
    let allowance = allowance(&context.plan, &run.input_mime);
    let engine = &context.handles.workflows;
    let retried = engine
        .retry(context.account_id, run_id, version, Lane::Batch, allowance)
        .await?;
    match retried {
        Retried::Queued(run) => run_record::answer(&context.handles, &context.reached, *run).await,
        Retried::UsedUp { used } => Err(context.used_up(used)),
        Retried::Full => Err(full()),
    }
}

/// Runs the workflow again on the input of one of its runs that has ended: a new run, charged and admitted as every other one. 409 while
/// that run has not ended, when its input has expired, and when the workflow is paused; else rejections as [`run_upload`]'s.
pub(crate) async fn rerun(
    context: &RequestContext,
    workflow_id: Uuid,
    run_id: Uuid,
    version: RetryVersion,
) -> Result<Run, ApiError> {
    let mut db = context.handles.store.read().await?;
    let run = workflows::get_run(&mut db, context.account_id, run_id).await?;
    drop(db);
    let limit = input_limit(&context.plan, &run.input_mime);
    limit.check(&run.input_filename, run.input_size.unsigned_abs())?;
    let submitted = context
        .handles
        .workflows
        .rerun(
            context.account_id,
            workflow_id,
            run_id,
            version,
            context.client.trigger(),
            allowance(&context.plan, &run.input_mime),
        )
        .await?;
    context.accepted(submitted)
}

/// Cancels a run that waits or is worked on; its charge is given back, what it stored stays. 409 when it has ended.
pub(crate) async fn cancel(context: &RequestContext, run_id: Uuid) -> Result<RunAnswer, ApiError> {
    let cancelled = context
        .handles
        .workflows
        .cancel(context.account_id, run_id)
        .await?;
    run_record::answer(&context.handles, &context.reached, cancelled).await
}

impl Client {
    /// Trigger of a run whose file is not named by the request.
    fn trigger(self) -> Trigger {
        match self {
            Self::Mcp => Trigger::Mcp,
            Self::Api | Self::Dashboard => Trigger::Api,
        }
    }

    /// Value of `upload_source` in conditions, of a file that came with a request.
    pub(super) fn source(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Dashboard => "dashboard",
            Self::Mcp => "mcp",
        }
    }
}

impl RequestContext {
    /// Makes the request for a run whose caller waits for it. 400 for an empty file or an odd source, 413 beyond
    /// the plan's size.
    fn run(
        &self,
        workflow_id: Uuid,
        input: RunInput,
        source: Option<String>,
        usual_source: &str,
    ) -> Result<Request, ApiError> {
        reject_empty(&input)?;
        let limit = input_limit(&self.plan, &input.mime_type);
        limit.check(&input.filename, input.size.unsigned_abs())?;
        Ok(Request {
            account_id: self.account_id,
            workflow_id,
            version: None,
            rerun_of: None,
            trigger: self.client.trigger(),
            lane: Lane::Interactive,
            generation: 0,
            upload_source: checked_source(source)?.unwrap_or_else(|| usual_source.to_owned()),
            allowance: allowance(&self.plan, &input.mime_type),
            input,
            source_file_id: None,
        })
    }

    /// Returns the run, or the reason why there is none.
    fn accepted(&self, submitted: Submitted) -> Result<Run, ApiError> {
        match submitted {
            Submitted::New(run) => Ok(*run),
            Submitted::Paused => Err(paused()),
            Submitted::UsedUp { used } => Err(self.used_up(used)),
            Submitted::Full => Err(full()),
        }
    }

    fn used_up(&self, used: u64) -> ApiError {
        ApiError::OperationsUsedUp {
            used,
            limit: self.plan.operations_per_month,
            upgrade_url: Some(self.reached.upgrade_url(&self.handles)),
        }
    }
}

fn paused() -> ApiError {
    ApiError::Conflict("the workflow is paused: set its isActive to true to run it".to_owned())
}

fn full() -> ApiError {
    ApiError::Unavailable {
        what: "workflows.max_queued is reached: as many runs wait as may; the workflow",
        retry_after_s: FULL_RETRY_AFTER_S,
    }
}

fn reject_empty(input: &RunInput) -> Result<(), ApiError> {
    match input.size {
        0 => Err(invalid!(
            "{} is empty: send a file with bytes in it",
            input.filename
        )),
        _ => Ok(()),
    }
}

/// Checks an `uploadSource`; `None` when none was given.
pub(super) fn checked_source(given: Option<String>) -> Result<Option<String>, ApiError> {
    let given = given.map(|text| text.trim().to_owned());
    let Some(source) = given.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let length = source.chars().count();
    if length > MAX_SOURCE || source.chars().any(char::is_control) {
        return Err(invalid!(
            "uploadSource must have at most {MAX_SOURCE} characters, none of them a control character, got {length}"
        ));
    }
    Ok(Some(source))
}

/// Limits of the plan for a run on a file of that type.
pub(crate) fn allowance(plan: &Plan, mime_type: &str) -> Allowance {
    Allowance {
        file_bytes: input_limit(plan, mime_type).bytes,
        ..plan.allowance()
    }
}

/// The largest input of a run: the plan's limit for an operation on its sort of file.
fn input_limit(plan: &Plan, mime_type: &str) -> SizeLimit {
    SizeLimits::of(plan).of_format(Format::from_mime(mime_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_short_words() {
        for (given, expected) in [
            (None, Ok(None)),
            (Some(""), Ok(None)),
            (Some("  "), Ok(None)),
            (Some(" google-drive "), Ok(Some("google-drive"))),
            (Some("a\u{7}"), Err(())),
            (Some(&*"ü".repeat(64)), Ok(Some(&*"ü".repeat(64)))),
            (Some(&*"ü".repeat(65)), Err(())),
        ] {
            let checked = checked_source(given.map(str::to_owned));
            let expected = expected.map(|source| source.map(str::to_owned));
            assert_eq!(checked.map_err(|_| ()), expected, "{given:?}");
        }
    }

    #[test]
    fn a_runs_input_may_be_as_large_as_an_operation_of_its_sort_takes() {
        let plan = Plan::default();
        for (mime_type, limit) in [
            ("image/png", plan.image_upload),
            ("application/pdf", plan.image_upload),
            ("application/octet-stream", plan.image_upload),
            ("video/mp4", plan.video_upload),
            ("audio/mpeg", plan.video_upload),
        ] {
            assert_eq!(
                input_limit(&plan, mime_type).bytes,
                limit.as_u64(),
                "{mime_type}"
            );
        }
    }
}
