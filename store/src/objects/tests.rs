//! Tests of the object store against a fake S3 server and a folder.

use std::{fs, path::Path, time::Duration};

use bytes::Bytes;
use futures_util::future::join_all;

use super::{
    fake::{FakeS3, Trick},
    limits::Limits,
    *,
};
use crate::blob::{
    Blobs,
    pieces::{Piece, piece_hash},
};

fn limits() -> Limits {
    Limits {
        connect: Duration::from_secs(3),
        stall: Duration::from_millis(200),
        patience: Duration::from_secs(10),
        pace: 32 << 10,
        first_pause: Duration::from_millis(2),
    }
}

fn settings(objects_url: String) -> StoreSettings {
    StoreSettings {
        objects_url,
        objects_access_key: "swordfish-key".into(),
        objects_secret_key: "swordfish".into(),
        ..StoreSettings::default()
    }
}

fn on(port: u16) -> Objects {
    on_with(port, limits())
}

fn on_with(port: u16, limits: Limits) -> Objects {
    let url = format!("s3://media/p?endpoint=http://127.0.0.1:{port}");
    let objects = Objects::with_limits(&settings(url), limits);
    objects.unwrap().unwrap()
}

fn in_folder(folder: &Path) -> Objects {
    let url = url::Url::from_file_path(folder).unwrap();
    let objects = Objects::with_limits(&settings(url.into()), limits());
    objects.unwrap().unwrap()
}

async fn keys(objects: &Objects, prefix: &str, after: Option<&str>) -> Vec<String> {
    let entries = objects.list(prefix, after).await.unwrap();
    entries.into_iter().map(|entry| entry.key).collect()
}

/// The contract, which both kinds keep.
async fn check_contract(objects: &Objects) {
    let piece = Bytes::from(vec![7; 100_000]);
    objects.put("b/01/0", piece.clone()).await.unwrap();
    objects.put("b/01/1", Bytes::new()).await.unwrap();
    objects.put("b/02/t1", "abc".into()).await.unwrap();
    assert_eq!(objects.get("b/01/0").await.unwrap(), piece);
    assert_eq!(objects.get("b/01/1").await.unwrap(), "");
    assert_eq!(objects.get("b/02/t1").await.unwrap(), "abc");

    let entries = objects.list("b/", None).await.unwrap();
    let found: Vec<(&str, u64)> = entries
        .iter()
        .map(|entry| (entry.key.as_str(), entry.size))
        .collect();
    assert_eq!(found, [("b/01/0", 100_000), ("b/01/1", 0), ("b/02/t1", 3)]);
    assert!(entries.iter().all(|entry| entry.modified_ms > 1 << 40));
    for (prefix, after, expected) in [
        ("b/", Some("b/01/0"), &["b/01/1", "b/02/t1"][..]),
        ("b/", Some("b/01/1"), &["b/02/t1"]),
        ("b/", Some("b/01"), &["b/01/0", "b/01/1", "b/02/t1"]),
        ("b/", Some("b/02/t1"), &[]),
        ("b/", Some("a"), &["b/01/0", "b/01/1", "b/02/t1"]),
        ("b/", Some("c"), &[]),
        ("b/01/", None, &["b/01/0", "b/01/1"]),
        ("b/02", None, &["b/02/t1"]),
        ("c/", None, &[]),
    ] {
        assert_eq!(
            keys(objects, prefix, after).await,
            expected,
            "{prefix} {after:?}"
        );
    }

    let missing = objects.get("b/03/0").await;
    assert!(
        matches!(missing, Err(Error::NotFound("object"))),
        "{missing:?}"
    );
    for key in ["b/03/0", "b/01/0", "b/01/0", "b/01/1", "b/02/t1"] {
        objects.delete(key).await.unwrap();
    }
    assert_eq!(keys(objects, "b/", None).await, [""; 0]);
    for key in ["", "../x", "/x", "b//0"] {
        let rejected = objects.put(key, Bytes::new()).await;
        assert!(matches!(rejected, Err(Error::Internal(_))), "{key}");
    }
    objects.prepare().await.unwrap();
    assert_eq!(keys(objects, "probe/", None).await, [""; 0]);
}

#[tokio::test]
async fn a_server_keeps_the_contract() {
    let server = FakeS3::start().await;
    check_contract(&on(server.port)).await;
    assert_eq!(server.objects(), [""; 0]);
}

