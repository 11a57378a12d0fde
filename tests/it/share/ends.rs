//! Ends of a link: the same bytes for all causes, and running downloads that are cut.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};

use super::{SOON, Shared, make_folder, share};
use crate::support::{
    Failure, eventually,
    http::{client, exchange},
    json::text,
    server::Settings,
};

/// More than sockets and buffers on the way hold.
const LONG: usize = 64 << 20;
/// A download ends within a second of its link; the rest is for a busy machine.
const ENDED_WITHIN: Duration = Duration::from_secs(10);
const UNAVAILABLE: &str = r#"{"error":"This link is no longer available."}"#;

/// Returns the answer byte by byte, without the two headers that are never the same.
async fn raw(shared: &Shared, method: &str, path: &str) -> Result<String, Failure> {
    let body = match method {
        "POST" => {
            "Content-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"password\":\"x\"}"
        }
        _ => "\r\n",
    };
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{body}");
    let (_, answer) = exchange(shared.server.addresses().http, request).await?;
    let is_own = |line: &&str| {
        let line = line.to_ascii_lowercase();
        !line.starts_with("date:") && !line.starts_with("x-request-id:")
    };
    // The order of headers has no meaning.
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no end of the head")?;
    let mut lines: Vec<&str> = head.split("\r\n").filter(is_own).collect();
    lines[1..].sort_unstable();
    Ok(format!("{}\n\n{body}", lines.join("\n")))
}

