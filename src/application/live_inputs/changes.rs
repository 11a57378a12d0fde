//! Changes of live inputs: committed first, then applied to the live actors in the order of commits.

use std::sync::Arc;

use sluice_store::{
    Secret,
    live_inputs::{self, LiveInput},
    now_ms,
};
use uuid::Uuid;

use super::{
    request::{ChangeLiveInput, NewLiveInputRequest, refuse_unreachable},
    tell,
};
use crate::application::{context::LiveContext, error::ApiError};

/// Makes a live input; its stream key is known to the caller alone.
pub(crate) async fn create(
    context: &Arc<LiveContext>,
    account_id: Uuid,
    request: NewLiveInputRequest,
) -> Result<(LiveInput, Secret), ApiError> {
    let new = request.checked()?;
    refuse_unreachable(&context.outbound, new.pull_url.as_deref()).await?;
    let made = context.store.write(move |tx| {
        Box::pin(async move { live_inputs::create(tx, account_id, new, now_ms()).await })
    });
    let (input, key) = made.await?;
    tell::changed(context, &input).await;
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
    refuse_unreachable(&context.outbound, pull_url).await?;
    let _in_order = context.live_changes.lock().await;
    let changed = context.store.write(move |tx| {
        Box::pin(async move { live_inputs::patch(tx, account_id, id, patch, now_ms()).await })
    });
    let input = changed.await?;
    tell::changed(context, &input).await;
    Ok(input)
}

/// Replaces the stream key; a publish that used the old one ends at once.
pub(crate) async fn rotate_key(
    context: &Arc<LiveContext>,
    account_id: Uuid,
    id: Uuid,
) -> Result<(LiveInput, Secret), ApiError> {
    let _in_order = context.live_changes.lock().await;
    let rotated = context.store.write(move |tx| {
        Box::pin(async move { live_inputs::rotate_key(tx, account_id, id, now_ms()).await })
    });
    let (input, key) = rotated.await?;
    tell::changed(context, &input).await;
    Ok((input, key))
}

/// Deletes a live input; a running publish and its outputs end at once.
pub(crate) async fn delete(
    context: &Arc<LiveContext>,
    account_id: Uuid,
    id: Uuid,
) -> Result<(), ApiError> {
    let _in_order = context.live_changes.lock().await;
    let deleted = context
        .store
        .write(move |tx| Box::pin(async move { live_inputs::delete(tx, account_id, id).await }));
    deleted.await?;
    tell::deleted(context, id).await;
    context.restreams.input_removed(id);
    Ok(())
}
