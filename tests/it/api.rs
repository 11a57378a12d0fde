//! The REST interface and playback over HTTP.

mod access;
mod inputs;
mod pages;
mod playback;

use reqwest::{RequestBuilder, header::HeaderMap};
use serde_json::Value;

use crate::support::Failure;

async fn json_of(request: RequestBuilder) -> Result<Value, Failure> {
    let answer = request.send().await?.error_for_status()?;
    Ok(answer.json().await?)
}

async fn status_of(request: RequestBuilder) -> Result<u16, Failure> {
    Ok(request.send().await?.status().as_u16())
}

/// Empty without the header.
fn text_of(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}
