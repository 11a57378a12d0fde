//! `POST /api/media/{tool}` and `POST /api/files/{id}/tools`: every row of the operation table as a media tool.

mod rejection;

use std::sync::LazyLock;

use actix_web::{FromRequest as _, HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde_json::{Map, Value};
use sluice_media::operation::{self, Params, Row, TABLE};
use sluice_store::jobs::{Job, JobType};
use utoipa::{ToSchema, openapi::OpenApi};
use uuid::Uuid;

use rejection::RejectedCall;

use super::{
    extract::Body,
    jobs::{self, ConversionAnswer, Sent},
};
use crate::application::{
    caller::{Caller, Write},
    context::JobContext,
    error::ApiError,
    jobs::{
        material::Material,
        record::Accepted,
        submission::{JobRequest, Submitter, flag},
    },
    reached::Reached,
};

/// Characters of an unknown tool's name that an error shows.
const MAX_SHOWN: usize = 64;
/// Names of all tools.
static TOOLS: LazyLock<String> = LazyLock::new(|| {
    let tools: Vec<&str> = TABLE.iter().map(|row| row.tool).collect();
    tools.join(", ")
});

/// A file and the fields of the tool's row.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the form for the OpenAPI document")]
pub struct ToolForm {
    /// One or more, as for `/api/convert`; `image-to-pdf` and `concat-audio` make one file of all, in their order.
    #[schema(value_type = Option<String>, format = Binary)]
    file: Option<Vec<u8>>,
    /// The address of a file, in place of `file` or after it.
    source_url: Option<String>,
    /// Image of `watermark`.
    #[schema(value_type = Option<String>, format = Binary)]
    watermark_file: Option<Vec<u8>>,
    /// Answer 202 at once; false without one.
    r#async: Option<bool>,
    /// Keep the result as a file; false by API key.
    save_to_storage: Option<bool>,
    folder_id: Option<Uuid>,
}

/// A tool for a stored file.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOnFile {
    #[schema(example = "thumbnail")]
    tool: String,
    /// The fields of the tool's row.
    #[serde(default)]
    #[schema(value_type = Object)]
    params: Map<String, Value>,
    /// Answer 202 at once.
    #[serde(default)]
    r#async: bool,
}

/// Use a media tool
#[utoipa::path(post, path = "/api/media/{tool}", tag = "tools",
    params(("tool" = String, Path, description = "A row of the operation table")),
    request_body(content = ToolForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "The result", body = ConversionAnswer),
        (status = 202, description = "It continues as a job", body = Accepted),
        (status = 402, description = "The month's media operations are used up", body = crate::application::error::ErrorBody),
        (status = 404, description = "There is no such tool", body = crate::application::error::ErrorBody),
        (status = 422, description = "It cannot be done on this file", body = crate::application::error::ErrorBody),
        (status = 507, description = "The disk is full", body = crate::application::error::ErrorBody)))]
pub async fn on_upload(
    request: HttpRequest,
    context: web::Data<JobContext>,
    caller: Caller<Write>,
    reached: Reached,
    tool: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let row = known(&tool)?;
    let asking = Submitter::new(&context, &caller, &reached);
    let mut asked = RejectedCall {
        tool: Some(row.tool),
        filename: None,
    };
    let submitted = async {
        let Sent {
            params,
            files,
            sources,
            watermark,
        } = asking.form(&request, payload.into_inner()).await?;
        asked.filename = files.first().map(|file| file.filename().to_owned());
        let wanted = JobRequest {
            row,
            job_type: JobType::Tool,
            is_waited_for: !flag(&params, "async")?.unwrap_or(false),
            params,
            files,
            sources,
            watermark: watermark.filter(|_| takes_watermark(row)),
            archives: false,
            idempotency_key: None,
            beside: None,
        };
        submit(&asking, wanted).await
    };
    let submitted = submitted.await;
    let submitted = rejection::reported(&context, caller.account_id(), asked, submitted).await?;
    answer(&context, &reached, submitted).await
}

