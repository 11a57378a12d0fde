//! A client of `GET /api/changes`.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::BoxStream};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{Failure, http::client, server::Server};

/// Longer than any scenario.
const OPEN_FOR: Duration = Duration::from_secs(600);

/// The stream of one client.
pub struct ChangeStream {
    chunks: BoxStream<'static, reqwest::Result<Bytes>>,
    text: String,
}

/// An event of the stream, and when its last byte came.
#[derive(Clone, Debug)]
pub struct StreamEvent {
    pub name: String,
    pub data: Value,
    pub at: Instant,
}

impl StreamEvent {
    /// Returns whether it is a nudge of this kind for this resource.
    pub fn is_change(&self, kind: &str, id: &str) -> bool {
        self.name == "change" && self.data["kind"] == kind && self.data["id"] == id
    }
}

/// The request for the stream, without a credential.
pub fn request(server: &Server, query: &str) -> RequestBuilder {
    let url = format!("{}/api/changes{query}", server.base_url());
    client().get(url).timeout(OPEN_FOR)
}

impl ChangeStream {
    /// By an API key, up to the first event, which is `resync`.
    pub async fn open(server: &Server, key: &str, query: &str) -> Result<Self, Failure> {
        Self::of(request(server, query).bearer_auth(key).send().await?).await
    }

    /// With the answer of a [`request`].
    pub async fn of(answer: Response) -> Result<Self, Failure> {
        if answer.status() != StatusCode::OK {
            return Err(format!("{}: {}", answer.status(), answer.text().await?).into());
        }
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        let mut stream = Self {
            chunks: answer.bytes_stream().boxed(),
            text: String::new(),
        };
        let first = stream.next(Duration::from_secs(30)).await?;
        let first = first.ok_or("the stream ended at once")?;
        assert_eq!(first.name, "resync");
        assert_eq!(first.data["reason"], "begin");
        assert_eq!(first.data["kinds"], Value::Null);
        Ok(stream)
    }

    /// The next event; `None` at the end of the stream.
    pub async fn next(&mut self, deadline: Duration) -> Result<Option<StreamEvent>, Failure> {
        let deadline = Instant::now() + deadline;
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let mut lines = block.lines();
                    lines.find_map(|line| line.strip_prefix(name).map(str::to_owned))
                };
                let (name, data) = (field("event: "), field("data: "));
                self.text = rest.to_owned();
                if let (Some(name), Some(data)) = (name, data) {
                    let (data, at) = (serde_json::from_str(&data)?, Instant::now());
                    return Ok(Some(StreamEvent { name, data, at }));
                }
            }
            let chunk = timeout_at(deadline, self.chunks.next());
            match chunk.await.map_err(|_| "no event within the deadline")? {
                Some(Ok(chunk)) => self.text.push_str(std::str::from_utf8(&chunk)?),
                Some(Err(_)) | None => return Ok(None),
            }
        }
    }

    /// Everything up to the first event that satisfies `met`, that one included.
    pub async fn until(
        &mut self,
        what: &str,
        deadline: Duration,
        met: impl Fn(&StreamEvent) -> bool,
    ) -> Result<Vec<StreamEvent>, Failure> {
        let until = Instant::now() + deadline;
        let mut seen = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.next(left).await {
                Ok(Some(event)) => seen.push(event),
                Ok(None) => return Err(format!("an end before {what}: {seen:?}").into()),
                Err(error) => return Err(format!("waiting for {what}: {error}: {seen:?}").into()),
            }
            if seen.last().is_some_and(&met) {
                return Ok(seen);
            }
        }
    }

    /// Returns the events up to the end of the stream.
    pub async fn rest(&mut self, deadline: Duration) -> Result<Vec<StreamEvent>, Failure> {
        let until = Instant::now() + deadline;
        let mut seen = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.next(left).await? {
                Some(event) => seen.push(event),
                None => return Ok(seen),
            }
        }
    }
}
