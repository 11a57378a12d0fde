//! Live inputs: finding one, and its health with errors of pulls and outputs.

pub(crate) mod changes;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod notify;
pub(crate) mod outputs;
pub(crate) mod record;
pub(crate) mod request;

use serde_json::Value;
use sluice_store::live_inputs::{self, LiveInput};
use uuid::Uuid;

use crate::application::{
    context::{LiveContext, Platform},
    error::ApiError,
};

/// Returns the value that [`LiveInputHealth`] describes.
pub(crate) fn health_of(context: &LiveContext, input_id: Uuid) -> Result<Value, ApiError> {
    let mut health = match context.live.health(input_id) {
        Some(health) => serde_json::to_value(health.as_ref()).map_err(ApiError::internal)?,
        None => health::idle(),
    };
    let playback = context.live.playback_of(input_id);
    health["trouble"]["pull"] = playback.and_then(|it| it.pull_error()).into();
    if let Value::Array(advice) = &mut health["advice"] {
        let failures = context.restreams.failures(input_id).into_iter();
        advice.extend(failures.map(|(url, reason)| {
            Value::from(format!(
                "The output to {url} does not go out and is tried again ({reason})."
            ))
        }));
    }
    Ok(health)
}

pub(crate) async fn find(
    platform: &Platform,
    account_id: Uuid,
    id: Uuid,
) -> Result<LiveInput, ApiError> {
    Ok(live_inputs::get(&mut platform.store.read().await?, account_id, id).await?)
}
