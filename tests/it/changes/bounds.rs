//! Stream of changes: clients that lag, leave, come in numbers or have lost their credential, and the end of the
//! service.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::{Instant, timeout},
};

use super::{Browser, SOON};
use crate::support::{
    Failure,
    changes::{ChangeStream, StreamEvent, request},
    eventually,
    json::text,
    server::{API_KEY, Api, Server, Settings},
};

/// A client that reads has read everything once nothing came for so long.
const SILENCE: Duration = Duration::from_secs(1);
/// Files, of which a request changes a part. A client that lags behind this many learns that it has missed some.
const FILES: usize = 240;
const FILES_OF_REQUEST: usize = 120;
/// Requests of each try to send more than lies between the service and a client that reads nothing.
const REQUESTS: [usize; 3] = [100, 200, 400];

/// Makes folders, some at a time; returns the id of the last one.
async fn make_folders(api: &Api, count: usize) -> Result<String, Failure> {
    let made = stream::iter(0..count).map(async |number| {
        let body = json!({"name": format!("folder {number}")});
        let (status, path) = (StatusCode::CREATED, "/api/folders");
        let made = api.expect(status, Method::POST, path, Some(&body)).await?;
        text(&made["folder"]["id"])
    });
    let ids: Vec<String> = made.buffered(8).try_collect().await?;
    ids.into_iter().last().ok_or("no folder".into())
}

/// A connection that follows changes and reads nothing but what is asked for.
async fn raw_follower(server: &Server, query: &str) -> Result<TcpStream, Failure> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4 * 1024)?;
    let mut stream = socket.connect(server.addresses().http).await?;
    let head = format!(
        "GET /api/changes{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {API_KEY}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let mut status = [0; 15];
    stream.read_exact(&mut status).await?;
    assert_eq!(&status, b"HTTP/1.1 200 OK");
    Ok(stream)
}

