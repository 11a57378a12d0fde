//! Answers without an end.

use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;

use super::{
    super::{Body, Error, HeaderName, HeaderValue, Method, Outbound, Outgoing, Stream},
    PATIENCE, SOON, open,
    receiver::{Receiver, drain, read_request},
};

async fn stream(outbound: &Outbound, receiver: &Receiver) -> Result<Stream, Error> {
    let header = (
        HeaderName::from_static("last-event-id"),
        HeaderValue::from_static("7f"),
    );
    let url = receiver.url();
    outbound.stream(&url, vec![header], PATIENCE, SOON).await
}

/// All pieces, and what ended them.
async fn read(mut stream: Stream) -> (String, Result<(), Error>) {
    let mut text = String::new();
    loop {
        match stream.next().await {
            Ok(Some(piece)) => text.push_str(&String::from_utf8_lossy(&piece)),
            Ok(None) => return (text, Ok(())),
            Err(error) => return (text, Err(error)),
        }
    }
}

#[tokio::test]
async fn pieces_come_as_they_are_sent_until_the_end() {
    let receiver = Receiver::answering(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
         2\r\nda\r\n3\r\nta:\r\n0\r\ntrailer: x\r\n\r\n",
    )
    .await;
    let stream = stream(&open(), &receiver).await.expect("a stream");
    assert_eq!(stream.status(), 200);
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let (text, end) = read(stream).await;
    assert_eq!(text, "data:");
    assert!(end.is_ok(), "{end:?}");
}

#[tokio::test]
async fn silence_and_breaks_end_a_stream() {
    let silent = Receiver::start(|mut stream| async move {
        let request = read_request(&mut stream).await;
        assert!(request.starts_with("GET /hook?token=secret "), "{request}");
        assert!(request.contains("last-event-id: 7f\r\n"), "{request}");
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart";
        let _gone = stream.write_all(head).await;
        drain(stream).await;
    })
    .await;
    let cut = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart").await;
    for (receiver, words) in [(silent, "next piece"), (cut, "after status 200")] {
        let stream = stream(&open(), &receiver).await.expect("a stream");
        let (text, end) = read(stream).await;
        assert_eq!(text, "part");
        let error = end.expect_err("it broke off");
        assert_eq!(error.status(), Some(200), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn any_status_is_an_answer_and_redirects_are_not_followed() {
    let elsewhere = Receiver::answering("HTTP/1.1 200 OK\r\n\r\n").await;
    let answer = format!(
        "HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
        elsewhere.url()
    );
    let receiver = Receiver::answering(answer).await;
    let stream = stream(&open(), &receiver).await.expect("an answer");
    assert_eq!(stream.status(), 302);
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn the_guard_and_the_patience_hold_here_too() {
    let receiver = Receiver::start(drain).await;
    let guarded = Outbound::new(&Default::default()).expect("no ca_file");
    let refused = stream(&guarded, &receiver).await;
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    assert_eq!(receiver.connections(), 0);
    let (outbound, url) = (open(), receiver.url());
    let late = outbound.stream(&url, Vec::new(), SOON, SOON).await;
    assert!(matches!(late, Err(Error::Timeout { .. })), "{late:?}");
}

#[tokio::test]
async fn a_body_may_be_made_while_it_is_sent() {
    let receiver = Receiver::start(|mut stream| async move {
        let request = read_request(&mut stream).await;
        let (head, body) = request.split_once("\r\n\r\n").unwrap_or_default();
        assert!(head.starts_with("PUT /hook?token=secret "), "{head}");
        assert!(head.contains("content-length: 6"), "{head}");
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n{body}");
        let _gone = stream.write_all(answer.as_bytes()).await;
        drain(stream).await;
    })
    .await;
    let url = receiver.url();
    for (pieces, is_sent) in [
        (&["abc", "def"][..], true),
        (&["abc"], false),
        (&["abc", "defg"], false),
    ] {
        let pieces = pieces
            .iter()
            .map(|piece| Ok(Bytes::from_static(piece.as_bytes())));
        let pieces: Vec<std::io::Result<Bytes>> = pieces.collect();
        let put = Outgoing {
            method: Method::PUT,
            url: &url,
            headers: Vec::new(),
            body: Body::pieces(futures_util::stream::iter(pieces), 6),
            patience: PATIENCE,
            silence: PATIENCE,
        };
        match open().exchange(put).await {
            Ok(stream) => assert_eq!((read(stream).await.0.as_str(), is_sent), ("abcdef", true)),
            Err(error) => assert!(!is_sent, "{error}"),
        }
    }
}
