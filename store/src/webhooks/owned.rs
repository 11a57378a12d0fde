//! Webhook endpoints of workflows: not among the account's webhooks, without subscriptions, reached by
//! [`NewEvent::also`](crate::events::NewEvent) alone. Their deliveries are like all others.

use std::collections::HashMap;

use uuid::Uuid;

use super::{endpoints::ENDED_AT_ONCE, retention};
use crate::{
    Error, Secret, Tx,
    rows::json,
    statement::{query, query_as},
};

/// The workflow that endpoints are made for.
pub(crate) struct Owner<'a> {
    pub account_id: Uuid,
    pub workflow_id: Uuid,
    /// Secret with which they sign.
    pub secret: &'a Secret,
}

/// Makes the workflow's endpoints those of `urls`: new ones are made, those that were suspended or paused are active again, and
/// the others are deleted.
pub(crate) async fn replace(
    tx: &mut Tx<'_>,
    owner: &Owner<'_>,
    urls: &[String],
    now_ms: i64,
) -> Result<(), Error> {
    delete_others(tx, owner.workflow_id, urls, now_ms).await?;
    query(
        "UPDATE webhook_endpoints SET status = 'active', status_reason = NULL, consecutive_failures = 0,
             first_failure_at = NULL, next_probe_at = NULL, is_releasing = 1, revision = revision + 1, status_since = $2,
             updated_at = $2
         WHERE workflow_id = $1 AND deleted_at IS NULL AND status <> 'active'",
    )
    .bind(owner.workflow_id)
    .bind(now_ms)
    .execute(tx)
    .await?;
    ensure(tx, owner, urls, now_ms).await?;
    Ok(())
}

/// The endpoints of `urls`; those that are missing are made.
pub(crate) async fn ensure(
    tx: &mut Tx<'_>,
    owner: &Owner<'_>,
    urls: &[String],
    now_ms: i64,
) -> Result<Vec<Uuid>, Error> {
    let there: Vec<(String, Uuid)> = query_as(
        "SELECT url, id FROM webhook_endpoints WHERE workflow_id = $1 AND deleted_at IS NULL",
    )
    .bind(owner.workflow_id)
    .fetch_all(tx)
    .await?;
    let mut by_url: HashMap<String, Uuid> = there.into_iter().collect();
    let mut ids = Vec::with_capacity(urls.len());
    for url in urls {
        let id = match by_url.get(url) {
            Some(id) => *id,
            None => create(tx, owner, url, now_ms).await?,
        };
        by_url.insert(url.clone(), id);
        ids.push(id);
    }
    Ok(ids)
}

async fn create(tx: &mut Tx<'_>, owner: &Owner<'_>, url: &str, now_ms: i64) -> Result<Uuid, Error> {
    let id = Uuid::now_v7();
    query(
        "INSERT INTO webhook_endpoints
             (id, account_id, url, event_types, status, secret, status_since, created_at, updated_at, workflow_id)
         VALUES ($1, $2, $3, '[]', 'active', $4, $5, $5, $5, $6)",
    )
    .bind(id)
    .bind(owner.account_id)
    .bind(url)
    .bind(owner.secret.expose())
    .bind(now_ms)
    .bind(owner.workflow_id)
    .execute(tx)
    .await?;
    Ok(id)
}

/// Deletes the workflow's endpoints but those of `kept` urls, as [`super::delete`] does.
pub(crate) async fn delete_others(
    tx: &mut Tx<'_>,
    workflow_id: Uuid,
    kept: &[String],
    now_ms: i64,
) -> Result<(), Error> {
    let deleted = query(
        "UPDATE webhook_endpoints SET deleted_at = $3, updated_at = $3, is_releasing = 0, revision = revision + 1
         WHERE workflow_id = $1 AND deleted_at IS NULL AND url NOT IN (SELECT value FROM json_each($2))",
    )
    .bind(workflow_id)
    .bind(json(kept)?)
    .bind(now_ms)
    .execute(tx)
    .await?;
    match deleted.rows_affected() {
        0 => Ok(()),
        _ => retention::end_without_endpoint(tx, now_ms, ENDED_AT_ONCE)
            .await
            .map(drop),
    }
}

/// Gives the workflow's endpoints a new secret; the present one signs too for `overlap_ms`, and one before it no more.
pub(crate) async fn rotate(
    tx: &mut Tx<'_>,
    workflow_id: Uuid,
    secret: &Secret,
    overlap_ms: i64,
    now_ms: i64,
) -> Result<(), Error> {
    query(
        "UPDATE webhook_endpoints SET old_secret = secret, old_secret_until = $3, secret = $2, request_changed_at = $4,
             updated_at = $4
         WHERE workflow_id = $1 AND deleted_at IS NULL",
    )
    .bind(workflow_id)
    .bind(secret.expose())
    .bind(now_ms.saturating_add(overlap_ms))
    .bind(now_ms)
    .execute(tx)
    .await?;
    Ok(())
}
