//! `POST` and `DELETE /api/video/streams/{id}/captions`: add captions by form or JSON, remove them.

use actix_web::{FromRequest as _, HttpRequest, HttpResponse, dev::Payload, web};
use sluice_store::video;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    application::{
        answer::Success,
        caller::{Caller, Write},
        context::VideoContext,
        error::ApiError,
        field,
        reached::Reached,
        video::{
            captions::{self, Made, make, read, seal, size_limit},
            record::{self, CaptionAnswer},
            request::{CaptionFacts, CaptionRequest},
        },
    },
    http::{
        extract::{Body, is_json},
        multipart::{Form, FormLimits},
    },
};

/// A form with captions.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the form for the OpenAPI document")]
pub struct CaptionForm {
    /// WebVTT or SubRip (SRT), UTF-8, at most 2 MiB (`vod.max_caption`).
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// BCP 47, such as `de` or `pt-BR`.
    language: String,
    /// For the player's menu; the language without one.
    label: Option<String>,
    /// True when players show them without being asked to.
    is_default: Option<bool>,
}

/// Add captions
///
/// A form with `file`, or JSON with the text as `content`, or with a stored file or an address. WebVTT is checked, SubRip (SRT) is turned into it; a
/// mistake is answered with its line. There is one for each language: another one replaces it.
#[utoipa::path(post, path = "/api/video/streams/{id}/captions", tag = "video",
    params(("id" = Uuid, Path, description = "The stream's id")),
    request_body(content((CaptionForm = "multipart/form-data"), (CaptionRequest = "application/json"))),
    responses(
        (status = 201, description = "The captions; players find them in the playlist at once", body = CaptionAnswer),
        (status = 409, description = "The stream has as many captions as it may", body = crate::application::error::ErrorBody),
        (status = 422, description = "The address cannot be fetched (`source_failed`)", body = crate::application::error::ErrorBody),
        (status = 507, description = "The disk is full", body = crate::application::error::ErrorBody)))]
pub async fn add_captions(
    request: HttpRequest,
    context: web::Data<VideoContext>,
    caller: Caller<Write>,
    reached: Reached,
    id: web::Path<Uuid>,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let (account_id, plan) = (caller.account_id(), caller.plan(&context));
    // Looked up before a body is read.
    let stream = video::get(&mut context.store.read().await?, account_id, *id).await?;
    let payload = payload.into_inner();
    let made = match is_json(&request) {
        true => named(&request, &context, account_id, payload).await?,
        false => sent(&request, &context, payload).await?,
    };
    let (new, content) = made.into_new(&context, &plan);
    let added = context
        .streams
        .add_caption(account_id, stream.id, new, content)
        .await?;
    let caption = record::caption(&reached, &stream.playback_id, added);
    Ok(HttpResponse::Created().json(CaptionAnswer { caption }))
}

/// Remove captions
#[utoipa::path(delete, path = "/api/video/streams/{id}/captions/{language}", tag = "video",
    params(("id" = Uuid, Path, description = "The stream's id"), ("language" = String, Path, description = "BCP 47")),
    responses((status = 200, description = "Removed", body = Success)))]
pub async fn remove_captions(
    context: web::Data<VideoContext>,
    caller: Caller<Write>,
    path: web::Path<(Uuid, String)>,
) -> Result<HttpResponse, ApiError> {
    let (stream_id, language) = path.into_inner();
    captions::remove(&context, caller.account_id(), stream_id, &language).await?;
    Ok(HttpResponse::Ok().json(Success::default()))
}

async fn named(
    request: &HttpRequest,
    context: &VideoContext,
    account_id: Uuid,
    mut payload: Payload,
) -> Result<Made, ApiError> {
    let Body(asked) = Body::<CaptionRequest>::from_request(request, &mut payload).await?;
    make(context, account_id, asked.checked("")?, "").await
}

async fn sent(
    request: &HttpRequest,
    context: &VideoContext,
    payload: Payload,
) -> Result<Made, ApiError> {
    let limits = FormLimits {
        files: 1,
        size: size_limit(context).into(),
    };
    let mut form = Form::read(request, payload, &context.files, limits).await?;
    let part = form.take_files().pop().ok_or_else(|| {
        invalid!("file is missing: send WebVTT or SubRip as the form's field `file`")
    })?;
    let is_default = field::flag("isDefault", form.text("isDefault").unwrap_or_default())?;
    let label = form.text("label").map(str::to_owned);
    let said = CaptionFacts::checked("", form.text("language"), label, is_default)?;
    seal(context, said, read(part.spool).await?, "").await
}
