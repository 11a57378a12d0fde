//! Transfers over real connections: ranges, HEAD, direct uploads whose first request dies, clients that fall silent.

use bytes::Bytes;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::{SOON, all_files, blobs, download, noise};
use crate::support::{
    Failure, eventually,
    http::{client, exchange},
    server::{API_KEY, Api, Server, Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_continues_where_it_was_cut() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    // More than the pieces in which it is read.
    let bytes = noise(1, 1_000_003);
    let file = api.upload("noise.bin", &bytes).await?;
    let url = file["download_url"].as_str().ok_or("no download_url")?;
    let whole = api.fetch(url).await?.expect(200)?;
    let tag = whole.header("etag").to_owned();
    assert!(whole.bytes == bytes && tag.starts_with('"'), "{tag}");
    for (range, from, to) in [
        ("bytes=999999-", 999_999, 1_000_003),
        ("bytes=262143-262145", 262_143, 262_146),
        ("bytes=-1", 1_000_002, 1_000_003),
        ("bytes=0-9999999", 0, 1_000_003),
    ] {
        let answer = api
            .fetch_with(url, &[("range", range), ("if-range", &tag)])
            .await?
            .expect(206)?;
        assert!(answer.bytes == bytes[from..to], "{range}");
    }
    let changed = api
        .fetch_with(url, &[("range", "bytes=5-"), ("if-range", "\"x\"")])
        .await?;
    assert_eq!(
        (changed.status, changed.bytes.len()),
        (StatusCode::OK, bytes.len())
    );
    let outside = api.fetch_with(url, &[("range", "bytes=1000003-")]).await?;
    assert_eq!(
        (outside.status, outside.header("content-range")),
        (StatusCode::RANGE_NOT_SATISFIABLE, "bytes */1000003")
    );
    let known = api.fetch_with(url, &[("if-none-match", &tag)]).await?;
    assert_eq!(
        (known.status, known.bytes.len()),
        (StatusCode::NOT_MODIFIED, 0)
    );
    let head = client().head(url).send().await?;
    assert_eq!(head.headers()["content-length"], "1000003");
    assert_eq!(head.bytes().await?.len(), 0);
    // The length is known without the bytes.
    for folder in std::fs::read_dir(server.data_dir().join("blobs"))? {
        for blob in std::fs::read_dir(folder?.path())? {
            std::fs::remove_file(blob?.path())?;
        }
    }
    let head = client().head(url).send().await?;
    assert_eq!(head.status(), StatusCode::OK);
    assert_eq!(head.headers()["content-length"], "1000003");

    api.upload("again.bin", &bytes).await?;
    assert_eq!(
        blobs(server.data_dir())?,
        1,
        "the same bytes are stored once"
    );
    Ok(())
}

/// A direct upload that was made: its signed address and what completes it.
struct Direct {
    signed_url: String,
    complete: Value,
}

impl Direct {
    async fn make(api: &Api, name: &str, size_bytes: usize) -> Result<Self, Failure> {
        let new = json!({"filename": name, "sizeBytes": size_bytes, "contentType": "application/octet-stream"});
        let (status, made) = api.call(Method::POST, "/api/uploads", Some(&new)).await?;
        assert_eq!(status, StatusCode::OK, "{made}");
        let signed_url = made["upload"]["signedUrl"].as_str().ok_or("no signedUrl")?;
        Ok(Self {
            signed_url: signed_url.to_owned(),
            complete: made["complete"]["body"].clone(),
        })
    }

    async fn put(&self, bytes: Vec<u8>) -> Result<StatusCode, Failure> {
        Ok(client()
            .put(&self.signed_url)
            .body(bytes)
            .send()
            .await?
            .status())
    }

    async fn complete(&self, api: &Api) -> Result<(StatusCode, Value), Failure> {
        api.call(Method::POST, "/api/uploads/complete", Some(&self.complete))
            .await
    }

    /// Begins a PUT and stops in the middle, with the connection open.
    async fn begin(
        &self,
        server: &Server,
        declared: usize,
        sent: &[u8],
    ) -> Result<TcpStream, Failure> {
        let (_, path) = self.signed_url.split_once("/api/").ok_or("no path")?;
        let head = format!(
            "PUT /api/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {declared}\r\nConnection: close\r\n\r\n"
        );
        let mut socket = TcpStream::connect(server.addresses().http).await?;
        socket.write_all(head.as_bytes()).await?;
        socket.write_all(sent).await?;
        let spooling = || (server.temporary_files().ok()? > 0).then_some(());
        eventually("the service receives", SOON, async || spooling()).await?;
        Ok(socket)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_put_takes_over_a_dead_one() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let bytes = noise(2, 600_000);
    let upload = Direct::make(&api, "direct.bin", bytes.len()).await?;
    // One PUT whose connection has closed, and one whose connection is open and silent.
    drop(
        upload
            .begin(&server, bytes.len(), &bytes[..300_000])
            .await?,
    );
    server.nothing_temporary_is_left(SOON).await?;
    let mut lingering = upload
        .begin(&server, bytes.len(), &noise(3, 300_000))
        .await?;

    assert_eq!(upload.put(bytes.clone()).await?, StatusCode::OK);
    let rest = lingering.write_all(&noise(4, 300_000)).await;
    if rest.is_ok() {
        let answer = read_to_end(&mut lingering).await?;
        assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    }
    let (status, completed) = upload.complete(&api).await?;
    assert_eq!(
        (status, &completed["idempotent"]),
        (StatusCode::OK, &json!(false)),
        "{completed}"
    );
    assert!(download(&api, &completed["file"]).await? == bytes);
    let (_, repeated) = upload.complete(&api).await?;
    assert_eq!(
        (&repeated["idempotent"], &repeated["file"]["id"]),
        (&json!(true), &completed["file"]["id"])
    );
    assert_eq!(all_files(&api).await?.len(), 1);
    server.nothing_temporary_is_left(SOON).await
}

async fn read_to_end(socket: &mut TcpStream) -> Result<String, Failure> {
    let mut answer = Vec::new();
    let reading = tokio::io::AsyncReadExt::read_to_end(socket, &mut answer);
    tokio::time::timeout(SOON, reading).await??;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_must_have_exactly_its_bytes() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let upload = Direct::make(&api, "ten.bin", 10).await?;
    assert_eq!(upload.put(vec![0; 9]).await?, StatusCode::BAD_REQUEST);
    assert_eq!(
        upload.put(vec![0; 11]).await?,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    for (length, status) in [(9, 400), (11, 413)] {
        let pieces = [Ok::<_, std::io::Error>(Bytes::from(vec![0; length]))];
        let body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
        let answer = client().put(&upload.signed_url).body(body).send().await?;
        assert_eq!(answer.status(), status, "{length} bytes in chunks");
    }
    assert_eq!(upload.complete(&api).await?.0, StatusCode::CONFLICT);
    server.nothing_temporary_is_left(SOON).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_falls_silent_is_let_go() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_UPLOADS__IDLE_TIMEOUT", "1s")
        .start()
        .await?;
    let upload = Direct::make(&server.api(), "silent.bin", 1000).await?;
    let mut silent = upload.begin(&server, 1000, &[0; 500]).await?;
    let answer = read_to_end(&mut silent).await?;
    assert!(
        answer.starts_with("HTTP/1.1 408") && answer.contains("uploads.idle_timeout"),
        "{answer}"
    );

    let form = format!(
        "POST /api/files HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {API_KEY}\r\nContent-Length: 5000\r\n\
         Content-Type: multipart/form-data; boundary=e\r\nConnection: close\r\n\r\n\
         --e\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\nhalf of it"
    );
    let (status, answer) = exchange(server.addresses().http, form).await?;
    assert_eq!(status, 408, "{answer}");
    server.nothing_temporary_is_left(SOON).await
}
