//! Webhook addresses of a workflow: endpoints that get only events of its runs ([`crate::webhooks`]), and their secret.

use uuid::Uuid;

use super::{Run, Workflow, get};
use crate::{
    Error, Secret, Tx, credentials,
    statement::{query, query_scalar},
    webhooks::owned::{self, Owner},
};

/// Replaces a workflow's addresses by those of its definition; suspended and paused ones are made active again.
pub(super) async fn replace(
    tx: &mut Tx<'_>,
    workflow: &Workflow,
    urls: &[String],
    now_ms: i64,
) -> Result<(), Error> {
    let owner = Owner {
        account_id: workflow.account_id,
        workflow_id: workflow.id,
        secret: &workflow.webhook_secret,
    };
    owned::replace(tx, &owner, urls, now_ms).await
}

pub(super) async fn delete(tx: &mut Tx<'_>, workflow_id: Uuid, now_ms: i64) -> Result<(), Error> {
    owned::delete_others(tx, workflow_id, &[], now_ms).await
}

/// Returns the endpoints of a run's addresses, for [`NewEvent::also`](crate::events::NewEvent); those that a later
/// save has deleted are made again. None for a run whose workflow is deleted.
pub async fn ensure_addresses(
    tx: &mut Tx<'_>,
    run: &Run,
    urls: &[String],
    now_ms: i64,
) -> Result<Vec<Uuid>, Error> {
    if urls.is_empty() {
        return Ok(Vec::new());
    }
    let secret: Option<Secret> =
        query_scalar("SELECT webhook_secret FROM workflows WHERE id = $1 AND deleted_at IS NULL")
            .bind(run.workflow_id)
            .fetch_optional(tx)
            .await?;
    let Some(secret) = secret else {
        return Ok(Vec::new());
    };
    let owner = Owner {
        account_id: run.account_id,
        workflow_id: run.workflow_id,
        secret: &secret,
    };
    owned::ensure(tx, &owner, urls, now_ms).await
}

/// Gives a workflow a new secret, which its addresses sign with; the present one signs too for `overlap_ms`. Errors as [`get`].
pub async fn rotate_secret(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    overlap_ms: i64,
    now_ms: i64,
) -> Result<Workflow, Error> {
    let secret = credentials::webhook_secret();
    query(
        "UPDATE workflows SET webhook_secret = $3, updated_at = $4 WHERE id = $1 AND account_id = $2 AND deleted_at IS NULL",
    )
    .bind(id)
    .bind(account_id)
    .bind(secret.expose())
    .bind(now_ms)
    .execute(tx)
    .await?;
    let workflow = get(tx, account_id, id).await?;
    owned::rotate(tx, id, &secret, overlap_ms, now_ms).await?;
    Ok(workflow)
}
