//! Files that are fetched, and those that are not.

use std::{io, time::Duration};

use bytes::Bytes;
use tokio::{io::AsyncWriteExt as _, time::timeout};

use super::{
    super::{Error, Fetched, Outbound, OutboundSettings, Rejection, Sink},
    Names, PATIENCE, SOON, open, open_settings,
    receiver::{Receiver, drain, read_request},
};

/// Keeps all, or fails at the first piece.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Sink for Kept {
    async fn write(&mut self, piece: Bytes) -> io::Result<()> {
        if self.is_full {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.bytes.extend_from_slice(&piece);
        Ok(())
    }
}

async fn fetch(outbound: &Outbound, url: &str, max: u64) -> Result<(Fetched, Vec<u8>), Error> {
    let mut sink = Kept::default();
    let fetched = timeout(PATIENCE, outbound.fetch(url, &mut sink, max)).await;
    let fetched = fetched.expect("the fetch's own deadline")?;
    Ok((fetched, sink.bytes))
}

fn with_head(head: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\n{head}content-length: {length}\r\n\r\n{body}")
}

#[tokio::test]
async fn a_file_comes_with_its_name_and_type() {
    let head =
        "content-type: image/png\r\ncontent-disposition: attachment; filename=\"a b.png\"\r\n";
    for (answer, filename, content_type) in [
        (with_head(head, "bytes"), "a b.png", Some("image/png")),
        (with_head("", "bytes"), "hook", None),
        (
            with_head("content-encoding: Identity\r\n", "bytes"),
            "hook",
            None,
        ),
        ("HTTP/1.1 200 OK\r\n\r\nbytes".to_owned(), "hook", None),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nby\r\n3\r\ntes\r\n0\r\n\r\n"
                .to_owned(),
            "hook",
            None,
        ),
    ] {
        let receiver = Receiver::answering(answer).await;
        let url = format!("{}#fragment", receiver.url());
        let (fetched, bytes) = fetch(&open(), &url, 5).await.expect("fetched");
        assert_eq!(bytes, b"bytes");
        let expected = Fetched {
            filename: Some(filename.to_owned()),
            content_type: content_type.map(str::to_owned),
            length: 5,
            url: receiver.url(),
        };
        assert_eq!(fetched, expected);
    }
}

#[tokio::test]
async fn the_request_asks_for_the_file_as_it_is() {
    let receiver = Receiver::start(|mut stream| async move {
        let request = read_request(&mut stream).await;
        let _gone = stream.write_all(with_head("", &request).as_bytes()).await;
    })
    .await;
    let (_, request) = fetch(&open(), &receiver.url(), 1 << 10)
        .await
        .expect("fetched");
    let expected = format!(
        "GET /hook?token=secret HTTP/1.1\r\naccept: */*\r\naccept-encoding: identity\r\nuser-agent: Service-Fetch/1.0\r\nhost: {}\r\n\r\n",
        receiver.address
    );
    assert_eq!(String::from_utf8(request).unwrap(), expected);
}

