//! Webhook endpoints: create (`webhooks.max_endpoints`), change, delete, rotate the secret, reachable `url`. A change is committed
//! first, then the webhooks' actor is nudged, since a change makes no event that would wake it.

use sluice_store::{
    Secret, duration_ms, now_ms,
    webhooks::{self, Endpoint},
    write_tx,
};
use uuid::Uuid;

use super::request::{ChangeWebhook, NewWebhookRequest};
use crate::application::{context::EventContext, error::ApiError};

/// Makes an endpoint with its secret. 400 for an address that may not be reached, 409 beyond `webhooks.max_endpoints`.
pub(crate) async fn create(
    context: &EventContext,
    account_id: Uuid,
    request: NewWebhookRequest,
) -> Result<(Endpoint, Secret), ApiError> {
    let new = request.checked()?;
    reject_unreachable(context, &new.url).await?;
    let most = context.config.webhooks.max_endpoints;
    Ok(write_tx!(context.store, account_id, |tx| {
        webhooks::create(tx, account_id, new, most, now_ms()).await
    })?)
}

/// Changes the fields given; another address is checked as at its creation.
pub(crate) async fn change(
    context: &EventContext,
    account_id: Uuid,
    id: Uuid,
    request: ChangeWebhook,
) -> Result<Endpoint, ApiError> {
    let patch = request.checked()?;
    let present = webhooks::get(&mut context.store.read().await?, account_id, id).await?;
    if let Some(url) = patch.url.as_ref().filter(|url| **url != present.url) {
        reject_unreachable(context, url).await?;
    }
    let endpoint = write_tx!(context.store, account_id, |tx| {
        webhooks::patch(tx, account_id, id, patch, now_ms()).await
    })?;
    context.webhooks.nudge();
    Ok(endpoint)
}

/// Deletes an endpoint; its waiting deliveries end as `failed`.
pub(crate) async fn delete(
    context: &EventContext,
    account_id: Uuid,
    id: Uuid,
) -> Result<(), ApiError> {
    write_tx!(context.store, |tx| {
        webhooks::delete(tx, account_id, id, now_ms()).await
    })?;
    context.webhooks.nudge();
    Ok(())
}

/// Makes another secret; for `webhooks.secret_overlap` the one before signs too.
pub(crate) async fn rotate_secret(
    context: &EventContext,
    account_id: Uuid,
    id: Uuid,
) -> Result<(Endpoint, Secret), ApiError> {
    let overlap_ms = duration_ms(context.config.webhooks.secret_overlap);
    Ok(write_tx!(context.store, account_id, |tx| {
        webhooks::rotate_secret(tx, account_id, id, overlap_ms, now_ms()).await
    })?)
}

/// Answers 400 for a URL that is none, or whose host is or now resolves to a rejected address.
async fn reject_unreachable(context: &EventContext, url: &str) -> Result<(), ApiError> {
    context
        .outbound
        .probe_url(url)
        .await
        .map_err(|rejection| invalid!("url: {rejection}"))
}