#[tokio::test]
async fn a_folder_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    check_contract(&in_folder(folder.path())).await;
    // Empty folders are removed.
    let names = fs::read_dir(folder.path()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["tmp"]);
}

#[tokio::test]
async fn requests_are_signed_and_of_the_form_that_servers_take() {
    let server = FakeS3::start().await;
    let objects = on(server.port);
    objects.put("b/01/0", "abc".into()).await.unwrap();
    objects.put("b/01/1", Bytes::new()).await.unwrap();
    objects.get("b/01/0").await.unwrap();
    objects.list("b/", Some("b/01/0")).await.unwrap();
    let received = server.received();
    let targets: Vec<String> = received
        .iter()
        .map(|it| format!("{} {}", it.method, it.target))
        .collect();
    assert_eq!(
        targets,
        [
            "PUT p/b/01/0",
            "PUT p/b/01/1",
            "GET p/b/01/0",
            "GET ?encoding-type=url&list-type=2&max-keys=1000&prefix=p%2Fb%2F&start-after=p%2Fb%2F01%2F0",
        ]
    );
    for request in &received {
        let header = |name: &str| request.headers.get(name).map(String::as_str);
        let host = format!("127.0.0.1:{}", server.port);
        assert_eq!(header("host"), Some(host.as_str()));
        let authorization = header("authorization").unwrap();
        assert!(
            authorization.starts_with("AWS4-HMAC-SHA256 Credential=swordfish-key/")
                && authorization.contains(
                    "/us-east-1/s3/aws4_request,SignedHeaders=host;x-amz-content-sha256;x-amz-date,"
                ),
            "{authorization}"
        );
        let hash = sign::payload_hash(&request.body);
        assert_eq!(header("x-amz-content-sha256"), Some(hash.as_str()));
        assert_eq!(header("transfer-encoding"), None);
    }
    let header = |number: usize, name: &str| received[number].headers.get(name).cloned();
    assert_eq!(header(0, "content-length").as_deref(), Some("3"));
    assert_eq!(header(1, "content-length").as_deref(), Some("0"));
    assert_eq!(header(2, "content-length"), None);
    assert_eq!(header(2, "range"), None);
    assert_eq!(server.connections(), 1, "the connection is kept");
}

#[tokio::test]
async fn a_passing_failure_is_repeated() {
    let server = FakeS3::start().await;
    let objects = on(server.port);
    objects.put("b/01/0", "abc".into()).await.unwrap();
    server.received();
    for trick in [
        Trick::Status(500, "InternalError"),
        Trick::Status(503, "SlowDown"),
        Trick::Status(400, "RequestTimeout"),
        Trick::Short,
        Trick::Announced(3),
        Trick::Stall,
        Trick::Close,
    ] {
        server.play(&[trick.clone(), trick.clone()]);
        let read = objects.get("b/01/0").await;
        assert_eq!(read.unwrap(), "abc", "{trick:?}");
        assert!(server.received().len() >= 3, "{trick:?}");
        server.play(&[(); 3].map(|()| trick.clone()));
        let failed = objects.get("b/01/0").await;
        // A connection that is closed while idle may have taken one of them.
        let failed = match failed {
            Ok(_) if matches!(trick, Trick::Close) => continue,
            failed => failed.unwrap_err(),
        };
        assert!(matches!(failed, Error::Objects(_)), "{trick:?} {failed:?}");
        assert!(failed.to_string().contains("the object store "), "{failed}");
        assert_eq!(server.received().len(), 3, "{trick:?}");
    }
}

#[tokio::test]
async fn a_lasting_failure_is_not_repeated() {
    let server = FakeS3::start().await;
    let objects = on(server.port);
    for (trick, expected) in [
        (Trick::Status(403, "AccessDenied"), "s3:PutObject"),
        (
            Trick::Status(403, "SignatureDoesNotMatch"),
            "store.objects_secret_key",
        ),
        (Trick::Status(404, "NoSuchBucket"), "make the bucket"),
        (Trick::Status(301, "PermanentRedirect"), "region"),
    ] {
        server.play(std::slice::from_ref(&trick));
        let failed = objects.put("b/01/0", "abc".into()).await.unwrap_err();
        assert!(matches!(failed, Error::Objects(_)), "{failed:?}");
        server.play(&[trick]);
        let rejected = objects.prepare().await.unwrap_err();
        assert!(matches!(rejected, Error::Unsupported(_)), "{rejected:?}");
        for error in [failed, rejected] {
            let text = error.to_string();
            assert!(
                text.contains(expected) && !text.contains("swordfish"),
                "{text}"
            );
        }
        assert_eq!(server.received().len(), 2);
    }
    server.play(&[Trick::Status(507, "")]);
    let full = objects.put("b/01/0", "abc".into()).await;
    assert!(matches!(full, Err(Error::Full)), "{full:?}");
    server.play(&[Trick::Status(507, "")]);
    objects.prepare().await.unwrap();
}

