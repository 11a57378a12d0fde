//! `/api/video/streams`: make, list (`status`, `sourceFileId`), show, change and delete video streams; default `limit`.
//!
//! A stream is committed with its charge and its captions before it is answered, and continues without its request.

mod captions;
mod events;
pub(super) mod playback;
mod token;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use sluice_store::{
    Listed,
    video::{self, StreamFilter, StreamStatus},
};
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

pub use captions::{__path_add_captions, __path_remove_captions, add_captions, remove_captions};
pub use events::{__path_events, events};
pub use playback::{__path_captions_file, __path_master, __path_picture, __path_rendition_file};
pub use token::{__path_playback_token, playback_token};

use super::{
    extract::{Body, PageQuery},
    jobs::idempotency_key,
};
use crate::application::{
    answer::Success,
    caller::{Caller, Read, Write},
    context::VideoContext,
    error::ApiError,
    field,
    object::camel_case,
    page::next_cursor,
    reached::Reached,
    video::{
        record::{self, StreamAnswer, StreamRecord},
        request::{ChangeStream, NewStreamRequest},
        streams,
    },
};

/// Streams of one page when the client names no limit.
const DEFAULT_LIMIT: u32 = 50;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamList {
    streams: Vec<StreamRecord>,
    next_cursor: Option<String>,
}

/// Make a video stream
///
/// The answer comes at once; follow the stream by its events, ask for it, or subscribe to its webhooks
/// (`video.stream.started`, `.ready`, `.failed`). It is `playable` once three segments of every rendition exist (or
/// all, of a shorter clip), and `ready` when it is whole. One media operation, given back when it fails. With an
/// `Idempotency-Key` (at most 255 characters, kept 24 hours) a repeated request finds the same stream and is not
/// charged again.
#[utoipa::path(post, path = "/api/video/streams", tag = "video", request_body = NewStreamRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes repeating safe")), responses(
    (status = 202, description = "The stream is accepted, or is known by its key", body = StreamAnswer),
    (status = 402, description = "The month's media operations are used up", body = crate::application::error::ErrorBody),
    (status = 404, description = "There is no such file", body = crate::application::error::ErrorBody),
    (status = 409, description = "The Idempotency-Key was used with other parameters or files", body = crate::application::error::ErrorBody),
    (status = 415, description = "The file is neither video nor audio, or the body is not JSON", body = crate::application::error::ErrorBody),
    (status = 422, description = "Captions cannot be fetched (`source_failed`)", body = crate::application::error::ErrorBody),
    (status = 507, description = "The disk is full", body = crate::application::error::ErrorBody)))]
pub async fn create(
    context: web::Data<VideoContext>,
    caller: Caller<Write>,
    reached: Reached,
    request: HttpRequest,
    Body(asked): Body<NewStreamRequest>,
) -> Result<HttpResponse, ApiError> {
    let key = idempotency_key(&request)?;
    let stream = streams::create(&context, &caller, &reached, asked, key).await?;
    let accepted = record::answer(&context, &reached, stream).await?;
    Ok(HttpResponse::Accepted().json(accepted))
}

/// List video streams
#[utoipa::path(get, path = "/api/video/streams", tag = "video", params(
    ("status" = Option<String>, Query, description = "`pending`, `processing`, `ready` or `failed`"),
    ("sourceFileId" = Option<Uuid>, Query, description = "Only those made of this file"),
    ("limit" = Option<u32>, Query, description = "1 to 100, 50 without one"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before"),
), responses((status = 200, description = "Newest first", body = StreamList)))]
pub async fn list(
    request: HttpRequest,
    context: web::Data<VideoContext>,
    caller: Caller<Read>,
    reached: Reached,
    PageQuery(page): PageQuery<DEFAULT_LIMIT>,
) -> Result<HttpResponse, ApiError> {
    let filter = filter(request.query_string())?;
    let mut db = context.store.read().await?;
    let rows = video::list(&mut db, caller.account_id(), filter, page).await?;
    drop(db);
    let next_cursor = next_cursor(&rows, page, Listed::cursor);
    let streams = record::records(&context, &reached, rows).await?;
    Ok(HttpResponse::Ok().json(StreamList {
        streams,
        next_cursor,
    }))
}

fn filter(query: &str) -> Result<StreamFilter, ApiError> {
    let mut filter = StreamFilter::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match camel_case(&name).as_str() {
            "status" if !value.is_empty() => {
                let words = StreamStatus::ALL.map(StreamStatus::as_str);
                filter.status = field::choice("status", Some(&value), &words, StreamStatus::parse)?;
            }
            "sourceFileId" if !value.is_empty() => {
                filter.source_file_id = Some(field::id("sourceFileId", "a file's id", &value)?);
            }
            _ => {}
        }
    }
    Ok(filter)
}

/// Show a video stream
#[utoipa::path(get, path = "/api/video/streams/{id}", tag = "video", params(("id" = Uuid, Path, description = "The stream's id")),
    responses((status = 200, description = "The stream as it is now", body = StreamAnswer)))]
pub async fn show(
    context: web::Data<VideoContext>,
    caller: Caller<Read>,
    reached: Reached,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let stream = video::get(&mut context.store.read().await?, caller.account_id(), *id).await?;
    let shown = record::answer(&context, &reached, stream).await?;
    Ok(HttpResponse::Ok().json(shown))
}

/// Change a video stream
///
/// Only the fields given change; who may play changes at once, but for what caches hold.
#[utoipa::path(patch, path = "/api/video/streams/{id}", tag = "video", request_body = ChangeStream,
    params(("id" = Uuid, Path, description = "The stream's id")),
    responses((status = 200, description = "The stream as it is now", body = StreamAnswer)))]
pub async fn change(
    context: web::Data<VideoContext>,
    caller: Caller<Write>,
    reached: Reached,
    id: web::Path<Uuid>,
    Body(request): Body<ChangeStream>,
) -> Result<HttpResponse, ApiError> {
    let patch = request.checked()?;
    let account_id = caller.account_id();
    let stream = context.streams.update(account_id, *id, patch).await?;
    let changed = record::answer(&context, &reached, stream).await?;
    Ok(HttpResponse::Ok().json(changed))
}

/// Delete a video stream
///
/// Its playback ends at once and its storage is given back; the file that it was made of stays. One that is not ready yet
/// costs nothing.
#[utoipa::path(delete, path = "/api/video/streams/{id}", tag = "video", params(("id" = Uuid, Path, description = "The stream's id")),
    responses((status = 200, description = "Deleted", body = Success)))]
pub async fn delete(
    context: web::Data<VideoContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let (account_id, id) = (caller.account_id(), *id);
    crate::application::files::to_its_end(async move {
        context.streams.delete(account_id, id).await?;
        Ok(())
    })
    .await?;
    Ok(HttpResponse::Ok().json(Success::default()))
}
