//! POST to a receiver: deadline, first bytes of the answer, reuse of idle connections, `Keep-Alive` time-out.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{
    Method, Request, Response,
    body::{Body as _, Incoming},
    header::{HOST, HeaderMap, HeaderName, HeaderValue},
};
use tokio::time::{Instant, timeout_at};

use super::{
    Body, Error, Outbound, Target,
    connection::{Connection, Failure, explained},
};

/// Subtracted from a receiver's time-out of idle connections, for the way there.
const MARGIN: Duration = Duration::from_secs(1);

/// A request with a body. `Host` and `Content-Length` are set by the connector.
#[derive(Clone, Debug)]
pub struct Post<'a> {
    pub url: &'a str,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Bytes,
    /// Longest time from the lookup to the last byte of the answer that is read.
    pub timeout: Duration,
    /// Bytes of the answer's body that are read; the rest is not, and costs the connection.
    pub max_answer: usize,
}

/// Answer of a receiver.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// At most `max_answer` bytes, as they came: never decompressed.
    pub body: Vec<u8>,
}

impl Outbound {
    /// Sends one request, follows no redirect, and reads the beginning of the answer. Any status is an answer; one whose
    /// body breaks off or outlasts the time is [`Error::Unfinished`] with its status.
    ///
    /// The receiver may have got a request that ends in an error; only one that was surely not sent is sent again, by a
    /// fresh connection in place of an idle one that was closed.
    pub async fn post(&self, post: Post<'_>) -> Result<Answer, Error> {
        let target = self.check_url(post.url)?;
        let deadline = Instant::now() + post.timeout;
        let request = request(&target, Method::POST, post.headers, post.body.into());
        let late = || Error::Timeout {
            what: "the answer",
            after: post.timeout,
        };

        let answered = timeout_at(deadline, self.answer(&target, request)).await;
        let (connection, mut answer) = answered.unwrap_or_else(|_| Err(late()))?;
        let status = answer.status().as_u16();
        let read = timeout_at(deadline, beginning(answer.body_mut(), post.max_answer)).await;
        let (body, is_whole) =
            read.unwrap_or_else(|_| Err(late()))
                .map_err(|cause| Error::Unfinished {
                    status,
                    cause: Box::new(cause),
                })?;
        let (head, _) = answer.into_parts();
        if is_whole {
            self.keep(&target, connection, &head.headers).await;
        }
        Ok(Answer {
            status,
            headers: head.headers,
            body,
        })
    }

    /// Gets the answer by an idle connection, or by a fresh one.
    async fn answer(
        &self,
        target: &Target,
        mut request: Request<Body>,
    ) -> Result<(Connection, Response<Incoming>), Error> {
        if let Some(mut connection) = self.parts.idle.take(&target.to_string(), Instant::now()) {
            match connection.send(request).await {
                Ok(answer) => return Ok((connection, answer)),
                Err(Failure::Unsent(unsent)) => request = *unsent,
                Err(Failure::Broken(error)) => return Err(error),
            }
        }
        self.answer_afresh(target, request).await
    }

    /// Gets the answer by a fresh connection.
    pub(super) async fn answer_afresh(
        &self,
        target: &Target,
        request: Request<Body>,
    ) -> Result<(Connection, Response<Incoming>), Error> {
        let stream = self.parts.dialler.dial(target).await?;
        let mut connection = Connection::open(stream, self.max_head()).await?;
        match connection.send(request).await {
            Ok(answer) => Ok((connection, answer)),
            Err(Failure::Broken(error)) => Err(error),
            Err(Failure::Unsent(_)) => Err(Error::Closed("before the request".to_owned())),
        }
    }

    /// Keeps a connection whose answer has been read to its end.
    async fn keep(&self, target: &Target, mut connection: Connection, headers: &HeaderMap) {
        let keep = self.settings().keep_idle.min(patience(headers));
        if !keep.is_zero() && connection.is_ready_again().await {
            (self.parts.idle).put(target.to_string(), connection, Instant::now() + keep);
        }
    }
}

/// Reads at most `max` bytes of a body; returns whether that is all of it.
async fn beginning(body: &mut Incoming, max: usize) -> Result<(Vec<u8>, bool), Error> {
    let mut read = Vec::new();
    while read.len() < max {
        let Some(frame) = body.frame().await else {
            return Ok((read, true));
        };
        let frame = frame.map_err(|error| explained(&error))?;
        if let Some(piece) = frame.data_ref() {
            let room = max - read.len();
            read.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() > room {
                return Ok((read, false));
            }
        }
    }
    Ok((read, body.is_end_stream()))
}

/// Returns the time for which a receiver keeps an idle connection (`Keep-Alive: timeout=5`, RFC 2068 §19.7.1), so that no
/// request is sent on one that it closes.
fn patience(headers: &HeaderMap) -> Duration {
    let timeout = headers.get("keep-alive").and_then(|value| {
        let value = value.to_str().ok()?;
        let mut parameters = value.split(',').map(str::trim);
        let timeout_s = parameters.find_map(|parameter| parameter.strip_prefix("timeout="))?;
        timeout_s.parse().ok().map(Duration::from_secs)
    });
    timeout.map_or(Duration::MAX, |timeout| timeout.saturating_sub(MARGIN))
}

/// Makes the request as it is sent.
pub(super) fn request(
    target: &Target,
    method: Method,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Body,
) -> Request<Body> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = target.origin_form().clone();
    request.headers_mut().extend(headers);
    request.headers_mut().insert(HOST, target.authority());
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_say_how_long_they_keep_connections() {
        for (header, kept) in [
            (None, Duration::MAX),
            (Some("timeout=5"), Duration::from_secs(4)),
            (Some("max=100, timeout=72"), Duration::from_secs(71)),
            (Some("timeout=0"), Duration::ZERO),
            (Some("timeout=-1"), Duration::MAX),
            (Some("timeout"), Duration::MAX),
        ] {
            let header =
                header.map(|value| ("keep-alive".parse().unwrap(), value.parse().unwrap()));
            let headers: HeaderMap = header.into_iter().collect();
            assert_eq!(patience(&headers), kept, "{headers:?}");
        }
    }
}
