//! Stream of events for `sluice webhooks listen`: request headers, time-outs, meaning of 401, 410, 429.

use std::time::Duration;

use sluice_actors::outbound::{HeaderName, HeaderValue, Stream};

use super::super::service::{Service, error_message};

/// Longest wait for a connection and the head of the answer.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest silence; the service sends something every 15 s.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);

/// Reason why there is no stream of events.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unfollowed {
    /// It may be available in a moment.
    #[error("{0}")]
    Away(String),
    /// Asking again gives the same answer.
    #[error("{0}")]
    Rejected(String),
}

impl Service {
    /// The events of these types after a cursor, or from now on.
    pub(super) async fn follow(
        &self,
        types: &str,
        after: Option<&str>,
    ) -> Result<Stream, Unfollowed> {
        let url = format!("{}/api/events/stream?types={types}", self.url);
        let headers = self.headers(after)?;
        let stream = self
            .outbound
            .stream(&url, headers, HEAD_TIMEOUT, SILENCE_TIMEOUT);
        let mut stream = stream
            .await
            .map_err(|error| Unfollowed::Away(format!("no service answers: {error}")))?;
        if stream.status() != 200 {
            let message = error_message(&mut stream).await;
            return Err(self.explain(stream.status(), message));
        }
        let kind = stream.headers().get("content-type");
        let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        match is_stream {
            true => Ok(stream),
            false => Err(self.is_another()),
        }
    }

    fn headers(&self, after: Option<&str>) -> Result<Vec<(HeaderName, HeaderValue)>, Unfollowed> {
        let key = self.authorization();
        let key = key.map_err(|unusable| Unfollowed::Rejected(unusable.to_string()))?;
        let accept = HeaderValue::from_static("text/event-stream");
        let mut headers = vec![
            (HeaderName::from_static("accept"), accept),
            (HeaderName::from_static("authorization"), key),
        ];
        if let Some(after) = after {
            let after = HeaderValue::try_from(after).map_err(|_| {
                let what = "the cursor has characters that cannot be sent";
                Unfollowed::Rejected(what.to_owned())
            })?;
            headers.push((HeaderName::from_static("last-event-id"), after));
        }
        Ok(headers)
    }

    /// Explains a rejection; `message` is the service's own sentence.
    fn explain(&self, status: u16, message: Option<String>) -> Unfollowed {
        match (status, message) {
            (401, _) => Unfollowed::Rejected(format!(
                "{} does not know this API key: give a valid one with --key or SLUICE_API_KEY",
                self.url
            )),
            (410, _) => Unfollowed::Rejected(
                "the events after this cursor are no longer kept: leave --since out to begin with what happens now"
                    .to_owned(),
            ),
            (429 | 500.., message) => Unfollowed::Away(format!(
                "{} answers {status}: {}",
                self.url,
                message.unwrap_or_else(|| "it says no more".to_owned())
            )),
            (_, Some(message)) if status != 404 => Unfollowed::Rejected(message),
            _ => self.is_another(),
        }
    }

    fn is_another(&self) -> Unfollowed {
        Unfollowed::Rejected(format!(
            "what answers at {} has no events to follow: is --url the address of a Sluice that has webhooks?",
            self.url
        ))
    }
}

#[cfg(test)]
mod tests {
    use sluice_actors::outbound::{Outbound, OutboundSettings};
    use sluice_store::Secret;

    use super::{super::super::service::sentence, *};

    fn service() -> Service {
        Service {
            url: "http://host".to_owned(),
            key: Secret::new("svc_key"),
            outbound: Outbound::new(&OutboundSettings::default()).expect("it has authorities"),
        }
    }

    #[test]
    fn a_rejection_says_what_to_do_and_whether_to_wait() {
        for (status, body, is_final, words) in [
            (401, r#"{"error":"x"}"#, true, "--key or SLUICE_API_KEY"),
            (
                403,
                r#"{"error":"not by this key"}"#,
                true,
                "not by this key",
            ),
            (404, r#"{"error":"x"}"#, true, "is --url the address"),
            (404, "<html>", true, "is --url the address"),
            (301, "", true, "is --url the address"),
            (400, r#"{"error":"bad cursor"}"#, true, "bad cursor"),
            (410, r#"{"error":"x"}"#, true, "leave --since out"),
            (429, r#"{"error":"too many"}"#, false, "429: too many"),
            (503, r#"{"error":"starting"}"#, false, "503: starting"),
            (502, "<html>", false, "http://host answers 502"),
        ] {
            let explained = service().explain(status, sentence(body.as_bytes()));
            let expected = matches!(explained, Unfollowed::Rejected(_));
            assert_eq!(expected, is_final, "{status}: {explained}");
            assert!(
                explained.to_string().contains(words),
                "{status}: {explained}"
            );
        }
    }

    #[test]
    fn what_cannot_be_sent_is_rejected_by_name() {
        let mut service = service();
        assert_eq!(service.headers(Some("7f")).unwrap().len(), 3);
        let rejection = service.headers(Some("7\n")).unwrap_err().to_string();
        assert!(rejection.contains("cursor"), "{rejection}");
        service.key = Secret::new("svc_\r\nHost: x");
        let rejection = service.headers(None).unwrap_err().to_string();
        assert!(
            rejection.contains("API key") && !rejection.contains("Host"),
            "{rejection}"
        );
    }
}
