//! Receivers on loopback whose every byte a test writes.

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_util::task::AbortOnDropHandle;

pub(super) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A listener that gives each connection to a script, and ends when it is dropped.
pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    _task: AbortOnDropHandle<()>,
}

impl Receiver {
    pub(super) async fn start<F>(script: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::start_at([127, 0, 0, 1], script).await
    }

    async fn start_at<F>(ip: [u8; 4], script: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((IpAddr::from(ip), 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, SeqCst);
                tokio::spawn(script(stream));
            }
        });
        Self {
            address,
            connections,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// Reads one request of each connection and answers with these bytes, then closes.
    pub(super) async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        Self::answering_at([127, 0, 0, 1], answer).await
    }

    pub(super) async fn answering_at(ip: [u8; 4], answer: impl Into<Vec<u8>>) -> Self {
        let answer: Arc<[u8]> = answer.into().into();
        Self::start_at(ip, move |mut stream| {
            let answer = answer.clone();
            async move {
                read_request(&mut stream).await;
                let _gone = stream.write_all(&answer).await;
                let _gone = stream.shutdown().await;
                drain(stream).await;
            }
        })
        .await
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hook?token=secret", self.address)
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }
}

/// The head of a request and its body by `Content-Length`; empty when the connection was closed instead.
pub(super) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && body.len() >= content_length(head)
        {
            return text;
        }
        match stream.read_buf(&mut read).await {
            Ok(0) | Err(_) => return String::new(),
            Ok(_) => {}
        }
    }
}

fn content_length(head: &str) -> usize {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length.map_or(0, |(_, length)| length.parse().unwrap())
}

/// Waits until the other side has closed.
pub(super) async fn drain(mut stream: TcpStream) {
    let mut piece = [0; 4096];
    while let Ok(1..) = stream.read(&mut piece).await {}
}
