//! One attempt of a webhook: signed POST, `User-Agent`, what counts as success (2xx, 410, redirects), `Retry-After`.
//!
//! The connector checks the URL again at every attempt. Success is a head with 2xx in time, whatever its body does
//! afterwards: the receiver has accepted the event. A redirect is a failure and not followed.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use hyper::header::InvalidHeaderValue;
use sluice_store::{events, now_ms, webhooks::Endpoint};
use tokio::time::timeout;
use uuid::Uuid;

use super::{
    WebhookSettings, preview,
    schedule::{self, AttemptResult},
    signature,
};
use crate::{
    clock::SystemClock,
    outbound::{Answer, Error, HeaderName, HeaderValue, Outbound, Post},
};

const USER_AGENT: &str = "Service-Webhooks/1.0";
/// Time after `webhooks.timeout`, by which the connector ends an attempt, before the attempt is given up.
const GRACE: Duration = Duration::from_secs(1);

/// Sends requests: the guarded connector, or a test's own.
pub trait Carrier: Send + Sync + 'static {
    fn post<'a>(&'a self, post: Post<'a>) -> BoxFuture<'a, Result<Answer, Error>>;
}

impl Carrier for Outbound {
    fn post<'a>(&'a self, post: Post<'a>) -> BoxFuture<'a, Result<Answer, Error>> {
        Outbound::post(self, post).boxed()
    }
}

/// Body and receiver of an attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub endpoint: Arc<Endpoint>,
    pub event_id: Uuid,
    pub event_type: String,
    /// The envelope; the same bytes at every attempt.
    pub body: Arc<str>,
}

/// Outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptOutcome {
    /// Time in the headers, in milliseconds since 1970; `None` when nothing was sent.
    pub signed_at: Option<i64>,
    pub ended_at: i64,
    pub ending: AttemptResult,
    pub http_status: Option<u16>,
    pub response_preview: Option<String>,
    pub error: Option<String>,
}

impl AttemptOutcome {
    /// Makes the outcome of an attempt that ended without an answer.
    pub fn without_answer(error: impl Into<String>, ended_at: i64) -> Self {
        Self {
            signed_at: None,
            ended_at,
            ending: AttemptResult::Failure { retry_after: None },
            http_status: None,
            response_preview: None,
            error: Some(error.into()),
        }
    }
}

impl Attempt {
    /// Makes the attempt; returns within the time-out and `GRACE`.
    pub async fn perform(
        &self,
        carrier: &dyn Carrier,
        settings: &WebhookSettings,
        clock: &SystemClock,
    ) -> AttemptOutcome {
        let wall_ms = now_ms();
        let secrets = self.secrets(wall_ms);
        let post = Post {
            url: &self.endpoint.url,
            headers: self.headers(&secrets, wall_ms / 1_000),
            body: Bytes::copy_from_slice(self.body.as_bytes()),
            timeout: settings.timeout,
            max_answer: usize::try_from(settings.max_answer.as_u64()).unwrap_or(usize::MAX),
        };
        let answer = timeout(settings.timeout + GRACE, carrier.post(post)).await;
        let ended_at = clock.now_ms();
        let outcome = match answer {
            Ok(Ok(answer)) => read(&answer, &secrets, now_ms(), ended_at),
            Ok(Err(error)) => no_answer(&error, &secrets, ended_at),
            Err(_) => AttemptOutcome::without_answer("the attempt did not end in time", ended_at),
        };
        AttemptOutcome {
            signed_at: Some(wall_ms),
            ..outcome
        }
    }

    fn secrets(&self, wall_ms: i64) -> Vec<&str> {
        let secrets = self.endpoint.secrets(wall_ms);
        secrets.into_iter().map(|secret| secret.expose()).collect()
    }

    fn headers(&self, secrets: &[&str], timestamp_s: i64) -> Vec<(HeaderName, HeaderValue)> {
        let event_id = events::name(self.event_id);
        let body = self.body.as_bytes();
        headers(secrets, &event_id, &self.event_type, timestamp_s, body)
            .expect("ids, types and signatures are ASCII")
    }
}

/// Returns all headers of a delivery, signed by [`signature::headers`]. Fails when an id or a type cannot be a header.
pub fn headers(
    secrets: &[&str],
    event_id: &str,
    event_type: &str,
    timestamp_s: i64,
    body: &[u8],
) -> Result<Vec<(HeaderName, HeaderValue)>, InvalidHeaderValue> {
    let fixed = fixed_headers();
    let signed = signature::headers(secrets, event_id, event_type, timestamp_s, body);
    let headers = fixed.into_iter().chain(signed);
    headers
        .map(|(name, value)| Ok((HeaderName::from_static(name), value.try_into()?)))
        .collect()
}

fn fixed_headers() -> [(&'static str, String); 2] {
    [
        ("content-type", "application/json".to_owned()),
        ("user-agent", USER_AGENT.to_owned()),
    ]
}

/// Returns the headers of a delivery that do not depend on the time and the secret of an attempt.
pub fn unsigned_headers(event_id: &str, event_type: &str) -> Vec<(&'static str, String)> {
    let named = [
        ("service-event", event_type.to_owned()),
        ("webhook-id", event_id.to_owned()),
    ];
    fixed_headers().into_iter().chain(named).collect()
}

fn read(answer: &Answer, secrets: &[&str], wall_ms: i64, ended_at: i64) -> AttemptOutcome {
    let (ending, error) = meaning(answer.status, || asked_pause(answer, wall_ms));
    AttemptOutcome {
        signed_at: None,
        ended_at,
        ending,
        http_status: Some(answer.status),
        response_preview: preview::of(answer, secrets),
        error,
    }
}

fn no_answer(error: &Error, secrets: &[&str], ended_at: i64) -> AttemptOutcome {
    let status = error.status();
    let ending = match status.map(|status| meaning(status, || None).0) {
        Some(result @ (AttemptResult::Success | AttemptResult::Gone)) => result,
        _ => AttemptResult::Failure { retry_after: None },
    };
    AttemptOutcome {
        signed_at: None,
        ended_at,
        ending,
        http_status: status,
        response_preview: None,
        error: (ending != AttemptResult::Success)
            .then(|| preview::clean(&error.to_string(), secrets)),
    }
}

/// Returns the meaning of a status, and the message when it is no success.
fn meaning(
    status: u16,
    retry_after: impl FnOnce() -> Option<Duration>,
) -> (AttemptResult, Option<String>) {
    let failure = |retry_after| AttemptResult::Failure { retry_after };
    match status {
        200..=299 => (AttemptResult::Success, None),
        300..=399 => (
            failure(retry_after()),
            Some(format!(
                "the receiver answered {status}: redirects are not followed"
            )),
        ),
        410 => (
            AttemptResult::Gone,
            Some("the receiver answered 410 Gone".to_owned()),
        ),
        _ => (
            failure(retry_after()),
            Some(format!("the receiver answered {status}")),
        ),
    }
}

fn asked_pause(answer: &Answer, wall_ms: i64) -> Option<Duration> {
    let text = answer.headers.get("retry-after")?.to_str().ok()?;
    schedule::retry_after(text, wall_ms)
}
