//! The HTTP port: rejections in JSON, and patience with an end.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};

use super::{CLOSED_WITHIN, check_log, until_closed};
use crate::support::{
    Failure,
    http::{client, exchange},
    media::{Clip, Recipe},
    publisher::{Pace, Publisher},
    server::{API_KEY, Input, Server, Settings},
    viewer::Viewer,
};

/// Connections that never finish their request.
const CROWD: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_requests_are_refused_in_json() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let server = Settings::new()
        .env("SLUICE_LOG__FILTER", "debug,kameo=warn")
        .start()
        .await?;
    let input = server.api().create(json!({})).await?;
    let mut publisher = Publisher::open(&input.target(), &clip).await?;
    publisher.send_frames(150, Pace::Unbounded).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    viewing.until_frames(1, Duration::from_secs(10)).await?;

    odd_bodies(&server).await?;
    endless_bodies(&server).await?;
    odd_directives(&server, &input).await?;
    odd_paths(&server, &input).await?;
    odd_methods(&server, &input).await?;
    viewing.check()?;
    check_log(&server.log(), &[&input]);
    Ok(())
}

async fn odd_bodies(server: &Server) -> Result<(), Failure> {
    let url = format!("{}/api/live/inputs", server.base_url());
    let large = format!(r#"{{"name": "{}"}}"#, "x".repeat(10 << 20));
    let deep = format!(r#"{{"name": {}"#, "[".repeat(100_000));
    let json_type = "application/json";
    let cases: [(&str, &str, &str, u16, &str); 9] = [
        ("br", json_type, "{}", 415, "Content-Encoding"),
        ("gzip", json_type, "{}", 415, "Content-Encoding"),
        ("identity, gzip", json_type, "{}", 415, "Content-Encoding"),
        ("", json_type, &large, 413, "http.max_json"),
        ("", "text/plain", "{}", 415, "application/json"),
        ("", json_type, "{\"name\":", 400, "malformed JSON"),
        ("", json_type, &deep, 400, "malformed JSON"),
        ("", json_type, "{\"name\": 7}", 400, "name"),
        (
            "",
            json_type,
            "{\"reconnectWindowSeconds\": \"x\"}",
            400,
            "reconnectWindowSeconds",
        ),
    ];
    for (encoding, kind, body, status, word) in cases {
        let mut request = client()
            .post(&url)
            .bearer_auth(API_KEY)
            .header("content-type", kind)
            .body(body.to_owned());
        if !encoding.is_empty() {
            request = request.header("content-encoding", encoding);
        }
        let answer = request.send().await?;
        let case = format!("{encoding} {kind} {}", &body[..body.len().min(40)]);
        assert_eq!(answer.status(), status, "{case}");
        let error: Value = answer.json().await?;
        let text = error["error"].as_str().unwrap_or_default();
        assert!(text.contains(word), "{case}: {error}");
    }
    Ok(())
}

/// Chunked bodies that never end: the answer is the last one on its connection.
async fn endless_bodies(server: &Server) -> Result<(), Failure> {
    let key = format!("Authorization: Bearer {API_KEY}\r\n");
    let encoded = format!("{key}Content-Encoding: br\r\n");
    let large = format!("10000\r\n{}\r\n", "x".repeat(0x10000)).repeat(20);
    for (headers, body, expected) in [
        (key.as_str(), large.as_str(), 413),
        (&encoded, "1\r\n{\r\n", 415),
        ("", &large, 401),
        ("", "1\r\n{\r\n", 401),
    ] {
        let request = chunked(headers, body);
        let (status, answer) = exchange(server.addresses().http, request).await?;
        assert_eq!(status, expected, "{answer}");
        check_error_body("an endless body", &answer)?;
    }
    // After a body that ends, the connection serves the next request.
    let whole = "2\r\n{}\r\n0\r\n\r\n";
    let last = format!("{key}Connection: close\r\n");
    let both = [chunked(&key, whole), chunked(&last, whole)].concat();
    let (_, answers) = exchange(server.addresses().http, both).await?;
    assert_eq!(answers.matches("HTTP/1.1 201").count(), 2, "{answers}");
    Ok(())
}

fn chunked(headers: &str, body: &str) -> String {
    format!(
        "POST /api/live/inputs HTTP/1.1\r\nHost: x\r\n{headers}Content-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\n\r\n{body}"
    )
}

async fn odd_directives(server: &Server, input: &Input) -> Result<(), Failure> {
    let base = format!("{}{}", server.base_url(), input.playback_path(""));
    for (query, word) in [
        ("media.m3u8?_HLS_msn=18446744073709551615", "_HLS_msn"),
        ("media.m3u8?_HLS_msn=99999999999999999999999", "_HLS_msn"),
        ("media.m3u8?_HLS_msn=-1", "_HLS_msn"),
        ("media.m3u8?_HLS_msn=abc", "_HLS_msn"),
        ("media.m3u8?_HLS_msn=", "_HLS_msn"),
        ("media.m3u8?_HLS_msn=0&_HLS_part=-1", "_HLS_part"),
        ("media.m3u8?_HLS_msn=0&_HLS_part=4294967296", "_HLS_part"),
        ("media.m3u8?_HLS_part=0", "_HLS_msn"),
        ("state?wait=-1", "wait"),
        ("state?wait=forever", "wait"),
    ] {
        let answer = client().get(format!("{base}{query}")).send().await?;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{query}");
        let headers = answer.headers().clone();
        assert_eq!(headers["access-control-allow-origin"], "*", "{query}");
        let error: Value = answer.json().await?;
        let text = error["error"].as_str().unwrap_or_default();
        assert!(text.contains(word), "{query}: {error}");
    }
    Ok(())
}

/// By hand: client libraries resolve `..` themselves.
async fn odd_paths(server: &Server, input: &Input) -> Result<(), Failure> {
    let playback = input.playback_path("");
    let paths = [
        format!("{playback}../../../../etc/passwd"),
        format!("{playback}%2e%2e/%2e%2e/etc/passwd"),
        format!("{playback}..%2f..%2fsluice.db/0.m4s"),
        format!("{playback}x/..%2f..%2f0.m4s"),
        format!("{playback}x/0.m4s%00.txt"),
        format!("{playback}x/-1.m4s"),
        format!("{playback}x/99999999999999999999.m4s"),
        format!("{playback}x/init99999999999.mp4"),
        "/live/v1/..%2f..%2f/index.m3u8".to_owned(),
        "/live/v1/%00/index.m3u8".to_owned(),
        format!("/live/v1/{}/index.m3u8", "a".repeat(20_000)),
        "/assets/../sluice.db".to_owned(),
        "/assets/..%2f..%2fCargo.toml".to_owned(),
        "/assets/%2fetc%2fpasswd".to_owned(),
        "/assets/..\\..\\x".to_owned(),
        "//etc/passwd".to_owned(),
        "/api/live/inputs/..%2f..%2fkeys".to_owned(),
        "/api/live/inputs/not-an-id".to_owned(),
        "/api/nothing".to_owned(),
        "/cdn/v1/x/y".to_owned(),
        "/video/v1/x/master.m3u8".to_owned(),
        "/mcpx".to_owned(),
        "/%ff%fe".to_owned(),
    ];
    for path in paths {
        let shown = &path[..path.len().min(60)];
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {API_KEY}\r\n\r\n"
        );
        let (status, answer) = exchange(server.addresses().http, head).await?;
        assert_eq!(status, 404, "{shown}: {answer}");
        check_error_body(shown, &answer)?;
    }
    Ok(())
}

async fn odd_methods(server: &Server, input: &Input) -> Result<(), Failure> {
    let address = server.addresses().http;
    let media = input.playback_path("media.m3u8");
    for (method, path, allowed) in [
        ("PUT", "/api/live/inputs", "GET, POST, HEAD"),
        ("DELETE", "/api/session/", ""),
        ("PATCH", "/api/keys", "GET, POST, HEAD"),
        ("BREW", "/healthz", "GET, HEAD"),
        ("POST", media.as_str(), "GET, HEAD, OPTIONS"),
        ("TRACE", "/docs", "GET, HEAD"),
    ] {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        let (status, answer) = exchange(address, head).await?;
        let case = format!("{method} {path}");
        check_error_body(&case, &answer)?;
        let expected = if allowed.is_empty() { 404 } else { 405 };
        assert_eq!(status, expected, "{case}: {answer}");
        let allow = answer.lines().find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("allow: ")
                .map(str::to_owned)
        });
        assert_eq!(
            allow.unwrap_or_default(),
            allowed.to_ascii_lowercase(),
            "{case}"
        );
    }
    let api = server.api();
    let (status, error) = api.call(Method::GET, "/nowhere", None).await?;
    assert_eq!(
        (status, error["error"].is_string()),
        (StatusCode::NOT_FOUND, true)
    );
    Ok(())
}

