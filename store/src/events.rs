//! Events in the order of their account's commits: their envelope (`id`, `type`, `created`, `data.sequence`), their feed, and the
//! webhook deliveries that each makes.
//!
//! - [`append`] runs in the transaction of the change that it reports: there is never one without the other.
//! - An event's envelope is made once and kept byte for byte; deliveries point to it.
//! - Within an account one unit of work runs at a time, so that the numbers ([`Event::seq`]) of its events are in the order of
//!   their commits: its feed has no gap that fills later.

use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    Connection, Error, Tx,
    serial::Serial,
    statement::{query_as, query_scalar},
    webhooks,
};

/// An event to be recorded.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub account_id: Uuid,
    pub event_type: &'static str,
    pub audience: Audience,
    /// Endpoints of the account that get it too, whatever they subscribe to.
    pub also: Vec<Uuid>,
    /// Resource of the event, such as `job:<uuid>`; the events about one resource are numbered.
    pub resource: String,
    pub place: EventPosition,
    /// The payload. `sequence` is added to it.
    pub data: Map<String, Value>,
}

/// Endpoints of the account that get an event. Paused and deleted ones never do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Endpoints that subscribe to its type, or to `*`.
    Everyone,
    /// Endpoints that subscribe to its type by name.
    ThoseWhoNameIt,
    /// Single endpoint, whatever it subscribes to and even when it is paused. The event is in no feed, and its
    /// delivery has one attempt.
    Endpoint(Uuid),
}

/// The event's place among those about its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventPosition {
    /// The only event of its resource: its `sequence` is 1, and no number is kept.
    Only,
    Next,
    /// The last event of its resource: its number is deleted.
    Last,
}

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Event {
    /// Number in the order of its account's commits. Never given twice.
    pub seq: i64,
    pub id: Uuid,
    pub account_id: Uuid,
    pub event_type: String,
    pub created_at: i64,
    /// The envelope: the same bytes in every attempt.
    pub body: String,
}

impl Event {
    /// The id on the wire.
    pub fn name(&self) -> String {
        name(self.id)
    }
}

/// The id of an event on the wire: `evt_` and the UUID.
pub fn name(id: Uuid) -> String {
    format!("evt_{id}")
}

/// Envelope of an event's payload (`docs/reference/events.md`).
#[derive(Serialize)]
struct Envelope<'a> {
    id: String,
    #[serde(rename = "type")]
    event_type: &'a str,
    created: i64,
    data: Map<String, Value>,
}

/// Records an event, and one delivery for each endpoint that is to get it.
///
/// `Error::NotFound` when the one endpoint that it is for is not the account's or deleted; `Error::Internal` in a unit of work
/// that may run beside others of the account.
pub async fn append(tx: &mut Tx<'_>, new: NewEvent, now_ms: i64) -> Result<Event, Error> {
    check_serial(tx, new.account_id)?;
    let sequence = next_in_sequence(tx, &new.resource, new.place, now_ms).await?;
    let endpoints = webhooks::endpoints_of(tx, &new).await?;
    let id = Uuid::now_v7();
    let event = Event {
        seq: 0,
        id,
        account_id: new.account_id,
        event_type: new.event_type.to_owned(),
        created_at: now_ms,
        body: envelope(id, new.event_type, sequence, new.data, now_ms)?,
    };
    let is_listed = !matches!(new.audience, Audience::Endpoint(_));
    let event = insert(tx, event, is_listed, endpoints.len()).await?;
    webhooks::fan_out(tx, &event, &endpoints, !is_listed).await?;
    tx.note_event(event.seq);
    Ok(event)
}

/// Checks that the unit is one whose numbers are in the order of the account's commits.
fn check_serial(tx: &Tx<'_>, account_id: Uuid) -> Result<(), Error> {
    match tx.serial() {
        Serial::All => Ok(()),
        Serial::Account(id) if id == account_id => Ok(()),
        serial @ (Serial::Account(_) | Serial::Nothing) => Err(Error::Internal(format!(
            "an event of account {account_id} in a unit of work that is serial with {serial:?}"
        ))),
    }
}

async fn insert(
    tx: &mut Tx<'_>,
    event: Event,
    is_listed: bool,
    deliveries: usize,
) -> Result<Event, Error> {
    let seq = query_scalar(
        "INSERT INTO events (id, account_id, event_type, is_listed, deliveries, created_at, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING seq",
    )
    .bind(event.id)
    .bind(event.account_id)
    .bind(&event.event_type)
    .bind(is_listed)
    .bind(i64::try_from(deliveries).unwrap_or(i64::MAX))
    .bind(event.created_at)
    .bind(&event.body)
    .fetch_one(tx)
    .await?;
    Ok(Event { seq, ..event })
}

