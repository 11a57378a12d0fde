//! Bytes that no client should send: they cost their sender the connection, and nobody else anything.

mod forgery;

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::{sleep, timeout},
};

use self::forgery as forge;
use crate::support::{
    Failure,
    encoder::Publish,
    eventually,
    http::{client, exchange},
    media::{Clip, Recipe, check_contiguous_to_a_cut},
    publisher::{Pace, Publisher, Target, shake_hands},
    server::{ADMIN_PASSWORD, API_KEY, Input, Server, Settings},
    viewer::Viewer,
};

/// The service's own deadlines in these scenarios are at most 3 s.
const CLOSED_WITHIN: Duration = Duration::from_secs(15);
const CROWD: usize = 300;
/// What the attacks may leave behind in the allocator.
const RESIDENT_GROWTH_KIB: u64 = 64 * 1024;
/// Connections of clients that stay, and segments that are being written.
const OPEN_FILES_GROWTH: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_bytes_on_the_rtmp_port_cost_that_connection_only() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let mut server = Settings::new()
        .env("SLUICE_RTMP__HANDSHAKE_TIMEOUT", "2s")
        .env("SLUICE_RTMP__PUBLISH_TIMEOUT", "3s")
        .env("SLUICE_RTMP__WRITE_TIMEOUT", "2s")
        .env("SLUICE_LOG__FILTER", "debug,kameo=warn")
        .start()
        .await?;
    let api = server.api();
    let (on_air, other) = (
        api.create(json!({"name": "on air"})).await?,
        api.create(json!({"name": "attacked"})).await?,
    );
    let mut encoder = Publish::new(&clip, &on_air.rtmp_url())?.start()?;
    let mut viewing = Viewer::new(&on_air.hls_url).start();
    viewing.until_pictures(60, Duration::from_secs(15)).await?;
    let process = server.process_id();
    let (resident_kib, open_files) = (server.resident_kib()?, server.open_files()?);
    let folder_before = names(&server)?;

    let mut attacks = JoinSet::new();
    for (name, attack) in attack_list() {
        attacks.spawn(strike(server.addresses().rtmp, name, attack));
    }
    for _ in 0..3 {
        attacks.spawn(byte_by_byte(server.addresses().rtmp));
    }
    attacks.spawn(crowd(server.addresses().rtmp));
    attacks.spawn(path_tricks(other.target(), clip.clone()));
    damage_with_a_key(&server, &other, &clip).await?;
    while let Some(attack) = attacks.join_next().await {
        attack??;
    }

    let seen = viewing.collected().pictures();
    viewing
        .until_pictures(seen + 60, Duration::from_secs(10))
        .await?;
    assert!(server.is_running());
    assert_eq!(server.process_id(), process);
    eventually("open files as before", CLOSED_WITHIN, async || {
        let now = server.open_files().ok()?;
        (now <= open_files + OPEN_FILES_GROWTH).then_some(())
    })
    .await?;
    let resident_now_kib = server.resident_kib()?;
    assert!(
        resident_now_kib <= resident_kib + RESIDENT_GROWTH_KIB,
        "{resident_kib} KiB before, {resident_now_kib} KiB after"
    );
    assert_eq!(names(&server)?, folder_before, "no name became a path");

    encoder.stop().await?;
    let collection = viewing.until_ended(Duration::from_secs(15)).await?;
    assert!(collection.outages.is_empty(), "{}", collection.summary());
    let numbers = collection.numbers()?;
    assert_eq!(numbers.len(), 1, "{}", collection.summary());
    check_contiguous_to_a_cut(&numbers[0], 0)?;
    check_log(&server.log(), &[&on_air, &other]);
    Ok(())
}

/// What is sent, and when.
enum Attack {
    /// Instead of a handshake.
    AtOnce(Vec<u8>),
    /// After a handshake as it should be.
    Shaken(Vec<u8>),
}

