//! Reuse of connections, and repetition of requests.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{io::AsyncWriteExt as _, time::timeout};

use super::{
    super::{Error, Outbound, OutboundSettings},
    PATIENCE, open, open_settings, post,
    receiver::{OK, Receiver, drain, read_request},
};

/// Answers every request of a connection the same way.
async fn keeping(answer: &'static str) -> Receiver {
    Receiver::start(move |mut stream| async move {
        while !read_request(&mut stream).await.is_empty() {
            let _gone = stream.write_all(answer.as_bytes()).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_connection_serves_again_once_its_answer_was_read_to_the_end() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let long = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: 1025\r\n\r\n{}",
        "x".repeat(1025)
    );
    let full = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: 1024\r\n\r\n{}",
        "x".repeat(1024)
    );
    let closing = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let impatient = "HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 0\r\n\r\n";
    let smuggled = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 500 X\r\n\r\n";
    for (answer, connections) in [
        (OK, 1),
        ("HTTP/1.1 204 No Content\r\n\r\n", 1),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            1,
        ),
        (chunked, 1),
        (full.leak(), 1),
        (long.leak(), 3),
        (closing, 3),
        (impatient, 3),
        (smuggled, 3),
        ("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", 3),
        (
            "HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
            3,
        ),
    ] {
        let (receiver, outbound) = (keeping(answer).await, open());
        for _ in 0..3 {
            let answered = post(&outbound, &receiver.url()).await.expect(answer);
            assert_ne!(answered.status, 500, "{answer}");
        }
        assert_eq!(receiver.connections(), connections, "{answer}");
    }
}

#[tokio::test]
async fn without_idle_connections_each_request_has_its_own() {
    let receiver = keeping(OK).await;
    let settings = OutboundSettings {
        max_idle: 0,
        ..open_settings()
    };
    let outbound = Outbound::new(&settings).unwrap();
    for _ in 0..3 {
        post(&outbound, &receiver.url()).await.expect("answered");
    }
    assert_eq!(receiver.connections(), 3);
}

#[tokio::test]
async fn idle_connections_are_closed_in_time() {
    let (closed, mut is_closed) = tokio::sync::mpsc::channel(1);
    let receiver = Receiver::start(move |mut stream| {
        let closed = closed.clone();
        async move {
            read_request(&mut stream).await;
            let _gone = stream.write_all(OK.as_bytes()).await;
            drain(stream).await;
            let _ended = closed.send(()).await;
        }
    })
    .await;
    let settings = OutboundSettings {
        keep_idle: Duration::from_millis(100),
        ..open_settings()
    };
    let outbound = Outbound::new(&settings).unwrap();
    post(&outbound, &receiver.url()).await.expect("answered");
    let is_closed = timeout(PATIENCE, is_closed.recv()).await;
    assert!(is_closed.is_ok(), "still open");
}

#[tokio::test]
async fn a_request_goes_by_a_fresh_connection_when_the_idle_one_was_closed() {
    let (noticed, mut is_noticed) = tokio::sync::mpsc::channel(1);
    let receiver = Receiver::start(move |mut stream| {
        let noticed = noticed.clone();
        async move {
            read_request(&mut stream).await;
            let _gone = stream.write_all(OK.as_bytes()).await;
            let _gone = stream.shutdown().await;
            drain(stream).await;
            let _ended = noticed.send(()).await;
        }
    })
    .await;
    let outbound = open();
    for number in 1..=3 {
        let answer = post(&outbound, &receiver.url()).await;
        assert_eq!(answer.expect("answered").status, 200);
        assert_eq!(receiver.connections(), number);
        // The closed connection stays among the idle ones.
        let is_noticed = timeout(PATIENCE, is_noticed.recv()).await;
        assert!(is_noticed.is_ok(), "still open on this side");
    }
}

#[tokio::test]
async fn a_request_that_the_receiver_may_have_got_is_not_sent_again() {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = requests.clone();
    let receiver = Receiver::start(move |mut stream| {
        let count = count.clone();
        async move {
            read_request(&mut stream).await;
            let _gone = stream.write_all(OK.as_bytes()).await;
            read_request(&mut stream).await;
            count.fetch_add(2, SeqCst);
        }
    })
    .await;
    let outbound = open();
    post(&outbound, &receiver.url()).await.expect("answered");
    let error = post(&outbound, &receiver.url()).await.expect_err("closed");
    assert!(matches!(error, Error::Closed(_)), "{error}");
    assert_eq!(requests.load(SeqCst), 2);
    assert_eq!(receiver.connections(), 1);
}
