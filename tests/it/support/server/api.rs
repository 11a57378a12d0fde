//! The REST interface, as a user's script calls it.

mod files;

use std::{net::SocketAddr, time::Duration};

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

pub use self::files::{Fetched, Form};
use crate::support::{Failure, eventually, http::client, publisher::Target};

/// A client with a key.
#[derive(Clone, Debug)]
pub struct Api {
    base: String,
    key: String,
    rtmp: SocketAddr,
    rtmps: Option<SocketAddr>,
    client: Client,
}

/// A live input as create and rotate answer it: with its stream key.
#[derive(Clone, Debug)]
pub struct Input {
    pub id: String,
    pub playback_id: String,
    /// `rtmp://host:port/live`.
    pub obs_server: String,
    /// `{inputSlug}.{streamKey}`.
    pub obs_stream_key: String,
    pub hls_url: String,
    /// The whole answer.
    pub record: Value,
    rtmp: SocketAddr,
    rtmps: Option<SocketAddr>,
}

impl Api {
    pub fn new(base: String, key: &str, rtmp: SocketAddr, rtmps: Option<SocketAddr>) -> Self {
        Self {
            base,
            key: key.to_owned(),
            rtmp,
            rtmps,
            client: client(),
        }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// The same service with another key.
    pub fn with_key(mut self, key: &str) -> Self {
        key.clone_into(&mut self.key);
        self
    }

    /// Returns the service's base address: `http://127.0.0.1:…`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Any call; the status and the JSON, null for an empty body.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Value), Failure> {
        let url = format!("{}{path}", self.base);
        let mut request = self.client.request(method, url).bearer_auth(&self.key);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await?;
        let (status, bytes) = (answer.status(), answer.bytes().await?);
        let value = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes)?
        };
        Ok((status, value))
    }

    /// Any call that must give this status.
    pub async fn expect(
        &self,
        expected: StatusCode,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let (status, value) = self.call(method.clone(), path, body).await?;
        if status != expected {
            return Err(format!("{method} {path}: {status} {value}").into());
        }
        Ok(value)
    }

    /// `fields` as in `docs/reference/api.md`; `json!({})` for the defaults.
    pub async fn create(&self, fields: Value) -> Result<Input, Failure> {
        let path = "/api/live/inputs";
        let answer = self
            .expect(StatusCode::CREATED, Method::POST, path, Some(&fields))
            .await?;
        self.input(answer)
    }

    /// The record under `liveInput`.
    pub async fn get(&self, id: &str) -> Result<Value, Failure> {
        let path = format!("/api/live/inputs/{id}");
        let answer = self
            .expect(StatusCode::OK, Method::GET, &path, None)
            .await?;
        Ok(answer["liveInput"].clone())
    }

    pub async fn list(&self) -> Result<Vec<Value>, Failure> {
        let answer = self
            .expect(StatusCode::OK, Method::GET, "/api/live/inputs", None)
            .await?;
        let inputs = answer["liveInputs"].as_array();
        Ok(inputs
            .ok_or_else(|| format!("no liveInputs in {answer}"))?
            .clone())
    }

    pub async fn patch(&self, id: &str, fields: Value) -> Result<Value, Failure> {
        let path = format!("/api/live/inputs/{id}");
        let answer = self
            .expect(StatusCode::OK, Method::PATCH, &path, Some(&fields))
            .await?;
        Ok(answer["liveInput"].clone())
    }

    /// The input with its new key.
    pub async fn rotate(&self, id: &str) -> Result<Input, Failure> {
        let path = format!("/api/live/inputs/{id}/rotate-key");
        let answer = self
            .expect(StatusCode::OK, Method::POST, &path, None)
            .await?;
        self.input(answer)
    }

    pub async fn delete(&self, id: &str) -> Result<(), Failure> {
        let path = format!("/api/live/inputs/{id}");
        let answer = self
            .expect(StatusCode::OK, Method::DELETE, &path, None)
            .await?;
        match answer == json!({"success": true}) {
            true => Ok(()),
            false => Err(format!("DELETE {path}: {answer}").into()),
        }
    }

    pub async fn health(&self, id: &str) -> Result<Value, Failure> {
        let path = format!("/api/live/inputs/{id}/health");
        self.expect(StatusCode::OK, Method::GET, &path, None).await
    }

    /// Waits until the input's status is `idle`, `live` or `reconnecting`.
    pub async fn wait_status(
        &self,
        id: &str,
        status: &str,
        deadline: Duration,
    ) -> Result<Value, Failure> {
        let what = format!("live input {id} is {status}");
        eventually(&what, deadline, async || {
            let record = self.get(id).await.ok()?;
            (record["status"] == status).then_some(record)
        })
        .await
    }

    /// Waits until health satisfies `met`.
    pub async fn wait_health(
        &self,
        id: &str,
        what: &str,
        deadline: Duration,
        met: impl Fn(&Value) -> bool,
    ) -> Result<Value, Failure> {
        eventually(what, deadline, async || {
            self.health(id).await.ok().filter(|health| met(health))
        })
        .await
    }

    fn input(&self, answer: Value) -> Result<Input, Failure> {
        let record = &answer["liveInput"];
        let text = |pointer: &str| {
            let text = record.pointer(pointer).and_then(Value::as_str);
            text.map(str::to_owned)
                .ok_or_else(|| format!("no {pointer} in {answer}"))
        };
        Ok(Input {
            id: text("/id")?,
            playback_id: text("/playbackId")?,
            obs_server: text("/ingest/obsServer")?,
            obs_stream_key: text("/ingest/obsStreamKey")?,
            hls_url: text("/playback/hlsUrl")?,
            rtmp: self.rtmp,
            rtmps: self.rtmps,
            record: answer.clone(),
        })
    }
}

impl Input {
    /// Server and key as pasted into OBS.
    pub fn rtmp_url(&self) -> String {
        format!("{}/{}", self.obs_server, self.obs_stream_key)
    }

    /// The same over TLS; the service must have a certificate.
    pub fn rtmps_url(&self) -> Result<String, Failure> {
        let address = self.rtmps.ok_or("the service has no RTMPS listener")?;
        Ok(format!("rtmps://{address}/live/{}", self.obs_stream_key))
    }

    /// Server, stream id and passphrase, as pasted into an encoder.
    pub fn srt_url(&self) -> Result<String, Failure> {
        self.url("/liveInput/ingest/srtUrl")
    }

    /// Address for WebRTC players.
    pub fn whep_url(&self) -> Result<String, Failure> {
        self.url("/liveInput/playback/webRtcUrl")
    }

    /// Address with the stream key, as pasted into a WHIP encoder.
    pub fn whip_url(&self) -> Result<String, Failure> {
        self.url("/liveInput/ingest/whipUrl")
    }

    fn url(&self, pointer: &str) -> Result<String, Failure> {
        let url = self.record.pointer(pointer).and_then(Value::as_str);
        Ok(url
            .ok_or_else(|| format!("no {pointer} in {}", self.record))?
            .to_owned())
    }

    /// For the controlled publisher.
    pub fn target(&self) -> Target {
        Target {
            address: self.rtmp.to_string(),
            app: "live".into(),
            stream: self.obs_stream_key.clone(),
        }
    }

    /// Relative to the service's base URL: `/live/v1/{playbackId}/…`.
    pub fn playback_path(&self, name: &str) -> String {
        format!("/live/v1/{}/{name}", self.playback_id)
    }
}
