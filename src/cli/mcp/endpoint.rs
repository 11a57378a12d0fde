//! POSTs of `sluice mcp` to `/mcp`: answers as one body or as server-sent events, `mcp.stdio_patience`, `mcp.stdio_message`, file
//! uploads. (MCP, "Streamable HTTP".) There are no sessions: the service keeps none.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use sluice_actors::outbound::{self, Body, HeaderName, HeaderValue, Method, Outgoing, Stream};

use super::{
    super::{
        event_stream::Reader,
        service::{Service, error_message, sentence},
    },
    error::BridgeError,
    header,
};

/// Prefix of an upload's path, below the service's own.
const UPLOADS: &str = "/api/uploads/";
/// Longest time of an upload; the caller watches its progress.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);

/// The endpoint for messages, and the protocol version agreed with it.
pub(super) struct Endpoint {
    service: Service,
    /// Longest wait for the head of an answer, and for each further piece.
    patience: Duration,
    max_message: usize,
    /// The version of the protocol that a handshake has agreed on.
    agreed: Mutex<Option<String>>,
}

/// Messages that answer one. Dropping them ends the request.
pub(super) enum Answers {
    /// It came as the whole body, if there was one.
    Whole(Option<Vec<u8>>),
    Events(Box<Events>),
}

/// Messages that come as events.
pub(super) struct Events {
    stream: Stream,
    reader: Reader,
    /// Messages that have come and were not taken yet.
    complete: VecDeque<Vec<u8>>,
    url: String,
    max_message: usize,
}

