//! MCP tool `live_input_health`: health of live inputs, most inputs of an answer.

use serde::Deserialize;
use sluice_store::{
    Page,
    live_inputs::{self, LiveInput},
};
use uuid::Uuid;

use super::*;
use crate::application::{context::LiveContext, live_inputs as operations};

/// Inputs of one answer when the agent names none.
const MOST_INPUTS: u32 = 50;

pub const LIVE_INPUT_HEALTH: Tool = Tool {
    name: "live_input_health",
    title: "Show the health of live streams",
    description: "Shows for one live input, or for the newest 50, whether it is on air (health.status idle, live or \
        reconnecting), its codecs, resolution, bitrate, key-frame interval, drift and losses, and in health.advice what to \
        change in the encoder, in plain words.",
    effect: Effect::Reads,
    reaches_out: false,
    input: || {
        let id = schema::id("The live input's id; all of the account without it.");
        schema::input(json!({ "liveInputId": id }), &[])
    },
    output: Some(|| {
        schema::object(
            json!({
                "liveInputs": schema::list(json!({
                    "id": schema::id("The input's id."),
                    "name": schema::text("Its name."),
                    "enabled": json!({"type": "boolean"}),
                    "health": json!({"type": "object"}),
                })),
            }),
            &["liveInputs"],
        )
    }),
    call: |call, arguments| Box::pin(live_input_health(call, arguments)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LiveInputHealth {
    live_input_id: Option<Uuid>,
}

async fn live_input_health(call: &Call, arguments: Arguments) -> Outcome {
    let live = &call.agent.context.live;
    let account_id = call.agent.reader()?.account_id();
    let LiveInputHealth { live_input_id } = arguments.read()?;
    let inputs = match live_input_id {
        Some(id) => vec![operations::find(live, account_id, id).await?],
        None => {
            let mut db = live.store.read().await?;
            live_inputs::list(&mut db, account_id, Page::first(MOST_INPUTS)).await?
        }
    };
    let inputs: Result<Vec<Value>, ApiError> =
        inputs.iter().map(|input| health(live, input)).collect();
    Ok(json!({ "liveInputs": inputs? }))
}

fn health(context: &LiveContext, input: &LiveInput) -> Result<Value, ApiError> {
    Ok(json!({
        "id": input.id,
        "name": input.name,
        "enabled": input.enabled,
        "health": operations::health_of(context, input.id)?,
    }))
}