fn envelope(
    id: Uuid,
    event_type: &str,
    sequence: i64,
    mut data: Map<String, Value>,
    now_ms: i64,
) -> Result<String, Error> {
    data.insert("sequence".to_owned(), sequence.into());
    let envelope = Envelope {
        id: name(id),
        event_type,
        created: now_ms.div_euclid(1000),
        data,
    };
    serde_json::to_string(&envelope)
        .map_err(|error| Error::Internal(format!("writing an event: {error}")))
}

/// Returns the number of this event among those about its resource, from 1.
async fn next_in_sequence(
    tx: &mut Tx<'_>,
    resource: &str,
    place: EventPosition,
    now_ms: i64,
) -> Result<i64, Error> {
    let number = match place {
        EventPosition::Only => 1,
        EventPosition::Next => {
            query_scalar(
                "INSERT INTO event_sequences (resource, last, updated_at) VALUES ($1, 1, $2)
                 ON CONFLICT (resource) DO UPDATE SET last = event_sequences.last + 1, updated_at = excluded.updated_at
                 RETURNING last",
            )
            .bind(resource)
            .bind(now_ms)
            .fetch_one(tx)
            .await?
        }
        EventPosition::Last => {
            let last: Option<i64> =
                query_scalar("DELETE FROM event_sequences WHERE resource = $1 RETURNING last")
                    .bind(resource)
                    .fetch_optional(tx)
                    .await?;
            last.unwrap_or(0) + 1
        }
    };
    Ok(number)
}

/// Returns the account's feed after an event: at most `limit`, oldest first, without events for a single endpoint.
pub async fn after(
    db: &mut impl Connection,
    account_id: Uuid,
    after: i64,
    limit: u32,
) -> Result<Vec<Event>, Error> {
    Ok(query_as(
        "SELECT seq, id, account_id, event_type, created_at, body FROM events
         WHERE account_id = $1 AND is_listed = 1 AND seq > $2 ORDER BY seq LIMIT $3",
    )
    .bind(account_id)
    .bind(after)
    .bind(limit)
    .fetch_all(db)
    .await?)
}

/// Returns the account's feed before an event, or its end: at most `limit`, newest first, without events for a single
/// endpoint.
pub async fn before(
    db: &mut impl Connection,
    account_id: Uuid,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<Event>, Error> {
    Ok(query_as(
        "SELECT seq, id, account_id, event_type, created_at, body FROM events
         WHERE account_id = $1 AND is_listed = 1 AND seq < $2 ORDER BY seq DESC LIMIT $3",
    )
    .bind(account_id)
    .bind(before.unwrap_or(i64::MAX))
    .bind(limit)
    .fetch_all(db)
    .await?)
}

/// Returns an event, of the feed or for a single endpoint. `Error::NotFound` for an unknown id, another account's and one that
/// was dropped.
pub async fn get(db: &mut impl Connection, account_id: Uuid, id: Uuid) -> Result<Event, Error> {
    query_as(
        "SELECT seq, id, account_id, event_type, created_at, body FROM events WHERE id = $1 AND account_id = $2",
    )
    .bind(id)
    .bind(account_id)
    .fetch_optional(db)
    .await?
    .ok_or(Error::NotFound("event"))
}

/// Returns the last event of the account's feed that retention has dropped, 0 at first: a reader whose cursor is
/// before it has missed some.
pub async fn dropped_up_to(db: &mut impl Connection, account_id: Uuid) -> Result<i64, Error> {
    let dropped: Option<i64> =
        query_scalar("SELECT dropped_up_to FROM event_feeds WHERE account_id = $1")
            .bind(account_id)
            .fetch_optional(db)
            .await?;
    Ok(dropped.unwrap_or(0))
}

/// The last event of the account's feed, 0 before the first; also when it has been dropped meanwhile.
pub async fn newest(db: &mut impl Connection, account_id: Uuid) -> Result<i64, Error> {
    // One statement, so that nothing is dropped in between. An earlier event may outlive the last one: deliveries name it.
    Ok(query_scalar(
        "SELECT max(
             coalesce((SELECT max(seq) FROM events WHERE account_id = $1 AND is_listed = 1), 0),
             coalesce((SELECT dropped_up_to FROM event_feeds WHERE account_id = $1), 0))",
    )
    .bind(account_id)
    .fetch_one(db)
    .await?)
}

#[cfg(test)]
mod tests;