/// A service with a link, and tokens that open nothing, by what is wrong with them.
async fn dead_links() -> Result<(Shared, Vec<(&'static str, String)>), Failure> {
    let settings = Settings::new().env("SLUICE_SHARES__GUESSES", "1000");
    let shared = Shared::on(settings, json!({})).await?;
    let api = &shared.api;
    let replaced = shared.token.clone();
    let again = share(api, &shared.folder, json!({"expiresIn": 3600})).await?;
    let expired = text(&again["token"])?;
    shared.alter("UPDATE shares SET expires_at = 1").await?;
    let mut deleted = Vec::new();
    for (name, rest) in [("gone", ""), ("revoked", "/share")] {
        let folder = make_folder(api, name, None).await?;
        let made = share(api, &folder, json!({"password": "x"})).await?;
        deleted.push(text(&made["token"])?);
        let path = format!("/api/folders/{folder}{rest}");
        api.expect(StatusCode::OK, Method::DELETE, &path, None)
            .await?;
    }
    let [gone, revoked] = <[String; 2]>::try_from(deleted).map_err(|_| "two links")?;
    let tokens = vec![
        ("unknown", "A".repeat(43)),
        ("replaced", replaced),
        ("expired", expired.clone()),
        ("its folder gone", gone),
        ("revoked", revoked),
        ("too short", "x".to_owned()),
        ("too long", "A".repeat(5_000)),
        ("padded", format!("{expired}=")),
        ("no UTF-8", "%FF%FE".to_owned()),
        ("a zero byte", "%00".to_owned()),
        ("dots", "..%2f..".to_owned()),
        (
            "an API key",
            "svc_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG".to_owned(),
        ),
    ];
    Ok((shared, tokens))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_wrong_with_a_link_is_one_answer() -> Result<(), Failure> {
    let (shared, tokens) = dead_links().await?;
    let file = shared.put("a.txt", b"a").await?;
    for (method, rest) in [
        ("GET", String::new()),
        ("HEAD", String::new()),
        ("GET", "?folderId=x&cursor=y".to_owned()),
        ("GET", format!("/files/{file}")),
        ("GET", "/files/none".to_owned()),
        ("GET", format!("/files/{file}/preview?w=1")),
        ("GET", "/zip".to_owned()),
        ("POST", "/unlock".to_owned()),
    ] {
        let mut first = None;
        for (cause, token) in &tokens {
            let path = format!("/api/share/folder/{token}{rest}");
            let answer = raw(&shared, method, &path).await?;
            let first = first.get_or_insert_with(|| answer.clone());
            assert_eq!(&answer, first, "{method} {rest}: {cause}");
        }
        let answer = first.unwrap_or_default();
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\n"), "{answer}");
        assert!(answer.contains("cache-control: no-store\n"), "{answer}");
        let is_whole = method == "HEAD" || answer.ends_with(&format!("\n\n{UNAVAILABLE}"));
        assert!(is_whole, "{answer}");
        assert!(!answer.contains("ratelimit"), "{answer}");
    }
    Ok(())
}

/// Rounds of one request for each cause, so that other load on the machine affects all of them alike.
const ROUNDS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_of_an_answer_does_not_tell_what_is_wrong_with_a_link() -> Result<(), Failure> {
    let (shared, mut tokens) = dead_links().await?;
    // A long path takes longer to read for any cause.
    tokens.retain(|(cause, _)| *cause != "too long");
    let client = client();
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); tokens.len()];
    for _ in 0..ROUNDS {
        for ((_, token), times) in tokens.iter().zip(&mut times) {
            let url = format!("{}{}", shared.server.base_url(), "/api/share/folder/");
            let begun = Instant::now();
            let answer = client.get(format!("{url}{token}")).send().await?;
            assert_eq!(answer.bytes().await?.len(), UNAVAILABLE.len());
            times.push(begun.elapsed());
        }
    }
    let medians: Vec<Duration> = times
        .iter_mut()
        .map(|times| *times.select_nth_unstable(ROUNDS / 2).1)
        .collect();
    let (least, most) = (medians.iter().min(), medians.iter().max());
    let (least, most) = (least.ok_or("none")?, most.ok_or("none")?);
    // A look that is left out, or a second one, would be a multiple.
    assert!(*most < *least * 2, "{medians:?} of {tokens:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_guesses_learns_nothing() -> Result<(), Failure> {
    let settings = Settings::new()
        .env("SLUICE_SHARES__GUESSES", "20")
        .env("SLUICE_HTTP__TRUSTED_PROXIES", "127.0.0.1");
    let shared = Shared::on(settings, json!({})).await?;
    let url = |token: &str| format!("{}/api/share/folder/{token}", shared.server.base_url());
    let client = client();
    let get = async |token: &str, from: &str| {
        let request = client.get(url(token)).header("x-forwarded-for", from);
        let answer = request.send().await?;
        Ok::<_, Failure>((answer.status().as_u16(), answer.text().await?))
    };
    let guesser = "203.0.113.7";
    assert_eq!(get(&shared.token, guesser).await?.0, 200);
    for number in 0..10_000 {
        let (status, body) = get(&format!("{number:043}"), guesser).await?;
        assert_eq!((status, body.as_str()), (404, UNAVAILABLE), "{number}");
        if number == 19 {
            assert_eq!(get(&shared.token, guesser).await?.0, 200);
        }
    }
    let (status, body) = get(&shared.token, guesser).await?;
    assert_eq!(
        (status, body.as_str()),
        (404, UNAVAILABLE),
        "even the right one"
    );
    assert_eq!(get(&shared.token, "203.0.113.8").await?.0, 200);
    Ok(())
}

/// A download that is read as it comes.
struct Download {
    socket: TcpStream,
    received: usize,
}

impl Download {
    async fn begin(shared: &Shared, path: &str) -> Result<Self, Failure> {
        let mut socket = TcpStream::connect(shared.server.addresses().http).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await?;
        let mut download = Self {
            socket,
            received: 0,
        };
        download.read().await?;
        Ok(download)
    }

    async fn read(&mut self) -> Result<usize, Failure> {
        let mut piece = vec![0; 16 * 1024];
        let read = self.socket.read(&mut piece).await?;
        self.received += read;
        Ok(read)
    }

    /// Reads until the connection ends, however it does; bytes received in all.
    async fn rest(mut self) -> Result<usize, Failure> {
        let reading = async {
            while let Ok(1..) = self.read().await {}
            self.received
        };
        Ok(timeout(ENDED_WITHIN, reading).await?)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_ends_takes_its_downloads_with_it() -> Result<(), Failure> {
    let shared = Shared::open(json!({})).await?;
    let file = shared.put("long.bin", &vec![7; LONG]).await?;
    let ended = async |download: Download, why: &str| {
        let received = download.rest().await?;
        assert!(received < LONG, "{why}: all of it came");
        Ok::<_, Failure>(())
    };
    let file_path = |token: &str| format!("/api/share/folder/{token}/files/{file}");

    let running = Download::begin(&shared, &file_path(&shared.token)).await?;
    shared.revoke().await?;
    ended(running, "revoked").await?;

    let renew = async |terms| {
        let made = share(&shared.api, &shared.folder, terms).await?;
        text(&made["token"])
    };
    let token = renew(json!({})).await?;
    let running = Download::begin(&shared, &file_path(&token)).await?;
    let token = renew(json!({})).await?;
    ended(running, "replaced").await?;

    let in_a_second = "(SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + 1500)";
    let soon = format!("UPDATE shares SET expires_at = {in_a_second}");
    shared.alter(&soon).await?;
    let running = Download::begin(&shared, &file_path(&token)).await?;
    let path = format!("/api/share/folder/{token}");
    eventually("the link has expired", SOON, async || {
        let answer = shared.api.fetch(&path).await.ok()?;
        (answer.status == 404).then_some(())
    })
    .await?;
    ended(running, "expired").await?;

    let token = renew(json!({})).await?;
    let running = Download::begin(&shared, &file_path(&token)).await?;
    let path = format!("/api/folders/{}?recursive=true", shared.folder);
    let deleted = shared
        .api
        .expect(StatusCode::OK, Method::DELETE, &path, None);
    deleted.await?;
    ended(running, "its folder deleted").await?;
    Ok(())
}