/// A machine whose clock is wrong can use the object store: requests go by the clock that their answers have.
#[tokio::test]
async fn requests_go_by_the_clock_of_the_object_store() {
    let server = FakeS3::start().await;
    let objects = on(server.port);
    for ahead_s in [3600, -7200] {
        server.play(&[Trick::Ahead(ahead_s)]);
        objects.put("b/01/0", "abc".into()).await.unwrap();
        let expected = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(ahead_s);
        let expected = expected.strftime("%Y%m%dT%H").to_string();
        let received = server.received();
        assert_eq!(received.len(), 2);
        let date = &received[1].headers["x-amz-date"];
        assert!(date.starts_with(&expected), "{date} instead of {expected}");
    }
    // The same clock again would change nothing.
    server.play(&[Trick::Ahead(-7200)]);
    let rejected = objects.put("b/01/0", "abc".into()).await.unwrap_err();
    assert!(rejected.to_string().contains("NTP"), "{rejected}");
}

#[tokio::test]
async fn an_answer_is_bounded() {
    let server = FakeS3::start().await;
    let objects = on(server.port);
    objects.put("b/01/0", vec![0; PIECE].into()).await.unwrap();
    assert_eq!(objects.get("b/01/0").await.unwrap().len(), PIECE);
    for trick in [Trick::Announced(1 << 40), Trick::Endless] {
        server.play(std::slice::from_ref(&trick));
        let large = objects.get("b/01/0").await.unwrap_err().to_string();
        assert!(large.contains("more than"), "{trick:?} {large}");
    }
    server.insert("p/b/01/1", vec![0; MAX_OBJECT + 1]);
    let large = objects.get("b/01/1").await.unwrap_err().to_string();
    assert!(large.contains("more than"), "{large}");
}

#[tokio::test]
async fn a_whole_request_has_a_deadline() {
    let server = FakeS3::start().await;
    let objects = on_with(
        server.port,
        Limits {
            patience: Duration::from_millis(300),
            stall: Duration::from_secs(30),
            ..limits()
        },
    );
    server.play(&[Trick::Stall]);
    let late = tokio::time::timeout(Duration::from_secs(20), objects.get("b/01/0")).await;
    let late = late.unwrap().unwrap_err();
    assert!(late.to_string().contains("store.objects_timeout"), "{late}");
}

/// Reads and uploads for which there is no turn do not wait until those before them have failed one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_not_waited_for_in_turns() {
    const CALLERS: usize = 16;
    let server = FakeS3::start().await;
    let folder = tempfile::tempdir().unwrap();
    let patience = Duration::from_secs(1);
    let settings = StoreSettings {
        objects_at_once: 1,
        objects_timeout: patience,
        ..StoreSettings::on_sqlite(folder.path())
    };
    let limits = Limits {
        patience,
        stall: Duration::from_secs(30),
        ..limits()
    };
    let blobs = Blobs::new(&settings, Some(on_with(server.port, limits)));
    blobs.prepare().unwrap();
    server.play(&vec![Trick::Stall; 4 * CALLERS]);

    let reads = (0..CALLERS as u64).map(|number| {
        let piece = Piece {
            base: uuid::Uuid::nil(),
            number,
            key: format!("b/01/{number}"),
            hash: [0; 16],
            len: 1,
        };
        let mut reader = blobs.listed(vec![(0, piece)]).unwrap();
        async move { reader.look(0).await }
    });
    for read in join_all(reads).await {
        let error = read.unwrap_err();
        assert!(matches!(error, Error::Objects(_)), "{error:?}");
    }
    assert!(server.received().len() < CALLERS);

    let sends = (0..CALLERS).map(|number| {
        let blobs = &blobs;
        async move {
            let mut spool = blobs.spool().await?;
            spool.write(number.to_string().into()).await?;
            spool.seal().await.map(drop)
        }
    });
    for sent in join_all(sends).await {
        let error = sent.unwrap_err();
        assert!(matches!(error, Error::Objects(_)), "{error:?}");
    }
    // Besides these there are lists, for the deletion of what they have left.
    let received = server.received();
    let puts = received.iter().filter(|it| it.method == "PUT");
    assert!(puts.count() < CALLERS);
}

