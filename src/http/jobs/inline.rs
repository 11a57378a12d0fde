//! Answers of requests that wait for their job: 200, 202 after `convert.inline_wait`, status of a failure, 422 `all_failed`.

use actix_web::HttpResponse;
use serde::Serialize;
use sluice_media::task::{Failure, FailureCode};
use sluice_store::{
    jobs::{self, Item, Job, JobState},
    storage,
};
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::application::{
    context::JobContext,
    error::ApiError,
    jobs::record::{Accepted, FileError, Records, ResultFile, errors},
    reached::Reached,
};

/// Result of a conversion in which at least one file was made.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversionAnswer {
    #[schema(value_type = uuid::Uuid)]
    job_id: uuid::Uuid,
    /// In the order of the request.
    files: Vec<ResultFile>,
    /// The files of a request with several that failed.
    errors: Vec<FileError>,
    storage: StorageNotice,
}

/// Result of `saveToStorage`.
#[derive(Debug, Serialize, ToSchema)]
pub struct StorageNotice {
    saved: bool,
    /// One sentence for people.
    notice: Option<String>,
}

/// None of several files could be done (422).
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllFailed {
    error: String,
    /// `all_failed`
    code: &'static str,
    #[schema(value_type = uuid::Uuid)]
    job_id: uuid::Uuid,
    errors: Vec<FileError>,
}

/// Waits for a job at most `convert.inline_wait`, and answers. The job continues whatever becomes of the request.
pub(in crate::http) async fn answer(
    context: &JobContext,
    reached: &Reached,
    job: Job,
) -> Result<HttpResponse, ApiError> {
    let deadline = Instant::now() + context.config.convert.inline_wait;
    let job = tokio::select! {
        // The job is committed whether the store can be read or not; a client that got an error would request it twice.
        ended = context.conversions.wait(job.id, deadline) => ended.unwrap_or(job),
        () = context.closing.cancelled() => job,
    };
    if !job.state.has_ended() {
        return Ok(HttpResponse::Accepted().json(Accepted::of(&job)));
    }
    let items = jobs::items(&mut context.store.read().await?, job.id).await?;
    match job.state {
        JobState::Cancelled => Err(ApiError::Conflict("the job was cancelled".to_owned())),
        JobState::Completed => {
            let records = Records::new(context, reached).await?;
            Ok(HttpResponse::Ok().json(ConversionAnswer {
                job_id: job.id,
                files: records.results(&job, &items),
                errors: errors(&items),
                storage: notice(context, &job, &items),
            }))
        }
        _ => match &items[..] {
            [only] => Err(failure_of(context, &job, only)
                .await?
                .offering(|| reached.upgrade_url(context))),
            _ => Ok(HttpResponse::UnprocessableEntity().json(AllFailed {
                error: format!("none of the {} files could be done", items.len()),
                code: "all_failed",
                job_id: job.id,
                errors: errors(&items),
            })),
        },
    }
}

fn notice(context: &JobContext, job: &Job, items: &[Item]) -> StorageNotice {
    let stored = items
        .iter()
        .flat_map(|item| [item.stored_file_id, item.attachment_file_id])
        .flatten()
        .count();
    let notice = match (job.saves, stored) {
        (true, 0) => None,
        (true, 1) => Some("one file was stored".to_owned()),
        (true, _) => Some(format!("{stored} files were stored")),
        (false, _) => Some(format!(
            "the results can be downloaded for {} h; saveToStorage=true keeps them",
            context.config.convert.keep_results.as_secs() / 3600
        )),
    };
    StorageNotice {
        saved: stored > 0,
        notice,
    }
}

/// The error that a file's failure would have been, had it been found out before the job was made.
async fn failure_of(context: &JobContext, job: &Job, item: &Item) -> Result<ApiError, ApiError> {
    let code = item.error_code.clone().unwrap_or_default();
    let message = item.error.clone().unwrap_or_default();
    if let Ok(code) = serde_json::from_value::<FailureCode>(code.as_str().into()) {
        return Ok(Failure::new(code, message).into());
    }
    Ok(match code.as_str() {
        "storage_used_up" => {
            let mut reader = context.store.read().await?;
            ApiError::StorageUsedUp {
                used_bytes: storage::totals(&mut reader, job.account_id).await?.bytes,
                limit_bytes: job.allowance.storage_bytes,
                upgrade_url: None,
            }
        }
        "operations_used_up" => ApiError::Unprocessable {
            code: "operations_used_up",
            message,
        },
        _ => ApiError::Unprocessable {
            code: "crashed",
            message,
        },
    })
}
