//! MCP tool `get_job`: a conversion job.

use serde::Deserialize;
use uuid::Uuid;

use super::*;
use crate::application::jobs;

pub const GET_JOB: Tool = Tool {
    name: "get_job",
    title: "Show a conversion job",
    description: "Shows a job of POST /api/jobs or /api/convert: status (pending, processing, completed, failed, cancelled), \
        progress, and for each file its result with downloadUrl, or its error. Workflow runs are no jobs: see get_workflow_run.",
    effect: Effect::Reads,
    reaches_out: false,
    input: || schema::input(json!({"jobId": schema::id("The job's id.")}), &["jobId"]),
    output: None,
    call: |call, arguments| Box::pin(get_job(call, arguments)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GetJob {
    job_id: Uuid,
}

async fn get_job(call: &Call, arguments: Arguments) -> Outcome {
    let agent = &call.agent;
    let GetJob { job_id } = arguments.read()?;
    let account_id = agent.reader()?.account_id();
    shown(jobs::find(&agent.context.jobs, account_id, &agent.reached, job_id).await?)
}
