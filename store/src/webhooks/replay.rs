//! Replays of webhook deliveries, test events (`webhook.test`), probes and recovery of failed deliveries, at the
//! owner's request. Each makes one attempt, whatever the endpoint's state.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Delivery, DeliveryStatus, Endpoint, EndpointStatus, delivery, endpoints, get};
use crate::{
    Error, Tx,
    events::{self, Audience, EventPosition, NewEvent},
    statement::{query, query_scalar},
};

/// Sends a delivery again: one more attempt now, also of one that was delivered. One that waits for an attempt anyway
/// only becomes due now.
///
/// `Error::NotFound` for an unknown id and for another account's, `Error::Conflict` while an attempt is in flight and
/// when the endpoint is deleted.
pub async fn replay(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    now_ms: i64,
) -> Result<Delivery, Error> {
    let present = delivery(tx, account_id, id).await?;
    if !endpoints::is_there(tx, present.endpoint_id).await? {
        return Err(Error::Conflict(
            "the webhook of this delivery is deleted".into(),
        ));
    }
    let again = match present.status {
        DeliveryStatus::Delivering => {
            return Err(Error::Conflict(
                "the delivery is being attempted: wait for its outcome".into(),
            ));
        }
        DeliveryStatus::Pending | DeliveryStatus::Retrying => {
            query("UPDATE webhook_deliveries SET due_at = min(due_at, $2) WHERE id = $1")
        }
        DeliveryStatus::Delivered | DeliveryStatus::Failed => query(
            "UPDATE webhook_deliveries SET status = 'retrying', is_replay = 1, due_at = $2, ended_at = NULL WHERE id = $1",
        ),
    };
    again.bind(id).bind(now_ms).execute(tx).await?;
    delivery(tx, account_id, id).await
}

/// Answer to [`probe`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    pub endpoint: Endpoint,
    /// The delivery that is sent.
    pub delivery: Delivery,
}

/// Has a suspended endpoint tried now: the next probe, which sends the oldest delivery that waits, is due at once. Sends
/// `webhook.test` when none waits.
///
/// `Error::NotFound` as [`get`], `Error::Conflict` when the endpoint is not suspended.
pub async fn probe(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    now_ms: i64,
) -> Result<Probed, Error> {
    let present = get(tx, account_id, id).await?;
    match present.status {
        EndpointStatus::Suspended => {}
        EndpointStatus::Active => {
            return Err(Error::Conflict(
                "the webhook is active: its deliveries are sent as they come".into(),
            ));
        }
        EndpointStatus::Paused => {
            return Err(Error::Conflict(
                "the webhook is paused: resume it with isActive true".into(),
            ));
        }
    }
    query("UPDATE webhook_endpoints SET next_probe_at = $2 WHERE id = $1")
        .bind(id)
        .bind(now_ms)
        .execute(tx)
        .await?;
    let oldest: Option<Uuid> = query_scalar(OLDEST_WAITING)
        .bind(id)
        .fetch_optional(tx)
        .await?;
    let delivery = match oldest {
        Some(oldest) => delivery(tx, account_id, oldest).await?,
        None => test(tx, account_id, id, now_ms).await?,
    };
    Ok(Probed {
        endpoint: get(tx, account_id, id).await?,
        delivery,
    })
}

/// The delivery that a probe takes.
pub(super) const OLDEST_WAITING: &str = "SELECT id FROM webhook_deliveries
     WHERE endpoint_id = $1 AND is_replay = 0 AND status IN ('pending', 'retrying') ORDER BY event_seq LIMIT 1";

/// Greatest duration of a recovery.
const MEANWHILE_MS: i64 = 60 * 60 * 1000;

// `status <> 'delivered'` repeats the condition of a partial index, without which SQLite does not use it.
pub(super) const RECOVER: &str = "UPDATE webhook_deliveries SET status = 'retrying', is_replay = 1, due_at = $4, ended_at = NULL WHERE seq IN (
         SELECT seq FROM webhook_deliveries
         WHERE status = 'failed' AND status <> 'delivered' AND endpoint_id = $1 AND created_at >= $2 AND NOT ended_at BETWEEN $4 AND $5
         ORDER BY created_at, id LIMIT $3 /*lock*/)";

/// Sends an endpoint's deliveries again that were made since a time and have failed before now, at most `rows`, oldest
/// first; returns how many. Call it again with the same times while it is `rows`: one that fails again meanwhile is
/// not taken twice. Deliveries that ended far in the future did so by a clock that was set back since.
///
/// `Error::NotFound` when the endpoint is not the account's, or deleted.
pub async fn recover(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    endpoint_id: Uuid,
    since_ms: i64,
    rows: u32,
    now_ms: i64,
) -> Result<u64, Error> {
    get(tx, account_id, endpoint_id).await?;
    let recovered = query(RECOVER)
        .bind(endpoint_id)
        .bind(since_ms)
        .bind(rows)
        .bind(now_ms)
        .bind(now_ms.saturating_add(MEANWHILE_MS))
        .execute(tx)
        .await?;
    Ok(recovered.rows_affected())
}

/// Sends `webhook.test` to one endpoint. Errors as [`get`].
pub async fn test(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    endpoint_id: Uuid,
    now_ms: i64,
) -> Result<Delivery, Error> {
    let data = Map::from_iter([
        ("webhookId".to_owned(), Value::from(endpoint_id.to_string())),
        (
            "message".to_owned(),
            Value::from("a test event, sent by the owner of this webhook"),
        ),
    ]);
    let new = NewEvent {
        account_id,
        event_type: "webhook.test",
        audience: Audience::Endpoint(endpoint_id),
        also: Vec::new(),
        resource: format!("webhook:{endpoint_id}"),
        place: EventPosition::Only,
        data,
    };
    let event = events::append(tx, new, now_ms).await?;
    let id = query_scalar("SELECT id FROM webhook_deliveries WHERE event_seq = $1")
        .bind(event.seq)
        .fetch_one(tx)
        .await?;
    delivery(tx, account_id, id).await
}
