//! `GET /api/jobs/{id}/events`: a job's progress as server-sent events (WHATWG HTML, "Server-sent events").

use std::{convert::Infallible, time::Duration};

use actix_web::{
    HttpResponse,
    http::header::{self, HeaderValue},
    web::{self, Bytes},
};
use futures_util::{Stream, stream};
use serde_json::json;
use sluice_actors::convert::{Follower, Progress};
use sluice_store::jobs;
use uuid::Uuid;

use super::record::Records;
use crate::http::{
    context::AppState,
    error::ApiError,
    extract::{Caller, Reached, Read},
};

/// Proxies close what is silent for a minute.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Follow a job
///
/// Server-sent events: `progress` with `{jobId, status, progress, totalFiles, completedFiles, failedFiles}`, at once and at
/// every change; then `end` with the job's record, and the stream closes. Comments keep it open in between.
#[utoipa::path(get, path = "/api/jobs/{id}/events", tag = "jobs", params(("id" = Uuid, Path, description = "The job's id")),
    responses((status = 200, description = "Events until the job has ended", content_type = "text/event-stream", body = String)))]
pub async fn events(
    state: web::Data<AppState>,
    caller: Caller<Read>,
    reached: Reached,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let job = jobs::get(&mut state.store.read().await?, caller.account_id(), *id).await?;
    let followed = Followed {
        follower: state.conversions.follow(job.id)?,
        job_id: job.id,
        state,
        reached,
    };
    Ok(HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "text/event-stream"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header(("x-accel-buffering", HeaderValue::from_static("no")))
        .streaming(followed.events()))
}

struct Followed {
    follower: Follower,
    job_id: Uuid,
    state: web::Data<AppState>,
    reached: Reached,
}

impl Followed {
    fn events(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(Some(self), async |followed| {
            let (text, rest) = followed?.next().await?;
            Some((Ok(Bytes::from(text)), rest))
        })
    }

    /// The next piece of the stream; without a rest it was the last one.
    async fn next(mut self) -> Option<(String, Option<Self>)> {
        let progress = tokio::select! {
            progress = self.follower.next() => progress.ok()?,
            () = tokio::time::sleep(HEARTBEAT) => return Some((": still here\n\n".to_owned(), Some(self))),
            () = self.state.closing.cancelled() => return None,
        };
        let text = event("progress", &self.progress(progress));
        if !progress.state.has_ended() {
            return Some((text, Some(self)));
        }
        let end = self.end().await.ok()?;
        Some((text + &end, None))
    }

    fn progress(&self, progress: Progress) -> serde_json::Value {
        json!({
            "jobId": self.job_id,
            "status": progress.state.as_str(),
            "progress": progress.percent(),
            "totalFiles": progress.total_files,
            "completedFiles": progress.completed_files,
            "failedFiles": progress.failed_files,
        })
    }

    async fn end(&self) -> Result<String, ApiError> {
        let mut reader = self.state.store.read().await?;
        let job = jobs::by_id(&mut reader, self.job_id).await?;
        let items = jobs::items(&mut reader, job.id).await?;
        drop(reader);
        let records = Records::new(&self.state, &self.reached).await?;
        Ok(event("end", &json!(records.job(&job, Some(&items)))))
    }
}

/// JSON has no line ends of its own, so that one `data` line holds it.
fn event(name: &str, data: &serde_json::Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}
