//! MCP tools `run_workflow`, `get_workflow_run` and `list_workflow_runs`: wait (`mcp.wait`), progress, runs of a list.
//!
//! A call waits for its run for at most `mcp.wait` and reports each step to a client that asked for progress. The run
//! continues whether or not the call does.

use std::convert::Infallible;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use serde::Deserialize;
use sluice_actors::workflow::RunProgress;
use sluice_store::{now_ms, workflows::Run};
use uuid::Uuid;

use super::*;
use crate::application::{
    object,
    workflows::{
        operations::{self, Input, RequestContext},
        request::SaveWorkflow,
        run_record::RunAnswer,
    },
};

/// Runs of a list when the agent names no number.
const DEFAULT_RUNS: u32 = 10;

/// Most runs of a list.
const MAX_RUNS: u32 = 50;

pub const RUN_WORKFLOW: Tool = Tool {
    name: "run_workflow",
    title: "Run a workflow on a file",
    description: "Runs a workflow on one file and waits for the outputs. Which workflow: workflowId of a saved one, or workflow \
        to make, save and run one in this same call. Which file: uploadUrl of create_upload_url, to which the bytes have \
        been PUT, or fileId of a stored file. Answers with status, the log of steps, and outputs with downloadUrl. Status \
        queued or processing means that it takes longer: ask get_workflow_run with the runId. A step that failed is reported in \
        run.error.",
    effect: Effect::Adds,
    reaches_out: true,
    input: || {
        let mut workflow = schema::object(
            definition::work_and(json!({
                "name": schema::text("1 to 80 characters; optional."),
            })),
            &[],
        );
        workflow["additionalProperties"] = json!(false);
        workflow["description"] = json!(
            "A new workflow: definition, or the short form in its place. It is saved, active, and run."
        );
        schema::input(
            json!({
                "workflowId": schema::id("A saved workflow. Either this or workflow."),
                "workflow": workflow,
                "uploadUrl": schema::text("uploadUrl of create_upload_url, after the PUT. Either this or fileId. The upload is used up."),
                "fileId": schema::id("A stored file."),
                "uploadSource": schema::text("Value of upload_source in conditions; mcp (for a stored file: storage) without it."),
            }),
            &[],
        )
    },
    output: Some(run_schema),
    call: |call, arguments| Box::pin(run(call, arguments)),
};