/// The body of every error: JSON with `error`.
fn check_error_body(case: &str, answer: &str) -> Result<(), Failure> {
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or("an answer has a head")?;
    let is_json = head
        .to_ascii_lowercase()
        .contains("content-type: application/json");
    assert!(is_json, "{case}: {answer}");
    // Chunked or not, the object is in one piece.
    let object = body
        .find('{')
        .and_then(|from| Some(&body[from..=body.rfind('}')?]));
    let error: Value = serde_json::from_str(object.unwrap_or_default())
        .map_err(|cause| format!("{case}: {cause}: {answer}"))?;
    assert!(error["error"].is_string(), "{case}: {answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_dawdle_are_not_waited_for() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let server = Settings::new()
        .env("SLUICE_HTTP__HEADER_TIMEOUT", "1s")
        .env("SLUICE_HTTP__BODY_TIMEOUT", "1s")
        .env("SLUICE_HTTP__KEEP_ALIVE", "2s")
        .env("SLUICE_LIVE__MAX_WAITING_VIEWERS", "2")
        .start()
        .await?;
    let address = server.addresses().http;
    let mut half_heads = Vec::with_capacity(CROWD);
    for _ in 0..CROWD {
        let mut socket = TcpStream::connect(address).await?;
        socket
            .write_all(b"GET /docs HTTP/1.1\r\nHost: x\r\nX-")
            .await?;
        half_heads.push(socket);
    }
    let half_body = format!(
        "POST /api/live/inputs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {API_KEY}\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{{"
    );
    let (status, answer) = exchange(address, half_body).await?;
    assert_eq!(status, 408, "{answer}");
    check_error_body("half a body", &answer)?;
    for socket in &mut half_heads {
        until_closed(socket).await?;
    }
    too_many_wait(&server, &clip).await
}

/// With room for two waiting viewers, the third gets the time to come again.
async fn too_many_wait(server: &Server, clip: &Clip) -> Result<(), Failure> {
    let input = server.api().create(json!({})).await?;
    let mut publisher = Publisher::open(&input.target(), clip).await?;
    publisher.send_frames(90, Pace::Unbounded).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let seen = viewing.until_frames(60, CLOSED_WITHIN).await?;
    drop(viewing);
    let next = seen.last_msn().ok_or("nothing listed")? + 1;
    let media = input.playback_path("media.m3u8");
    let url = format!("{}{media}?_HLS_msn={next}", server.base_url());
    let ask = || tokio::spawn(client().get(&url).send());
    let mut waiting = [ask(), ask()];
    for reload in &mut waiting {
        let early = timeout(Duration::from_millis(300), reload).await;
        assert!(
            early.is_err(),
            "a reload for the next segment waits: {early:?}"
        );
    }
    let third = ask().await??;
    assert_eq!(third.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(third.headers().contains_key("retry-after"));
    assert!(
        waiting.iter().all(|reload| !reload.is_finished()),
        "the first two wait on"
    );
    publisher.end().await?;
    for reload in waiting {
        assert_eq!(reload.await??.status(), StatusCode::OK);
    }
    Ok(())
}
