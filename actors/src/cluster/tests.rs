//! Calls of a node to itself, over real connections.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::Method;
use parking_lot::Mutex;
use sluice_store::{cluster::Node, now_ms};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::{
    CallChecks, CallRejection, PeerCall, PeerError, Peers,
    signature::{HEADER, PeerKey},
};
use crate::fixtures::open_store;

const PATIENCE: Duration = Duration::from_secs(30);

/// Action of the listener on a call that it accepts.
#[derive(Clone, Copy)]
enum Answer {
    Signed,
    /// Signed, and then another body is sent.
    Changed,
    Unsigned,
    Nothing,
}

/// A listener that checks calls as a node does, and keeps their heads.
struct Listener {
    node: Node,
    heads: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
    _task: AbortOnDropHandle<()>,
}

impl Listener {
    async fn start(peers: &Peers, answer: Answer) -> Self {
        let checks = Arc::new(peers.call_checks().await.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let node = Node {
            address: format!("http://{}", listener.local_addr().unwrap()),
            ..peers.cluster().this()
        };
        let heads = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let (heard, count) = (heads.clone(), connections.clone());
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                *count.lock() += 1;
                let (checks, heard) = (checks.clone(), heard.clone());
                tokio::spawn(async move {
                    while let Some((head, body)) = read(&mut stream).await {
                        heard.lock().push(head.clone());
                        let answer = respond(&checks, &head, &body, answer);
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self {
            node,
            heads,
            connections,
            _task: AbortOnDropHandle::new(task),
        }
    }
}

/// Reads a request: its head, and a body by its length.
async fn read(stream: &mut tokio::net::TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = header(&head, "content-length").map_or(0, |it| it.parse().unwrap());
            if bytes.len() >= end + 4 + length {
                return Some((head, bytes[end + 4..].to_vec()));
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines
        .find(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

fn check(checks: &CallChecks, head: &str, body: &[u8]) -> Result<super::Caller, CallRejection> {
    let mut words = head.split(' ');
    let call = PeerCall {
        method: words.next().unwrap(),
        path: words.next().unwrap(),
        body,
    };
    checks.check(header(head, HEADER).unwrap_or_default(), call)
}

fn respond(checks: &CallChecks, head: &str, body: &[u8], answer: Answer) -> String {
    let caller = match check(checks, head, body) {
        Ok(caller) => caller,
        Err(rejection) => {
            let text = rejection.to_string();
            let length = text.len();
            return format!("HTTP/1.1 401 Unauthorized\r\ncontent-length: {length}\r\n\r\n{text}");
        }
    };
    let signature = checks.sign_answer(caller, 200, b"pong");
    match answer {
        Answer::Nothing => String::new(),
        Answer::Unsigned => "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npong".to_owned(),
        Answer::Changed => {
            format!("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n{HEADER}: {signature}\r\n\r\nping")
        }
        Answer::Signed => {
            format!("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n{HEADER}: {signature}\r\n\r\npong")
        }
    }
}

async fn peers(folder: &tempfile::TempDir) -> Peers {
    Peers::new(&open_store(folder).await)
}

async fn ping(peers: &Peers, node: &Node) -> Result<super::PeerAnswer, PeerError> {
    let body = Bytes::from_static(b"body");
    peers
        .call(node, Method::POST, "/peer/ping?a=b", body, PATIENCE)
        .await
}

#[tokio::test]
async fn a_call_is_answered_and_its_connection_kept() {
    let folder = tempfile::tempdir().unwrap();
    let peers = peers(&folder).await;
    let listener = Listener::start(&peers, Answer::Signed).await;
    for _ in 0..3 {
        let answer = ping(&peers, &listener.node).await.unwrap();
        assert_eq!((answer.status, &answer.body[..]), (200, &b"pong"[..]));
    }
    assert_eq!(*listener.connections.lock(), 1);
    assert_eq!(
        peers
            .call_all("/peer/ping", Bytes::new(), PATIENCE)
            .await
            .len(),
        0
    );
}

#[tokio::test]
async fn an_answer_that_is_not_the_nodes_is_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let peers = peers(&folder).await;
    for answer in [Answer::Unsigned, Answer::Changed] {
        let listener = Listener::start(&peers, answer).await;
        let failed = ping(&peers, &listener.node).await.unwrap_err();
        assert!(matches!(failed, PeerError::Unsigned { .. }), "{failed}");
    }
}

#[tokio::test]
async fn calls_end_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let peers = peers(&folder).await;
    let silent = Listener::start(&peers, Answer::Nothing).await;
    let within = Duration::from_millis(50);
    let call = |node: Node| {
        let peers = peers.clone();
        async move {
            let body = Bytes::new();
            peers
                .call(&node, Method::GET, "/peer/ping", body, within)
                .await
        }
    };
    let failed = call(silent.node.clone()).await.unwrap_err();
    assert!(matches!(failed, PeerError::Late { .. }), "{failed}");

    let dead = Node {
        id: Uuid::now_v7(),
        ..silent.node.clone()
    };
    let failed = call(dead).await.unwrap_err();
    assert!(matches!(failed, PeerError::Gone { .. }), "{failed}");

    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    for address in [address, String::new()] {
        let unreached = Node {
            address,
            ..silent.node.clone()
        };
        let failed = ping(&peers, &unreached).await.unwrap_err();
        assert!(matches!(failed, PeerError::Unreached { .. }), "{failed}");
    }
}

#[tokio::test]
async fn strangers_and_repetitions_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_store(&folder).await;
    let peers = Peers::new(&store);
    let listener = Listener::start(&peers, Answer::Signed).await;
    ping(&peers, &listener.node).await.unwrap();
    let checks = peers.call_checks().await.unwrap();
    let head = listener.heads.lock()[0].clone();
    assert!(check(&checks, &head, b"body").is_ok());
    let repeated = check(&checks, &head, b"body").unwrap_err();
    assert_eq!(repeated, CallRejection::Repeated);
    let no_header = check(&checks, "GET /peer/ping HTTP/1.1", b"").unwrap_err();
    assert_eq!(no_header, CallRejection::NoSignature);

    let (here, call) = (
        listener.node.id,
        PeerCall {
            method: "GET",
            path: "/peer/ping",
            body: b"",
        },
    );
    let signed = |key: &PeerKey, from, at_ms| {
        checks
            .check(&key.sign(from, here, at_ms, 7, call), call)
            .unwrap_err()
    };
    let own = PeerKey::of(&store).await.unwrap();
    let foreign = PeerKey::new(b"another installation");
    assert_eq!(signed(&foreign, here, now_ms()), CallRejection::Signature);
    let unknown = Uuid::now_v7();
    let rejection = signed(&own, unknown, now_ms());
    assert_eq!(rejection, CallRejection::UnknownNode(unknown));
    for at_ms in [now_ms() - 31_000, now_ms() + 32_000] {
        let rejection = signed(&own, here, at_ms);
        assert!(matches!(rejection, CallRejection::Time(_)), "{rejection}");
    }
    let later = own.sign(here, here, now_ms(), 7, call);
    let later = later.replacen("v1", "v9", 1);
    let rejection = checks.check(&later, call).unwrap_err();
    assert_eq!(rejection, CallRejection::Protocol(9));
}

#[tokio::test]
async fn a_rejection_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let (here, foreign) = (peers(&folder).await, peers(&elsewhere).await);
    let listener = Listener::start(&here, Answer::Signed).await;
    let same_id = Node {
        address: listener.node.address.clone(),
        ..foreign.cluster().this()
    };
    let failed = ping(&foreign, &same_id).await.unwrap_err();
    match failed {
        PeerError::Rejected { status, reason, .. } => {
            assert_eq!(status, 401);
            assert!(reason.contains("is not live"), "{reason}");
        }
        other => panic!("{other}"),
    }
}
