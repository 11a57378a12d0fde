//! `POST /api/live/inputs/{id}/rotate-key` and `…/reveal-key`: stream keys in plain.

use actix_web::{
    HttpResponse,
    http::header::{self, HeaderName},
    web,
};
use sluice_store::{Secret, live_inputs::LiveInput};
use uuid::Uuid;

use super::LiveInputWithKey;
use crate::application::{
    audit::Author,
    caller::{Caller, Write},
    context::LiveContext,
    error::ApiError,
    live_inputs::{
        changes,
        record::{Record, Shown},
    },
    reached::Reached,
};

/// Header of an answer that holds a secret.
pub(super) const NO_STORE: (HeaderName, &str) = (header::CACHE_CONTROL, "no-store");

/// Rotate the stream key
///
/// The old key is no longer accepted once this is answered, and a publish that used it ends at once. The audit log has an entry of it.
#[utoipa::path(post, path = "/api/live/inputs/{id}/rotate-key", tag = "live",
    params(("id" = Uuid, Path, description = "The input's id")),
    responses((status = 200, description = "The input and its new stream key", body = LiveInputWithKey)))]
pub async fn rotate_key(
    context: web::Data<LiveContext>,
    caller: Caller<Write>,
    reached: Reached,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let author = Author::of(&caller, &reached);
    let rotated = changes::rotate_key(&context, caller.account_id(), *id, author).await?;
    Ok(answer(&context, &reached, rotated))
}

/// Show the stream key again
///
/// The key in force, with the addresses that hold it. Each time is noted in the audit log. A key that an earlier version made
/// is known by its hash only: make a new one with `rotate-key` (`streamKeyRevealable` says so beforehand).
#[utoipa::path(post, path = "/api/live/inputs/{id}/reveal-key", tag = "live",
    params(("id" = Uuid, Path, description = "The input's id")),
    responses(
        (status = 200, description = "The input and its stream key", body = LiveInputWithKey),
        (status = 409, description = "The key cannot be shown again (`stream_key_not_kept`)", body = crate::application::error::ErrorBody)))]
pub async fn reveal_key(
    context: web::Data<LiveContext>,
    caller: Caller<Write>,
    reached: Reached,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let author = Author::of(&caller, &reached);
    let revealed = changes::reveal_key(&context, caller.account_id(), *id, author).await?;
    Ok(answer(&context, &reached, revealed))
}

fn answer(context: &LiveContext, reached: &Reached, input: (LiveInput, Secret)) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header(NO_STORE)
        .json(in_plain(context, reached, input))
}

/// The record of an input with its key.
pub(super) fn in_plain(
    context: &LiveContext,
    reached: &Reached,
    (input, key): (LiveInput, Secret),
) -> LiveInputWithKey {
    let shown = Shown::InPlain(key.expose());
    LiveInputWithKey {
        live_input: Record { context, reached }.of(input, shown),
        stream_key: key.expose().to_owned(),
    }
}
