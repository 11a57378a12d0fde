//! `GET /api/live/inputs/{id}/broadcasts`: past broadcasts of an input, duration, peak viewers; default `limit`.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use sluice_store::{
    broadcasts::{self, PastBroadcast},
    now_ms,
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    application::{
        answer::Timestamp,
        caller::{Caller, Read},
        context::LiveContext,
        error::ApiError,
        live_inputs::find,
        page::{Pagination, row_count, row_offset},
    },
    http::extract::query_value,
};

/// Broadcasts in one answer when the client names no `limit`.
const DEFAULT_LIMIT: u32 = 50;

/// A run of an input on air, across reconnects.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroadcastRecord {
    /// Id as in the playlist's addresses and in `broadcastId` of a recording.
    id: String,
    started_at: Timestamp,
    /// Null: on air, or waiting for its encoder. If the service stopped during it: the time at which it was last seen, to ten
    /// seconds.
    ended_at: Option<Timestamp>,
    /// In seconds; until now while it is on air.
    duration: f64,
    /// Media received, in bytes; up to ten seconds old while it is on air.
    bytes: u64,
    /// The most viewers at a time; null when viewers are not counted.
    peak_viewers: Option<u64>,
    /// Null: it was not recorded.
    recording_id: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
pub struct BroadcastList {
    broadcasts: Vec<BroadcastRecord>,
    pagination: Pagination,
}

/// List the broadcasts of a live input
#[utoipa::path(get, path = "/api/live/inputs/{id}/broadcasts", tag = "live", params(
    ("id" = Uuid, Path, description = "The input's id"),
    ("limit" = Option<u32>, Query, description = "1 to 100, 50 without one"),
    ("offset" = Option<u32>, Query, description = "Broadcasts to skip"),
), responses((status = 200, description = "Newest first", body = BroadcastList)))]
pub async fn broadcasts(
    request: HttpRequest,
    context: web::Data<LiveContext>,
    caller: Caller<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let limit =
        query_value(&request, "limit").map_or(Ok(DEFAULT_LIMIT), |text| row_count(&text))?;
    let offset = query_value(&request, "offset").map_or(Ok(0), |text| row_offset(&text))?;
    let input = find(&context, caller.account_id(), *id).await?;
    let mut db = context.store.read().await?;
    let rows = broadcasts::list(&mut db, input.id, limit, offset).await?;
    let total = broadcasts::count(&mut db, input.id).await?;
    let now = now_ms();
    Ok(HttpResponse::Ok().json(BroadcastList {
        pagination: Pagination::at(limit, offset, rows.len(), total),
        broadcasts: rows.into_iter().map(|row| record(row, now)).collect(),
    }))
}

fn record(row: PastBroadcast, now_ms: i64) -> BroadcastRecord {
    let duration_ms = row.ended_at.unwrap_or(now_ms) - row.started_at;
    BroadcastRecord {
        id: row.id,
        started_at: Timestamp(row.started_at),
        ended_at: row.ended_at.map(Timestamp),
        duration: duration_ms.max(0) as f64 / 1_000.0,
        bytes: row.bytes.unsigned_abs(),
        peak_viewers: row.peak_viewers.map(i64::unsigned_abs),
        recording_id: row.recording_id,
    }
}
