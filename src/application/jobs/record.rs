//! Fields of jobs and results in answers: `progress`, `savedPercent`, `downloadUrl` and its expiry (`convert.keep_results`).

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use sluice_actors::convert::JobProgress;
use sluice_store::{
    duration_ms,
    jobs::{Attachment, Item, ItemState, Job, JobType},
    now_ms,
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{
    answer::Timestamp,
    context::JobContext,
    downloads::{DownloadGrant, Downloadable, download_url},
    error::ApiError,
    reached::Reached,
    signing::Signer,
};

/// File made by an operation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultFile {
    pub filename: String,
    /// Bytes of the source.
    pub original_size: i64,
    /// Bytes of the result; null when an inspection made no file.
    pub final_size: Option<i64>,
    /// 100 × (1 − finalSize / originalSize), to one decimal; negative for a result that is larger; null for a second file,
    /// such as a storyboard's map.
    pub saved_percent: Option<f64>,
    pub mime_type: Option<String>,
    pub width: Option<u32>,
    pub height: Option<u32>,
    /// Duration in seconds, of audio and video.
    pub duration: Option<f64>,
    /// Download address without a credential, for 24 hours (`convert.keep_results`); null once that is over. For an
    /// inspection: its facts as a JSON file.
    pub download_url: Option<String>,
    /// Quality that met `targetBytes`.
    pub applied_quality: Option<u8>,
    /// The file it was stored as.
    pub stored_file_id: Option<Uuid>,
    /// Facts that `inspect` found.
    #[schema(value_type = Option<Object>)]
    pub facts: Option<Value>,
}

/// File that could not be processed; nothing was charged for it.
#[derive(Debug, Serialize, ToSchema)]
pub struct FileError {
    pub filename: String,
    pub error: String,
    /// Stable word, such as `unsupported_type`, `undecodable`, `too_large`, `impossible`, `decode_failed`, `timed_out`.
    pub code: String,
}

/// All results in one ZIP.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArchiveFile {
    pub size: i64,
    pub download_url: String,
}

/// A job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobRecord {
    pub id: Uuid,
    /// The same as `id`.
    pub job_id: Uuid,
    /// `convert`, `compress` or `tool`.
    pub job_type: &'static str,
    /// The media tool, of a job of type `tool`.
    pub tool: Option<String>,
    /// `pending`, `processing`, `completed`, `failed` or `cancelled`. A job completes when at least one file was made.
    pub status: &'static str,
    /// 0 to 100: the mean over its files, what is done of running ones included.
    pub progress: u8,
    /// Position in the queue for work on video and audio, while it waits there; 1 is next.
    pub queue_place: Option<u32>,
    pub total_files: u32,
    pub completed_files: u32,
    pub failed_files: u32,
    /// Null in lists: ask for the job.
    pub results: Option<Vec<ResultFile>>,
    /// The files that failed; null in lists.
    pub errors: Option<Vec<FileError>>,
    pub archive: Option<ArchiveFile>,
    pub error_message: Option<String>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
}

/// A job that continues without its request.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    pub job_id: Uuid,
    pub status: &'static str,
    /// The media tool, of a job of type `tool`.
    pub tool: Option<String>,
    pub progress: u8,
    pub total_files: u32,
}

impl Accepted {
    pub(crate) fn of(job: &Job) -> Self {
        Self {
            job_id: job.id,
            status: job.state.as_str(),
            tool: tool_of(job),
            // The job is new or still running; clients poll it for its progress.
            progress: JobProgress::of(job).percent(),
            total_files: job.total_files,
        }
    }
}

fn tool_of(job: &Job) -> Option<String> {
    (job.job_type == JobType::Tool).then(|| job.tool.clone())
}

/// Makes records for one answer.
pub(crate) struct Records<'a> {
    context: &'a JobContext,
    reached: &'a Reached,
    signer: Signer,
}

impl<'a> Records<'a> {
    pub(crate) async fn new(
        context: &'a JobContext,
        reached: &'a Reached,
    ) -> Result<Self, ApiError> {
        Ok(Self {
            context,
            reached,
            signer: Signer::of(&mut context.store.read().await?).await?,
        })
    }

    /// Returns the record of a job; with `items` also their results.
    pub(crate) fn job(&self, job: &Job, items: Option<&[Item]>) -> JobRecord {
        let progress = self.context.conversions.progress(job);
        JobRecord {
            id: job.id,
            job_id: job.id,
            job_type: job.job_type.as_str(),
            tool: tool_of(job),
            status: job.state.as_str(),
            progress: progress.percent(),
            queue_place: progress.queue_place,
            total_files: job.total_files,
            completed_files: job.completed_files,
            failed_files: job.failed_files,
            results: items.map(|items| self.results(job, items)),
            errors: items.map(errors),
            archive: self.archive(job),
            error_message: job.error.clone(),
            created_at: Timestamp(job.created_at),
            started_at: job.started_at.map(Timestamp),
            completed_at: job.completed_at.map(Timestamp),
        }
    }

