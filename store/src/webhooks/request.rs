//! The request of a webhook delivery, as it was sent or will be: endpoint, event, body, time of the last attempt.

use sqlx::FromRow;
use uuid::Uuid;

use super::Endpoint;
use crate::{Connection, Error, statement::query_as};

/// Parts of a delivery's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRequest {
    /// The endpoint as it is now, deleted ones too.
    pub endpoint: Endpoint,
    pub is_deleted: bool,
    pub event_id: Uuid,
    pub event_type: String,
    /// The event's envelope: the same bytes at every attempt.
    pub body: String,
    pub last_attempt: Option<AttemptTime>,
}

/// Time of an attempt in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptTime {
    /// The name in its headers.
    Signed(i64),
    /// Time at which it was begun: it has not ended, was interrupted, or is of an earlier version.
    Begun(i64),
}

#[derive(FromRow)]
struct RequestRow {
    #[sqlx(flatten)]
    endpoint: Endpoint,
    is_deleted: bool,
    event_id: Uuid,
    event_type: String,
    body: String,
    signed_at: Option<i64>,
    started_at: Option<i64>,
}

/// Returns the request of a delivery. `Error::NotFound` for an unknown id and for another account's.
pub async fn request(
    db: &mut impl Connection,
    account_id: Uuid,
    delivery_id: Uuid,
) -> Result<DeliveryRequest, Error> {
    let row: Option<RequestRow> = query_as(
        "SELECT e.*, e.deleted_at IS NOT NULL AS is_deleted, v.id AS event_id, v.event_type, v.body, a.signed_at, a.started_at
         FROM webhook_deliveries d
         CROSS JOIN webhook_endpoints e ON e.id = d.endpoint_id CROSS JOIN events v ON v.seq = d.event_seq
         LEFT JOIN webhook_attempts a ON a.delivery_seq = d.seq AND a.number = d.attempts
         WHERE d.id = $1 AND d.account_id = $2",
    )
    .bind(delivery_id)
    .bind(account_id)
    .fetch_optional(db)
    .await?;
    let row = row.ok_or(Error::NotFound("delivery"))?;
    let signed = row.signed_at.map(AttemptTime::Signed);
    Ok(DeliveryRequest {
        endpoint: row.endpoint,
        is_deleted: row.is_deleted,
        event_id: row.event_id,
        event_type: row.event_type,
        body: row.body,
        last_attempt: signed.or(row.started_at.map(AttemptTime::Begun)),
    })
}