fn run_schema() -> Value {
    let output = schema::list(json!({
        "filename": schema::text("Its name."),
        "mimeType": schema::text("Its media type."),
        "sizeBytes": schema::integer("Its size.", 0, None),
        "storedFileId": schema::nullable(schema::text("Of the stored file; null for a temporary download.")),
        "downloadUrl": schema::nullable(schema::text("Where to GET it, without a credential, for minutes to hours.")),
    }));
    let log = schema::list(json!({
        "nodeId": schema::text("Of the definition."),
        "status": schema::word("Result of the step.", &["completed", "skipped", "failed"]),
        "message": schema::text("Action of the step, or the reason why it took none."),
    }));
    let run = schema::object(
        json!({
            "id": schema::id("Of the run."),
            "workflowId": schema::id("Of the workflow."),
            "outputs": output,
            "log": log,
            "error": schema::nullable(schema::text("Why it failed.")),
        }),
        &["id", "workflowId", "outputs", "log"],
    );
    schema::object(
        json!({
            "run": run,
            "runId": schema::id("For get_workflow_run."),
            "status": schema::word(
                "queued and processing: not done yet.",
                &["queued", "processing", "completed", "failed", "cancelled"],
            ),
            "next": schema::text("What to do when it is not done yet."),
        }),
        &["run", "runId", "status"],
    )
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunWorkflow {
    workflow_id: Option<Uuid>,
    workflow: Option<serde_json::Map<String, Value>>,
    file_id: Option<Uuid>,
    upload_url: Option<String>,
    upload_source: Option<String>,
}

/// The workflow of a call.
enum WorkflowRef {
    Saved(Uuid),
    New(Box<SaveWorkflow>),
}

impl RunWorkflow {
    fn input(&self) -> Result<Input, CallError> {
        match (self.file_id, &self.upload_url) {
            (Some(id), None) => Ok(Input::File(id)),
            (None, Some(url)) => Ok(Input::Upload(url.clone())),
            _ => Err(CallError::Arguments(
                "a run needs one file: either uploadUrl (of create_upload_url, after the PUT) or fileId".to_owned(),
            )),
        }
    }

    fn wanted(self) -> Result<WorkflowRef, CallError> {
        match (self.workflow_id, self.workflow) {
            (Some(id), None) => Ok(WorkflowRef::Saved(id)),
            (None, Some(workflow)) => inline(workflow).map(|save| WorkflowRef::New(Box::new(save))),
            _ => Err(CallError::Arguments(
                "a run needs one workflow: either workflowId of a saved one, or workflow with a definition or short form".to_owned(),
            )),
        }
    }
}

/// Makes a workflow of a definition in the call itself.
fn inline(workflow: serde_json::Map<String, Value>) -> Result<SaveWorkflow, CallError> {
    let mut save: SaveWorkflow = object::from_object(workflow)
        .map_err(|error| CallError::Arguments(format!("workflow.{error}")))?;
    if save.id.is_some() || save.version.is_some() {
        return Err(CallError::Arguments(
            "workflow is a new one and has neither id nor version: pass workflowId to run a saved one".to_owned(),
        ));
    }
    save.is_active = Some(true);
    save.name.get_or_insert_with(|| {
        let today = jiff::Timestamp::from_millisecond(now_ms()).unwrap_or_default();
        format!("Agent workflow {}", today.strftime("%Y-%m-%d"))
    });
    Ok(save)
}

async fn run(call: &Call, arguments: Arguments) -> Outcome {
    let context = call.agent.workflows(&call.agent.writer()?);
    let mut asked: RunWorkflow = arguments.read()?;
    let (input, source) = (asked.input()?, asked.upload_source.take());
    let run = match asked.wanted()? {
        WorkflowRef::Saved(id) => operations::run_on(&context, id, input, source).await?,
        WorkflowRef::New(save) => run_new(&context, *save, input, source).await?,
    };
    answer(awaited(call, &context, run).await?)
}

/// Saves a workflow and runs it. If the run cannot begin, no workflow is kept.
async fn run_new(
    context: &RequestContext,
    save: SaveWorkflow,
    input: Input,
    source: Option<String>,
) -> Result<Run, ApiError> {
    operations::check_input(context, &input).await?;
    let id = operations::create_or_replace(context, save)
        .await?
        .workflow
        .id;
    let submitted = operations::run_on(context, id, input, source).await;
    if submitted.is_err()
        && let Err(error) = operations::delete(context, id).await
    {
        tracing::warn!(workflow = %id, %error, "a workflow that could not be run stays");
    }
    submitted
}

/// Returns the run when it has ended, when `mcp.wait` is over, or when its caller has disconnected.
async fn awaited(call: &Call, context: &RequestContext, run: Run) -> Result<RunAnswer, ApiError> {
    let (id, longest) = (run.id, context.handles.config.mcp.wait);
    tokio::select! {
        answer = operations::awaited(context, run, longest) => answer,
        () = call.abandoned() => operations::show_run(context, id).await,
        never = report_progress(call, id) => match never {},
    }
}

/// Reports the progress of the run to a client that asked for it. Never returns, so that it can be selected beside a
/// future that does.
async fn report_progress(call: &Call, run_id: Uuid) -> Infallible {
    if let Some(token) = call.context.meta.get_progress_token() {
        // Ends early when the client has disconnected and when too many requests follow runs; the call works without
        // it.
        let _ = report_steps(call, token, run_id).await;
    }
    std::future::pending().await
}

/// Reports each step. The first report is sent at once: it opens the stream, whose keep-alives show that the client is
/// still connected.
async fn report_steps(call: &Call, token: ProgressToken, run_id: Uuid) -> Option<()> {
    let peer = &call.context.peer;
    let first = ProgressNotificationParam::new(token.clone(), 0.0);
    let first = first.with_message(format!("run {run_id}"));
    peer.notify_progress(first).await.ok()?;
    let mut follower = call.agent.context.workflows.workflows.follow(run_id).ok()?;
    let mut reported = 0;
    loop {
        let progress = follower.next().await.ok()?;
        if progress.status.has_ended() {
            return Some(());
        }
        // Progress must only increase (MCP, "Progress").
        if progress.steps_done > reported {
            reported = progress.steps_done;
            let report = report(token.clone(), &progress);
            peer.notify_progress(report).await.ok()?;
        }
    }
}

fn report(token: ProgressToken, progress: &RunProgress) -> ProgressNotificationParam {
    let report = ProgressNotificationParam::new(token, progress.steps_done.into())
        .with_total(progress.steps_total.into());
    match &progress.current {
        Some(title) => report.with_message(title.to_string()),
        None => report,
    }
}

fn answer(run: RunAnswer) -> Outcome {
    let has_ended = run.run.completed_at.is_some();
    let mut answer = shown(run)?;
    if !has_ended {
        answer["next"] = json!("The run continues. Ask get_workflow_run with this runId.");
    }
    Ok(answer)
}

pub const GET_WORKFLOW_RUN: Tool = Tool {
    name: "get_workflow_run",
    title: "Show a run",
    description: "Shows one run: status, the log of its steps with the path that branches took, outputs with fresh downloadUrl, \
        and error when it failed. For runs that run_workflow handed out with status queued or processing.",
    effect: Effect::Reads,
    reaches_out: false,
    input: || {
        let id = schema::id("runId of run_workflow, or id of list_workflow_runs.");
        schema::input(json!({ "runId": id }), &["runId"])
    },
    output: Some(run_schema),
    call: |call, arguments| Box::pin(show(call, arguments)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Show {
    run_id: Uuid,
}

async fn show(call: &Call, arguments: Arguments) -> Outcome {
    let context = call.agent.workflows(&call.agent.reader()?);
    let Show { run_id } = arguments.read()?;
    answer(operations::show_run(&context, run_id).await?)
}

pub const LIST_WORKFLOW_RUNS: Tool = Tool {
    name: "list_workflow_runs",
    title: "List the runs of a workflow",
    description: "Lists the newest runs of a workflow: status, input, outputs, error, times. For the log of one, see \
        get_workflow_run.",
    effect: Effect::Reads,
    reaches_out: false,
    input: || {
        schema::input(
            json!({
                "workflowId": schema::id("The workflow."),
                "limit": schema::integer("Runs to show; 10 without it.", 1, Some(MAX_RUNS.into())),
            }),
            &["workflowId"],
        )
    },
    output: Some(|| {
        schema::object(
            json!({
                "runs": schema::list(json!({
                    "id": schema::id("For get_workflow_run."),
                    "status": schema::text("queued, processing, completed, failed or cancelled."),
                    "inputFilename": schema::text("Name of the input file."),
                    "outputs": json!({"type": "array", "items": {"type": "object"}}),
                    "error": schema::nullable(schema::text("Why it failed.")),
                })),
            }),
            &["runs"],
        )
    }),
    call: |call, arguments| Box::pin(list(call, arguments)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List {
    workflow_id: Uuid,
    limit: Option<u32>,
}

async fn list(call: &Call, arguments: Arguments) -> Outcome {
    let context = call.agent.workflows(&call.agent.reader()?);
    let List { workflow_id, limit } = arguments.read()?;
    let limit = limit.unwrap_or(DEFAULT_RUNS);
    if !(1..=MAX_RUNS).contains(&limit) {
        let text = format!("limit must be 1 to {MAX_RUNS}, got {limit}");
        return Err(CallError::Arguments(text));
    }
    let runs = operations::runs(&context, workflow_id, Some(limit)).await?;
    let mut runs = shown(runs)?;
    for run in runs.as_array_mut().into_iter().flatten() {
        // Fifty logs would fill a model's memory.
        run.as_object_mut().map(|run| run.remove("log"));
    }
    Ok(json!({ "runs": runs }))
}