/// What could not be fetched ahead of a reader is asked for again when it is read.
#[tokio::test(flavor = "multi_thread")]
async fn a_download_continues_after_an_outage_between_its_reads() {
    let server = FakeS3::start().await;
    let folder = tempfile::tempdir().unwrap();
    let settings = StoreSettings::on_sqlite(folder.path());
    let blobs = Blobs::new(&settings, Some(on(server.port)));
    blobs.prepare().unwrap();
    let pieces = [(0, b"begin"), (5, b"ended")].map(|(offset, bytes)| {
        let key = format!("b/01/{offset}");
        server.insert(&format!("p/{key}"), bytes.to_vec());
        let piece = Piece {
            base: uuid::Uuid::nil(),
            number: offset,
            key,
            hash: piece_hash(bytes),
            len: bytes.len() as u64,
        };
        (offset, piece)
    });
    let away = Trick::Status(503, "SlowDown");
    server.play(&[Trick::None, away.clone(), away.clone(), away]);
    let mut reader = blobs.listed(pieces.to_vec()).unwrap();
    assert_eq!(reader.read(0, 5).await.unwrap(), "begin");
    assert_eq!(reader.read(5, 5).await.unwrap(), "ended");
    assert_eq!(server.received().len(), 5);
}

/// A line on which a piece takes longer than `store.objects_timeout` is slow, and works.
#[tokio::test]
async fn a_slow_line_has_the_time_that_its_bytes_take() {
    let server = FakeS3::start().await;
    let patience = Duration::from_millis(900);
    let limits = Limits {
        patience,
        stall: Duration::from_secs(30),
        ..limits()
    };
    let objects = on_with(server.port, limits);
    server.slow_down(Duration::from_millis(30));
    let bytes = Bytes::from(vec![7; 3 << 20]);
    let begun = std::time::Instant::now();
    objects.put("b/01/0", bytes.clone()).await.unwrap();
    assert!(begun.elapsed() > patience);
    let begun = std::time::Instant::now();
    assert_eq!(objects.get("b/01/0").await.unwrap(), bytes);
    assert!(begun.elapsed() > patience);
    // One try each.
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn a_server_that_is_away_is_named() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr();
    let objects = on(port.unwrap().port());
    let away = objects.get("b/01/0").await.unwrap_err();
    assert!(matches!(away, Error::Objects(_)), "{away:?}");
    let away = objects.prepare().await.unwrap_err();
    assert!(matches!(away, Error::Unsupported(_)), "{away:?}");
    let text = away.to_string();
    assert!(
        text.contains("127.0.0.1:") && text.contains("PUT"),
        "{text}"
    );
}

#[tokio::test]
async fn connections_are_kept_bounded_and_replaced() {
    let server = FakeS3::start().await;
    let settings = StoreSettings {
        objects_connections: 2,
        ..settings(format!(
            "s3://media/p?endpoint=http://127.0.0.1:{}",
            server.port
        ))
    };
    let objects = Objects::with_limits(&settings, limits()).unwrap().unwrap();
    let puts = (0..20).map(|number| {
        let objects = objects.clone();
        async move {
            let key = format!("b/01/{number}");
            objects.put(&key, vec![1; 10_000].into()).await
        }
    });
    for done in futures_util::future::join_all(puts).await {
        done.unwrap();
    }
    assert!(server.connections() <= 2, "{}", server.connections());
    assert_eq!(server.objects().len(), 20);

    // Two connections are closed after an answer each; the requests after them go by new ones.
    server.received();
    server.play(&[Trick::LastOfConnection, Trick::LastOfConnection]);
    for _ in 0..4 {
        assert_eq!(objects.get("b/01/0").await.unwrap().len(), 10_000);
    }
    let received = server.received();
    assert_ne!(received[0].connection, received[3].connection);
}

