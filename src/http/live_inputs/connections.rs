//! `GET /api/live/inputs/{id}/connections`: publishers of an input, now and before, and why they ended; default `limit`.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use sluice_store::{
    Listed, now_ms,
    publisher_connections::{self, PublisherConnection},
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
        page::next_cursor,
    },
    http::extract::PageQuery,
};

/// Connections in one answer when the client names no `limit`.
const DEFAULT_LIMIT: u32 = 50;

/// A connection of an encoder, or of the service to a source that it pulls.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublisherConnectionRecord {
    id: Uuid,
    /// The broadcast that it began or continued.
    broadcast_id: String,
    /// `rtmp`, `rtmps`, `srt`, `rtsp` or `whip`.
    protocol: String,
    /// Address of the encoder without its port.
    remote_address: String,
    /// Name that the encoder gave itself.
    encoder: Option<String>,
    connected_at: Timestamp,
    /// Null: it is connected.
    disconnected_at: Option<Timestamp>,
    /// In seconds; until now while it is connected.
    duration: f64,
    /// Reason of its end: `ended` (by the encoder), `dropped` (connection lost), `taken_over` (by a newer encoder with the key), `closed`
    /// (by the service: broadcast ended by its owner, input disabled, new key, or stop of the service), `interrupted` (the service
    /// was cut short). Null while it is connected.
    reason: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublisherConnectionList {
    connections: Vec<PublisherConnectionRecord>,
    next_cursor: Option<String>,
}

/// List the connections to a live input
///
/// When encoders came and went, from where, and why. Kept as long as the input's broadcasts.
#[utoipa::path(get, path = "/api/live/inputs/{id}/connections", tag = "live", params(
    ("id" = Uuid, Path, description = "The input's id"),
    ("limit" = Option<u32>, Query, description = "1 to 100, 50 without one"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before"),
), responses((status = 200, description = "Newest first", body = PublisherConnectionList)))]
pub async fn connections(
    context: web::Data<LiveContext>,
    caller: Caller<Read>,
    id: web::Path<Uuid>,
    PageQuery(page): PageQuery<DEFAULT_LIMIT>,
) -> Result<HttpResponse, ApiError> {
    let input = find(&context, caller.account_id(), *id).await?;
    let mut db = context.store.read().await?;
    let rows = publisher_connections::list(&mut db, input.id, page).await?;
    let next_cursor = next_cursor(&rows, page, Listed::cursor);
    let now_ms = now_ms();
    Ok(HttpResponse::Ok().json(PublisherConnectionList {
        connections: rows.into_iter().map(|row| record(row, now_ms)).collect(),
        next_cursor,
    }))
}

fn record(row: PublisherConnection, now_ms: i64) -> PublisherConnectionRecord {
    let duration_ms = row.disconnected_at.unwrap_or(now_ms) - row.connected_at;
    PublisherConnectionRecord {
        id: row.id,
        broadcast_id: row.broadcast_id,
        protocol: row.protocol,
        remote_address: row.remote_address,
        encoder: row.encoder,
        connected_at: Timestamp(row.connected_at),
        disconnected_at: row.disconnected_at.map(Timestamp),
        duration: duration_ms.max(0) as f64 / 1_000.0,
        reason: row.reason,
    }
}