fn attack_list() -> Vec<(&'static str, Attack)> {
    use Attack::{AtOnce, Shaken};
    let request = b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec();
    let tls_hello = [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        &forge::noise(7, 505),
    ];
    let long_name = "a/../".repeat(2000);
    vec![
        ("an HTTP request", AtOnce(request)),
        ("a TLS hello", AtOnce(tls_hello.concat())),
        ("noise", AtOnce(forge::noise(1, 100_000))),
        (
            "noise after a version",
            AtOnce([vec![3], forge::noise(2, 100_000)].concat()),
        ),
        (
            "noise after the handshake",
            Shaken(forge::noise(3, 100_000)),
        ),
        (
            "more noise after the handshake",
            Shaken(forge::noise(4, 100_000)),
        ),
        (
            "300 kB of nested objects",
            Shaken(forge::nested_objects(300_000)),
        ),
        (
            "nested objects in a short command",
            Shaken(forge::nested_objects(16_000)),
        ),
        (
            "an endless strict array",
            Shaken(forge::endless_array(0x0A)),
        ),
        (
            "an endless associative array",
            Shaken(forge::endless_array(0x08)),
        ),
        ("chunks of 2 GB", Shaken(forge::huge_chunks())),
        ("many beginnings", Shaken(forge::many_beginnings())),
        ("long names", Shaken(forge::publish("live", &long_name))),
        (
            "a long application",
            Shaken(forge::publish(&long_name, "x")),
        ),
        (
            "tiny data messages",
            Shaken(forge::tiny_messages(forge::DATA, 0, 200_000)),
        ),
        (
            "tiny audio before publish",
            Shaken(forge::tiny_messages(forge::AUDIO, 1, 200_000)),
        ),
        ("pings", Shaken(forge::pings(50_000))),
        ("streams", Shaken(forge::streams(20_000))),
    ]
}

/// Sends, reads nothing, and waits until the server has closed.
async fn strike(address: SocketAddr, name: &'static str, attack: Attack) -> Result<(), Failure> {
    let mut socket = TcpStream::connect(address).await?;
    let bytes = match attack {
        Attack::AtOnce(bytes) => bytes,
        Attack::Shaken(bytes) => {
            shake_hands(&mut socket).await?;
            bytes
        }
    };
    let sent = timeout(CLOSED_WITHIN, socket.write_all(&bytes)).await;
    // An error is the close that is waited for.
    let _ = sent.map_err(|_| format!("{name}: neither read nor closed"))?;
    until_closed(&mut socket)
        .await
        .map_err(|failure| format!("{name}: {failure}").into())
}

async fn until_closed(socket: &mut TcpStream) -> Result<(), Failure> {
    let mut piece = [0; 4096];
    let ended = async { while let Ok(1..) = socket.read(&mut piece).await {} };
    timeout(CLOSED_WITHIN, ended)
        .await
        .map_err(|_| format!("open after {CLOSED_WITHIN:?}").into())
}

/// A handshake that takes half an hour at this pace.
async fn byte_by_byte(address: SocketAddr) -> Result<(), Failure> {
    let mut socket = TcpStream::connect(address).await?;
    let (mut reader, mut writer) = socket.split();
    let mut answer = Vec::new();
    let send = async {
        while writer.write_all(&[3]).await.is_ok() {
            sleep(Duration::from_secs(1)).await;
        }
    };
    let closed = async {
        tokio::select! {
            _ = reader.read_to_end(&mut answer) => {}
            () = send => {}
        }
    };
    timeout(CLOSED_WITHIN, closed)
        .await
        .map_err(|_| "a slow handshake is waited for".into())
}

/// Connections that say a word each and fall silent.
async fn crowd(address: SocketAddr) -> Result<(), Failure> {
    let mut sockets = Vec::with_capacity(CROWD);
    for _ in 0..CROWD {
        let mut socket = TcpStream::connect(address).await?;
        socket.write_all(&[3]).await?;
        sockets.push(socket);
    }
    for socket in &mut sockets {
        until_closed(socket).await?;
    }
    Ok(())
}

