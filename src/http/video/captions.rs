//! Captions of streams: from an upload, a stored file or an address to WebVTT in the store.

use std::io::Read as _;

use actix_web::{FromRequest as _, HttpRequest, HttpResponse, dev::Payload, web};
use sluice_media::captions::{language_tag, to_webvtt};
use sluice_store::{
    blob::{Sealed, Spool},
    files,
    video::{self, NewCaption},
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    application::{
        answer::Success,
        caller::{Caller, Write},
        context::VideoContext,
        error::ApiError,
        part::SizeLimit,
        reached::Reached,
        source_url,
        video::{
            record::{self, CaptionAnswer},
            request::{CaptionFacts, CaptionOrigin, CaptionRequest, CaptionSpec},
        },
    },
    config::Plan,
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
/// mistake is answered with its line. There is one for each language: another one takes its place.
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
    // Before a body is read for it.
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
    let account_id = caller.account_id();
    let mut db = context.store.read().await?;
    video::get(&mut db, account_id, stream_id).await?;
    let captions = video::captions(&mut db, stream_id).await?;
    drop(db);
    let language = language_tag(&language);
    let id = captions
        .iter()
        .find(|caption| Some(&caption.language) == language.as_ref())
        .ok_or(ApiError::NotFound("captions in this language"))?
        .id;
    context
        .streams
        .remove_caption(account_id, stream_id, id)
        .await?;
    Ok(HttpResponse::Ok().json(Success::default()))
}

/// Captions that were read, checked and flushed to the disk.
pub(super) struct Made {
    said: CaptionFacts,
    content: Sealed,
}

impl Made {
    /// Converts into the store's type.
    pub(super) fn into_new(self, context: &VideoContext, plan: &Plan) -> (NewCaption, Sealed) {
        let CaptionFacts {
            language,
            label,
            is_default,
        } = self.said;
        let new = NewCaption {
            language,
            label,
            is_default,
            most: context.config.vod.max_captions,
            storage_bytes: plan.storage.as_u64(),
        };
        (new, self.content)
    }
}

/// Reads and checks what a request names. `field` as in [`CaptionRequest::checked`].
pub(super) async fn make(
    context: &VideoContext,
    account_id: Uuid,
    wanted: CaptionSpec,
    field: &str,
) -> Result<Made, ApiError> {
    let text = match wanted.origin {
        CaptionOrigin::Stored(id) => stored(context, account_id, id)
            .await
            .map_err(|error| error.of_file_in(format!("{field}fileId")))?,
        CaptionOrigin::Named(address) => {
            let url = format!("{field}url");
            let fetched =
                source_url::fetch(&context.files, &url, &[address], size_limit(context)).await?;
            let part = fetched.into_iter().next();
            read(part.expect("an address gives a file or an error").spool).await?
        }
        CaptionOrigin::Sent(text) => {
            size_limit(context).check(&format!("{field}content"), text.len() as u64)?;
            text.into_bytes()
        }
    };
    seal(context, wanted.said, text, field).await
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
        ApiError::Invalid(
            "file is missing: send WebVTT or SubRip as the form's field `file`".to_owned(),
        )
    })?;
    let is_default = match form.text("isDefault") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => {
            return Err(ApiError::Invalid(
                "isDefault must be true or false".to_owned(),
            ));
        }
    };
    let label = form.text("label").map(str::to_owned);
    let said = CaptionFacts::checked("", form.text("language"), label, is_default)?;
    seal(context, said, read(part.spool).await?, "").await
}

async fn stored(context: &VideoContext, account_id: Uuid, id: Uuid) -> Result<Vec<u8>, ApiError> {
    let file = files::get(&mut context.store.read().await?, account_id, id).await?;
    size_limit(context).check(&file.filename, file.size_bytes.unsigned_abs())?;
    all_of(context.store.blobs().open(&file.blob).await?).await
}

/// Reads a spool that is within the limit.
async fn read(mut spool: Spool) -> Result<Vec<u8>, ApiError> {
    all_of(spool.reader().await?).await
}

async fn all_of(mut file: std::fs::File) -> Result<Vec<u8>, ApiError> {
    let reading = web::block(move || {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    });
    let bytes = reading.await.map_err(ApiError::internal)?;
    bytes.map_err(ApiError::of_disk)
}

async fn seal(
    context: &VideoContext,
    said: CaptionFacts,
    bytes: Vec<u8>,
    field: &str,
) -> Result<Made, ApiError> {
    let converted = web::block(move || to_webvtt(&bytes)).await;
    let text = converted.map_err(ApiError::internal)?.map_err(|problem| {
        let which = match field {
            "" => "captions",
            entry => entry.trim_end_matches('.'),
        };
        ApiError::Invalid(format!("{which}, {problem}"))
    })?;
    let mut spool = context.store.blobs().spool().await?;
    spool.write(text.into()).await?;
    Ok(Made {
        said,
        content: spool.seal().await?,
    })
}

fn size_limit(context: &VideoContext) -> SizeLimit {
    SizeLimit {
        bytes: context.config.vod.max_caption.as_u64(),
        named: "vod.max_caption",
    }
}
