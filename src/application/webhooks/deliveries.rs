//! Webhook deliveries: retry, test event `webhook.test`, probe of a suspended endpoint, `recover` of failed ones.

use sluice_store::{
    now_ms,
    webhooks::{self, Delivery, Probed},
    write_tx,
};
use uuid::Uuid;

use super::request::RecoverRequest;
use crate::application::{context::EventContext, error::ApiError};

/// Deliveries that one transaction sends again.
const RECOVERED_PER_TURN: u32 = 500;

/// Sends a delivery again, once and at once; 409 while it is being sent, and when its endpoint is deleted.
pub(crate) async fn retry(
    context: &EventContext,
    account_id: Uuid,
    id: Uuid,
) -> Result<Delivery, ApiError> {
    let delivery = write_tx!(context.store, account_id, |tx| {
        webhooks::replay(tx, account_id, id, now_ms()).await
    })?;
    context.webhooks.nudge();
    Ok(delivery)
}

/// Sends `webhook.test` to one endpoint, in one attempt.
pub(crate) async fn test(
    context: &EventContext,
    account_id: Uuid,
    id: Uuid,
) -> Result<Delivery, ApiError> {
    let delivery = write_tx!(context.store, account_id, |tx| {
        webhooks::test(tx, account_id, id, now_ms()).await
    })?;
    context.webhooks.nudge();
    Ok(delivery)
}

/// Tries a suspended endpoint now; 409 when it is not suspended.
pub(crate) async fn probe(
    context: &EventContext,
    account_id: Uuid,
    id: Uuid,
) -> Result<Probed, ApiError> {
    let probed = write_tx!(context.store, account_id, |tx| {
        webhooks::probe(tx, account_id, id, now_ms()).await
    })?;
    context.webhooks.nudge();
    Ok(probed)
}

/// Sends the deliveries again that failed since a time; returns how many.
pub(crate) async fn recover(
    context: &EventContext,
    account_id: Uuid,
    id: Uuid,
    request: RecoverRequest,
) -> Result<u64, ApiError> {
    // Includes deliveries that have failed by now, not those that fail again meanwhile: the ends of attempts are
    // recorded by this clock.
    let asked_at = context.webhooks.now_ms();
    let since_ms = request.since_ms(asked_at)?;
    let mut recovered = 0;
    loop {
        let rows = write_tx!(context.store, account_id, |tx| {
            webhooks::recover(tx, account_id, id, since_ms, RECOVERED_PER_TURN, asked_at).await
        })?;
        context.webhooks.nudge();
        recovered += rows;
        if rows < u64::from(RECOVERED_PER_TURN) {
            return Ok(recovered);
        }
    }
}
