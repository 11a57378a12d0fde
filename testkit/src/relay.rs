//! TCP relay before a server of the tests: it cuts connections, is silent or slow, cuts at a message of PostgreSQL's protocol,
//! and answers a share of HTTP requests 503.
//!
//! PostgreSQL's messages are read as the protocol delimits them
//! (<https://www.postgresql.org/docs/current/protocol-message-formats.html>), without TLS. HTTP is read no further than to see
//! where a request begins: at what a client sends after an answer.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::sleep,
};

use crate::Failure;

/// Version 3.0 of PostgreSQL's protocol, which a client asks for in the last message that has no type.
const VERSION: [u8; 4] = [0, 3, 0, 0];
/// Answer in place of a server's.
const UNAVAILABLE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Effect on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    Passes,
    /// Both sides are closed.
    IsCut,
    /// Both sides stay open, and nothing is forwarded.
    IsSilent,
    /// Whatever is forwarded comes so much later.
    IsSlow(Duration),
}

/// Loss of a cut at a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// The server gets the message, and the client no answer.
    OfAnswer,
    /// The server does not get the message.
    OfMessage,
}

/// Protocol of what is relayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http,
    Postgres,
}

/// Cuts at the messages that contain a text.
struct Cuts {
    text: &'static [u8],
    every: usize,
    seen: usize,
    made: usize,
}

/// Answers of the relay itself.
#[derive(Default)]
struct Rejections {
    /// 0: none.
    every: usize,
    seen: usize,
    made: usize,
}

struct Shared {
    server: SocketAddr,
    protocol: Protocol,
    line: watch::Sender<Line>,
    cuts: Mutex<Option<Cuts>>,
    rejections: Mutex<Rejections>,
    connections: AtomicUsize,
}