#[tokio::test]
async fn lists_go_on_behind_pages_and_empty_ones() {
    let server = FakeS3::start().await;
    let objects = on(server.port);
    for number in 0..25 {
        server.insert(&format!("p/b/{number:02}/0"), vec![0]);
    }
    server.list_by(10);
    let mut found = Vec::new();
    loop {
        let page = keys(&objects, "b/", found.last().map(String::as_str)).await;
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    assert_eq!(found.len(), 25);
    assert!(found.is_sorted());
    server.received();
    // Folders that a server lists as objects fill pages of which nothing is left.
    for number in 0..25 {
        server.insert(&format!("p/c/{number:02}/"), vec![]);
    }
    server.insert("p/c/99/0", vec![0]);
    assert_eq!(keys(&objects, "c/", None).await, ["c/99/0"]);
    let targets: Vec<String> = server.received().into_iter().map(|it| it.target).collect();
    assert_eq!(targets.len(), 3, "{targets:?}");
    assert!(
        targets[1].contains("continuation-token=p%2Fc%2F09%2F"),
        "{targets:?}"
    );
}

#[tokio::test]
async fn the_probe_names_the_step_that_fails() {
    let server = FakeS3::start().await;
    let objects = on(server.port);
    // PUT, GET, LIST and DELETE in this order.
    for (before, trick, expected) in [
        (0, Trick::Status(403, "AccessDenied"), "PUT"),
        (1, Trick::Status(403, "AccessDenied"), "(GET)"),
        (1, Trick::WrongBytes, "(GET)"),
        (1, Trick::Status(404, "NoSuchKey"), "(GET)"),
        (2, Trick::Status(403, "AccessDenied"), "ListObjectsV2"),
        (3, Trick::Status(403, "AccessDenied"), "DELETE"),
    ] {
        let mut script = vec![Trick::None; before];
        script.push(trick.clone());
        server.play(&script);
        let failed = objects.prepare().await.unwrap_err();
        assert!(matches!(failed, Error::Unsupported(_)), "{failed:?}");
        let text = failed.to_string();
        assert!(text.contains(expected), "{trick:?} {text}");
        if before < 3 {
            assert_eq!(server.objects(), [""; 0], "{trick:?}");
        }
    }
}

#[tokio::test]
async fn a_folder_that_is_missing_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("not-mounted");
    let objects = in_folder(&missing);
    let put = objects.put("b/01/0", "abc".into()).await.unwrap_err();
    assert!(matches!(put, Error::Objects(_)), "{put:?}");
    let rejected = objects.prepare().await.unwrap_err();
    assert!(matches!(rejected, Error::Unsupported(_)), "{rejected:?}");
    assert!(rejected.to_string().contains("mount"), "{rejected}");
    assert!(!missing.exists());
}

#[tokio::test]
async fn a_folder_is_listed_in_bounded_parts() {
    let folder = tempfile::tempdir().unwrap();
    let objects = in_folder(folder.path());
    let base = folder.path().join("b");
    // Empty folders, as a deletion that was cut off leaves them, are no end of the list.
    for number in 0..MOST_LISTED + 1 {
        fs::create_dir_all(base.join(format!("{number:05}"))).unwrap();
    }
    let pieces = base.join("90000");
    fs::create_dir(&pieces).unwrap();
    for number in 0..MOST_LISTED + 1 {
        fs::write(pieces.join(format!("{number}")), "x").unwrap();
    }
    let first = keys(&objects, "b/", None).await;
    assert_eq!(first.len(), MOST_LISTED);
    assert!(first.is_sorted());
    let rest = keys(&objects, "b/", first.last().map(String::as_str)).await;
    assert_eq!(rest, ["b/90000/999"]);
    assert_eq!(keys(&objects, "b/", Some("b/90000/999")).await, [""; 0]);
}

#[tokio::test]
async fn writers_and_deletions_in_one_folder_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let objects = in_folder(folder.path());
    let rounds = (0..50).map(|number| {
        let objects = objects.clone();
        async move {
            let key = format!("b/01/t{number}");
            objects.put(&key, "x".into()).await?;
            objects.delete(&key).await
        }
    });
    for done in futures_util::future::join_all(rounds).await {
        done.unwrap();
    }
    assert_eq!(keys(&objects, "b/", None).await, [""; 0]);
    let unfinished = fs::read_dir(folder.path().join("tmp")).unwrap();
    assert_eq!(unfinished.count(), 0);
}
