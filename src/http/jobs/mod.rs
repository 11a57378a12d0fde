//! `/api/jobs`: make, list (`status`, `type`, `since`), show and cancel conversion jobs; default `limit`. Conversions that are
//! waited for are jobs too, and can be found here.

mod events;
mod form;
mod inline;

use actix_web::{FromRequest as _, HttpRequest, HttpResponse, web};
use serde::Serialize;
use serde_json::{Map, Value};
use sluice_media::operation::{self, Params};
use sluice_store::{
    Listed, Page,
    jobs::{self, JobFilter, JobState, JobType},
};
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

pub use events::{__path_events, events};
pub(super) use form::{Sent, idempotency_key};
pub(super) use inline::answer;
pub use inline::{AllFailed, ConversionAnswer};

use super::{
    convert::{CompressForm, ConvertForm},
    extract::{Body, is_json},
};
use crate::application::{
    caller::{Caller, Read, Write},
    context::JobContext,
    error::ApiError,
    field,
    jobs::{
        find,
        record::{Accepted, JobRecord, Records},
        record_of, stored_files,
        submission::{JobRequest, Submitter, flag, text},
    },
    object::camel_case,
    page::{Pagination, page},
    reached::Reached,
    source_url,
};

/// Jobs of one page when the client names no limit.
const DEFAULT_LIMIT: u32 = 50;

/// The fields of `POST /api/convert` or `POST /api/compress`, and these.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the form for the OpenAPI document")]
pub struct JobForm {
    /// `convert` (without one) or `compress`.
    job_type: Option<String>,
    /// True when all results are packed into one ZIP too.
    create_archive: Option<bool>,
    /// In a JSON body: stored files, instead of uploads.
    file_ids: Option<Vec<Uuid>>,
    #[schema(inline)]
    convert: Option<ConvertForm>,
    #[schema(inline)]
    compress: Option<CompressForm>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobList {
    jobs: Vec<JobRecord>,
    pagination: Pagination,
    next_cursor: Option<String>,
}

/// Make a job
///
/// A form with files, or JSON with `fileIds` or `sourceUrls` (the addresses of files); the other fields as for `/api/convert`
/// (or `/api/compress`). The answer comes once the job is safe; ask for it, follow its events, or cancel it. With
/// `Idempotency-Key` (at most 255 characters, kept 24 hours) a repeated request finds the same job and is not charged again;
/// with other parameters it is rejected (409).
#[utoipa::path(post, path = "/api/jobs", tag = "jobs",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes repeating safe")),
    request_body(content = JobForm, content_type = "multipart/form-data"),
    responses(
        (status = 202, description = "The job is accepted", body = Accepted),
        (status = 402, description = "The month's media operations are used up", body = crate::application::error::ErrorBody),
        (status = 404, description = "There is no such folder", body = crate::application::error::ErrorBody),
        (status = 409, description = "The key was used for another request", body = crate::application::error::ErrorBody),
        (status = 507, description = "The disk is full", body = crate::application::error::ErrorBody)))]
pub async fn create(
    request: HttpRequest,
    context: web::Data<JobContext>,
    caller: Caller<Write>,
    reached: Reached,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let asking = Submitter::new(&context, &caller, &reached);
    let idempotency_key = idempotency_key(&request)?;
    let mut payload = payload.into_inner();
    let sent = match is_json(&request) {
        true => {
            let Body(body) =
                Body::<Map<String, Value>>::from_request(&request, &mut payload).await?;
            let most = caller.plan(&context).files_per_batch as usize;
            let named = body
                .iter()
                .map(|(name, value)| (name.as_str(), value.clone()));
            Sent {
                params: Params::from_json(&body),
                files: stored_files(&context, caller.account_id(), &body, most).await?,
                sources: source_url::named(named)?,
                watermark: None,
            }
        }
        false => asking.form(&request, payload).await?,
    };
    let (tool, job_type) = match text(&sent.params, "jobType").unwrap_or("convert") {
        "convert" => ("convert", JobType::Convert),
        "compress" => ("compress", JobType::Compress),
        other => return Err(field::wrong("jobType", "convert or compress", other)),
    };
    let wanted = JobRequest {
        row: operation::row(tool).expect("convert and compress are rows"),
        job_type,
        archives: flag(&sent.params, "createArchive")?.unwrap_or(false),
        params: sent.params,
        files: sent.files,
        sources: sent.sources,
        watermark: None,
        is_waited_for: false,
        idempotency_key,
        beside: None,
    };
    let (job, _) = asking.submit(wanted).await?;
    Ok(HttpResponse::Accepted().json(Accepted::of(&job)))
}

