//! Requests whose answers are read as they arrive (server-sent events, large files), with a longest silence.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{
    Method, Response,
    body::{Body as _, Incoming},
    header::{HeaderMap, HeaderName, HeaderValue},
};
use tokio::time::timeout;

use super::{
    Body, Error, Outbound, Target,
    connection::{Connection, explained},
    request::request,
};

/// A request of any kind. `Host` and `Content-Length` are set by the connector.
#[derive(Debug)]
pub struct Outgoing<'a> {
    pub method: Method,
    pub url: &'a str,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Body,
    /// Longest time from the lookup to the head of the answer, the sending of the body included.
    pub patience: Duration,
    /// The longest wait for a piece of the answer's body.
    pub silence: Duration,
}

/// An answer whose body is read as it comes. Dropping it closes the connection.
pub struct Stream {
    answer: Response<Incoming>,
    /// The longest wait for a piece.
    silence: Duration,
    /// The body ends with it.
    _connection: Connection,
}

impl Outbound {
    /// Sends a request over a connection of its own and waits for the head of the answer: any status is one, no redirect is
    /// followed. Dropping the future closes the connection.
    pub async fn exchange(&self, outgoing: Outgoing<'_>) -> Result<Stream, Error> {
        let target = self.check_url(outgoing.url)?;
        self.open(&target, outgoing).await
    }

    /// [`Outbound::exchange`] of a GET.
    pub async fn stream(
        &self,
        url: &str,
        headers: Vec<(HeaderName, HeaderValue)>,
        patience: Duration,
        silence: Duration,
    ) -> Result<Stream, Error> {
        let get = Outgoing {
            method: Method::GET,
            url,
            headers,
            body: Bytes::new().into(),
            patience,
            silence,
        };
        self.exchange(get).await
    }

    /// [`Outbound::exchange`] with a target that has been checked.
    pub(super) async fn open(
        &self,
        target: &Target,
        outgoing: Outgoing<'_>,
    ) -> Result<Stream, Error> {
        let patience = outgoing.patience;
        let request = request(target, outgoing.method, outgoing.headers, outgoing.body);
        let answered = timeout(patience, self.answer_afresh(target, request)).await;
        let (connection, answer) = answered.unwrap_or(Err(Error::Timeout {
            what: "the answer",
            after: patience,
        }))?;
        Ok(Stream {
            answer,
            silence: outgoing.silence,
            _connection: connection,
        })
    }
}

impl Stream {
    pub fn status(&self) -> u16 {
        self.answer.status().as_u16()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.answer.headers()
    }

    /// Returns the declared length of the body.
    pub(super) fn declared_length(&self) -> Option<u64> {
        self.answer.body().size_hint().exact()
    }

    /// Reads the next piece of the body; `None` when it has ended.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let status = self.status();
        let unfinished = |cause| Error::Unfinished {
            status,
            cause: Box::new(cause),
        };
        loop {
            let frame = timeout(self.silence, self.answer.body_mut().frame()).await;
            let frame = frame.map_err(|_| {
                unfinished(Error::Timeout {
                    what: "the next piece of the answer",
                    after: self.silence,
                })
            })?;
            match frame.map(|frame| frame.map(hyper::body::Frame::into_data)) {
                None => return Ok(None),
                Some(Ok(Ok(piece))) => return Ok(Some(piece)),
                // Trailers have no meaning here.
                Some(Ok(Err(_))) => {}
                Some(Err(error)) => return Err(unfinished(explained(&error))),
            }
        }
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Stream")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
