//! Files, conversions and delivered images, as a user's script asks for them.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Method, StatusCode, header::HeaderMap};
use serde_json::{Value, json};

use super::Api;
use crate::support::{
    Failure, eventually,
    json::{number, text},
};

/// A conversion may take long in a debug build; the service itself answers 202 after 50 s.
const ANSWER_DEADLINE: Duration = Duration::from_secs(90);
const BOUNDARY: &str = "----sluice-test-boundary-7d93";

/// The body of a `multipart/form-data` request, byte by byte as given.
#[derive(Clone, Debug, Default)]
pub struct Form {
    body: Vec<u8>,
}

/// An answer with its whole body.
#[derive(Clone, Debug)]
pub struct Fetched {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Form {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn field(mut self, name: &str, value: &str) -> Self {
        let head =
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        self.body.extend_from_slice(head.as_bytes());
        self.body.extend_from_slice(value.as_bytes());
        self.body.extend_from_slice(b"\r\n");
        self
    }

    pub fn fields(self, fields: &[(&str, &str)]) -> Self {
        let add = |form: Self, (name, value): &(&str, &str)| form.field(name, value);
        fields.iter().fold(self, add)
    }

    /// Adds a file as browsers send it: quotes and line ends of the name escaped (HTML, "multipart/form-data encoding
    /// algorithm").
    pub fn file(self, name: &str, filename: &str, bytes: &[u8]) -> Self {
        let escaped = filename
            .replace('"', "%22")
            .replace('\r', "%0D")
            .replace('\n', "%0A");
        self.part(name, &format!("filename=\"{escaped}\""), bytes)
    }

    /// Adds a file part whose name is in the header as given: `filename="x"`, `filename*=UTF-8''x`.
    pub fn part(mut self, name: &str, filename: &str, bytes: &[u8]) -> Self {
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"; {filename}\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        self.body.extend_from_slice(head.as_bytes());
        self.body.extend_from_slice(bytes);
        self.body.extend_from_slice(b"\r\n");
        self
    }

    fn finish(mut self) -> Vec<u8> {
        let end = format!("--{BOUNDARY}--\r\n");
        self.body.extend_from_slice(end.as_bytes());
        self.body
    }
}

impl Fetched {
    /// Fails on any other status.
    pub fn expect(self, status: u16) -> Result<Self, Failure> {
        if self.status == status {
            return Ok(self);
        }
        Err(format!("{} instead of {status}: {}", self.status, self.text()).into())
    }

    /// Its beginning, as far as it is text.
    pub fn text(&self) -> String {
        let beginning = &self.bytes[..self.bytes.len().min(500)];
        String::from_utf8_lossy(beginning).into_owned()
    }

    /// Checks for a result, or a rejection with its code that reveals nothing of this machine.
    pub fn check_typed(&self) -> Result<(), Failure> {
        if self.status == StatusCode::OK {
            return Ok(());
        }
        let error = self.json()?;
        let text = error["error"].as_str().unwrap_or_default();
        let is_explained = error["code"].is_string() || self.status == StatusCode::BAD_REQUEST;
        if text.is_empty() || !is_explained || text.contains("/tmp/") || text.contains("/proc/") {
            return Err(format!("{}: {error}", self.status).into());
        }
        Ok(())
    }

    pub fn json(&self) -> Result<Value, Failure> {
        Ok(serde_json::from_slice(&self.bytes)?)
    }

    /// Empty when it is missing or not text.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|it| it.to_str().ok()).unwrap_or_default()
    }
}

impl Api {
    /// Posts a form with the key.
    pub async fn post_form(&self, path: &str, form: Form) -> Result<Fetched, Failure> {
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        let request = self
            .client
            .post(format!("{}{path}", self.base))
            .bearer_auth(&self.key)
            .header("content-type", kind)
            .timeout(ANSWER_DEADLINE)
            .body(form.finish());
        fetched(request).await
    }

    /// Gets a path of the service or a whole address, without the key.
    pub async fn fetch(&self, path_or_url: &str) -> Result<Fetched, Failure> {
        self.fetch_with(path_or_url, &[]).await
    }

    pub async fn fetch_with(
        &self,
        path_or_url: &str,
        headers: &[(&str, &str)],
    ) -> Result<Fetched, Failure> {
        let url = match path_or_url.strip_prefix('/') {
            Some(path) => format!("{}/{path}", self.base),
            None => path_or_url.to_owned(),
        };
        let request = self.client.get(url).timeout(ANSWER_DEADLINE);
        let add = |request: reqwest::RequestBuilder, (name, value): &(&str, &str)| {
            request.header(*name, *value)
        };
        fetched(headers.iter().fold(request, add)).await
    }