/// Use a media tool on a stored file
///
/// The result is stored beside the file, in its folder.
#[utoipa::path(post, path = "/api/files/{id}/tools", tag = "tools", request_body = ToolOnFile,
    params(("id" = Uuid, Path, description = "The file's id")),
    responses(
        (status = 200, description = "The result", body = ConversionAnswer),
        (status = 202, description = "It continues as a job", body = Accepted),
        (status = 402, description = "The month's media operations are used up", body = crate::application::error::ErrorBody),
        (status = 404, description = "There is no such file, or no such tool", body = crate::application::error::ErrorBody),
        (status = 422, description = "It cannot be done on this file", body = crate::application::error::ErrorBody),
        (status = 507, description = "The disk is full", body = crate::application::error::ErrorBody)))]
pub async fn on_file(
    request: HttpRequest,
    context: web::Data<JobContext>,
    caller: Caller<Write>,
    reached: Reached,
    id: web::Path<Uuid>,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let asking = Submitter::new(&context, &caller, &reached);
    let mut asked = RejectedCall::default();
    let submitted = async {
        let Body(body) =
            Body::<ToolOnFile>::from_request(&request, &mut payload.into_inner()).await?;
        let row = known(&body.tool)?;
        asked.tool = Some(row.tool);
        let file = Material::stored(&context, caller.account_id(), *id).await?;
        asked.filename = Some(file.filename().to_owned());
        let beside = match &file {
            Material::Stored { file, .. } => file.folder_id,
            Material::Uploaded(_) => None,
        };
        let wanted = JobRequest {
            row,
            job_type: JobType::Tool,
            params: Params::from_json(&body.params),
            files: vec![file],
            sources: Vec::new(),
            watermark: None,
            is_waited_for: !body.r#async,
            archives: false,
            idempotency_key: None,
            beside: Some(beside),
        };
        submit(&asking, wanted).await
    };
    let submitted = submitted.await;
    let submitted = rejection::reported(&context, caller.account_id(), asked, submitted).await?;
    answer(&context, &reached, submitted).await
}

/// A new job, whose events report its progress.
struct ToolJob {
    job: Job,
    is_waited_for: bool,
}

async fn submit(asking: &Submitter<'_>, wanted: JobRequest) -> Result<ToolJob, ApiError> {
    let is_waited_for = wanted.is_waited_for;
    let (job, _) = asking.submit(wanted).await?;
    Ok(ToolJob { job, is_waited_for })
}

async fn answer(
    context: &JobContext,
    reached: &Reached,
    submitted: ToolJob,
) -> Result<HttpResponse, ApiError> {
    match submitted.is_waited_for {
        true => jobs::answer(context, reached, submitted.job).await,
        false => Ok(HttpResponse::Accepted().json(Accepted::of(&submitted.job))),
    }
}

fn takes_watermark(row: &Row) -> bool {
    row.field("watermarkFile").is_some()
}

fn known(tool: &str) -> Result<&'static Row, ApiError> {
    operation::row(tool).ok_or_else(|| ApiError::NoSuchTool {
        asked: tool.chars().take(MAX_SHOWN).collect(),
        known: &TOOLS,
    })
}

/// Adds the operation table to the description of the tools' path.
pub(super) fn describe(document: &mut OpenApi) {
    let path = document.paths.paths.get_mut("/api/media/{tool}");
    if let Some(operation) = path.and_then(|path| path.post.as_mut()) {
        operation.description = Some(format!(
            "Answers as `/api/convert`; `files` of a `storyboard` has two entries, the image and its WebVTT map. Fields come in the form; those without a default may be left out unless the tool \
             needs them.\n\n{}",
            table()
        ));
    }
}

/// The operation table in as much of Markdown as `/docs` shows: a line and a list for each tool.
fn table() -> String {
    let mut text = String::new();
    for row in TABLE {
        text.push_str(&format!("**{}**: {}\n\n", row.tool, row.summary));
        for field in row.fields {
            let default = field
                .default
                .map(|default| format!(" ({default})"))
                .unwrap_or_default();
            text.push_str(&format!(
                "- `{}`{default}: {}; {}\n",
                field.name,
                field.allowed(),
                field.summary
            ));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_names_every_tool_and_field() {
        let text = table();
        for row in TABLE {
            assert!(
                text.contains(&format!("**{}**: ", row.tool)),
                "{}",
                row.tool
            );
            for field in row.fields {
                assert!(
                    text.contains(&format!("\n- `{}`", field.name)),
                    "{}",
                    field.name
                );
            }
        }
    }
}
