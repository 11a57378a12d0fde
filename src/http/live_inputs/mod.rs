//! `/api/live/inputs`: where encoders publish and viewers play.
//!
//! The row is the truth: a change is committed first, then sent to live inputs; when they are busy it is sent again
//! until they have it, and the answer does not wait for that.

mod broadcasts;
mod outputs;
mod recordings;
mod token;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use sluice_store::{
    Listed,
    live_inputs::{self, LiveInput},
};
use utoipa::ToSchema;
use uuid::Uuid;

pub use broadcasts::{__path_broadcasts, broadcasts};
pub use outputs::{
    __path_add_output, __path_change_output, __path_output, __path_outputs, __path_remove_output,
    add_output, change_output, output, outputs, remove_output,
};
pub use recordings::{__path_clip, __path_recordings, clip, recordings};
pub use token::{__path_playback_token, playback_token};

use super::extract::{Body, PageQuery};
use crate::application::{
    answer::Success,
    caller::{Caller, Read, Write},
    context::LiveContext,
    error::ApiError,
    live_inputs::{
        changes, find,
        health::LiveInputHealth,
        health_of,
        record::{LiveInputRecord, Record, Shown},
        request::{ChangeLiveInput, NewLiveInputRequest},
    },
    page::next_cursor,
    reached::Reached,
};

/// A live input whose stream key was just made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveInputWithKey {
    live_input: LiveInputRecord,
    /// Shown now and never again.
    stream_key: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveInputAnswer {
    live_input: LiveInputRecord,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveInputList {
    live_inputs: Vec<LiveInputRecord>,
    next_cursor: Option<String>,
}

/// Make a live input
///
/// `ingest.obsServer` and `ingest.obsStreamKey` are what OBS asks for. Stream key and addresses with it are shown now and
/// at rotation only.
#[utoipa::path(post, path = "/api/live/inputs", tag = "live", request_body = NewLiveInputRequest, responses(
    (status = 201, description = "The input and its stream key", body = LiveInputWithKey),
))]
pub async fn create(
    context: web::Data<LiveContext>,
    caller: Caller<Write>,
    reached: Reached,
    Body(request): Body<NewLiveInputRequest>,
) -> Result<HttpResponse, ApiError> {
    let (input, key) = changes::create(&context, caller.account_id(), request).await?;
    let shown = Shown::InPlain(key.expose());
    Ok(HttpResponse::Created().json(LiveInputWithKey {
        live_input: Record {
            context: &context,
            reached: &reached,
        }
        .of(input, shown),
        stream_key: key.expose().to_owned(),
    }))
}

/// List live inputs
#[utoipa::path(get, path = "/api/live/inputs", tag = "live", params(
    ("limit" = Option<u32>, Query, description = "1 to 100"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before"),
), responses((status = 200, description = "Newest first", body = LiveInputList)))]
pub async fn list(
    context: web::Data<LiveContext>,
    caller: Caller<Read>,
    reached: Reached,
    PageQuery(page): PageQuery,
) -> Result<HttpResponse, ApiError> {
    let inputs =
        live_inputs::list(&mut context.store.read().await?, caller.account_id(), page).await?;
    let next_cursor = next_cursor(&inputs, page, Listed::cursor);
    let record = Record {
        context: &context,
        reached: &reached,
    };
    let live_inputs = inputs
        .into_iter()
        .map(|input| record.of(input, Shown::Masked))
        .collect();
    Ok(HttpResponse::Ok().json(LiveInputList {
        live_inputs,
        next_cursor,
    }))
}

/// Show a live input
#[utoipa::path(get, path = "/api/live/inputs/{id}", tag = "live", params(("id" = Uuid, Path, description = "The input's id")),
    responses((status = 200, description = "The input, its secrets masked", body = LiveInputAnswer)))]
pub async fn show(
    context: web::Data<LiveContext>,
    caller: Caller<Read>,
    reached: Reached,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let input = find(&context, caller.account_id(), *id).await?;
    Ok(masked(&context, &reached, input))
}

/// Change a live input
///
/// Only the fields given change. Disabling ends a running publish at once.
#[utoipa::path(patch, path = "/api/live/inputs/{id}", tag = "live", request_body = ChangeLiveInput,
    params(("id" = Uuid, Path, description = "The input's id")),
    responses((status = 200, description = "The input as it is now", body = LiveInputAnswer)))]
pub async fn change(
    context: web::Data<LiveContext>,
    caller: Caller<Write>,
    reached: Reached,
    id: web::Path<Uuid>,
    Body(request): Body<ChangeLiveInput>,
) -> Result<HttpResponse, ApiError> {
    let input = changes::change(&context, caller.account_id(), *id, request).await?;
    Ok(masked(&context, &reached, input))
}

/// Rotate the stream key
///
/// The old key is worthless from the answer on, and a publish that used it ends at once.
#[utoipa::path(post, path = "/api/live/inputs/{id}/rotate-key", tag = "live",
    params(("id" = Uuid, Path, description = "The input's id")),
    responses((status = 200, description = "The input and its new stream key", body = LiveInputWithKey)))]
pub async fn rotate_key(
    context: web::Data<LiveContext>,
    caller: Caller<Write>,
    reached: Reached,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let (input, key) = changes::rotate_key(&context, caller.account_id(), *id).await?;
    Ok(HttpResponse::Ok().json(LiveInputWithKey {
        live_input: Record {
            context: &context,
            reached: &reached,
        }
        .of(input, Shown::InPlain(key.expose())),
        stream_key: key.expose().to_owned(),
    }))
}

/// Delete a live input
///
/// Ends a running publish at once; its playback is gone.
#[utoipa::path(delete, path = "/api/live/inputs/{id}", tag = "live",
    params(("id" = Uuid, Path, description = "The input's id")),
    responses((status = 200, description = "Deleted", body = Success)))]
pub async fn delete(
    context: web::Data<LiveContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    changes::delete(&context, caller.account_id(), *id).await?;
    Ok(HttpResponse::Ok().json(Success::default()))
}

/// How a stream does
///
/// What arrives and what to change in the encoder, in plain words. Without a broadcast: status `idle`, the rest null.
#[utoipa::path(get, path = "/api/live/inputs/{id}/health", tag = "live",
    params(("id" = Uuid, Path, description = "The input's id")),
    responses((status = 200, description = "Measurements and advice", body = LiveInputHealth)))]
pub async fn health(
    context: web::Data<LiveContext>,
    caller: Caller<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let input = find(&context, caller.account_id(), *id).await?;
    Ok(HttpResponse::Ok().json(health_of(&context, input.id)?))
}

fn masked(context: &LiveContext, reached: &Reached, input: LiveInput) -> HttpResponse {
    let live_input = Record { context, reached }.of(input, Shown::Masked);
    HttpResponse::Ok().json(LiveInputAnswer { live_input })
}