impl Endpoint {
    /// Makes the endpoint of a service; `/mcp` at the end of its address is removed.
    pub(super) fn new(mut service: Service, patience: Duration, max_message: usize) -> Self {
        if let Some(url) = service.url.strip_suffix("/mcp") {
            service.url = url.to_owned();
        }
        Self {
            service,
            patience,
            max_message,
            agreed: Mutex::default(),
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.service.url
    }

    /// Sets the protocol version of later messages.
    pub(super) fn agree(&self, version: &str) {
        *self.agreed.lock() = Some(version.to_owned());
    }

    /// Sends a message. Answers of any status that hold messages are answers; everything else becomes an error.
    pub(super) async fn post(&self, message: &Value) -> Result<Answers, BridgeError> {
        let agreed = self.agreed.lock().clone();
        let mut headers = header::headers(message, agreed.as_deref());
        let key = self.service.authorization();
        let key = key.map_err(|unusable| BridgeError::NotSetUp(unusable.to_string()))?;
        headers.push((HeaderName::from_static("authorization"), key));
        let url = format!("{}/mcp", self.service.url);
        let stream = self.service.outbound.exchange(Outgoing {
            method: Method::POST,
            url: &url,
            headers,
            body: Bytes::from(message.to_string()).into(),
            patience: self.patience,
            silence: self.patience,
        });
        let stream = stream.await.map_err(|error| BridgeError::Away {
            url: self.service.url.clone(),
            reason: error.to_string(),
        })?;
        self.answers(stream).await
    }

    async fn answers(&self, mut stream: Stream) -> Result<Answers, BridgeError> {
        let status = stream.status();
        match (status, kind(&stream).as_str()) {
            (202 | 204, _) => Ok(Answers::Whole(None)),
            (200, "text/event-stream") => Ok(Answers::Events(Box::new(Events {
                stream,
                reader: Reader::new(self.max_message),
                complete: VecDeque::new(),
                url: self.service.url.clone(),
                max_message: self.max_message,
            }))),
            (_, "application/json") => {
                let body = self.whole(&mut stream).await?;
                match status == 200 || is_message(&body) {
                    true => Ok(Answers::Whole(Some(body))),
                    false => Err(self.explain(status, sentence(&body))),
                }
            }
            _ => Err(self.explain(status, None)),
        }
    }

    /// All of a body, within the bound.
    async fn whole(&self, stream: &mut Stream) -> Result<Vec<u8>, BridgeError> {
        let mut body = Vec::new();
        let next = |stream: Result<_, outbound::Error>| stream.map_err(|error| self.broken(&error));
        while let Some(piece) = next(stream.next().await)? {
            if body.len() + piece.len() > self.max_message {
                return Err(too_large(self.max_message));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    fn broken(&self, error: &outbound::Error) -> BridgeError {
        broken(&self.service.url, error)
    }

    /// Explains a rejection that came before the protocol; `message` is the service's own sentence.
    fn explain(&self, status: u16, message: Option<String>) -> BridgeError {
        let url = self.service.url.clone();
        match (status, message) {
            (401, _) => BridgeError::UnknownKey { url },
            (404 | 405, _) | (200..=399, _) => BridgeError::NoTools { url },
            (status, message) => BridgeError::Rejected {
                url,
                status,
                message: message.unwrap_or_else(|| "it says no more".to_owned()),
            },
        }
    }

    /// Sends a file to an address that the service has signed. Whatever host the address names, it is asked for at the
    /// service itself: the bytes go nowhere else.
    pub(super) async fn put(&self, signed_url: &str, body: Body) -> Result<(), String> {
        let url = own_url(&self.service.url, signed_url)
            .ok_or("the address that the service gave is none of its uploads")?;
        let kind = HeaderValue::from_static("application/octet-stream");
        let stream = self.service.outbound.exchange(Outgoing {
            method: Method::PUT,
            url: &url,
            headers: vec![(HeaderName::from_static("content-type"), kind)],
            body,
            // The whole transfer may take this long; the caller watches its progress.
            patience: UPLOAD_TIMEOUT,
            silence: self.patience,
        });
        let mut answer = stream.await.map_err(|error| error.to_string())?;
        match answer.status() {
            200..=299 => Ok(()),
            status => {
                let message = error_message(&mut answer).await;
                Err(message.unwrap_or_else(|| format!("the service answers {status}")))
            }
        }
    }

    pub(super) fn patience(&self) -> Duration {
        self.patience
    }
}

impl Answers {
    /// The next message, as its bytes came; `None` when there are no more.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, BridgeError> {
        match self {
            Self::Whole(body) => Ok(body.take()),
            Self::Events(events) => events.next().await,
        }
    }
}

impl Events {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, BridgeError> {
        loop {
            // An event without data is a sign of life.
            while let Some(message) = self.complete.pop_front() {
                if !message.is_empty() {
                    return Ok(Some(message));
                }
            }
            let piece = self.stream.next().await;
            let Some(piece) = piece.map_err(|error| broken(&self.url, &error))? else {
                return Ok(None);
            };
            let complete = self.reader.push(&piece);
            self.complete = complete.map_err(|_| too_large(self.max_message))?.into();
        }
    }
}

fn broken(url: &str, error: &outbound::Error) -> BridgeError {
    BridgeError::Broken {
        url: url.to_owned(),
        reason: error.to_string(),
    }
}

fn too_large(max_bytes: usize) -> BridgeError {
    BridgeError::TooLarge {
        what: "the answer",
        max_bytes,
    }
}

/// The media type of an answer, without its parameters.
fn kind(stream: &Stream) -> String {
    let kind = stream.headers().get("content-type");
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// Returns whether a body is of the protocol, and not an error of the service's own.
fn is_message(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|body| body.get("jsonrpc").is_some())
}

/// An upload's address as it is reached by this address of the service: `http.base_url` may be another, which this
/// machine need not know.
fn own_url(service_url: &str, signed_url: &str) -> Option<String> {
    let (_, upload) = signed_url.split_once(UPLOADS)?;
    let is_plain = upload.bytes().all(|byte| byte.is_ascii_graphic()) && !upload.contains('#');
    is_plain.then(|| format!("{service_url}{UPLOADS}{upload}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_to_the_service_alone() {
        let service = "http://127.0.0.1:8080";
        for (signed, url) in [
            (
                "http://127.0.0.1:8080/api/uploads/7/content?expires=1&signature=a-_",
                Some("http://127.0.0.1:8080/api/uploads/7/content?expires=1&signature=a-_"),
            ),
            (
                "https://media.example.org/base/api/uploads/7/content?expires=1",
                Some("http://127.0.0.1:8080/api/uploads/7/content?expires=1"),
            ),
            (
                "http://elsewhere.example/api/uploads/7@other.example/",
                Some("http://127.0.0.1:8080/api/uploads/7@other.example/"),
            ),
            ("http://elsewhere.example/put/7", None),
            ("http://127.0.0.1:8080/api/uploads/7 8", None),
            ("http://127.0.0.1:8080/api/uploads/7\r\nHost: x", None),
            ("http://127.0.0.1:8080/api/uploads/7#8", None),
            ("", None),
        ] {
            assert_eq!(own_url(service, signed).as_deref(), url, "{signed}");
        }
    }

    #[test]
    fn a_rejection_says_what_to_do() {
        let settings = Default::default();
        let service = Service {
            url: "http://host/mcp".to_owned(),
            key: sluice_store::Secret::new("svc_key"),
            outbound: outbound::Outbound::new(&settings).expect("it has authorities"),
        };
        let endpoint = Endpoint::new(service, UPLOAD_TIMEOUT, 1);
        assert_eq!(endpoint.url(), "http://host");
        for (status, message, words) in [
            (401, Some("who?"), "SLUICE_API_KEY"),
            (404, Some("not found"), "mcp.enabled"),
            (405, None, "mcp.enabled"),
            (301, None, "is --url the address"),
            (200, None, "is --url the address"),
            (403, Some("Host is not allowed"), "403: Host is not allowed"),
            (413, Some("too large"), "413: too large"),
            (429, Some("too many"), "429: too many"),
            (502, None, "http://host answers 502: it says no more"),
        ] {
            let text = endpoint
                .explain(status, message.map(str::to_owned))
                .to_string();
            assert!(text.contains(words), "{status}: {text}");
        }
    }
}
