//! `POST /api/convert` and `POST /api/compress`: forms with files, answered with results or 202.

use actix_web::{HttpRequest, HttpResponse, web};
use sluice_media::operation;
use sluice_store::jobs::JobType;
use utoipa::ToSchema;
use uuid::Uuid;

use super::jobs::{self, AllFailed, ConversionAnswer};
use crate::application::{
    caller::{Caller, Write},
    context::JobContext,
    error::ApiError,
    jobs::{
        record::Accepted,
        submission::{JobRequest, Submitter},
    },
    reached::Reached,
};

/// Files and what to make of them. Each field also exists as a list under its plural (`formats`, `compressions` …): a JSON
/// array with one value for each file.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the form for the OpenAPI document")]
pub struct ConvertForm {
    /// One or more; `files[]`, `files[0]` and `file` are accepted too. A ZIP means its members, unless the format is
    /// zip.
    #[schema(value_type = Option<Vec<String>>, format = Binary)]
    files: Option<Vec<u8>>,
    /// The address of a file (http or https), in place of `files` or after them; may be repeated. The service fetches it.
    source_url: Option<String>,
    /// jpg, png, webp, avif, tiff, gif, heif, jxl, svg, pdf; of video mp4, mov, webm, mkv, also gif, webp (both animated, of the
    /// first 30 s) and the other rasters (the frame at 1 s); of video and audio mp3, wav, ogg, m4a, flac; zip.
    #[schema(example = "webp")]
    format: String,
    /// original, website, email, instagram, linkedin, ecommerce, square, width or height. A raster or a video is never enlarged; an SVG
    /// is rendered at the size, with a long edge of 1024 without one.
    resize_preset: Option<String>,
    resize_width: Option<u32>,
    resize_height: Option<u32>,
    /// The encoder's quality, 1 to 100; 82 without one. Unless it is given, video and audio that fit the format are copied as
    /// they are.
    compression: Option<u8>,
    /// Turn an image by the camera's orientation; true without one.
    auto_orient: Option<bool>,
    /// Trace to SVG as a silhouette; false without one.
    mono: Option<bool>,
    /// Keep the results as files; false by API key.
    save_to_storage: Option<bool>,
    /// The folder of the stored results; at the top without one.
    folder_id: Option<Uuid>,
}

/// Files to be made smaller in their own format.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the form for the OpenAPI document")]
pub struct CompressForm {
    #[schema(value_type = Option<Vec<String>>, format = Binary)]
    files: Option<Vec<u8>>,
    /// The same as for `/api/convert`.
    source_url: Option<String>,
    /// quality, or target-size with `targetBytes`.
    mode: Option<String>,
    /// 1 to 100; 82 without one.
    quality: Option<u8>,
    /// For an image: the best quality whose file is not larger.
    target_bytes: Option<u64>,
    /// For an image.
    lossless: Option<bool>,
    /// Drop EXIF, XMP and IPTC, or the tags of video and audio.
    strip_metadata: Option<bool>,
    /// Keep the results as files; false by API key.
    save_to_storage: Option<bool>,
    folder_id: Option<Uuid>,
}

/// Convert files
///
/// One file is answered with its result or with the status of its failure. Of several, 200 comes when at least one was
/// done, with `errors` for the others, and 422 when none was. A conversion longer than `convert.inline_wait` is
/// answered 202 and continues as a job; a client that leaves finds it under `/api/jobs`.
#[utoipa::path(post, path = "/api/convert", tag = "convert",
    request_body(content = ConvertForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "The results", body = ConversionAnswer),
        (status = 202, description = "It continues as a job", body = Accepted),
        (status = 402, description = "The month's media operations are used up", body = crate::application::error::ErrorBody),
        (status = 404, description = "There is no such folder", body = crate::application::error::ErrorBody),
        (status = 422, description = "It cannot be done on this file, or on none of several", body = AllFailed),
        (status = 507, description = "The disk is full", body = crate::application::error::ErrorBody)))]
pub async fn convert(
    request: HttpRequest,
    context: web::Data<JobContext>,
    caller: Caller<Write>,
    reached: Reached,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    at_once(
        "convert",
        JobType::Convert,
        &request,
        &context,
        &caller,
        &reached,
        payload,
    )
    .await
}

/// Compress files
///
/// Keeps the format; video and audio that cannot be written in theirs become mp4, m4a or mp3. Answers as `/api/convert`.
#[utoipa::path(post, path = "/api/compress", tag = "convert",
    request_body(content = CompressForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "The results", body = ConversionAnswer),
        (status = 202, description = "It continues as a job", body = Accepted),
        (status = 402, description = "The month's media operations are used up", body = crate::application::error::ErrorBody),
        (status = 404, description = "There is no such folder", body = crate::application::error::ErrorBody),
        (status = 422, description = "It cannot be done on this file, or on none of several", body = AllFailed),
        (status = 507, description = "The disk is full", body = crate::application::error::ErrorBody)))]
pub async fn compress(
    request: HttpRequest,
    context: web::Data<JobContext>,
    caller: Caller<Write>,
    reached: Reached,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    at_once(
        "compress",
        JobType::Compress,
        &request,
        &context,
        &caller,
        &reached,
        payload,
    )
    .await
}

async fn at_once(
    tool: &str,
    job_type: JobType,
    request: &HttpRequest,
    context: &JobContext,
    caller: &Caller<Write>,
    reached: &Reached,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let asking = Submitter::new(context, caller, reached);
    let sent = asking.form(request, payload.into_inner()).await?;
    let wanted = JobRequest {
        row: operation::row(tool).expect("convert and compress are rows"),
        job_type,
        params: sent.params,
        files: sent.files,
        sources: sent.sources,
        watermark: None,
        is_waited_for: true,
        archives: false,
        idempotency_key: None,
        beside: None,
    };
    let (job, _) = asking.submit(wanted).await?;
    jobs::answer(context, reached, job).await
}