/// Reads what is there, until nothing has come for a while.
async fn read_on(socket: &mut TcpStream) -> Result<String, Failure> {
    let (mut read, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    while let Ok(length) = timeout(SILENCE, socket.read(&mut buffer)).await {
        read.extend_from_slice(&buffer[..length?]);
    }
    Ok(String::from_utf8_lossy(&read).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_client_holds_up_no_other_and_learns_that_it_has_missed_something()
-> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let mut slow = raw_follower(&server, "").await?;
    let mut quick = ChangeStream::open(&server, API_KEY, "").await?;
    let uploads = stream::iter(0..FILES).map(async |number| {
        let file = api.upload(&format!("{number}.txt"), b"text").await?;
        text(&file["id"])
    });
    let files: Vec<String> = uploads.buffered(8).try_collect().await?;
    let mut last_read = String::new();
    for requests in REQUESTS {
        // Some of it is between the service and the slow client, the rest is merged.
        for ids in files.chunks(FILES_OF_REQUEST).cycle().take(requests) {
            let body = json!({"ids": ids, "action": "move", "folderId": null});
            let path = "/api/files/bulk";
            api.expect(StatusCode::OK, Method::POST, path, Some(&body))
                .await?;
            let is_there = |it: &StreamEvent| it.is_change("file", &ids[0]) || it.name == "resync";
            quick.until("a changed file", SOON, is_there).await?;
        }
        last_read = read_on(&mut slow).await?;
        let has_missed = |event: &str| {
            event.contains("event: resync")
                && event.contains(r#""lagged""#)
                && event.contains("file")
        };
        if last_read.split("\n\n").any(has_missed) {
            return Ok(());
        }
    }
    Err(format!("no resync in {last_read}").into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_with_its_key_or_session_within_moments() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let body = json!({"name": "watcher", "scope": "read"});
    let made = api.expect(StatusCode::CREATED, Method::POST, "/api/keys", Some(&body));
    let made = made.await?;
    let key = text(&made["token"])?;
    let browser = Browser::sign_in(&server).await?;
    let mut by_key = ChangeStream::open(&server, &key, "").await?;
    let mut by_session = browser.follow(&server).await?;
    let mut unaffected = ChangeStream::open(&server, API_KEY, "").await?;

    let id = text(&made["key"]["id"])?;
    let path = format!("/api/keys/{id}");
    api.expect(StatusCode::OK, Method::DELETE, &path, None)
        .await?;
    by_key.rest(SOON).await?;
    let is_gone = |it: &StreamEvent| it.is_change("api_key", &id) && it.data["action"] == "deleted";
    by_session.until("the revoked key", SOON, is_gone).await?;
    unaffected.until("the revoked key", SOON, is_gone).await?;

    let ended = browser
        .call(&server, Method::DELETE, "/api/session")
        .await?;
    assert_eq!(ended, StatusCode::OK);
    by_session.rest(SOON).await?;
    unaffected
        .until("the session", SOON, |it| it.data["kind"] == "session")
        .await?;
    let again = request(&server, "").bearer_auth(&key).send().await?;
    assert_eq!(again.status(), StatusCode::UNAUTHORIZED);
    let anonymous = request(&server, "").send().await?;
    assert_eq!(anonymous.status(), StatusCode::UNAUTHORIZED);
    Ok(())
}

/// The bound that refuses one more stream, and its status.
async fn refused(server: &Server, key: &str) -> Result<(StatusCode, String), Failure> {
    let answer = request(server, "").bearer_auth(key).send().await?;
    let status = answer.status();
    let retry_after = answer.headers().get("retry-after").cloned();
    assert!(retry_after.is_some(), "{status} without Retry-After");
    let body: Value = answer.json().await?;
    Ok((status, text(&body["error"])?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn places_are_bounded_and_free_as_soon_as_a_client_leaves() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_CHANGES__MAX_FOLLOWERS", "3")
        .env("SLUICE_CHANGES__MAX_FOLLOWERS_PER_ACCOUNT", "3")
        .env("SLUICE_CHANGES__MAX_FOLLOWERS_PER_CREDENTIAL", "2")
        .start()
        .await?;
    let api = server.api();
    let first = raw_follower(&server, "").await?;
    let second = ChangeStream::open(&server, API_KEY, "").await?;
    let (status, error) = refused(&server, API_KEY).await?;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert!(error.contains("max_followers_per_credential"), "{error}");
    let body = json!({"name": "other", "scope": "read"});
    let made = api.expect(StatusCode::CREATED, Method::POST, "/api/keys", Some(&body));
    let other = text(&made.await?["token"])?;
    let third = ChangeStream::open(&server, &other, "").await?;
    let (status, error) = refused(&server, &other).await?;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(error.contains("changes.max_followers "), "{error}");
    assert!(
        followers(&server)
            .await?
            .contains("sluice_change_followers 3")
    );

    // No heartbeat has to fail first: they are freed long before the next one.
    let closed_at = Instant::now();
    drop((first, second, third));
    eventually("all places are free", SOON, async || {
        let metrics = followers(&server).await.ok()?;
        metrics.contains("sluice_change_followers 0").then_some(())
    })
    .await?;
    assert!(closed_at.elapsed() < Duration::from_secs(14));
    ChangeStream::open(&server, &other, "").await?;
    Ok(())
}

async fn followers(server: &Server) -> Result<String, Failure> {
    let (_, body) = server.get("/metrics").await?;
    Ok(String::from_utf8(body.into())?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_with_the_service_at_once_and_begin_with_a_resync_after_it()
-> Result<(), Failure> {
    let mut server = Server::start().await?;
    let mut stream = ChangeStream::open(&server, API_KEY, "").await?;
    server.signal(rustix::process::Signal::TERM)?;
    stream.rest(SOON).await?;
    server.wait(Duration::from_secs(40)).await?;
    server.restart().await?;
    let mut stream = ChangeStream::open(&server, API_KEY, "").await?;
    let folder = make_folders(&server.api(), 1).await?;
    stream
        .until("a folder", SOON, |it| it.is_change("folder", &folder))
        .await?;
    server.kill().await?;
    stream.rest(SOON).await?;
    server.restart().await?;
    ChangeStream::open(&server, API_KEY, "").await?;
    Ok(())
}
