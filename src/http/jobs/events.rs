//! `GET /api/jobs/{id}/events`: a job's progress as server-sent events (WHATWG HTML, "Server-sent events").

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Value, json};
use sluice_actors::convert::Follower;
use sluice_store::jobs;
use uuid::Uuid;

use super::record::Records;
use crate::http::{
    context::AppState,
    error::ApiError,
    event_stream::{self, Followed, Told, Work},
    extract::{Caller, Reached, Read},
};

/// Follow a job
///
/// Server-sent events: `progress` with `{jobId, status, progress, queuePlace, totalFiles, completedFiles, failedFiles}`, at once
/// and at every change, some four times a second at most; then `end` with the job's record, and the stream closes. Comments keep it open in between.
#[utoipa::path(get, path = "/api/jobs/{id}/events", tag = "jobs", params(("id" = Uuid, Path, description = "The job's id")),
    responses((status = 200, description = "Events until the job has ended", content_type = "text/event-stream", body = String)))]
pub async fn events(
    request: HttpRequest,
    state: web::Data<AppState>,
    caller: Caller<Read>,
    reached: Reached,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let job = jobs::get(&mut state.store.read().await?, caller.account_id(), *id).await?;
    let work = FollowedJob {
        follower: state.conversions.follow(job.id)?,
        id: job.id,
    };
    let followed = Followed {
        work,
        state,
        caller,
        reached,
    };
    Ok(event_stream::answer(&request, followed))
}

struct FollowedJob {
    follower: Follower,
    id: Uuid,
}

impl Work for FollowedJob {
    async fn next(&mut self) -> Result<Told, ApiError> {
        let progress = self.follower.next().await?;
        Ok(Told {
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

    async fn end(&self, state: &AppState, reached: &Reached) -> Result<Value, ApiError> {
        let mut reader = state.store.read().await?;
        let job = jobs::by_id(&mut reader, self.id).await?;
        let items = jobs::items(&mut reader, job.id).await?;
        drop(reader);
        let records = Records::new(state, reached).await?;
        Ok(json!(records.job(&job, Some(&items))))
    }
}
