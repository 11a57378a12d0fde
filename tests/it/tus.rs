//! Resumable uploads over lines that break: by the official client, by hand at every byte, and over the death of the
//! service.

mod client;
mod crash;
mod cuts;
mod line;
mod rivals;

use std::{path::Path, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::support::{
    Failure, eventually,
    http::client,
    server::{API_KEY, Api, Server},
};

/// For what happens at once, on a machine with other work.
const SOON: Duration = Duration::from_secs(20);
/// Bytes that the service gathers before a write.
const PIECE: u64 = 256 * 1024;

/// An upload that was made.
pub struct Upload {
    url: String,
    length: usize,
}

/// Answer of HEAD.
#[derive(Debug, PartialEq, Eq)]
struct UploadState {
    offset: usize,
    file_id: Option<String>,
}

impl Upload {
    /// With this metadata.
    pub async fn make(api: &Api, length: usize, named: &[(&str, &str)]) -> Result<Self, Failure> {
        let pairs = named
            .iter()
            .map(|(key, value)| format!("{key} {}", STANDARD.encode(value)));
        let metadata = pairs.collect::<Vec<_>>().join(",");
        let endpoint = format!("{}/api/uploads/tus", api.base());
        let made = request(Method::POST, &endpoint)
            .header("upload-length", length)
            .header("upload-metadata", metadata)
            .send()
            .await?;
        assert_eq!(made.status(), StatusCode::CREATED);
        Ok(Self {
            url: header(&made, "location").ok_or("no Location")?,
            length,
        })
    }

    async fn head(&self) -> Result<UploadState, Failure> {
        let head = request(Method::HEAD, &self.url).send().await?;
        assert_eq!(head.status(), StatusCode::OK);
        let offset = header(&head, "upload-offset").ok_or("no Upload-Offset")?;
        Ok(UploadState {
            offset: offset.parse()?,
            file_id: header(&head, "service-file-id"),
        })
    }

    /// All the bytes from an offset on, in one request.
    async fn patch(&self, offset: usize, rest: Vec<u8>) -> Result<Response, Failure> {
        Ok(request(Method::PATCH, &self.url)
            .header("content-type", "application/offset+octet-stream")
            .header("upload-offset", offset)
            .body(rest)
            .send()
            .await?)
    }

    /// The last bytes; the id of the file.
    pub async fn send(&self, offset: usize, rest: Vec<u8>) -> Result<String, Failure> {
        let answer = self.patch(offset, rest).await?;
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        Ok(header(&answer, "service-file-id").ok_or("no file was made")?)
    }

    /// Resumes at the service's offset; returns the id of the file.
    async fn resume(&self, bytes: &[u8]) -> Result<String, Failure> {
        let UploadState { offset, file_id } = self.head().await?;
        match file_id {
            Some(file_id) => Ok(file_id),
            None => self.send(offset, bytes[offset..].to_vec()).await,
        }
    }

    /// Begins a PATCH of all the bytes from an offset on, and stops after `sent` with the connection open.
    async fn begin(
        &self,
        server: &Server,
        offset: usize,
        sent: &[u8],
    ) -> Result<TcpStream, Failure> {
        let rest = self.length - offset;
        let length = format!("Content-Length: {rest}");
        self.begin_with(server, offset, &length, sent).await
    }

    async fn begin_with(
        &self,
        server: &Server,
        offset: usize,
        length: &str,
        sent: &[u8],
    ) -> Result<TcpStream, Failure> {
        let (_, path) = self.url.split_once("/api/").ok_or("no path")?;
        let head = format!(
            "PATCH /api/{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {API_KEY}\r\nTus-Resumable: 1.0.0\r\n\
             Content-Type: application/offset+octet-stream\r\nUpload-Offset: {offset}\r\n{length}\r\nConnection: close\r\n\r\n"
        );
        let mut socket = TcpStream::connect(server.addresses().http).await?;
        socket.set_nodelay(true)?;
        socket.write_all(head.as_bytes()).await?;
        socket.write_all(sent).await?;
        Ok(socket)
    }

    /// Returns the service's record of it, without ending anything.
    async fn shown(&self) -> Result<Value, Failure> {
        let shown = request(Method::GET, &self.url).send().await?;
        let shown: Value = shown.json().await?;
        Ok(shown["upload"].clone())
    }
}

fn request(method: Method, url: &str) -> RequestBuilder {
    client()
        .request(method, url)
        .bearer_auth(API_KEY)
        .header("tus-resumable", "1.0.0")
}

fn header(answer: &Response, name: &str) -> Option<String> {
    let value = answer.headers().get(name)?.to_str().ok()?;
    Some(value.to_owned())
}

/// The bytes of a stored file.
async fn stored(api: &Api, file_id: &str) -> Result<Vec<u8>, Failure> {
    let url = format!("{}/api/files/{file_id}", api.base());
    let answer = client().get(url).bearer_auth(API_KEY).send().await?;
    assert_eq!(answer.status(), StatusCode::OK);
    Ok(answer.bytes().await?.to_vec())
}

/// Counts the bytes of unfinished uploads on the disk.
fn partial_bytes(data_dir: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(data_dir.join("partial"))? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

/// Waits until so many bytes of unfinished uploads were written.
async fn until_written(server: &Server, bytes: u64) -> Result<(), Failure> {
    let is_there = || (partial_bytes(server.data_dir()).ok()? >= bytes).then_some(());
    eventually("the service receives", SOON, async || is_there()).await
}

async fn read_to_end(socket: &mut TcpStream) -> Result<String, Failure> {
    let mut answer = Vec::new();
    let reading = socket.read_to_end(&mut answer);
    // A connection that was reset sends nothing more.
    let _ = tokio::time::timeout(SOON, reading).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
