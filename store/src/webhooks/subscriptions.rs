//! Subscriptions of webhook endpoints to event types (`*` for all), and the deliveries that an event makes.

use uuid::Uuid;

use crate::{
    Error, Tx,
    events::{Audience, Event, NewEvent},
    rows::{self, hex, json},
    statement::{query, query_scalar},
};

/// Subscription to every type of the documented list.
const EVERY_TYPE: &str = "*";

/// Makes an endpoint's subscriptions those of its types.
pub(super) async fn replace(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    endpoint_id: Uuid,
    event_types: &[String],
) -> Result<(), Error> {
    remove(tx, endpoint_id).await?;
    query(
        "INSERT INTO webhook_subscriptions (account_id, event_type, endpoint_id)
         SELECT DISTINCT $1, value, $2 FROM json_each($3)",
    )
    .bind(account_id)
    .bind(endpoint_id)
    .bind(json(event_types)?)
    .execute(tx)
    .await?;
    Ok(())
}

/// Removes all of an endpoint's subscriptions.
pub(super) async fn remove(tx: &mut Tx<'_>, endpoint_id: Uuid) -> Result<(), Error> {
    query("DELETE FROM webhook_subscriptions WHERE endpoint_id = $1")
        .bind(endpoint_id)
        .execute(tx)
        .await?;
    Ok(())
}

pub(super) const AUDIENCE: &str =
    "SELECT DISTINCT s.endpoint_id FROM webhook_subscriptions s CROSS JOIN webhook_endpoints e ON e.id = s.endpoint_id
     WHERE s.account_id = $1 AND s.event_type IN ($2, $3) AND e.status <> 'paused' AND e.deleted_at IS NULL";

/// The endpoints that get an event: its audience, then those of [`NewEvent::also`]. `Error::NotFound` when it is for one that is
/// not there.
pub(crate) async fn endpoints_of(tx: &mut Tx<'_>, new: &NewEvent) -> Result<Vec<Uuid>, Error> {
    let mut endpoints = audience_of(tx, new).await?;
    if !new.also.is_empty() {
        let also: Vec<Uuid> = query_scalar(
            "SELECT DISTINCT e.id FROM json_each($1) a CROSS JOIN webhook_endpoints e ON e.id = unhex(a.value)
             WHERE e.account_id = $2 AND e.status <> 'paused' AND e.deleted_at IS NULL",
        )
        .bind(rows::ids(&new.also)?)
        .bind(new.account_id)
        .fetch_all(tx)
        .await?;
        endpoints.extend(also);
        endpoints.sort_unstable();
        endpoints.dedup();
    }
    Ok(endpoints)
}

async fn audience_of(tx: &mut Tx<'_>, new: &NewEvent) -> Result<Vec<Uuid>, Error> {
    let also = match new.audience {
        Audience::Everyone => EVERY_TYPE,
        Audience::ThoseWhoNameIt => new.event_type,
        Audience::Endpoint(id) => {
            return Ok(vec![super::get(tx, new.account_id, id).await?.id]);
        }
    };
    Ok(query_scalar(AUDIENCE)
        .bind(new.account_id)
        .bind(new.event_type)
        .bind(also)
        .fetch_all(tx)
        .await?)
}

/// Makes the deliveries of an event, due at once, in one statement.
pub(crate) async fn fan_out(
    tx: &mut Tx<'_>,
    event: &Event,
    endpoints: &[Uuid],
    is_replay: bool,
) -> Result<(), Error> {
    if endpoints.is_empty() {
        return Ok(());
    }
    let rows: Vec<[String; 2]> = endpoints
        .iter()
        .map(|endpoint| [hex(Uuid::now_v7()), hex(*endpoint)])
        .collect();
    query(
        "INSERT INTO webhook_deliveries
             (id, endpoint_id, account_id, event_seq, event_type, status, is_replay, due_at, created_at)
         SELECT unhex(value ->> 0), unhex(value ->> 1), $2, $3, $4, 'pending', $5, $6, $6 FROM json_each($1)",
    )
    .bind(json(&rows)?)
    .bind(event.account_id)
    .bind(event.seq)
    .bind(&event.event_type)
    .bind(is_replay)
    .bind(event.created_at)
    .execute(tx)
    .await?;
    Ok(())
}