    fn archive(&self, job: &Job) -> Option<ArchiveFile> {
        job.archive_blob?;
        Some(ArchiveFile {
            size: job.archive_size.unwrap_or_default(),
            download_url: self.url(job, Downloadable::Archive(job.id))?,
        })
    }

    pub(crate) fn results(&self, job: &Job, items: &[Item]) -> Vec<ResultFile> {
        items
            .iter()
            .filter(|item| item.state == ItemState::Completed)
            .flat_map(|item| {
                let attachment = item.attachment().map(|it| self.attached(job, item, it));
                [Some(self.result(job, item)), attachment]
            })
            .flatten()
            .collect()
    }

    /// The second file of a result.
    fn attached(&self, job: &Job, item: &Item, attachment: Attachment) -> ResultFile {
        ResultFile {
            filename: attachment.filename,
            original_size: item.original_size,
            final_size: Some(attachment.size),
            saved_percent: None,
            mime_type: Some(attachment.mime_type),
            width: None,
            height: None,
            duration: None,
            download_url: attachment
                .blob
                .and_then(|_| self.url(job, Downloadable::Attachment(item.id))),
            applied_quality: None,
            stored_file_id: attachment.stored_file_id,
            facts: None,
        }
    }

    fn result(&self, job: &Job, item: &Item) -> ResultFile {
        let is_file = item.facts.is_none();
        let final_size = item.result_size.filter(|_| is_file);
        ResultFile {
            filename: item
                .result_name
                .clone()
                .unwrap_or_else(|| item.original_name.clone()),
            original_size: item.original_size,
            final_size,
            saved_percent: final_size.map(|size| saved_percent(item.original_size, size)),
            mime_type: item.mime_type.clone(),
            width: item.width,
            height: item.height,
            duration: item
                .duration_ms
                .map(|milliseconds| milliseconds as f64 / 1_000.0),
            download_url: (item.result_blob.is_some() || item.facts.is_some())
                .then(|| self.url(job, Downloadable::Result(item.id)))
                .flatten(),
            applied_quality: item.applied_quality,
            stored_file_id: item.stored_file_id,
            facts: item.facts.clone(),
        }
    }

    fn url(&self, job: &Job, what: Downloadable) -> Option<String> {
        let keep = self.context.config.convert.keep_results;
        let expires_at = works_until(job.expires_at, keep, now_ms())?;
        let grant = DownloadGrant { what, expires_at };
        Some(download_url(
            &self.signer,
            &self.reached.address.base,
            grant,
        ))
    }
}

/// The files of a job that failed.
pub(crate) fn errors(items: &[Item]) -> Vec<FileError> {
    items
        .iter()
        .filter(|item| item.state == ItemState::Failed)
        .map(|item| FileError {
            filename: item.original_name.clone(),
            error: item.error.clone().unwrap_or_default(),
            code: item.error_code.clone().unwrap_or_default(),
        })
        .collect()
}

/// Returns when a result made now or earlier expires; `None` once it has, even if its bytes wait for the sweep.
fn works_until(expires_at: Option<i64>, keep: Duration, now: i64) -> Option<i64> {
    let later = || now.saturating_add(duration_ms(keep));
    let expires_at = expires_at.unwrap_or_else(later);
    (now < expires_at).then_some(expires_at)
}

/// Returns the saved share in percent, to one decimal.
fn saved_percent(original: i64, result: i64) -> f64 {
    if original <= 0 {
        return 0.0;
    }
    let share = 1.0 - result as f64 / original as f64;
    // Adding zero turns −0.0 into 0.0.
    (share * 1000.0).round() / 10.0 + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_works_no_more_is_not_shown() {
        let keep = Duration::from_millis(500);
        for (expires_at, now, expected) in [
            (None, 1000, Some(1500)),
            (Some(1100), 1000, Some(1100)),
            (Some(1000), 1000, None),
            (Some(900), 1000, None),
        ] {
            assert_eq!(
                works_until(expires_at, keep, now),
                expected,
                "{expires_at:?}"
            );
        }
    }

    #[test]
    fn savings_are_rounded_and_may_be_losses() {
        for (original, result, expected) in [
            (1000, 250, 75.0),
            (3, 1, 66.7),
            (100, 100, 0.0),
            (100, 250, -150.0),
            (0, 250, 0.0),
        ] {
            assert_eq!(
                saved_percent(original, result),
                expected,
                "{original} → {result}"
            );
        }
    }
}
