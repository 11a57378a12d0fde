//! `/api/live/inputs`: make, list, show, change, end and delete live inputs.
//!
//! The row is the truth: a change is committed first, then sent to live inputs; when they are busy it is sent again
//! until they have it, and the answer does not wait for that.

mod broadcasts;
mod connections;
mod health;
mod outputs;
mod recordings;
mod stream_key;
mod token;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use sluice_store::live_inputs::LiveInput;
use utoipa::ToSchema;
use uuid::Uuid;

pub use broadcasts::{__path_broadcasts, broadcasts};
pub use connections::{__path_connections, connections};
pub use health::{__path_health, __path_health_history, health, health_history};
pub use outputs::{
    __path_add_output, __path_change_output, __path_output, __path_outputs, __path_remove_output,
    add_output, change_output, output, outputs, remove_output,
};
pub use recordings::{__path_clip, __path_recordings, clip, recordings};
pub use stream_key::{__path_reveal_key, __path_rotate_key, reveal_key, rotate_key};
pub use token::{__path_playback_token, playback_token};

use super::extract::Body;
use crate::application::{
    answer::Success,
    caller::{Caller, Read, Write},
    context::LiveContext,
    error::ApiError,
    live_inputs::{
        changes, find,
        list::{self as operations, Listing},
        record::{LiveInputRecord, Record, Shown},
        request::{ChangeLiveInput, NewLiveInputRequest},
    },
    page::Pagination,
    reached::Reached,
};

/// A live input with its stream key in plain.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveInputWithKey {
    /// Its `ingest` shows key and passphrase too.
    live_input: LiveInputRecord,
    /// Lists and records show its beginning; `reveal-key` shows it again.
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
    /// For `sort=created` with `order=desc`; null for others, which are paged by `offset`.
    next_cursor: Option<String>,
    /// `total` counts the inputs that fit `q`, `status` and `enabled`.
    pagination: Pagination,
    counts: LiveInputCounts,
}

/// Numbers of inputs that fit `q`, whatever their status.
#[derive(Serialize, ToSchema)]
pub struct LiveInputCounts {
    idle: i64,
    live: i64,
    reconnecting: i64,
    /// Part of the ones above.
    disabled: i64,
    /// `idle`, `live` and `reconnecting` together.
    total: i64,
}

/// Make a live input
///
/// `ingest.obsServer` and `ingest.obsStreamKey` are what OBS asks for. Stream key and addresses with it are shown now, at
/// `rotate-key` and at `reveal-key` only.
#[utoipa::path(post, path = "/api/live/inputs", tag = "live", request_body = NewLiveInputRequest, responses(
    (status = 201, description = "The input and its stream key", body = LiveInputWithKey),
))]
pub async fn create(
    context: web::Data<LiveContext>,
    caller: Caller<Write>,
    reached: Reached,
    Body(request): Body<NewLiveInputRequest>,
) -> Result<HttpResponse, ApiError> {
    let made = changes::create(&context, caller.account_id(), request).await?;
    let shown = stream_key::in_plain(&context, &reached, made);
    Ok(HttpResponse::Created()
        .insert_header(stream_key::NO_STORE)
        .json(shown))
}

/// List live inputs
///
/// Status, viewers and counts are those of this moment. `lastLive` sorts what is on air before all others, and those by the end
/// of their last broadcast; inputs that were never on air come last in either order.
#[utoipa::path(get, path = "/api/live/inputs", tag = "live", params(
    ("q" = Option<String>, Query, description = "Part of the name, without case of ASCII letters, or the whole slug or playback id; 1 to 120 characters"),
    ("status" = Option<String>, Query, description = "`idle`, `live` or `reconnecting`"),
    ("enabled" = Option<bool>, Query, description = "`true` or `false`"),
    ("sort" = Option<String>, Query, description = "`created` (without one), `name`, `lastLive` or `viewers`"),
    ("order" = Option<String>, Query, description = "`asc` or `desc`; without one `asc` for `name`, `desc` for the others"),
    ("limit" = Option<u32>, Query, description = "1 to 100; 1000 without one"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before; with `sort=created` and `order=desc` only"),
    ("offset" = Option<u32>, Query, description = "Inputs to skip"),
), responses((status = 200, description = "Newest first without a `sort`", body = LiveInputList)))]
pub async fn list(
    request: HttpRequest,
    context: web::Data<LiveContext>,
    caller: Caller<Read>,
    reached: Reached,
) -> Result<HttpResponse, ApiError> {
    let query = operations::parse(request.query_string())?;
    let Listing {
        inputs,
        counts,
        pagination,
        next_cursor,
    } = operations::list(&context, caller.account_id(), query).await?;
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
        pagination,
        counts: LiveInputCounts {
            idle: counts.idle(),
            live: counts.live,
            reconnecting: counts.reconnecting,
            disabled: counts.disabled,
            total: counts.total,
        },
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

/// End a broadcast
///
/// Disconnects the encoder and closes the playlist, as if the encoder had ended; also closes a reconnect window. The encoder may
/// come back at once, as many do by themselves, and begins a new broadcast: make a new key with `rotate-key`, or disable the
/// input, to keep it away.
#[utoipa::path(post, path = "/api/live/inputs/{id}/end", tag = "live",
    params(("id" = Uuid, Path, description = "The input's id")),
    responses(
        (status = 200, description = "The broadcast has ended", body = LiveInputAnswer),
        (status = 409, description = "Nothing is on air (`not_live`)", body = crate::application::error::ErrorBody)))]
pub async fn end(
    context: web::Data<LiveContext>,
    caller: Caller<Write>,
    reached: Reached,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let input = changes::end(&context, caller.account_id(), *id).await?;
    Ok(masked(&context, &reached, input))
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

fn masked(context: &LiveContext, reached: &Reached, input: LiveInput) -> HttpResponse {
    let live_input = Record { context, reached }.of(input, Shown::Masked);
    HttpResponse::Ok().json(LiveInputAnswer { live_input })
}
