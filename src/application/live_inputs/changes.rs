//! Changes of live inputs: create, change, `rotate-key`, `reveal-key`, end of a broadcast, delete. They are committed first, then
//! applied to the live actors in the order of commits.

use std::sync::Arc;

use sluice_store::{
    Secret,
    audit::{self, Target},
    live_inputs::{self, LiveInput},
    now_ms, write_tx,
};
use uuid::Uuid;

use super::{
    find, notify,
    request::{ChangeLiveInput, NewLiveInputRequest, reject_unreachable},
};
use crate::application::{audit::Author, context::LiveContext, error::ApiError};

/// `Retry-After` when a broadcast does not end in time.
const END_RETRY_AFTER_S: u64 = 1;
// Actions in the audit log.
const KEY_ROTATED: &str = "live.input.key_rotated";
const KEY_REVEALED: &str = "live.input.key_revealed";

/// Makes a live input; its stream key is shown to the caller.
pub(crate) async fn create(
    context: &Arc<LiveContext>,
    account_id: Uuid,
    request: NewLiveInputRequest,
) -> Result<(LiveInput, Secret), ApiError> {
    let new = request.checked()?;
    reject_unreachable(&context.outbound, new.pull_url.as_deref()).await?;
    let _in_order = context.live_changes.lock().await;
    let (input, key) = write_tx!(context.store, account_id, |tx| {
        live_inputs::create(tx, account_id, new, now_ms()).await
    })?;
    notify::changed(context, &input).await;
    Ok((input, key))
}

/// Changes the fields given. Disabling ends a running publish at once.
pub(crate) async fn change(
    context: &Arc<LiveContext>,
    account_id: Uuid,
    id: Uuid,
    request: ChangeLiveInput,
) -> Result<LiveInput, ApiError> {
    let patch = request.checked()?;
    let pull_url = patch.pull_url.as_ref().and_then(Option::as_deref);
    reject_unreachable(&context.outbound, pull_url).await?;
    let _in_order = context.live_changes.lock().await;
    let input = write_tx!(context.store, account_id, |tx| {
        live_inputs::patch(tx, account_id, id, patch, now_ms()).await
    })?;
    notify::changed(context, &input).await;
    Ok(input)
}

/// Replaces the stream key; a publish that used the old one ends at once.
pub(crate) async fn rotate_key(
    context: &Arc<LiveContext>,
    account_id: Uuid,
    id: Uuid,
    author: Author,
) -> Result<(LiveInput, Secret), ApiError> {
    let _in_order = context.live_changes.lock().await;
    let (input, key) = write_tx!(context.store, account_id, |tx| {
        let now_ms = now_ms();
        let (input, key) = live_inputs::rotate_key(tx, account_id, id, now_ms).await?;
        audit::append(tx, author.entry(KEY_ROTATED, target(&input)), now_ms).await?;
        Ok((input, key))
    })?;
    notify::changed(context, &input).await;
    Ok((input, key))
}

/// Returns the stream key once more, and notes that in the audit log. 409 for a key of which only the hash is known.
pub(crate) async fn reveal_key(
    context: &LiveContext,
    account_id: Uuid,
    id: Uuid,
    author: Author,
) -> Result<(LiveInput, Secret), ApiError> {
    let revealed = write_tx!(context.store, account_id, |tx| {
        let input = live_inputs::get(tx, account_id, id).await?;
        let Some(key) = live_inputs::stream_key(tx, &input).await? else {
            return Ok(None);
        };
        audit::append(tx, author.entry(KEY_REVEALED, target(&input)), now_ms()).await?;
        Ok(Some((input, key)))
    })?;
    revealed.ok_or(ApiError::WrongState {
        code: "stream_key_not_kept",
        message: "an earlier version made this stream key and kept its hash only: make a new one with rotate-key, which can be shown again",
    })
}

fn target(input: &LiveInput) -> Target {
    Target {
        kind: "liveInput",
        id: input.id.to_string(),
        name: Some(input.name.clone()),
    }
}

/// Ends the broadcast that is on air, and with it a reconnect window; returns the input.
pub(crate) async fn end(
    context: &LiveContext,
    account_id: Uuid,
    id: Uuid,
) -> Result<LiveInput, ApiError> {
    let input = find(context, account_id, id).await?;
    match context.live.end(input.id).await {
        Ok(true) => Ok(input),
        Ok(false) => Err(ApiError::WrongState {
            code: "not_live",
            message: "nothing is on air: only a live or reconnecting input has a broadcast to end",
        }),
        Err(error) => {
            tracing::warn!(input = %id, %error, "a broadcast was not ended in time");
            Err(ApiError::Unavailable {
                what: "the live input",
                retry_after_s: END_RETRY_AFTER_S,
            })
        }
    }
}

/// Deletes a live input; a running publish and its outputs end at once.
pub(crate) async fn delete(
    context: &Arc<LiveContext>,
    account_id: Uuid,
    id: Uuid,
) -> Result<(), ApiError> {
    let _in_order = context.live_changes.lock().await;
    write_tx!(context.store, account_id, |tx| {
        live_inputs::delete(tx, account_id, id).await
    })?;
    notify::deleted(context, id).await;
    context.restreams.input_removed(id);
    Ok(())
}
