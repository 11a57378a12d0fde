//! `GET /api/workflows/runs/{runId}/events`: progress of a workflow run as server-sent events.

use actix_web::HttpResponse;
use serde_json::{Value, json};
use sluice_actors::workflow::Follower;
use sluice_store::workflows;
use uuid::Uuid;

use crate::{
    application::{
        context::WorkflowContext, error::ApiError, reached::Reached, workflows::run_record,
    },
    http::event_stream::{FollowRequest, StreamedState, Work},
};

/// Follow a run
///
/// Server-sent events: `progress` with `{runId, status, stepsDone, stepsTotal, current, currentNodeId, stepProgress, queuePlace}`, at
/// once and at every change, where `stepsTotal` counts the path as far as it is known, `current` is the title of the
/// present step and `currentNodeId` its node, and `stepProgress` (of 100) and `queuePlace` (1 is next) show its work on video and audio; then `end`
/// with the run as `GET /api/workflows/runs/{runId}` answers it, and the stream closes. Comments keep it open in
/// between.
#[utoipa::path(get, path = "/api/workflows/runs/{runId}/events", tag = "workflows",
    params(("runId" = Uuid, Path, description = "The run's id")),
    responses((status = 200, description = "Events until the run has ended", content_type = "text/event-stream", body = String)))]
pub async fn events(asked: FollowRequest) -> Result<HttpResponse, ApiError> {
    asked.answer::<FollowedRun>().await
}

struct FollowedRun {
    follower: Follower,
    id: Uuid,
}

impl Work for FollowedRun {
    type Context = WorkflowContext;

    async fn follow(
        context: &WorkflowContext,
        account_id: Uuid,
        id: Uuid,
    ) -> Result<Self, ApiError> {
        let run = workflows::get_run(&mut context.store.read().await?, account_id, id).await?;
        Ok(Self {
            follower: context.workflows.follow(run.id)?,
            id: run.id,
        })
    }

    async fn next(&mut self) -> Result<StreamedState, ApiError> {
        let progress = self.follower.next().await?;
        Ok(StreamedState {
            has_ended: progress.status.has_ended(),
            progress: json!({
                "runId": self.id,
                "status": progress.status.as_str(),
                "stepsDone": progress.steps_done,
                "stepsTotal": progress.steps_total,
                "current": progress.current,
                "currentNodeId": progress.current_node,
                "stepProgress": progress.step_percent,
                "queuePlace": progress.queue_place,
            }),
        })
    }

    async fn end(&self, context: &WorkflowContext, reached: &Reached) -> Result<Value, ApiError> {
        let run = workflows::by_id(&mut context.store.read().await?, self.id).await?;
        Ok(json!(run_record::answer(context, reached, run).await?))
    }
}