/// The relay; its connections end when it is dropped.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Listens on loopback for clients of an HTTP server.
    pub async fn of_http(server: SocketAddr) -> Result<Self, Failure> {
        Self::start(server, Protocol::Http).await
    }

    /// Listens on loopback for clients of a PostgreSQL server.
    pub async fn of_postgres(server: SocketAddr) -> Result<Self, Failure> {
        Self::start(server, Protocol::Postgres).await
    }

    async fn start(server: SocketAddr, protocol: Protocol) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let shared = Arc::new(Shared {
            server,
            protocol,
            line: watch::Sender::new(Line::Passes),
            cuts: Mutex::new(None),
            rejections: Mutex::default(),
            connections: AtomicUsize::new(0),
        });
        Ok(Self {
            address: listener.local_addr()?,
            task: tokio::spawn(accept(listener, shared.clone())),
            shared,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn set(&self, line: Line) {
        self.shared.line.send_replace(line);
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Relaxed)
    }

    /// Cuts connections at each so many messages of PostgreSQL's clients that contain the text, by turns before the answer and
    /// before the message.
    pub fn cut_at(&self, text: &'static [u8], every: usize) {
        *lock(&self.shared.cuts) = Some(Cuts {
            text,
            every,
            seen: 0,
            made: 0,
        });
    }

    /// Cuts at no further message; returns how many cuts there were.
    pub fn stop_cutting(&self) -> usize {
        let cuts = lock(&self.shared.cuts).take();
        cuts.map_or(0, |cuts| cuts.made)
    }

    /// Answers each so many HTTP requests 503 and closes their connections.
    pub fn reject(&self, every: usize) {
        *lock(&self.shared.rejections) = Rejections {
            every,
            ..Rejections::default()
        };
    }

    /// Rejects no further request; returns how many were.
    pub fn stop_rejecting(&self) -> usize {
        std::mem::take(&mut *lock(&self.shared.rejections)).made
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn loss_at(&self, message: &[u8]) -> Option<Loss> {
        let mut cuts = lock(&self.cuts);
        let cuts = cuts.as_mut()?;
        let mut places = message.windows(cuts.text.len());
        if !places.any(|place| place == cuts.text) {
            return None;
        }
        cuts.seen += 1;
        if !cuts.seen.is_multiple_of(cuts.every) {
            return None;
        }
        cuts.made += 1;
        Some(match cuts.made % 2 {
            1 => Loss::OfAnswer,
            _ => Loss::OfMessage,
        })
    }

    fn rejects_next(&self) -> bool {
        let mut rejections = lock(&self.rejections);
        if rejections.every == 0 {
            return false;
        }
        rejections.seen += 1;
        let is_one = rejections.seen.is_multiple_of(rejections.every);
        rejections.made += usize::from(is_one);
        is_one
    }

    async fn delay(&self) {
        let line = *self.line.borrow();
        if let Line::IsSlow(delay) = line {
            sleep(delay).await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((client, _)) = listener.accept() => {
                shared.connections.fetch_add(1, Relaxed);
                connections.spawn(forward(client, shared.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Forwards until a side closes or the connection is cut, which closes both.
async fn forward(mut client: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    let mut line = shared.line.subscribe();
    if !is_open(&mut line).await {
        return Ok(());
    }
    let mut server = TcpStream::connect(shared.server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let mut sent = Messages::of(shared.protocol);
    let mut answers = BytesMut::new();
    // At the beginning and after an answer.
    let mut is_at_request = true;
    while is_open(&mut line).await {
        tokio::select! {
            _ = line.changed() => {}
            read = client.read_buf(&mut sent.bytes) => {
                // The line may have changed at the same time.
                if read? == 0 || !is_open(&mut line).await {
                    return Ok(());
                }
                if shared.protocol == Protocol::Http && std::mem::take(&mut is_at_request) && shared.rejects_next() {
                    return reject(client).await;
                }
                shared.delay().await;
                while let Some(message) = sent.next() {
                    match shared.loss_at(&message) {
                        None => server.write_all(&message).await?,
                        Some(Loss::OfMessage) => return Ok(()),
                        Some(Loss::OfAnswer) => {
                            server.write_all(&message).await?;
                            drop(client);
                            // To close before the server has read the message could take it back.
                            server.read_buf(&mut answers).await?;
                            return Ok(());
                        }
                    }
                }
            }
            read = server.read_buf(&mut answers) => {
                if read? == 0 || !is_open(&mut line).await {
                    return Ok(());
                }
                shared.delay().await;
                is_at_request = true;
                client.write_all_buf(&mut answers).await?;
            }
        }
    }
    Ok(())
}

/// Answers a request and reads what its client still sends, for a while, so that the answer is not lost with the connection.
async fn reject(mut client: TcpStream) -> io::Result<()> {
    client.write_all(UNAVAILABLE).await?;
    client.shutdown().await?;
    let mut rest = [0; 4096];
    let draining = async { while client.read(&mut rest).await.is_ok_and(|read| read > 0) {} };
    let _ = tokio::time::timeout(Duration::from_secs(1), draining).await;
    Ok(())
}

/// Waits while the line is silent; returns false when it is cut.
async fn is_open(line: &mut watch::Receiver<Line>) -> bool {
    match line.wait_for(|line| *line != Line::IsSilent).await {
        Ok(line) => *line != Line::IsCut,
        Err(_) => false,
    }
}

/// A client's bytes, cut into its messages; those of HTTP as they come.
struct Messages {
    protocol: Protocol,
    bytes: BytesMut,
    /// True when messages have a type before their length.
    is_typed: bool,
}

impl Messages {
    fn of(protocol: Protocol) -> Self {
        Self {
            protocol,
            bytes: BytesMut::new(),
            is_typed: false,
        }
    }

    fn next(&mut self) -> Option<Bytes> {
        let length = match self.protocol {
            Protocol::Http => self.bytes.len(),
            Protocol::Postgres => {
                let at = usize::from(self.is_typed);
                let length = self.bytes.get(at..)?.first_chunk()?;
                at + u32::from_be_bytes(*length) as usize
            }
        };
        if length == 0 || self.bytes.len() < length {
            return None;
        }
        let message = self.bytes.split_to(length).freeze();
        self.is_typed |= message.get(4..8) == Some(&VERSION[..]);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    /// A server that sends back what it receives.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = socket.split();
                    tokio::io::copy(&mut read, &mut write).await
                });
            }
        });
        address
    }

    async fn exchange(client: &mut TcpStream, text: &[u8]) -> io::Result<Vec<u8>> {
        client.write_all(text).await?;
        let mut answer = vec![0; 4096];
        let read = client.read(&mut answer).await?;
        answer.truncate(read);
        Ok(answer)
    }

    #[tokio::test]
    async fn a_line_passes_is_slow_silent_and_cut() {
        let relay = Relay::of_http(echo().await).await.unwrap();
        let mut client = TcpStream::connect(relay.address()).await.unwrap();
        assert_eq!(exchange(&mut client, b"one").await.unwrap(), b"one");
        relay.set(Line::IsSlow(Duration::from_millis(100)));
        let began = tokio::time::Instant::now();
        assert_eq!(exchange(&mut client, b"two").await.unwrap(), b"two");
        assert!(began.elapsed() >= Duration::from_millis(200));
        relay.set(Line::IsSilent);
        let waited =
            tokio::time::timeout(Duration::from_millis(100), exchange(&mut client, b"three"));
        assert!(waited.await.is_err());
        relay.set(Line::Passes);
        let mut answer = [0; 5];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"three");
        relay.set(Line::IsCut);
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(SOON, client.read_to_end(&mut rest)).await;
        assert!(ended.is_ok() && rest.is_empty());
        assert_eq!(relay.connections(), 1);
    }

    #[tokio::test]
    async fn each_second_request_is_rejected_and_each_message_with_a_text_cut() {
        let server = echo().await;
        let relay = Relay::of_http(server).await.unwrap();
        relay.reject(2);
        let mut client = TcpStream::connect(relay.address()).await.unwrap();
        assert_eq!(exchange(&mut client, b"one").await.unwrap(), b"one");
        assert_eq!(exchange(&mut client, b"two").await.unwrap(), UNAVAILABLE);
        assert_eq!(relay.stop_rejecting(), 1);

        let relay = Relay::of_postgres(server).await.unwrap();
        relay.cut_at(b"COMMIT", 1);
        let mut client = TcpStream::connect(relay.address()).await.unwrap();
        let start = [0, 0, 0, 8, 0, 3, 0, 0];
        assert_eq!(exchange(&mut client, &start).await.unwrap(), start);
        let query = b"Q\0\0\0\x0bCOMMIT\0";
        assert_eq!(exchange(&mut client, query).await.unwrap(), b"");
        assert_eq!(relay.stop_cutting(), 1);
    }
}