/// Names that a careless server would open as files, or compare with too much kindness.
async fn path_tricks(target: Target, clip: Clip) -> Result<(), Failure> {
    let (slug, _) = target.stream.split_once('.').ok_or("no slug")?;
    let (no_key, upper) = (format!("{slug}."), target.stream.to_uppercase());
    let streams = [
        "../../etc/passwd",
        "..%2f..%2fetc",
        "/etc/passwd",
        "a\0b",
        "",
        ".",
        slug,
        &no_key,
        &upper,
    ];
    let apps = ["../../etc", "live/../../etc", "live\0", "", "LIVE"];
    let named = streams.map(|stream| Target {
        stream: stream.to_owned(),
        ..target.clone()
    });
    let placed = apps.map(|app| Target {
        app: app.to_owned(),
        ..target.clone()
    });
    for target in named.into_iter().chain(placed) {
        let status = Publisher::expect_refusal(&target, &clip)
            .await
            .map_err(|failure| format!("{target:?}: {failure}"))?;
        assert_eq!(status.code, "NetStream.Publish.BadName", "{target:?}");
    }
    Ok(())
}

/// With the right key: pictures too large, NAL units beyond their tag, time that jumps back, and a flood.
async fn damage_with_a_key(server: &Server, input: &Input, clip: &Clip) -> Result<(), Failure> {
    let mut publisher = Publisher::open(&input.target(), clip).await?;
    publisher.send_pictures(60, Pace::Unbounded).await?;
    let stream = publisher.stream_id();
    let back_ms = 1000_u32.wrapping_sub(1 << 31);
    for (kind, time_ms, body) in [
        (forge::VIDEO, 2000, &forge::NAL_UNIT_BEYOND_ITS_TAG[..]),
        (forge::VIDEO, 2000, &forge::enormous_picture()),
        (
            forge::AUDIO,
            back_ms,
            &[0xAF, 1, 0x21, 0x10, 4, 0x60, 0x8C, 0x1C],
        ),
    ] {
        let bytes = forge::message(4, kind, stream, time_ms, body);
        publisher.send_bytes(&bytes).await?;
    }
    let flood = forge::tiny_messages(forge::VIDEO, stream, 100_000);
    publisher.send_bytes(&flood).await?;
    let api = server.api();
    let health = api
        .wait_health(&input.id, "damage is counted", CLOSED_WITHIN, |health| {
            health["damagedUnits"].as_u64() >= Some(2)
        })
        .await?;
    assert_eq!(
        (&health["width"], &health["height"]),
        (&json!(160), &json!(96)),
        "{health}"
    );
    publisher.cut().await?;
    Ok(())
}

/// The folders of the data folder and its parent, which tricks would have changed.
fn names(server: &Server) -> Result<BTreeSet<String>, Failure> {
    let mut names = BTreeSet::new();
    let folder = server.data_dir();
    for folder in [Some(folder), folder.parent()].into_iter().flatten() {
        for entry in std::fs::read_dir(folder)? {
            names.insert(entry?.path().display().to_string());
        }
    }
    Ok(names)
}

/// The log has its lines, and no secret in any of them.
fn check_log(log: &str, inputs: &[&Input]) {
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines.len() > 10, "{log}");
    let keys = inputs.iter().map(|input| {
        let key = input.obs_stream_key.split_once('.');
        key.expect("slug and key").1
    });
    for secret in keys.chain([API_KEY, ADMIN_PASSWORD]) {
        let told = lines.iter().find(|line| line.contains(secret));
        assert_eq!(told, None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_requests_are_refused_in_json() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let server = Settings::new()
        .env("SLUICE_LOG__FILTER", "debug,kameo=warn")
        .start()
        .await?;
    let input = server.api().create(json!({})).await?;
    let mut publisher = Publisher::open(&input.target(), &clip).await?;
    publisher.send_pictures(150, Pace::Unbounded).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    viewing.until_pictures(1, Duration::from_secs(10)).await?;

    odd_bodies(&server).await?;
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
        "/live/..%2f..%2fetc".to_owned(),
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
        "/mcp".to_owned(),
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
    // Chunked or not, the object stands in one piece.
    let object = body
        .find('{')
        .and_then(|from| Some(&body[from..=body.rfind('}')?]));
    let error: Value = serde_json::from_str(object.unwrap_or_default())
        .map_err(|cause| format!("{case}: {cause}: {answer}"))?;
    assert!(error["error"].is_string(), "{case}: {answer}");
    Ok(())
}
