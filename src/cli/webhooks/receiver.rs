//! Deliveries of `sluice webhooks listen --forward` to the developer's receiver, with the headers and body of real ones.

use std::time::Duration;

use bytes::Bytes;
use sluice_actors::{
    outbound::{Answer, Outbound, Post},
    webhooks::{self, WebhookSettings, signature},
};
use sluice_store::{Secret, now_ms};
use tokio::time::Instant;

use super::envelope::{Envelope, shown};

/// Target of forwarded events. The developer alone names this address, so `outbound` is one that may reach everything.
pub(super) struct Receiver {
    pub(super) url: String,
    pub(super) secret: Secret,
    pub(super) outbound: Outbound,
    /// Longest wait for an answer, that of a real delivery.
    timeout: Duration,
    max_answer: usize,
}

impl Receiver {
    pub(super) fn new(
        url: String,
        secret: Secret,
        outbound: Outbound,
        settings: &WebhookSettings,
    ) -> Self {
        Self {
            url,
            secret,
            outbound,
            timeout: settings.timeout,
            max_answer: usize::try_from(settings.max_answer.as_u64()).unwrap_or(usize::MAX),
        }
    }

    /// Signs an event, verifies it as its receiver will, and posts it once; what came of it, in words.
    pub(super) async fn deliver(&self, envelope: &Envelope, body: Bytes) -> String {
        let timestamp_s = now_ms() / 1_000;
        let headers = webhooks::headers(
            &[self.secret.expose()],
            &envelope.id,
            &envelope.event_type,
            timestamp_s,
            &body,
        );
        let headers = match headers {
            Ok(headers) => headers,
            Err(_) => return "not forwarded: its id or its type cannot be a header".to_owned(),
        };
        let signature = headers
            .iter()
            .find(|(name, _)| *name == signature::SIGNATURE_HEADER)
            .and_then(|(_, value)| value.to_str().ok())
            .unwrap_or_default();
        if let Err(error) = self.verify(signature, &body) {
            return format!("not forwarded: {error}");
        }
        let started = Instant::now();
        let answer = self.outbound.post(Post {
            url: &self.url,
            headers,
            body,
            timeout: self.timeout,
            max_answer: self.max_answer,
        });
        match answer.await {
            Ok(answer) => answered(&answer, started.elapsed()),
            Err(error) => format!("verified, no answer: {error}"),
        }
    }

    fn verify(&self, signature: &str, body: &[u8]) -> Result<(), signature::Unverified> {
        signature::verify(
            self.secret.expose(),
            signature,
            body,
            now_ms() / 1_000,
            signature::DEFAULT_TOLERANCE_S,
        )
    }
}

/// The answer, and what a real delivery would make of it.
fn answered(answer: &Answer, after: Duration) -> String {
    let meaning = match answer.status {
        200..=299 => "",
        300..=399 => "; redirects are not followed, a real delivery would be tried again",
        410 => "; a real delivery would pause its endpoint",
        _ => "; a real delivery would be tried again",
    };
    let mut line = format!(
        "verified, answered {} in {} ms{meaning}",
        answer.status,
        after.as_millis()
    );
    let body = String::from_utf8_lossy(&answer.body);
    if !meaning.is_empty() && !body.trim().is_empty() {
        line = format!("{line}: {}", shown(body.trim()));
    }
    line
}

#[cfg(test)]
mod tests {
    use sluice_actors::outbound::HeaderMap;

    use super::*;

    #[test]
    fn an_answer_is_reported_with_what_it_would_mean() {
        for (status, body, expected) in [
            (200, "ok", "verified, answered 200 in 3 ms"),
            (204, "", "verified, answered 204 in 3 ms"),
            (
                302,
                "",
                "verified, answered 302 in 3 ms; redirects are not followed, a real delivery would be tried again",
            ),
            (
                410,
                " ",
                "verified, answered 410 in 3 ms; a real delivery would pause its endpoint",
            ),
            (
                500,
                "no\u{1b}[31m row\n",
                "verified, answered 500 in 3 ms; a real delivery would be tried again: no\u{fffd}[31m row",
            ),
        ] {
            let answer = Answer {
                status,
                headers: HeaderMap::new(),
                body: body.into(),
            };
            assert_eq!(answered(&answer, Duration::from_micros(3_900)), expected);
        }
    }
}
