//! Changes of a live input's outputs: add (`restream.max_outputs_per_input`), change, remove, check of the `url`. They are
//! committed first, then applied in the order of commits.

use sluice_actors::{
    live::{
        address::MASK,
        restream::{OutputUrl, masked},
    },
    outbound::Outbound,
};
use sluice_store::{
    live_inputs, now_ms,
    outputs::{self, NewOutput, Output, OutputLimits, OutputPatch},
    write_tx,
};
use uuid::Uuid;

use super::find;
use crate::application::{context::LiveContext, error::ApiError};

/// Adds an output; 409 beyond `restream.max_outputs_per_input` or `restream.max_outputs`.
pub(crate) async fn add(
    context: &LiveContext,
    account_id: Uuid,
    input_id: Uuid,
    url: String,
    enabled: bool,
) -> Result<Output, ApiError> {
    let url = checked(&context.outbound, url).await?;
    let settings = &context.config.restream;
    let limits = OutputLimits {
        of_input: settings.max_outputs_per_input,
        in_all: settings.max_outputs,
    };
    let new = NewOutput {
        input_id,
        url,
        enabled,
    };
    let _in_order = context.live_changes.lock().await;
    let row = write_tx!(context.store, |tx| {
        live_inputs::get(tx, account_id, input_id).await?;
        outputs::create(tx, new, limits, now_ms()).await
    })?;
    context.restreams.changed(row.clone());
    Ok(row)
}

/// Changes the fields given. The masked address of a record that is sent back leaves it as it is.
pub(crate) async fn change(
    context: &LiveContext,
    account_id: Uuid,
    (input_id, id): (Uuid, Uuid),
    url: Option<String>,
    enabled: Option<bool>,
) -> Result<Output, ApiError> {
    find(context, account_id, input_id).await?;
    let row = outputs::get(&mut context.store.read().await?, input_id, id).await?;
    let url = match url.filter(|url| *url != masked(&row.url)) {
        Some(url) => Some(checked(&context.outbound, url).await?),
        None => None,
    };
    let patch = OutputPatch { url, enabled };
    let _in_order = context.live_changes.lock().await;
    let row = write_tx!(context.store, account_id, |tx| {
        outputs::patch(tx, input_id, id, patch, now_ms()).await
    })?;
    context.restreams.changed(row.clone());
    Ok(row)
}

/// Removes an output, which ends the target's stream.
pub(crate) async fn remove(
    context: &LiveContext,
    account_id: Uuid,
    (input_id, id): (Uuid, Uuid),
) -> Result<(), ApiError> {
    find(context, account_id, input_id).await?;
    let _in_order = context.live_changes.lock().await;
    write_tx!(context.store, account_id, |tx| {
        outputs::delete(tx, input_id, id).await
    })?;
    context.restreams.removed(id);
    Ok(())
}

/// Reads the row of an output again and applies it, whatever it is by now.
pub(crate) async fn read_again(context: &LiveContext, id: Uuid) -> Result<(), ApiError> {
    let _in_order = context.live_changes.lock().await;
    match outputs::by_id(&mut context.store.read().await?, id).await? {
        Some(row) => context.restreams.changed(row),
        None => context.restreams.removed(id),
    }
    Ok(())
}

/// Reads the rows of all outputs again and applies them.
pub(crate) async fn read_all_again(context: &LiveContext) -> Result<(), ApiError> {
    let _in_order = context.live_changes.lock().await;
    let rows = outputs::all(&mut context.store.read().await?).await?;
    context.restreams.replace_all(rows);
    Ok(())
}

/// Checks an address: 400 for what is no address of a target, and for one whose host is or now resolves to a rejected address.
async fn checked(outbound: &Outbound, text: String) -> Result<String, ApiError> {
    let invalid = |reason: String| invalid!("url: {reason}");
    if text.contains(MASK) {
        let reason = "it is masked: give the whole address, with its secrets";
        return Err(invalid(reason.to_owned()));
    }
    let url = OutputUrl::parse(&text).map_err(|error| invalid(error.to_string()))?;
    let checked = match url.target(outbound) {
        Ok(target) => outbound.probe_peer(&target).await,
        Err(rejection) => Err(rejection),
    };
    checked.map_err(|rejection| invalid(rejection.to_string()))?;
    Ok(text)
}
