//! Rows of webhook endpoints: create, patch, pause and resume, delete, rotate the secret (`webhooks.max_endpoints`). An
//! endpoint is an address to which an account's events are sent.

use uuid::Uuid;

use super::{retention, subscriptions};
use crate::{
    Connection, Error, Page, Secret, Tx, credentials,
    rows::Json,
    rows::JsonText,
    statement::{query, query_as, query_scalar},
};

text_enum! {
    pub enum EndpointStatus {
        Active = "active",
        /// Too many attempts failed in a row: deliveries wait, and one is tried now and then.
        Suspended = "suspended",
        /// Paused by its owner, or because the receiver rejected deliveries for good (410). Events make no deliveries
        /// for it.
        Paused = "paused",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Endpoint {
    pub id: Uuid,
    pub account_id: Uuid,
    pub url: String,
    /// Types as the owner gave them; `*` means all that are documented for everyone (`docs/reference/events.md`).
    #[sqlx(try_from = "JsonText")]
    pub event_types: Vec<String>,
    pub description: Option<String>,
    /// False when it is paused.
    pub is_active: bool,
    pub status: EndpointStatus,
    /// Reason why it is suspended or paused.
    pub status_reason: Option<String>,
    pub secret: Secret,
    /// The one before it, which signs too until `old_secret_until`.
    pub old_secret: Option<Secret>,
    pub old_secret_until: Option<i64>,
    #[sqlx(try_from = "i64")]
    pub consecutive_failures: u32,
    /// Time of the first of the consecutive failures.
    pub first_failure_at: Option<i64>,
    pub last_success_at: Option<i64>,
    pub last_failure_at: Option<i64>,
    /// Time of the next probe of a suspended endpoint.
    pub next_probe_at: Option<i64>,
    /// True when waiting deliveries have to be put back into the order of the events before anything is claimed
    /// ([`super::rewind`]).
    pub is_releasing: bool,
    /// Rises when its owner decides about its health.
    pub revision: i64,
    /// Time since which it has its status.
    pub status_since: i64,
    /// Time of the last change of its URL or secret; `None`: not since it was made.
    pub request_changed_at: Option<i64>,
    pub created_at: i64,
    pub updated_at: i64,
}

impl Endpoint {
    /// Returns the secrets that sign now, the newest first: one secret, or two after a rotation.
    pub fn secrets(&self, now_ms: i64) -> Vec<&Secret> {
        let overlaps = self.old_secret_until.is_some_and(|until| now_ms < until);
        let old = self.old_secret.as_ref().filter(|_| overlaps);
        std::iter::once(&self.secret).chain(old).collect()
    }

    /// The first 12 characters of the secret.
    pub fn secret_prefix(&self) -> &str {
        credentials::prefix(self.secret.expose())
    }
}

/// An endpoint to be made.
#[derive(Clone, Debug)]
pub struct NewEndpoint {
    pub url: String,
    pub event_types: Vec<String>,
    pub description: Option<String>,
    pub is_active: bool,
}

/// Changes of an endpoint; `None` leaves a field as it is.
#[derive(Clone, Debug, Default)]
pub struct EndpointPatch {
    pub url: Option<String>,
    pub event_types: Option<Vec<String>>,
    /// `Some(None)` removes it.
    pub description: Option<Option<String>>,
    /// `Some(true)` resumes one that is paused or suspended; its waiting deliveries continue in the order of the
    /// events.
    pub is_active: Option<bool>,
}

/// Waiting deliveries that end with their endpoint, in one unit of work.
pub(super) const ENDED_AT_ONCE: u32 = 500;
/// Status reason that is shown to an owner who paused the endpoint.
const PAUSED_BY_OWNER: &str = "paused by its owner";

/// Makes an endpoint and returns its secret in plain. `Error::Conflict` when the account has `most` already.
pub async fn create(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    new: NewEndpoint,
    most: usize,
    now_ms: i64,
) -> Result<(Endpoint, Secret), Error> {
    check_room(tx, account_id, most).await?;
    let secret = credentials::webhook_secret();
    let event_types = without_doubles(new.event_types);
    let status = match new.is_active {
        true => EndpointStatus::Active,
        false => EndpointStatus::Paused,
    };
    let endpoint: Endpoint = query_as(
        "INSERT INTO webhook_endpoints
             (id, account_id, url, event_types, description, status, status_reason, secret, status_since, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $9) RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(account_id)
    .bind(new.url)
    .bind(Json(&event_types))
    .bind(new.description)
    .bind(status)
    .bind((!new.is_active).then_some(PAUSED_BY_OWNER))
    .bind(secret.expose())
    .bind(now_ms)
    .fetch_one(tx)
    .await?;
    subscriptions::replace(tx, account_id, endpoint.id, &event_types).await?;
    Ok((endpoint, secret))
}

async fn check_room(tx: &mut Tx<'_>, account_id: Uuid, most: usize) -> Result<(), Error> {
    let count: i64 = query_scalar(
        "SELECT count(*) FROM webhook_endpoints
         WHERE account_id = $1 AND deleted_at IS NULL AND workflow_id IS NULL",
    )
    .bind(account_id)
    .fetch_one(tx)
    .await?;
    match usize::try_from(count).unwrap_or(usize::MAX) < most {
        true => Ok(()),
        false => Err(Error::Conflict(format!(
            "the account has {count} webhooks, which is as many as it may have: delete one, or raise webhooks.max_endpoints"
        ))),
    }
}

fn without_doubles(event_types: Vec<String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::with_capacity(event_types.len());
    for event_type in event_types {
        if !once.contains(&event_type) {
            once.push(event_type);
        }
    }
    once
}

/// Returns an endpoint. `Error::NotFound` for an unknown or deleted one, for another account's and for a workflow's
/// own.
pub async fn get(db: &mut impl Connection, account_id: Uuid, id: Uuid) -> Result<Endpoint, Error> {
    query_as(
        "SELECT * FROM webhook_endpoints
         WHERE id = $1 AND account_id = $2 AND deleted_at IS NULL AND workflow_id IS NULL",
    )
    .bind(id)
    .bind(account_id)
    .fetch_optional(db)
    .await?
    .ok_or(Error::NotFound("webhook"))
}

/// Returns whether the endpoint, which may be a workflow's own, exists and is not deleted.
pub(super) async fn is_there(db: &mut impl Connection, id: Uuid) -> Result<bool, Error> {
    Ok(query_scalar(
        "SELECT EXISTS (SELECT 1 FROM webhook_endpoints WHERE id = $1 AND deleted_at IS NULL)",
    )
    .bind(id)
    .fetch_one(db)
    .await?)
}

/// The account's endpoints that are not deleted and not a workflow's own, newest first.
pub async fn list(
    db: &mut impl Connection,
    account_id: Uuid,
    page: Page,
) -> Result<Vec<Endpoint>, Error> {
    let query = query_as(
        "SELECT * FROM webhook_endpoints WHERE account_id = $1 AND deleted_at IS NULL AND workflow_id IS NULL
             AND (created_at, id) < ($2, $3)
         ORDER BY created_at DESC, id DESC LIMIT $4",
    )
    .bind(account_id);
    page.read(query, db).await
}

/// Changes the fields of the patch. Errors as [`get`].
pub async fn patch(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    patch: EndpointPatch,
    now_ms: i64,
) -> Result<Endpoint, Error> {
    // Attempts change its health beside units of its account.
    query("SELECT id FROM webhook_endpoints WHERE id = $1 /*lock key*/")
        .bind(id)
        .execute(tx)
        .await?;
    let present = get(tx, account_id, id).await?;
    let is_moved = patch.url.as_ref().is_some_and(|url| *url != present.url);
    let mut next = switched(present, patch.is_active);
    if let Some(url) = patch.url {
        next.url = url;
    }
    if is_moved {
        // Results from the old address do not count for the new one.
        next.revision += 1;
        if next.status == EndpointStatus::Suspended {
            next.next_probe_at = Some(now_ms);
        }
    }
    if let Some(description) = patch.description {
        next.description = description;
    }
    if let Some(event_types) = patch.event_types {
        next.event_types = without_doubles(event_types);
        subscriptions::replace(tx, account_id, id, &next.event_types).await?;
    }
    Ok(query_as(
        "UPDATE webhook_endpoints SET url = $2, event_types = $3, description = $4, status = $5, status_reason = $6,
             consecutive_failures = $7, first_failure_at = $8, next_probe_at = $9, is_releasing = $10, revision = $11,
             status_since = iif(status = $5, status_since, $12), request_changed_at = iif(url = $2, request_changed_at, $12),
             updated_at = $12
         WHERE id = $1 RETURNING *",
    )
    .bind(id)
    .bind(next.url)
    .bind(Json(next.event_types))
    .bind(next.description)
    .bind(next.status)
    .bind(next.status_reason)
    .bind(next.consecutive_failures)
    .bind(next.first_failure_at)
    .bind(next.next_probe_at)
    .bind(next.is_releasing)
    .bind(next.revision)
    .bind(now_ms)
    .fetch_one(tx)
    .await?)
}

/// Returns the endpoint as it is once its owner has paused or resumed it.
fn switched(mut endpoint: Endpoint, is_active: Option<bool>) -> Endpoint {
    let (status, reason) = match (is_active, endpoint.status) {
        (None, _)
        | (Some(true), EndpointStatus::Active)
        | (Some(false), EndpointStatus::Paused) => {
            return endpoint;
        }
        (Some(true), _) => (EndpointStatus::Active, None),
        (Some(false), _) => (EndpointStatus::Paused, Some(PAUSED_BY_OWNER.to_owned())),
    };
    endpoint.status = status;
    endpoint.status_reason = reason;
    endpoint.consecutive_failures = 0;
    endpoint.first_failure_at = None;
    endpoint.next_probe_at = None;
    endpoint.is_releasing = status == EndpointStatus::Active;
    endpoint.revision += 1;
    endpoint
}

/// Marks an endpoint as deleted: nothing is claimed for it any more, its waiting deliveries end (those beyond one unit
/// of work, by the next sweep), and the sweep removes it with its deliveries. Errors as [`get`].
pub async fn delete(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    now_ms: i64,
) -> Result<Endpoint, Error> {
    let deleted: Option<Endpoint> = query_as(
        "UPDATE webhook_endpoints SET deleted_at = $3, updated_at = $3, is_releasing = 0, revision = revision + 1
         WHERE id = $1 AND account_id = $2 AND deleted_at IS NULL AND workflow_id IS NULL RETURNING *",
    )
    .bind(id)
    .bind(account_id)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?;
    let endpoint = deleted.ok_or(Error::NotFound("webhook"))?;
    subscriptions::remove(tx, id).await?;
    retention::end_without_endpoint(tx, now_ms, ENDED_AT_ONCE).await?;
    Ok(endpoint)
}

/// Gives an endpoint a new secret, returned in plain; the present one signs too for `overlap_ms`, and one before it no more.
/// Errors as [`get`].
pub async fn rotate_secret(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    overlap_ms: i64,
    now_ms: i64,
) -> Result<(Endpoint, Secret), Error> {
    let secret = credentials::webhook_secret();
    let rotated: Option<Endpoint> = query_as(
        "UPDATE webhook_endpoints SET old_secret = secret, old_secret_until = $4, secret = $3, request_changed_at = $5,
             updated_at = $5
         WHERE id = $1 AND account_id = $2 AND deleted_at IS NULL AND workflow_id IS NULL RETURNING *",
    )
    .bind(id)
    .bind(account_id)
    .bind(secret.expose())
    .bind(now_ms.saturating_add(overlap_ms))
    .bind(now_ms)
    .fetch_optional(tx)
    .await?;
    Ok((rotated.ok_or(Error::NotFound("webhook"))?, secret))
}
