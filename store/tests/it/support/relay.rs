//! TCP relay before a PostgreSQL server, which breaks connections as networks do: it cuts them, forwards nothing for a while, or
//! cuts one at a message of its client.
//!
//! It reads the client's messages as the protocol delimits them
//! (<https://www.postgresql.org/docs/current/protocol-message-formats.html>), without TLS.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

/// Version 3.0 of the protocol, which a client asks for in the last message that has no type.
const VERSION: [u8; 4] = [0, 3, 0, 0];

/// State of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Passes,
    /// Both sides are closed.
    IsCut,
    /// Both sides stay open, and nothing is forwarded.
    IsSilent,
}

/// State of all connections.
struct State {
    line: Line,
    /// Those before this one stay open and silent.
    first: usize,
}

/// Loss by a cut at a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// The server gets the message, and the client no answer.
    OfAnswer,
    /// The server does not get the message.
    OfMessage,
}

/// Cuts at the messages that contain a text.
struct Cuts {
    text: &'static [u8],
    every: usize,
    seen: usize,
    made: usize,
}

struct Shared {
    server: String,
    state: watch::Sender<State>,
    accepted: AtomicUsize,
    cuts: Mutex<Option<Cuts>>,
    silent_at: Mutex<Option<&'static [u8]>>,
}

/// The relay; its connections end when it is dropped.
pub(crate) struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Listens on loopback for clients of the server at that address.
    pub(crate) async fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Arc::new(Shared {
            server: server.to_owned(),
            state: watch::Sender::new(State {
                line: Line::Passes,
                first: 0,
            }),
            accepted: AtomicUsize::new(0),
            cuts: Mutex::new(None),
            silent_at: Mutex::new(None),
        });
        Self {
            address: listener.local_addr().unwrap(),
            task: tokio::spawn(accept(listener, shared.clone())),
            shared,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn set(&self, line: Line) {
        self.shared.state.send_modify(|state| state.line = line);
    }

    /// Falls silent for ever on the connections that are open, as when an address moves to another machine; new ones pass.
    pub(crate) fn forget_connections(&self) {
        let accepted = self.shared.accepted.load(SeqCst);
        self.shared
            .state
            .send_modify(|state| state.first = accepted);
    }

    /// Falls silent for ever on the next connection whose client sends a message that contains the text.
    pub(crate) fn fall_silent_at(&self, text: &'static [u8]) {
        *self.shared.silent_at.lock() = Some(text);
    }

    /// Returns whether that connection has come.
    pub(crate) fn has_fallen_silent(&self) -> bool {
        self.shared.silent_at.lock().is_none()
    }

    /// Cuts connections at each so many messages that contain the text, by turns before the answer and before the message.
    pub(crate) fn cut_at(&self, text: &'static [u8], every: usize) {
        *self.shared.cuts.lock() = Some(Cuts {
            text,
            every,
            seen: 0,
            made: 0,
        });
    }

    /// Cuts at no further message; returns how many cuts there were.
    pub(crate) fn stop_cutting(&self) -> usize {
        let cuts = self.shared.cuts.lock().take();
        cuts.map_or(0, |cuts| cuts.made)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn loss_at(&self, message: &[u8]) -> Option<Loss> {
        let mut cuts = self.cuts.lock();
        let cuts = cuts.as_mut()?;
        if !contains(message, cuts.text) {
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

    fn is_silent_from(&self, message: &[u8]) -> bool {
        let mut text = self.silent_at.lock();
        let is_there = text.is_some_and(|text| contains(message, text));
        if is_there {
            *text = None;
        }
        is_there
    }
}

fn contains(message: &[u8], text: &[u8]) -> bool {
    message.windows(text.len()).any(|place| place == text)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((client, _)) = listener.accept() => {
                let number = shared.accepted.fetch_add(1, SeqCst);
                connections.spawn(forward(number, client, shared.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Forwards until a side closes or the connection is cut, which closes both.
async fn forward(number: usize, mut client: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    let mut state = shared.state.subscribe();
    if !is_open(number, &mut state).await {
        return Ok(());
    }
    let mut server = TcpStream::connect(&shared.server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let mut messages = Messages::default();
    let mut answers = BytesMut::new();
    while is_open(number, &mut state).await {
        tokio::select! {
            _ = state.changed() => {}
            read = client.read_buf(&mut messages.bytes) => {
                if read? == 0 {
                    return Ok(());
                }
                while let Some(message) = messages.next() {
                    if shared.is_silent_from(&message) {
                        return std::future::pending().await;
                    }
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
                if read? == 0 {
                    return Ok(());
                }
                client.write_all_buf(&mut answers).await?;
            }
        }
    }
    Ok(())
}

/// Waits while the connection is silent; returns false when it is cut.
async fn is_open(number: usize, state: &mut watch::Receiver<State>) -> bool {
    let is_silent = |state: &State| number < state.first || state.line == Line::IsSilent;
    match state.wait_for(|state| !is_silent(state)).await {
        Ok(state) => state.line == Line::Passes,
        Err(_) => false,
    }
}

/// A client's bytes, cut into its messages.
#[derive(Default)]
struct Messages {
    bytes: BytesMut,
    /// True when messages have a type before their length.
    is_typed: bool,
}

impl Messages {
    fn next(&mut self) -> Option<Bytes> {
        let at = usize::from(self.is_typed);
        let length = self.bytes.get(at..)?.first_chunk()?;
        let length = at + u32::from_be_bytes(*length) as usize;
        if self.bytes.len() < length {
            return None;
        }
        let message = self.bytes.split_to(length).freeze();
        self.is_typed |= message.get(4..8) == Some(&VERSION[..]);
        Some(message)
    }
}
