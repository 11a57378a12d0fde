//! Receivers that behave badly cost their attempt, within its bounds, and nothing else.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::{io::AsyncWriteExt as _, time::timeout};

use super::{
    super::{Error, HeaderName, HeaderValue, Post},
    PATIENCE, SOON, open, post, post_to,
    receiver::{OK, Receiver, drain, read_request},
};

/// Returns the error of an attempt with little time.
async fn hasty_post(receiver: &Receiver) -> Error {
    let url = receiver.url();
    let hasty = Post {
        timeout: SOON,
        ..post_to(&url)
    };
    let ended = timeout(PATIENCE, open().post(hasty)).await;
    ended
        .expect("the attempt's own deadline")
        .expect_err("no answer")
}

#[tokio::test]
async fn the_request_is_what_was_asked_for() {
    let (seen, mut requests) = tokio::sync::mpsc::channel(1);
    let receiver = Receiver::start(move |mut stream| {
        let seen = seen.clone();
        async move {
            let request = read_request(&mut stream).await;
            let _ended = seen.send(request).await;
            let _gone = stream.write_all(OK.as_bytes()).await;
        }
    })
    .await;
    let url = receiver.url();
    let header = |name, value| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    };
    let answer = open()
        .post(Post {
            headers: vec![
                header("user-agent", "Service-Webhooks/1.0"),
                header("host", "elsewhere.test"),
            ],
            ..post_to(&url)
        })
        .await
        .expect("answered");
    assert_eq!((answer.status, &*answer.body), (200, &b"ok"[..]));
    let expected = format!(
        "POST /hook?token=secret HTTP/1.1\r\nuser-agent: Service-Webhooks/1.0\r\nhost: {}\r\ncontent-length: 2\r\n\r\n{{}}",
        receiver.address
    );
    assert_eq!(requests.recv().await.as_deref(), Some(&*expected));
}

#[tokio::test]
async fn any_status_is_an_answer() {
    for status in [200, 204, 302, 404, 410, 429, 500, 599, 999] {
        let receiver = Receiver::answering(format!(
            "HTTP/1.1 {status} X\r\nlocation: http://127.0.0.1:1/\r\nretry-after: -1\r\ncontent-length: 0\r\n\r\n"
        ))
        .await;
        let answer = post(&open(), &receiver.url()).await.expect("answered");
        assert_eq!(answer.status, status);
        assert_eq!(answer.headers["retry-after"], "-1");
    }
}

#[tokio::test]
async fn a_receiver_that_hangs_costs_the_attempts_time() {
    // It accepts and hangs; it reads and hangs; it hangs amidst the head.
    let mute = Receiver::start(drain).await;
    let half = Receiver::start(|mut stream| async move {
        read_request(&mut stream).await;
        let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await;
        drain(stream).await;
    })
    .await;
    for receiver in [mute, half] {
        let error = hasty_post(&receiver).await;
        assert!(matches!(error, Error::Timeout { .. }), "{error}");
        assert_eq!(error.to_string(), "the answer took longer than 0.3 s");
    }
    // No one accepts: the system does so in the listener's place.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let hasty = Post {
        timeout: SOON,
        ..post_to(&url)
    };
    let error = open().post(hasty).await.expect_err("no answer");
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
}

