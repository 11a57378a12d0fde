//! Events of conversion jobs (`conversion.started`, `.progress`, `.completed`, `.failed`, `media.tool.*`), each in the
//! transaction of its change.
//!
//! Conversions and compressions emit their beginning, each file and their end; a media tool its end alone.

use sluice_store::{
    Error, Tx,
    jobs::{self, Item, ItemState, Job, JobState, JobType},
};

use crate::events::{
    self, ConversionCompleted, ConversionFailed, ConversionProgress, ConversionStarted, Event,
    FailedFile, Failures, MOST_ENTRIES, MediaToolCompleted, MediaToolFailed, ResultFile, Results,
    error_text,
};

/// The code of a job that its owner cancelled.
const CANCELLED: &str = "cancelled";

/// Emits that work on the job begins for the first time.
pub(super) async fn began(tx: &mut Tx<'_>, job: &Job, now_ms: i64) -> Result<(), Error> {
    if job.job_type == JobType::Tool {
        return Ok(());
    }
    let started = ConversionStarted {
        job_id: job.id,
        filename: job.filename.clone(),
        file_count: job.total_files,
        job_type: job.job_type.as_str(),
    };
    emit(tx, job, Event::ConversionStarted(started), now_ms).await
}

/// Emits that a file is finished, with that error or without one; `job` as it is since.
pub(super) async fn file_finished(
    tx: &mut Tx<'_>,
    job: &Job,
    item: &Item,
    error: Option<&str>,
    now_ms: i64,
) -> Result<(), Error> {
    if job.job_type == JobType::Tool {
        return Ok(());
    }
    let status = match error {
        None => ItemState::Completed,
        Some(_) => ItemState::Failed,
    };
    let progress = ConversionProgress {
        job_id: job.id,
        filename: item.original_name.clone(),
        index: jobs::index_of(tx, item).await?,
        status: status.as_str(),
        error: error.map(error_text),
        completed: job.completed_files + job.failed_files,
        total: job.total_files,
    };
    emit(tx, job, Event::ConversionProgress(progress), now_ms).await
}

/// Emits that the job has ended, in any way.
pub(super) async fn ended(tx: &mut Tx<'_>, job: &Job, now_ms: i64) -> Result<(), Error> {
    let results = results(tx, job).await?;
    let is_success = job.state == JobState::Completed && job.failed_files == 0;
    let event = match (job.job_type, is_success) {
        (JobType::Tool, true) => Event::MediaToolCompleted(MediaToolCompleted {
            tool: job.tool.clone(),
            job_id: job.id,
            filename: job.filename.clone(),
            results,
        }),
        (JobType::Tool, false) => {
            let (failures, cause) = failures(tx, job).await?;
            Event::MediaToolFailed(MediaToolFailed {
                tool: Some(job.tool.clone()),
                job_id: Some(job.id),
                filename: Some(job.filename.clone()),
                error: cause.error,
                code: cause.code,
                results,
                failures,
            })
        }
        (JobType::Convert | JobType::Compress, true) => {
            Event::ConversionCompleted(ConversionCompleted {
                job_id: job.id,
                filename: job.filename.clone(),
                job_type: job.job_type.as_str(),
                results,
            })
        }
        (JobType::Convert | JobType::Compress, false) => {
            let (failures, cause) = failures(tx, job).await?;
            Event::ConversionFailed(ConversionFailed {
                job_id: job.id,
                filename: job.filename.clone(),
                job_type: job.job_type.as_str(),
                error: cause.error,
                code: cause.code,
                results,
                failures,
            })
        }
    };
    emit(tx, job, event, now_ms).await
}

async fn emit(tx: &mut Tx<'_>, job: &Job, event: Event, now_ms: i64) -> Result<(), Error> {
    events::emit(tx, job.account_id, &event, now_ms).await?;
    Ok(())
}

async fn results(tx: &mut Tx<'_>, job: &Job) -> Result<Results, Error> {
    let first = jobs::items_of_state(tx, job.id, ItemState::Completed, MOST_ENTRIES).await?;
    let files = first.into_iter().map(|item| ResultFile {
        filename: item.result_name.unwrap_or(item.original_name),
        mime_type: item.mime_type.unwrap_or_default(),
        size_bytes: item.result_size.unwrap_or(0).unsigned_abs(),
        width: item.width,
        height: item.height,
        stored_file_id: item.stored_file_id,
    });
    Ok(Results::new(files, u64::from(job.completed_files)))
}

/// Reason why a job did not complete.
struct Cause {
    error: String,
    code: Option<String>,
}

async fn failures(tx: &mut Tx<'_>, job: &Job) -> Result<(Failures, Cause), Error> {
    let first = jobs::items_of_state(tx, job.id, ItemState::Failed, MOST_ENTRIES).await?;
    let cause = cause(job, first.first());
    let files = first.into_iter().map(|item| FailedFile {
        filename: item.original_name,
        error: error_text(item.error.as_deref().unwrap_or_default()),
        code: item.error_code,
    });
    Ok((Failures::new(files, u64::from(job.failed_files)), cause))
}

/// Returns the cancellation, else the job's own error, else that of the first file that failed.
fn cause(job: &Job, first: Option<&Item>) -> Cause {
    if job.state == JobState::Cancelled {
        return Cause {
            error: "the job was cancelled".to_owned(),
            code: Some(CANCELLED.to_owned()),
        };
    }
    let of_file = first.and_then(|item| item.error.as_ref().map(|error| (error, &item.error_code)));
    let own = job.error.as_ref().map(|error| (error, &job.error_code));
    let (error, code) = own.or(of_file).unzip();
    Cause {
        error: error_text(error.map_or("no file came out", String::as_str)),
        code: code.cloned().flatten(),
    }
}