/// List jobs
#[utoipa::path(get, path = "/api/jobs", tag = "jobs", params(
    ("status" = Option<String>, Query, description = "`pending`, `processing`, `completed`, `failed` or `cancelled`"),
    ("type" = Option<String>, Query, description = "`convert`, `compress`, `tool`, or the name of a media tool such as `thumbnail`"),
    ("since" = Option<String>, Query, description = "Only those made at this time or later: ISO 8601, or Unix seconds"),
    ("limit" = Option<u32>, Query, description = "1 to 100, 50 without one"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before"),
    ("offset" = Option<u32>, Query, description = "Jobs to skip, instead of a cursor"),
), responses((status = 200, description = "Newest first, without results", body = JobList)))]
pub async fn list(
    request: HttpRequest,
    context: web::Data<JobContext>,
    caller: Caller<Read>,
    reached: Reached,
) -> Result<HttpResponse, ApiError> {
    let (page, filter, offset) = list_query(request.query_string())?;
    let mut db = context.store.read().await?;
    let (account_id, reading) = (caller.account_id(), Pagination::reading(page));
    let mut rows = jobs::list(&mut db, account_id, &filter, reading, offset).await?;
    let total = jobs::count(&mut db, account_id, &filter).await?;
    drop(db);
    let (pagination, next_cursor) = Pagination::of(&mut rows, page, offset, total, Listed::cursor);
    let records = Records::new(&context, &reached).await?;
    Ok(HttpResponse::Ok().json(JobList {
        jobs: rows.iter().map(|job| records.job(job, None)).collect(),
        pagination,
        next_cursor,
    }))
}

fn list_query(query: &str) -> Result<(Page, JobFilter, u32), ApiError> {
    let page = page(query, DEFAULT_LIMIT)?;
    let (mut filter, mut offset) = (JobFilter::default(), 0);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match camel_case(&name).as_str() {
            "status" if !value.is_empty() => {
                let words: Vec<&str> = JobState::ALL.iter().map(|state| state.as_str()).collect();
                filter.state = field::choice("status", Some(&value), &words, JobState::parse)?;
            }
            "type" if !value.is_empty() => {
                (filter.job_type, filter.tool) = wanted_type(&value)?;
            }
            "since" if !value.is_empty() => filter.since = Some(field::time("since", &value)?),
            "offset" if page.after.is_none() => {
                offset = value
                    .parse()
                    .map_err(|_| invalid!("offset must be a whole number, got `{value}`"))?;
            }
            _ => {}
        }
    }
    Ok((page, filter, offset))
}

/// Reads a type of jobs, or a media tool.
fn wanted_type(text: &str) -> Result<(Option<JobType>, Option<String>), ApiError> {
    match text {
        "convert" => Ok((Some(JobType::Convert), None)),
        "compress" => Ok((Some(JobType::Compress), None)),
        "tool" => Ok((Some(JobType::Tool), None)),
        tool => match operation::row(tool) {
            Some(row) => Ok((Some(JobType::Tool), Some(row.tool.to_owned()))),
            None => Err(field::wrong(
                "type",
                "convert, compress, tool or the name of a media tool",
                tool,
            )),
        },
    }
}

/// Show a job
#[utoipa::path(get, path = "/api/jobs/{id}", tag = "jobs", params(("id" = Uuid, Path, description = "The job's id")),
    responses((status = 200, description = "The job and its results so far", body = JobRecord)))]
pub async fn show(
    context: web::Data<JobContext>,
    caller: Caller<Read>,
    reached: Reached,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let found = find(&context, caller.account_id(), &reached, *id).await?;
    Ok(HttpResponse::Ok().json(found))
}

/// Cancel a job
///
/// Pending or being worked on; what runs for it ends at once, and files without a result are given back. Results that are
/// there stay. 409 when the job has ended.
#[utoipa::path(delete, path = "/api/jobs/{id}", tag = "jobs", params(("id" = Uuid, Path, description = "The job's id")),
    responses(
        (status = 200, description = "The cancelled job", body = JobRecord),
        (status = 409, description = "It has ended", body = crate::application::error::ErrorBody)))]
pub async fn cancel(
    context: web::Data<JobContext>,
    caller: Caller<Write>,
    reached: Reached,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let job = context.conversions.cancel(caller.account_id(), *id).await?;
    let cancelled = record_of(&context, &reached, &job).await?;
    Ok(HttpResponse::Ok().json(cancelled))
}
