//! `GET /api/jobs/{id}/events`: progress of a job as server-sent events.

use actix_web::HttpResponse;
use serde_json::{Value, json};
use sluice_actors::convert::Follower;
use sluice_store::jobs;
use uuid::Uuid;

use crate::{
    application::{context::JobContext, error::ApiError, jobs::record_of, reached::Reached},
    http::event_stream::{FollowRequest, StreamedState, Work},
};

/// Follow a job
///
/// Server-sent events: `progress` with `{jobId, status, progress, queuePlace, totalFiles, completedFiles, failedFiles}`, at once
/// and at every change, some four times a second at most; then `end` with the job's record, and the stream closes. Comments keep it open in between.
#[utoipa::path(get, path = "/api/jobs/{id}/events", tag = "jobs", params(("id" = Uuid, Path, description = "The job's id")),
    responses((status = 200, description = "Events until the job has ended", content_type = "text/event-stream", body = String)))]
pub async fn events(asked: FollowRequest) -> Result<HttpResponse, ApiError> {
    asked.answer::<FollowedJob>().await
}

struct FollowedJob {
    follower: Follower,
    id: Uuid,
}

impl Work for FollowedJob {
    type Context = JobContext;

    async fn follow(context: &JobContext, account_id: Uuid, id: Uuid) -> Result<Self, ApiError> {
        let job = jobs::get(&mut context.store.read().await?, account_id, id).await?;
        Ok(Self {
            follower: context.conversions.follow(job.id)?,
            id: job.id,
        })
    }

    async fn next(&mut self) -> Result<StreamedState, ApiError> {
        let progress = self.follower.next().await?;
        Ok(StreamedState {
            has_ended: progress.state.has_ended(),
            progress: json!({
                "jobId": self.id,
                "status": progress.state.as_str(),
                "progress": progress.percent(),
                "queuePlace": progress.queue_place,
                "totalFiles": progress.total_files,
                "completedFiles": progress.completed_files,
                "failedFiles": progress.failed_files,
            }),
        })
    }

    async fn end(&self, context: &JobContext, reached: &Reached) -> Result<Value, ApiError> {
        let job = jobs::by_id(&mut context.store.read().await?, self.id).await?;
        Ok(json!(record_of(context, reached, &job).await?))
    }
}
