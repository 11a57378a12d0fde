//! The request of a webhook delivery as it was or will be sent: URL, headers with signatures, body (`isAsSent`).

use serde::Serialize;
use sluice_actors::webhooks::{headers, unsigned_headers};
use sluice_store::{
    events,
    webhooks::{AttemptTime, DeliveryRequest},
};
use utoipa::ToSchema;

use crate::application::{answer::Timestamp, error::ApiError};

/// A request to an endpoint. Never holds the secret.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SentRequest {
    /// `POST`
    method: &'static str,
    url: String,
    /// Headers of the last attempt in their order. Before the first attempt, and when the webhook is deleted, without the signatures
    /// and their times.
    headers: Vec<HeaderRecord>,
    /// The text that is signed: the same at every attempt.
    body: String,
    /// Time of the last attempt; null before the first one.
    sent_at: Option<Timestamp>,
    /// True when URL and headers are those of the last attempt. False when the URL or the secret was changed since: shown is then what
    /// the present ones make of the same time.
    is_as_sent: bool,
}

/// A header of a request.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub struct HeaderRecord {
    name: String,
    value: String,
}

impl SentRequest {
    pub(crate) fn of(request: DeliveryRequest) -> Result<Self, ApiError> {
        let (sent_at, is_exact) = match request.last_attempt {
            None => (None, false),
            Some(AttemptTime::Signed(at)) => (Some(at), true),
            Some(AttemptTime::Begun(at)) => (Some(at), false),
        };
        let changed_at = request.endpoint.request_changed_at;
        let is_unchanged = changed_at.is_none_or(|changed| sent_at.is_some_and(|at| changed < at));
        Ok(Self {
            method: "POST",
            headers: headers_of(&request, sent_at)?,
            url: request.endpoint.url,
            body: request.body,
            sent_at: sent_at.map(Timestamp),
            is_as_sent: is_exact && is_unchanged && !request.is_deleted,
        })
    }
}

fn headers_of(
    request: &DeliveryRequest,
    sent_at: Option<i64>,
) -> Result<Vec<HeaderRecord>, ApiError> {
    let event_id = events::name(request.event_id);
    let event_type = &request.event_type;
    let Some(at) = sent_at.filter(|_| !request.is_deleted) else {
        let headers = unsigned_headers(&event_id, event_type).into_iter();
        let record = |(name, value): (&str, String)| HeaderRecord {
            name: name.to_owned(),
            value,
        };
        return Ok(headers.map(record).collect());
    };
    let secrets = request.endpoint.secrets(at);
    let secrets: Vec<&str> = secrets.into_iter().map(|secret| secret.expose()).collect();
    let body = request.body.as_bytes();
    let signed = headers(&secrets, &event_id, event_type, at / 1_000, body);
    let signed = signed.map_err(ApiError::internal)?;
    Ok(signed
        .iter()
        .map(|(name, value)| HeaderRecord {
            name: name.to_string(),
            value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
        })
        .collect())
}