#[tokio::test]
async fn what_is_no_file_is_refused() {
    let endless = "x".repeat(64 << 10);
    for (answer, expected) in [
        (with_head("", "123456"), "the answer is larger than 5 bytes"),
        (
            format!("HTTP/1.1 200 OK\r\n\r\n{endless}"),
            "the answer is larger than 5 bytes",
        ),
        (
            with_head("content-encoding: gzip\r\n", "12345"),
            "the answer is encoded as gzip, although identity was asked for",
        ),
        (
            with_head(
                "content-encoding: identity\r\ncontent-encoding: br\r\n",
                "12345",
            ),
            "the answer is encoded as br, although identity was asked for",
        ),
        (
            "HTTP/1.1 404 X\r\ncontent-length: 1\r\n\r\nx".to_owned(),
            "the answer has status 404",
        ),
        (
            "HTTP/1.1 204 X\r\n\r\n".to_owned(),
            "the answer has status 204",
        ),
        (
            "HTTP/1.1 206 X\r\ncontent-length: 1\r\n\r\nx".to_owned(),
            "the answer has status 206",
        ),
        (
            "HTTP/1.1 304 X\r\n\r\n".to_owned(),
            "the answer has status 304",
        ),
        (
            "HTTP/1.1 302 X\r\n\r\n".to_owned(),
            "redirected: to nowhere that can be read",
        ),
        (
            "HTTP/1.1 302 X\r\nlocation: file:///etc/passwd\r\n\r\n".to_owned(),
            "redirected: a URL must begin with http:// or https://, not with file:",
        ),
        (
            "HTTP/1.1 302 X\r\nlocation: http://me:secret@127.0.0.1/\r\n\r\n".to_owned(),
            "redirected: a URL must not hold a user name or password",
        ),
        (
            "HTTP/1.1 302 X\r\nlocation: http://169.254.169.254/secret\r\n\r\n".to_owned(),
            "169.254.169.254 is a cloud's metadata service; the operator can allow it by outbound.allow = [\"169.254.169.254/32\"]",
        ),
        (
            "HTTP/1.1 307 X\r\nlocation: //0x0a.1/secret\r\n\r\n".to_owned(),
            "10.0.0.1 is a private address; the operator can allow it by outbound.allow = [\"10.0.0.0/24\"]",
        ),
    ] {
        let receiver = Receiver::answering(answer).await;
        let error = fetch(&open(), &receiver.url(), 5)
            .await
            .expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test]
async fn redirects_are_followed_so_often_and_checked_each_time() {
    // Counts down in the path; `/0` is the file.
    let receiver = Receiver::start(|mut stream| async move {
        let request = read_request(&mut stream).await;
        let path = request.split(' ').nth(1).unwrap_or_default();
        let answer = match path.trim_start_matches('/').parse::<u32>() {
            Ok(0) => with_head("", "file"),
            Ok(left) => {
                let status = [301, 302, 303, 307, 308][left as usize % 5];
                format!(
                    "HTTP/1.1 {status} X\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
                    left - 1
                )
            }
            Err(_) => "HTTP/1.1 302 X\r\nlocation: http://inside.test/\r\n\r\n".to_owned(),
        };
        let _gone = stream.write_all(answer.as_bytes()).await;
        drain(stream).await;
    })
    .await;
    let names = Names::new([("inside.test", vec!["1.1.1.1 192.168.1.2"])]);
    let outbound = Outbound::with_resolver(&open_settings(), names).unwrap();
    for left in 0..6 {
        let url = format!("http://{}/{left}", receiver.address);
        match fetch(&outbound, &url, 5).await {
            Ok((fetched, bytes)) => {
                assert!(left <= 3, "{left} redirects");
                assert_eq!(
                    (fetched.filename.as_deref(), &*bytes),
                    (Some("0"), &b"file"[..])
                );
                assert_eq!(fetched.url, format!("http://{}/0", receiver.address));
            }
            Err(error) => {
                assert!(left > 3, "{left} redirects: {error}");
                assert_eq!(error.to_string(), "redirected: more than 3 times");
            }
        }
    }
    let url = format!("http://{}/inside", receiver.address);
    let error = fetch(&outbound, &url, 5).await.expect_err("refused");
    assert!(
        matches!(error, Error::Refused(Rejection::Address { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn silence_and_slowness_have_their_own_bounds() {
    let silent = Receiver::start(|mut stream| async move {
        read_request(&mut stream).await;
        let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nx").await;
        drain(stream).await;
    })
    .await;
    let dripping = Receiver::start(|mut stream| async move {
        read_request(&mut stream).await;
        let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(b".").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    for (receiver, idle, whole, expected) in [
        (
            &silent,
            SOON,
            PATIENCE,
            "after status 200: the next piece of the answer took longer than 0.3 s",
        ),
        (
            &silent,
            PATIENCE,
            SOON,
            "fetching the file took longer than 0.3 s",
        ),
        (
            &dripping,
            PATIENCE,
            SOON,
            "fetching the file took longer than 0.3 s",
        ),
    ] {
        let settings = OutboundSettings {
            fetch_idle_timeout: idle,
            fetch_timeout: whole,
            ..open_settings()
        };
        let outbound = Outbound::new(&settings).unwrap();
        let error = fetch(&outbound, &receiver.url(), 1 << 20)
            .await
            .expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test]
async fn fetches_have_places_and_give_them_back() {
    let silent = Receiver::start(drain).await;
    let answering = Receiver::answering(with_head("", "file")).await;
    let settings = OutboundSettings {
        max_fetches: 1,
        fetch_idle_timeout: SOON,
        ..open_settings()
    };
    let outbound = Outbound::new(&settings).unwrap();
    let (silent_url, url) = (silent.url(), answering.url());
    {
        let holder = fetch(&outbound, &silent_url, 5);
        tokio::pin!(holder);
        tokio::select! {
            biased;
            _ = &mut holder => panic!("it holds its place for longer"),
            busy = fetch(&outbound, &url, 5) => {
                let error = busy.expect_err("one place");
                assert_eq!(error.to_string(), "too many fetches of files at once");
            }
        }
    }
    fetch(&outbound, &url, 5)
        .await
        .expect("the place is free again");
}

#[tokio::test]
async fn a_sink_that_fails_ends_the_fetch() {
    let receiver = Receiver::answering(with_head("", "file")).await;
    let mut sink = Kept {
        is_full: true,
        ..Kept::default()
    };
    let error = open().fetch(&receiver.url(), &mut sink, 5).await;
    assert!(matches!(error, Err(Error::Sink(_))), "{error:?}");
}

/// The bound on heads must not be felt by bodies, however the threads take turns.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn large_files_come_whole_beside_small_heads() {
    const PIECES: usize = 64;
    let receiver = Receiver::start(|mut stream| async move {
        read_request(&mut stream).await;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
            PIECES << 16
        );
        let _gone = stream.write_all(head.as_bytes()).await;
        for _ in 0..PIECES {
            let _gone = stream.write_all(&[b'x'; 1 << 16]).await;
        }
    })
    .await;
    let settings = OutboundSettings {
        max_head: bytesize::ByteSize::kib(8),
        ..open_settings()
    };
    let outbound = Outbound::new(&settings).unwrap();
    let fetches = (0..32).map(|_| {
        let (outbound, url) = (outbound.clone(), receiver.url());
        tokio::spawn(async move { fetch(&outbound, &url, 1 << 30).await })
    });
    for fetched in futures_util::future::join_all(fetches).await {
        let (fetched, bytes) = fetched.expect("no panic").expect("fetched");
        assert_eq!(
            (fetched.length, bytes.len()),
            ((PIECES << 16) as u64, PIECES << 16)
        );
    }
}
