//! Readers who stop reading: what they hold is given back. Readers who are slow: they get all of it.

use std::{collections::HashSet, net::SocketAddr, path::PathBuf, time::Duration};

use futures_util::StreamExt as _;
use reqwest::{Client, StatusCode, Version};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::{Instant, sleep},
};

use super::{
    changes::{FILES, MIB, album},
    fetch, path, store,
};
use crate::support::{
    Failure, eventually,
    http::client,
    server::{API_KEY, Server, Settings},
};

/// Many times the pause of a slow reader, also where other work keeps it from the processor.
const SEND_TIMEOUT: Duration = Duration::from_secs(4);
/// The kernel looks at a closed window ever more rarely.
const SOON: Duration = Duration::from_secs(60);
/// Little, so that a reader's pauses reach the service.
const SOCKET_BYTES: u32 = 64 << 10;

/// Asks, and reads nothing.
async fn ask(address: SocketAddr, path: &str) -> Result<TcpStream, Failure> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(SOCKET_BYTES)?;
    let mut connection = socket.connect(address).await?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {API_KEY}\r\nConnection: close\r\n\r\n"
    );
    connection.write_all(request.as_bytes()).await?;
    Ok(connection)
}

/// Stored files that the service has open, each once.
fn open_blobs(server: &Server) -> Result<HashSet<PathBuf>, Failure> {
    let id = server.process_id().ok_or("the service does not run")?;
    let blobs = server.data_dir().join("blobs");
    let mut open = HashSet::new();
    for descriptor in std::fs::read_dir(format!("/proc/{id}/fd"))? {
        // A descriptor that was closed meanwhile has no link.
        if let Ok(path) = std::fs::read_link(descriptor?.path())
            && path.starts_with(&blobs)
        {
            open.insert(path);
        }
    }
    Ok(open)
}

async fn get(client: &Client, server: &Server, path: &str) -> Result<reqwest::Response, Failure> {
    let request = client.get(format!("{}{path}", server.base_url()));
    Ok(request.bearer_auth(API_KEY).send().await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_nothing_is_cut_off_and_who_is_slow_is_not() -> Result<(), Failure> {
    let server = Settings::new()
        .env(
            "SLUICE_HTTP__SEND_TIMEOUT",
            &format!("{}s", SEND_TIMEOUT.as_secs()),
        )
        .start()
        .await?;
    let api = server.api();
    let (album, _) = album(&api).await?;
    let large = store(&api, &album, "large.bin", &vec![7; FILES * MIB]).await?;
    let large = large["download_url"].as_str().ok_or("no download_url")?;
    let large = large.strip_prefix(&server.base_url()).ok_or("elsewhere")?;
    let address = server.addresses().http;

    let mut slow = ask(address, &path(&album)).await?;
    let started = Instant::now();
    let (mut taken, mut buffer) = (0, vec![0; SOCKET_BYTES as usize]);
    while started.elapsed() < 2 * SEND_TIMEOUT {
        // The pause of a slow reader, which the test is about.
        sleep(Duration::from_millis(100)).await;
        taken += slow.read(&mut buffer).await?;
    }
    let mut rest = Vec::new();
    taken += slow.read_to_end(&mut rest).await?;
    assert!(taken > 2 * FILES * MIB, "{taken}");
    assert!(rest.ends_with(&[0, 0]), "an archive without a comment");

    let stalled = [
        ask(address, &path(&album)).await?,
        ask(address, large).await?,
    ];
    let opened = eventually("both are answered", SOON, async || {
        // The same bytes are one file.
        (open_blobs(&server).ok()?.len() == 2).then_some(())
    });
    opened.await?;
    let closed = eventually("both are cut off", SOON, async || {
        open_blobs(&server).ok()?.is_empty().then_some(())
    });
    closed.await?;
    for mut connection in stalled {
        let mut received = Vec::new();
        let ended = connection.read_to_end(&mut received).await;
        assert!(received.len() < FILES * MIB, "{ended:?} {}", received.len());
    }
    Ok(())
}

/// The connection is well: only the window of one answer on it is closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_held_back_over_http_2_gives_its_place_back() -> Result<(), Failure> {
    let server = Settings::new()
        .tls()
        .env("SLUICE_ARCHIVE__STALL_TIMEOUT", "2s")
        .env("SLUICE_ARCHIVE__MAX_ACTIVE", "1")
        .start()
        .await?;
    let (album, _) = album(&server.api()).await?;
    let zip = path(&album);
    let client = client();
    let held_back = get(&client, &server, &zip).await?;
    assert_eq!(held_back.version(), Version::HTTP_2);
    let promised = held_back.content_length().ok_or("no length")?;
    let freed = eventually("its place is free", SOON, async || {
        let request = client.get(format!("{}{zip}", server.base_url()));
        let request = request.header("range", "bytes=0-0").bearer_auth(API_KEY);
        let answer = request.send().await.ok()?;
        (answer.status() == StatusCode::PARTIAL_CONTENT).then_some(())
    });
    freed.await?;
    let mut received = 0;
    let mut body = held_back.bytes_stream();
    let failure = loop {
        match body.next().await {
            None => break None,
            Some(Ok(piece)) => received += piece.len() as u64,
            Some(Err(error)) => break Some(error),
        }
    };
    let failure = failure.ok_or("the client does not see the failure")?;
    assert!(!failure.is_timeout(), "{failure}");
    assert!(received < promised, "{received} of {promised}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_downloads_several_archives_at_once_but_not_all_places() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_ARCHIVE__MAX_PER_ACCOUNT", "2")
        .start()
        .await?;
    let api = server.api();
    let (album, _) = album(&api).await?;
    let zip = path(&album);
    let client = client();
    let mut one = get(&client, &server, &zip).await?;
    let mut other = get(&client, &server, &zip).await?;
    assert_eq!(
        (one.status(), other.status()),
        (StatusCode::OK, StatusCode::OK)
    );

    let link = crate::share::share(&api, &album, serde_json::json!({})).await?;
    let token = link["token"].as_str().ok_or("no token")?;
    let reader = format!("/api/share/folder/{token}/zip");
    for refused in [fetch(&api, &album, &[]).await?, api.fetch(&reader).await?] {
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.header("retry-after"), "5");
        let error = refused.json()?["error"].to_string();
        assert!(error.contains("this account's archives"), "{error}");
    }

    // Both continue in turn, to their ends.
    let (mut of_one, mut of_other) = (Vec::new(), Vec::new());
    loop {
        let (piece, another) = (one.chunk().await?, other.chunk().await?);
        if piece.is_none() && another.is_none() {
            break;
        }
        of_one.extend(piece.unwrap_or_default());
        of_other.extend(another.unwrap_or_default());
    }
    assert!(of_one == of_other && of_one.len() > FILES * MIB);
    let again = eventually("their places are free", SOON, async || {
        let answer = fetch(&api, &album, &[("range", "bytes=0-0")]).await.ok()?;
        (answer.status == StatusCode::PARTIAL_CONTENT).then_some(())
    });
    again.await
}
