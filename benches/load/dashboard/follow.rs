//! Load of `GET /api/changes`: clients that follow changes, many keys with some tabs each.

use std::time::{Duration, Instant};

use serde_json::json;
use sluice_testkit::Failure;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

use crate::{report, service::Service};

/// Streams of one key; the service has the same bound.
const PER_KEY: usize = 16;
/// Changes that are timed.
const NUDGES: usize = 20;
const DEADLINE: Duration = Duration::from_secs(30);

/// Clients that wait for changes. Only some of them are read.
pub(super) struct Followers {
    streams: Vec<Stream>,
}

/// The stream of one client.
pub(super) struct Stream {
    lines: BufReader<TcpStream>,
}

impl Stream {
    /// Connects and waits for the first event.
    pub(super) async fn open(address: &str, key: &str) -> Result<Self, Failure> {
        let mut socket = TcpStream::connect(address).await?;
        let head = format!(
            "GET /api/changes HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).await?;
        let mut stream = Self {
            lines: BufReader::with_capacity(1024, socket),
        };
        let status = stream.line().await?;
        if !status.starts_with("HTTP/1.1 200") {
            return Err(format!("/api/changes: {status}").into());
        }
        stream.until("event: resync").await?;
        Ok(stream)
    }

    /// Reads up to a line that holds `text`.
    pub(super) async fn until(&mut self, text: &str) -> Result<(), Failure> {
        while !self.line().await?.contains(text) {}
        Ok(())
    }

    /// Reads up to the end of the stream.
    pub(super) async fn end(&mut self) {
        while self.line().await.is_ok() {}
    }

    async fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        let read = timeout(DEADLINE, self.lines.read_line(&mut line)).await??;
        match read {
            0 => Err("the stream of changes has ended".into()),
            _ => Ok(line),
        }
    }
}

impl Followers {
    pub(super) async fn connect(service: &Service, count: usize) -> Result<Self, Failure> {
        let mut streams = Vec::with_capacity(count);
        let mut key = String::new();
        for number in 0..count {
            if number % PER_KEY == 0 {
                key = key_for(service, number / PER_KEY).await?;
            }
            streams.push(Stream::open(service.address(), &key).await?);
        }
        Ok(Self { streams })
    }

    /// Times changes from the request that makes each to the last follower's nudge of it.
    pub(super) async fn time_nudges(mut self, service: &Service) -> Result<(), Failure> {
        let mut times = Vec::new();
        for number in 0..NUDGES {
            let body = json!({"name": format!("folder {number}")}).to_string();
            let asked = Instant::now();
            let made = service.post("/api/folders", &body).await?;
            let id = made["folder"]["id"].as_str().ok_or("no folder")?;
            for stream in &mut self.streams {
                stream.until(id).await?;
            }
            times.push(asked.elapsed());
        }
        report::percentiles("a change asked for → the last follower has it", &mut times);
        Ok(())
    }
}

async fn key_for(service: &Service, number: usize) -> Result<String, Failure> {
    let body = json!({"name": format!("follower {number}"), "scope": "read"}).to_string();
    let made = service.post("/api/keys", &body).await?;
    let token = made["token"].as_str().ok_or("no token")?;
    Ok(token.to_owned())
}
