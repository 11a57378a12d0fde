//! The RTMP port, while a stream is on air and a strict viewer follows it.

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use serde_json::json;
use sluice_testkit::rtmp::shake_hands;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{CLOSED_WITHIN, check_log, forgery as forge, until_closed};
use crate::support::{
    Failure,
    encoder::Publish,
    eventually,
    media::{Clip, Recipe, check_contiguous_to_a_cut},
    publisher::{Pace, Publisher, Target},
    server::{Input, Server, Settings},
    viewer::Viewer,
};

const CROWD: usize = 300;
/// Memory that the attacks may leave behind in the allocator.
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
        // Attackers and encoders come from one address here.
        .env("SLUICE_RTMP__MAX_UNADMITTED", "1024")
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
    viewing.until_frames(60, Duration::from_secs(15)).await?;
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

    let seen = viewing.collected().video_frames();
    viewing
        .until_frames(seen + 60, Duration::from_secs(10))
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

/// Bytes of an attack, and their times.
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
        let status = Publisher::expect_rejection(&target, &clip)
            .await
            .map_err(|failure| format!("{target:?}: {failure}"))?;
        assert_eq!(status.code, "NetStream.Publish.BadName", "{target:?}");
    }
    Ok(())
}

/// With the right key: frames too large, NAL units beyond their tag, time that jumps back, and a flood.
async fn damage_with_a_key(server: &Server, input: &Input, clip: &Clip) -> Result<(), Failure> {
    let mut publisher = Publisher::open(&input.target(), clip).await?;
    publisher.send_frames(60, Pace::Unbounded).await?;
    let stream = publisher.stream_id();
    let back_ms = 1000_u32.wrapping_sub(1 << 31);
    for (kind, time_ms, body) in [
        (forge::VIDEO, 2000, &forge::NAL_UNIT_BEYOND_ITS_TAG[..]),
        (forge::VIDEO, 2000, &forge::enormous_frame()),
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
