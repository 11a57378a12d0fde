//! Payloads of `conversion.started`, `.progress`, `.completed`, `.failed` and `media.tool.completed`, `.failed`: fields,
//! most listed files and bytes.
//!
//! A job may have a thousand files and an event's body must stay small: [`Results`] and [`Failures`] hold the first ones,
//! by number and by length, and say how many there are.

use serde::Serialize;
use uuid::Uuid;

/// Most entries of one list in an event.
pub const MOST_ENTRIES: usize = 100;
/// Most JSON bytes of the results in an event, and of its failures: with the rest of the event less than 64 KiB.
const RESULTS_BYTES: usize = 40 << 10;
const FAILURES_BYTES: usize = 16 << 10;
/// Most characters of one error's text; a longer one is truncated.
const ERROR_CHARS: usize = 300;

/// `conversion.started`: a job is worked on for the first time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionStarted {
    pub job_id: Uuid,
    /// Name of the job's first file.
    pub filename: String,
    pub file_count: u32,
    /// `convert` or `compress`.
    pub job_type: &'static str,
}

/// `conversion.progress`: a file of a job is finished, with a result or an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionProgress {
    pub job_id: Uuid,
    /// Name of the finished file.
    pub filename: String,
    /// Index of the file among the job's, from 0.
    pub index: u64,
    /// `completed` or `failed`.
    pub status: &'static str,
    pub error: Option<String>,
    /// Files that are finished, this one among them; the failed ones too.
    pub completed: u32,
    pub total: u32,
}

/// `conversion.completed`: every file of a job has a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionCompleted {
    pub job_id: Uuid,
    pub filename: String,
    pub job_type: &'static str,
    #[serde(flatten)]
    pub results: Results,
}

/// `conversion.failed`: a job ended, or was cancelled, and not all of its files have a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionFailed {
    pub job_id: Uuid,
    pub filename: String,
    pub job_type: &'static str,
    pub error: String,
    pub code: Option<String>,
    #[serde(flatten)]
    pub results: Results,
    #[serde(flatten)]
    pub failures: Failures,
}

/// `media.tool.completed`: a tool has done what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaToolCompleted {
    pub tool: String,
    pub job_id: Uuid,
    pub filename: String,
    #[serde(flatten)]
    pub results: Results,
}

/// `media.tool.failed`: a tool failed, or its request was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaToolFailed {
    /// `None` when the request could not be read so far.
    pub tool: Option<String>,
    /// `None` for a rejected request, of which no job was made.
    pub job_id: Option<Uuid>,
    /// `None` when the request was rejected before its file was known.
    pub filename: Option<String>,
    pub error: String,
    pub code: Option<String>,
    #[serde(flatten)]
    pub results: Results,
    #[serde(flatten)]
    pub failures: Failures,
}

/// Result of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultFile {
    pub filename: String,
    pub mime_type: String,
    pub size_bytes: u64,
    pub width: Option<u32>,
    pub height: Option<u32>,
    /// Present when the result was saved to storage.
    pub stored_file_id: Option<Uuid>,
}

/// Reason why a file failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedFile {
    pub filename: String,
    pub error: String,
    pub code: Option<String>,
}

/// The first results of a job, in the order of its files, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Results {
    files: Vec<ResultFile>,
    files_total: u64,
}

impl Results {
    /// `first`: as many as there are, up to [`MOST_ENTRIES`] at least.
    pub fn new(first: impl IntoIterator<Item = ResultFile>, total: u64) -> Self {
        Self {
            files: bounded(first, RESULTS_BYTES),
            files_total: total,
        }
    }
}

/// The first failures of a job, in the order of its files, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failures {
    errors: Vec<FailedFile>,
    errors_total: u64,
}

impl Failures {
    /// `first`: as many as there are, up to [`MOST_ENTRIES`] at least.
    pub fn new(first: impl IntoIterator<Item = FailedFile>, total: u64) -> Self {
        Self {
            errors: bounded(first, FAILURES_BYTES),
            errors_total: total,
        }
    }
}

/// Returns an error's text as an event has it, at most `ERROR_CHARS` long.
pub fn error_text(text: &str) -> String {
    text.chars().take(ERROR_CHARS).collect()
}

/// Keeps as many of the first entries as fit.
fn bounded<T: Serialize>(first: impl IntoIterator<Item = T>, most_bytes: usize) -> Vec<T> {
    let mut left = most_bytes;
    let mut kept = Vec::new();
    for entry in first.into_iter().take(MOST_ENTRIES) {
        let length = serde_json::to_vec(&entry).map_or(usize::MAX, |json| json.len());
        let Some(rest) = left.checked_sub(length.saturating_add(1)) else {
            break;
        };
        left = rest;
        kept.push(entry);
    }
    kept
}