#[tokio::test]
async fn drips_end_at_the_deadline() {
    for (head, status) in [
        ("HTTP/1.1 200 OK\r\n\r\n", Some(200)),
        (
            "HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n",
            Some(500),
        ),
        ("HTTP/1.1 200 OK\r\nx: ", None),
    ] {
        let receiver = Receiver::start(move |mut stream| async move {
            read_request(&mut stream).await;
            let _gone = stream.write_all(head.as_bytes()).await;
            let drip = if head.contains("chunked") {
                "1\r\n.\r\n"
            } else {
                "."
            };
            while stream.write_all(drip.as_bytes()).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        let error = hasty_post(&receiver).await;
        assert_eq!(error.status(), status, "{error}");
        let is_timeout = match &error {
            Error::Unfinished { cause, .. } => matches!(**cause, Error::Timeout { .. }),
            other => matches!(other, Error::Timeout { .. }),
        };
        assert!(is_timeout, "{error}");
    }
}

#[tokio::test]
async fn endless_bodies_are_read_as_far_as_asked_and_closed() {
    for head in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n",
    ] {
        let (closed, mut is_closed) = tokio::sync::mpsc::channel(1);
        let receiver = Receiver::start(move |mut stream| {
            let closed = closed.clone();
            async move {
                read_request(&mut stream).await;
                let _gone = stream.write_all(head.as_bytes()).await;
                let mut piece = vec![b'z'; 8 << 10];
                if head.contains("chunked") {
                    piece.splice(..0, *b"2000\r\n");
                    piece.extend(b"\r\n");
                }
                while stream.write_all(&piece).await.is_ok() {}
                let _ended = closed.send(()).await;
            }
        })
        .await;
        let answer = post(&open(), &receiver.url()).await.expect("answered");
        assert_eq!(answer.body, vec![b'z'; 1 << 10], "{head}");
        let is_closed = timeout(PATIENCE, is_closed.recv()).await;
        assert!(is_closed.is_ok(), "still open after {head}");
    }
}

#[tokio::test]
async fn heads_have_a_bound() {
    let line = format!("x: {}\r\n", "y".repeat(8000));
    let many_lines = line.repeat(131);
    let large = Receiver::answering(format!("HTTP/1.1 200 OK\r\n{many_lines}\r\n")).await;
    let one_line = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1 << 20));
    let one_line = Receiver::answering(one_line).await;
    let endless = endless_after("HTTP/1.1 200 OK\r\n", line.clone().leak()).await;
    let endless_line = endless_after("HTTP/1.1 200 OK\r\nx: ", "yyyy").await;
    let endless_status = endless_after("HTTP/1.1 200 ", "yyyy").await;
    let informational = endless_after("", "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n").await;
    let continued = endless_after("", "HTTP/1.1 100 Continue\r\n\r\n").await;
    for (what, receiver) in [
        ("131 long lines", large),
        ("one line of 1 MB", one_line),
        ("endless lines", endless),
        ("an endless line", endless_line),
        ("an endless reason", endless_status),
        ("endless hints", informational),
        ("endless continues", continued),
    ] {
        let error = post(&open(), &receiver.url()).await.expect_err(what);
        assert!(
            matches!(error, Error::HeadTooLarge(65_536)),
            "{what}: {error}"
        );
    }
    let short_lines = endless_after("HTTP/1.1 200 OK\r\n", "x: y\r\n").await;
    let error = post(&open(), &short_lines.url()).await;
    assert!(matches!(error, Err(Error::Malformed(_))), "{error:?}");
}

async fn endless_after(beginning: &'static str, more: &'static str) -> Receiver {
    Receiver::start(move |mut stream| async move {
        read_request(&mut stream).await;
        let _gone = stream.write_all(beginning.as_bytes()).await;
        let piece = more.repeat(1000);
        while stream.write_all(piece.as_bytes()).await.is_ok() {}
    })
    .await
}

#[tokio::test]
async fn answers_that_are_none_say_so() {
    for (sent, expected) in [
        ("", "the connection was closed before the answer: "),
        (
            "SSH-2.0-OpenSSH_9.9\r\n",
            "the answer cannot be read as HTTP: ",
        ),
        (
            "HTTP/1.1 abc OK\r\n\r\n",
            "the answer cannot be read as HTTP: ",
        ),
        (
            "HTTP/0.9 200 OK\r\n\r\n",
            "the answer cannot be read as HTTP: ",
        ),
        (
            "HTTP/2.0 200 OK\r\n\r\n",
            "the answer cannot be read as HTTP: ",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            "the answer cannot be read as HTTP: ",
        ),
        (
            "HTTP/1.1 200 OK\r\nx",
            "the connection was closed before the answer: ",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n.",
            "after status 200: ",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            "after status 200: ",
        ),
    ] {
        let receiver = Receiver::answering(sent).await;
        let error = post(&open(), &receiver.url()).await.expect_err(sent);
        let message = error.to_string();
        assert!(message.starts_with(expected), "{sent:?}: {message}");
        assert!(!message.contains("secret"), "{message}");
    }
}

#[tokio::test]
async fn resets_and_closed_ports_are_distinguished() {
    let receiver = Receiver::start(|mut stream| async move {
        read_request(&mut stream).await;
        stream.set_zero_linger().unwrap();
    })
    .await;
    let error = post(&open(), &receiver.url()).await.expect_err("reset");
    assert!(matches!(error, Error::Closed(_)), "{error}");

    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let url = format!("http://{address}/secret");
    let error = post(&open(), &url).await.expect_err("no one listens");
    let message = format!("http://{address} cannot be reached: Connection refused (os error 111)");
    assert_eq!(error.to_string(), message);
}

#[tokio::test]
async fn five_hundred_and_twelve_attempts_run_at_once() {
    // No request is answered before all have come.
    let all_there = std::sync::Arc::new(tokio::sync::Barrier::new(512));
    let receiver = Receiver::start(move |mut stream| {
        let all_there = all_there.clone();
        async move {
            read_request(&mut stream).await;
            all_there.wait().await;
            let _gone = stream.write_all(OK.as_bytes()).await;
            drain(stream).await;
        }
    })
    .await;
    let (outbound, url) = (open(), receiver.url());
    let answers = join_all((0..512).map(|_| post(&outbound, &url))).await;
    for answer in answers {
        assert_eq!(answer.expect("answered").status, 200);
    }
    assert_eq!(receiver.connections(), 512);
}
