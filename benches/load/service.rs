//! Starts the release program for the load harness: an empty data folder, its own ports, live inputs made by REST.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sluice_testkit::{
    Failure,
    process::{Server, free_port},
    publisher::Target,
};

use crate::{http::Client, viewer::Playback};

/// First credentials of the child's empty database, good for nothing else.
pub(crate) const API_KEY: &str = "svc_LoadHarnessLoadHarnessLoadHarnessLoadHarnes";
pub(crate) const ADMIN_PASSWORD: &str = "load harness only";
const START_DEADLINE: Duration = Duration::from_secs(20);

/// A running service.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) server: Server,
    ports: Ports,
}

/// The addresses that a service has, or had until it was killed.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    http: String,
    rtmp: String,
}

/// A live input.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) target: Target,
    /// Address to paste into an encoder.
    pub(crate) srt_url: String,
    pub(crate) playback: Playback,
}

impl Service {
    /// Starts `program` with its data in `folder` and waits until it is ready.
    pub(crate) async fn start(program: &Path, folder: &Path) -> Result<Self, Failure> {
        Self::start_with(program, folder, &[]).await
    }

    /// The same with settings, for instance `SLUICE_CDN__MEMORY`, `1 GiB`.
    pub(crate) async fn start_with(
        program: &Path,
        folder: &Path,
        settings: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let ports = Ports {
            http: format!("127.0.0.1:{}", free_port()?),
            rtmp: format!("127.0.0.1:{}", free_port()?),
        };
        Self::start_at(ports, program, folder, settings).await
    }

    /// SIGKILL; it may be started again on its ports.
    pub(crate) fn kill(self) -> Ports {
        self.ports
    }

    /// Starts on these ports, with the data that may be in `folder`.
    pub(crate) async fn start_at(
        ports: Ports,
        program: &Path,
        folder: &Path,
        settings: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        if !program.exists() {
            return Err(format!("{} is missing: run `make build` first", program.display()).into());
        }
        let srt = format!("127.0.0.1:{}", free_port()?);
        let mut command = Command::new(program);
        command
            .arg("serve")
            .current_dir(folder)
            .env("SLUICE_HTTP__LISTEN", &ports.http)
            .env("SLUICE_RTMP__LISTEN", &ports.rtmp)
            .env("SLUICE_SRT__LISTEN", &srt)
            .env("SLUICE_WEBRTC__LISTEN", "127.0.0.1:0")
            .env("SLUICE_WEBRTC__TCP_LISTEN", "127.0.0.1:0")
            .env("SLUICE_STORE__DATA_DIR", folder.join("data"))
            .env("SLUICE_BOOTSTRAP__API_KEY", API_KEY)
            .env("SLUICE_BOOTSTRAP__ADMIN_PASSWORD", ADMIN_PASSWORD)
            .envs(settings.iter().copied());
        let server = Server::start("sluice", &mut command, &folder.join("sluice.log"))?;
        let service = Self { server, ports };
        service.wait_until_ready(folder).await?;
        Ok(service)
    }

    async fn wait_until_ready(&self, folder: &Path) -> Result<(), Failure> {
        let started = Instant::now();
        loop {
            let answer = Client::new(&self.ports.http).get("/readyz").await;
            if answer.is_ok_and(|answer| answer.status == 200) {
                return Ok(());
            }
            if started.elapsed() > START_DEADLINE || self.server.figures().is_err() {
                let log = std::fs::read_to_string(folder.join("sluice.log")).unwrap_or_default();
                return Err(
                    format!("sluice is not ready after {:?}:\n{log}", started.elapsed()).into(),
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Makes live inputs, one a request, as a client would.
    pub(crate) async fn create_inputs(
        &self,
        count: usize,
        record_mode: &str,
    ) -> Result<Vec<Input>, Failure> {
        let mut client = Client::new(&self.ports.http);
        let mut inputs = Vec::with_capacity(count);
        for number in 1..=count {
            let body = json!({
                "name": format!("load {number}"),
                "reconnectWindowSeconds": 0,
                "recordMode": record_mode,
            });
            let record = post_json(&mut client, "/api/live/inputs", &body.to_string()).await?;
            inputs.push(self.input(&record["liveInput"])?);
        }
        Ok(inputs)
    }

    /// `host:port`.
    pub(crate) fn address(&self) -> &str {
        &self.ports.http
    }

    /// Posts JSON with the key; the answer's JSON.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Result<Value, Failure> {
        post_json(&mut Client::new(&self.ports.http), path, body).await
    }

    fn input(&self, record: &Value) -> Result<Input, Failure> {
        let text = |pointer: &str| {
            record
                .pointer(pointer)
                .and_then(Value::as_str)
                .ok_or_else(|| format!("the live input lacks {pointer}"))
        };
        let app = text("/ingest/obsServer")?
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        Ok(Input {
            target: Target {
                address: self.ports.rtmp.clone(),
                app,
                stream: text("/ingest/obsStreamKey")?.to_owned(),
            },
            srt_url: text("/ingest/srtUrl")?.to_owned(),
            playback: Playback {
                address: self.ports.http.clone(),
                folder: format!("/live/v1/{}/", text("/playbackId")?),
            },
        })
    }
}

async fn post_json(client: &mut Client, path: &str, body: &str) -> Result<Value, Failure> {
    let headers = with_key("application/json");
    let answer = client.post(path, &headers, body.as_bytes()).await?;
    if !(200..300).contains(&answer.status) {
        return Err(format!("POST {path}: {} {}", answer.status, answer.text()).into());
    }
    Ok(serde_json::from_slice(&answer.body)?)
}

/// The key of the first credentials, and the type of the body.
pub(crate) fn with_key(content_type: &str) -> String {
    format!("Authorization: Bearer {API_KEY}\r\nContent-Type: {content_type}\r\n")
}

/// The project's folder, and one of its own for this run.
pub(crate) fn workplace() -> Result<(&'static Path, tempfile::TempDir), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("target/load");
    std::fs::create_dir_all(&folder)?;
    Ok((root, tempfile::TempDir::new_in(folder)?))
}
