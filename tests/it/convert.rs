//! Conversions as jobs: batches, their progress, their end, what they cost, and what a kill leaves of them.

mod batches;
mod crash;
mod refusals;

use serde_json::Value;

use crate::support::{Failure, server::Api};

/// A picture whose rendering takes as long as its size says.
fn svg(colour: &str) -> Vec<u8> {
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="400" height="300">
           <rect width="400" height="300" fill="{colour}"/><circle cx="200" cy="150" r="90" fill="white"/></svg>"#
    )
    .into_bytes()
}

/// What the month's meter says.
async fn operations_used(api: &Api) -> Result<u64, Failure> {
    let (_, usage) = api.call(reqwest::Method::GET, "/api/usage", None).await?;
    number(&usage["operations"]["used"])
}

fn number(value: &Value) -> Result<u64, Failure> {
    value
        .as_u64()
        .ok_or_else(|| format!("{value} is no number").into())
}

fn text(value: &Value) -> Result<String, Failure> {
    let text = value.as_str();
    Ok(text
        .ok_or_else(|| format!("{value} is no text"))?
        .to_owned())
}
