//! `GET /api/live/inputs/{id}/health` and `…/health/history`: measurements and advice, now and over 15 minutes.

use actix_web::{HttpRequest, HttpResponse, http::header, web};
use sluice_store::now_ms;
use uuid::Uuid;

use crate::{
    application::{
        caller::{Caller, Read},
        context::LiveContext,
        error::ApiError,
        live_inputs::{
            find,
            health::LiveInputHealth,
            health_of,
            history::{self, HealthHistory},
        },
    },
    http::extract::query_value,
};

/// Show the health of a live input
///
/// Describes the media that arrive, and changes for the encoder, in plain words. Without a broadcast: status `idle`, the rest null.
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

/// Show the health of the last minutes
///
/// A value each second over the last 15 minutes at most, over reconnects and broadcasts, in columns for a graph. Null means that
/// nothing came then. Kept in memory: lost when the service stops.
#[utoipa::path(get, path = "/api/live/inputs/{id}/health/history", tag = "live", params(
    ("id" = Uuid, Path, description = "The input's id"),
    ("seconds" = Option<u32>, Query, description = "1 to 900, 900 without one: how far back"),
), responses((status = 200, description = "Columns of the same length", body = HealthHistory)))]
pub async fn health_history(
    request: HttpRequest,
    context: web::Data<LiveContext>,
    caller: Caller<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let seconds = history::seconds(query_value(&request, "seconds").as_deref())?;
    let input = find(&context, caller.account_id(), *id).await?;
    let history = history::history(&context, input.id, seconds, now_ms());
    Ok(HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .json(history))
}
