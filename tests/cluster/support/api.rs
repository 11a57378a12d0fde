//! The REST interface, as a client calls it that may keep on trying: each call has a deadline.

use std::{
    sync::{Arc, Once},
    time::Duration,
};

use bytes::Bytes;
use reqwest::{
    Client, Method, RequestBuilder, StatusCode,
    header::HeaderMap,
    multipart::{Form, Part},
};
use serde_json::Value;

use super::{
    Failure, eventually,
    json::{list, text},
};

/// The bootstrap key: `svc_` and 43 base62 characters.
pub const API_KEY: &str = "svc_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";
pub const ADMIN_PASSWORD: &str = "correct horse battery staple";
/// Longer than the balancer waits for a node.
const ANSWER_DEADLINE: Duration = Duration::from_secs(80);
/// Pause before a call that failed is repeated.
const AGAIN_AFTER: Duration = Duration::from_millis(300);

/// A client with a key.
#[derive(Clone)]
pub struct Api {
    base: String,
    key: Arc<str>,
    client: Client,
}

/// An answer with its whole body.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Answer {
    /// Fails on any other status.
    pub fn expect(self, status: u16) -> Result<Self, Failure> {
        match self.status == status {
            true => Ok(self),
            false => Err(format!("{} instead of {status}: {}", self.status, self.text()).into()),
        }
    }

    /// Null for an empty body.
    pub fn json(&self) -> Result<Value, Failure> {
        match self.bytes.is_empty() {
            true => Ok(Value::Null),
            false => Ok(serde_json::from_slice(&self.bytes)?),
        }
    }

    /// Empty when it is missing or not text.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|it| it.to_str().ok()).unwrap_or_default()
    }

    /// Its beginning.
    pub fn text(&self) -> String {
        let beginning = &self.bytes[..self.bytes.len().min(500)];
        String::from_utf8_lossy(beginning).into_owned()
    }
}

/// A client that follows nothing.
pub fn client() -> Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An error means that one was installed before, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    Client::builder()
        .no_proxy()
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none())
        .timeout(ANSWER_DEADLINE)
        .build()
        .expect("the client's settings are valid")
}

impl Api {
    /// `base` without a slash at its end.
    pub fn new(base: String) -> Self {
        Self {
            base,
            key: API_KEY.into(),
            client: client(),
        }
    }

    /// The same service with another key.
    pub fn with_key(mut self, key: &str) -> Self {
        self.key = key.into();
        self
    }