    /// Stores a file; its record.
    pub async fn upload(&self, filename: &str, bytes: &[u8]) -> Result<Value, Failure> {
        let form = Form::new().file("file", filename, bytes);
        let answer = self.post_form("/api/files", form).await?.expect(201)?;
        Ok(answer.json()?["file"].clone())
    }

    /// Stores a file; its id.
    pub async fn upload_id(&self, filename: &str, bytes: &[u8]) -> Result<String, Failure> {
        let file = self.upload(filename, bytes).await?;
        Ok(file["id"].as_str().ok_or("a file without id")?.to_owned())
    }

    /// Runs one file through `/api/convert`; the result's record and bytes.
    pub async fn convert(
        &self,
        filename: &str,
        bytes: &[u8],
        fields: &[(&str, &str)],
    ) -> Result<(Value, Bytes), Failure> {
        let form = Form::new().file("files", filename, bytes).fields(fields);
        self.result_of("/api/convert", form).await
    }

    /// Runs one file through `/api/media/{tool}`; the result's record and bytes.
    pub async fn tool(
        &self,
        tool: &str,
        filename: &str,
        bytes: &[u8],
        fields: &[(&str, &str)],
    ) -> Result<(Value, Bytes), Failure> {
        let form = Form::new().file("file", filename, bytes).fields(fields);
        self.result_of(&format!("/api/media/{tool}"), form).await
    }

    /// Posts a form that must give exactly one file; downloads it.
    pub async fn result_of(&self, path: &str, form: Form) -> Result<(Value, Bytes), Failure> {
        let answer = self.post_form(path, form).await?.expect(200)?.json()?;
        let files = answer["files"].as_array().ok_or("no files")?;
        let [record] = files.as_slice() else {
            return Err(format!("{path}: {} files in {answer}", files.len()).into());
        };
        let url = record["downloadUrl"].as_str();
        let url = url.ok_or_else(|| format!("no downloadUrl in {record}"))?;
        let download = self.fetch(url).await?.expect(200)?;
        Ok((record.clone(), download.bytes))
    }

    /// Makes a delivery key; the key itself.
    pub async fn delivery_key(&self) -> Result<String, Failure> {
        let path = "/api/delivery-keys";
        let body = json!({"name": "test"});
        let answer = self.expect(StatusCode::CREATED, Method::POST, path, Some(&body));
        let answer = answer.await?;
        let token = answer["token"].as_str();
        Ok(token.ok_or_else(|| format!("no token in {answer}"))?.into())
    }

    /// Asks the delivery network for an image; `query` without its question mark.
    pub async fn deliver(&self, key: &str, file: &str, query: &str) -> Result<Fetched, Failure> {
        self.fetch(&format!("/cdn/v1/{key}/{file}?{query}")).await
    }

    /// Makes a job of a form that no one waits for; its id.
    pub async fn submit(&self, form: Form) -> Result<String, Failure> {
        let answer = self.post_form("/api/jobs", form).await?.expect(202)?;
        let answer = answer.json()?;
        match answer["status"] == "pending" {
            true => text(&answer["jobId"]),
            false => Err(format!("the job does not wait for its turn: {answer}").into()),
        }
    }

    /// Returns the state of the month's meter.
    pub async fn operations_used(&self) -> Result<u64, Failure> {
        let path = "/api/usage";
        let usage = self.expect(StatusCode::OK, Method::GET, path, None).await?;
        number(&usage["operations"]["used"])
    }

    /// Waits until a job has ended, completed or not.
    pub async fn wait_job(&self, id: &str, deadline: Duration) -> Result<Value, Failure> {
        let path = format!("/api/jobs/{id}");
        eventually(&format!("job {id} has ended"), deadline, async || {
            let (_, job) = self.call(Method::GET, &path, None).await.ok()?;
            matches!(
                job["status"].as_str()?,
                "completed" | "failed" | "cancelled"
            )
            .then_some(job)
        })
        .await
    }
}

async fn fetched(request: reqwest::RequestBuilder) -> Result<Fetched, Failure> {
    // With its cause: a connection that was closed and a deadline that passed read alike without.
    let sent = request.send().await;
    let answer = sent.map_err(|error| format!("{error:?}"))?;
    Ok(Fetched {
        status: answer.status(),
        headers: answer.headers().clone(),
        bytes: answer.bytes().await?,
    })
}