    /// A request with the key, for what the other functions do not have; `path` or a whole address.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.anonymous(method, path);
        request.bearer_auth(&self.key)
    }

    /// The same without the key.
    pub fn anonymous(&self, method: Method, path: &str) -> RequestBuilder {
        let url = match path.starts_with('/') {
            true => format!("{}{path}", self.base),
            false => path.to_owned(),
        };
        self.client.request(method, url)
    }

    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        // Without it a file answers with its bytes.
        let request = self
            .request(Method::GET, path)
            .header("accept", "application/json");
        let answer = fetch(request).await?;
        answer.expect(200)?.json()
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer, Failure> {
        fetch(self.request(Method::POST, path).json(body)).await
    }

    pub async fn delete(&self, path: &str) -> Result<Answer, Failure> {
        fetch(self.request(Method::DELETE, path)).await
    }

    /// Gets a path without the key.
    pub async fn look(&self, path: &str) -> Result<Answer, Failure> {
        fetch(self.anonymous(Method::GET, path)).await
    }

    /// Posts a form of one file and some fields.
    pub async fn send(
        &self,
        path: &str,
        (field, filename, bytes): (&str, &str, &[u8]),
        fields: &[(&str, &str)],
        headers: &[(&'static str, &str)],
    ) -> Result<Answer, Failure> {
        let part = Part::bytes(bytes.to_vec()).file_name(filename.to_owned());
        let mut form = Form::new();
        for (name, value) in fields {
            form = form.text((*name).to_owned(), (*value).to_owned());
        }
        let mut request = self
            .request(Method::POST, path)
            .multipart(form.part(field.to_owned(), part));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        fetch(request).await
    }

    /// Stores a file; its record.
    pub async fn upload(&self, filename: &str, bytes: &[u8]) -> Result<Value, Failure> {
        let answer = self
            .send("/api/files", ("file", filename, bytes), &[], &[])
            .await?;
        Ok(answer.expect(201)?.json()?["file"].clone())
    }

    /// Makes a job that converts an image to WebP; its id. Repeated with the same key it is the same job.
    pub async fn convert(&self, name: &str, bytes: &[u8]) -> Result<String, Failure> {
        let answer = self
            .send(
                "/api/jobs",
                ("files", name, bytes),
                &[("jobType", "convert"), ("format", "webp")],
                &[("idempotency-key", name)],
            )
            .await?;
        let is_made = [200, 202].contains(&answer.status.as_u16());
        match is_made {
            true => text(&answer.json()?["jobId"]),
            false => Err(format!("{}: {}", answer.status, answer.text()).into()),
        }
    }

    /// All entries of a list in pages; `path` with its query.
    pub async fn all(&self, path: &str, field: &str) -> Result<Vec<Value>, Failure> {
        let joint = if path.contains('?') { '&' } else { '?' };
        let mut entries = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = self.get(&format!("{path}{joint}limit=100{cursor}")).await?;
            entries.extend(list(&page[field])?);
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(entries),
            }
        }
    }

    /// The whole feed of events, oldest first, from a cursor on; the cursor behind it.
    pub async fn events(&self, mut after: String) -> Result<(Vec<Value>, String), Failure> {
        let mut all = Vec::new();
        loop {
            let query = match after.is_empty() {
                true => String::new(),
                false => format!("&after={after}"),
            };
            let page = self.get(&format!("/api/events?limit=100{query}")).await?;
            let events = list(&page["events"])?;
            if let Some(next) = page["nextCursor"].as_str() {
                next.clone_into(&mut after);
            }
            if events.is_empty() {
                return Ok((all, after));
            }
            all.extend(events);
        }
    }

    /// Subscribes an endpoint to all events that `*` has.
    pub async fn subscribe(&self, url: &str) -> Result<String, Failure> {
        let body = serde_json::json!({"url": url, "eventTypes": ["*"]});
        let made = self.post("/api/webhooks", &body).await?.expect(201)?;
        text(&made.json()?["webhook"]["id"])
    }

    /// Makes a delivery key; the key itself.
    pub async fn delivery_key(&self) -> Result<String, Failure> {
        let body = serde_json::json!({"name": "test"});
        let made = self.post("/api/delivery-keys", &body).await?.expect(201)?;
        text(&made.json()?["token"])
    }

    /// Waits until a path answers what is looked for.
    pub async fn wait<T>(
        &self,
        path: &str,
        what: &str,
        deadline: Duration,
        mut found: impl FnMut(&Value) -> Option<T>,
    ) -> Result<T, Failure> {
        eventually(what, deadline, async || {
            let answer = self.get(path).await.ok()?;
            found(&answer)
        })
        .await
    }
}

/// Sends a request and reads the whole answer.
pub async fn fetch(request: RequestBuilder) -> Result<Answer, Failure> {
    // With its cause: a connection that was closed and a deadline that passed read alike without.
    let sent = request.send().await;
    let answer = sent.map_err(|error| format!("{error:?}"))?;
    Ok(Answer {
        status: answer.status(),
        headers: answer.headers().clone(),
        bytes: answer.bytes().await?,
    })
}

/// Repeats a call, which has the number of calls before it, until it succeeds. Fails after `deadline` with the last failure.
pub async fn persistently<T, C: Future<Output = Result<T, Failure>>>(
    deadline: Duration,
    mut call: impl FnMut(usize) -> C,
) -> Result<T, Failure> {
    let began = tokio::time::Instant::now();
    let mut attempt = 0;
    loop {
        match call(attempt).await {
            Ok(result) => return Ok(result),
            Err(failure) if began.elapsed() > deadline => return Err(failure),
            Err(_) => tokio::time::sleep(AGAIN_AFTER).await,
        }
        attempt += 1;
    }
}
