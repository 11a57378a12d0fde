//! TCP connections of peers that no UDP reaches (ICE-TCP passive, RFC 6544; frames of RFC 4571): `MAX_FRAME`, `MAX_UNSENT`,
//! `MAX_CONNECTIONS`.
//!
//! One thread accepts and reads them all. A connection belongs to the session that its first frame, a connectivity check, names; one
//! without a check that the session answered within `CHECK_WITHIN` is closed. The sessions' threads write to it themselves.

use std::{
    collections::HashMap,
    io::{self, Read, Write as _},
    net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd as _, BorrowedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustix::event::{Timespec, epoll};

use super::{
    super::message::SessionId,
    inbox::{Datagram, Inbox},
    routes::Routes,
};

/// Most bytes of a frame.
pub(super) const MAX_FRAME: usize = 2_048;
/// Most bytes of whole frames that wait behind those in the kernel.
const MAX_UNSENT: usize = 64 << 10;
/// Bytes that the kernel keeps for sending: a third of a second of 6 Mbit/s, and a large key frame.
const SEND_BUFFER: usize = 256 << 10;
/// Time within which a connection has an answered check.
const CHECK_WITHIN: Duration = Duration::from_secs(5);
/// Time after which a connection is closed that took nothing while bytes waited.
const TAKES_WITHIN: Duration = Duration::from_secs(10);
/// Connections at a time; further ones are closed at once.
const MAX_CONNECTIONS: usize = 4_096;
/// Connections without an answered check of one address at a time.
const MAX_UNCHECKED_PER_ADDRESS: usize = 16;
/// Pause after an error of accepting, so that one that lasts does not keep the thread busy.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);
/// Interval in which the deadlines are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Events of one wait.
const EVENTS: usize = 64;
/// Frames of a connection that are passed on before the next connection has its turn.
const FRAMES_AT_ONCE: usize = 64;

/// The written side of a connection, shared by its session and the reading thread.
pub(super) struct TcpPeer {
    pub remote: SocketAddr,
    stream: TcpStream,
    unsent: Mutex<Unsent>,
    is_checked: AtomicBool,
}

struct Unsent {
    bytes: Vec<u8>,
    /// Time at which the kernel last took bytes.
    taken_at: Instant,
}

/// Result of handing a frame to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Yes,
    /// There was no room; the frame is dropped.
    Full,
}

impl TcpPeer {
    fn new(stream: TcpStream, remote: SocketAddr) -> Self {
        Self {
            remote,
            stream,
            unsent: Mutex::new(Unsent {
                bytes: Vec::new(),
                taken_at: Instant::now(),
            }),
            is_checked: AtomicBool::new(false),
        }
    }

    /// Sends a frame, or keeps it behind those that wait.
    pub fn send(&self, contents: &[u8]) -> Sent {
        let Ok(len) = u16::try_from(contents.len()) else {
            return Sent::Full;
        };
        let mut unsent = self.unsent.lock();
        if unsent.bytes.len() + contents.len() + 2 > MAX_UNSENT {
            self.write(&mut unsent);
            if unsent.bytes.len() + contents.len() + 2 > MAX_UNSENT {
                return Sent::Full;
            }
        }
        if unsent.bytes.is_empty() {
            unsent.taken_at = Instant::now();
        }
        unsent.bytes.extend_from_slice(&len.to_be_bytes());
        unsent.bytes.extend_from_slice(contents);
        Sent::Yes
    }

    /// Writes what waits, as far as the kernel takes it; returns whether something is left.
    pub fn flush(&self) -> bool {
        let mut unsent = self.unsent.lock();
        self.write(&mut unsent);
        !unsent.bytes.is_empty()
    }

    /// True when bytes wait and the kernel has taken none for [`TAKES_WITHIN`].
    pub fn is_stalled(&self, now: Instant) -> bool {
        let unsent = self.unsent.lock();
        !unsent.bytes.is_empty() && now.duration_since(unsent.taken_at) >= TAKES_WITHIN
    }

    fn write(&self, unsent: &mut Unsent) {
        let mut sent = 0;
        while sent < unsent.bytes.len() {
            match (&self.stream).write(&unsent.bytes[sent..]) {
                Ok(0) => break,
                Ok(len) => sent += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The reading thread sees the end of the connection, too.
                Err(_) => {
                    sent = unsent.bytes.len();
                    break;
                }
            }
        }
        if sent > 0 {
            unsent.bytes.drain(..sent);
            unsent.taken_at = Instant::now();
        }
    }

    /// Notes that the session answered a check of this connection.
    pub fn note_checked(&self) {
        self.is_checked.store(true, Ordering::Relaxed);
    }

    /// Closes both directions; the reading thread then forgets the connection.
    pub fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Accepts and reads connections until `is_over`; `bell` wakes it then.
pub(super) fn serve(
    listener: &TcpListener,
    routes: &Routes,
    inboxes: &[Arc<Inbox>],
    bell: BorrowedFd<'_>,
    is_over: &AtomicBool,
) -> io::Result<()> {
    let mut server = Server {
        listener,
        routes,
        inboxes,
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        connections: HashMap::new(),
        next_key: FIRST_KEY,
    };
    listener.set_nonblocking(true)?;
    server.watch(listener.as_fd(), LISTENER)?;
    server.watch(bell, BELL)?;
    while !is_over.load(Ordering::Relaxed) {
        server.serve_once()?;
    }
    Ok(())
}

/// Keys of what the thread waits for.
const LISTENER: u64 = 0;
const BELL: u64 = 1;
const FIRST_KEY: u64 = 2;

struct Server<'a> {
    listener: &'a TcpListener,
    routes: &'a Routes,
    inboxes: &'a [Arc<Inbox>],
    epoll: std::os::fd::OwnedFd,
    connections: HashMap<u64, Connection>,
    next_key: u64,
}

/// The read side of a connection.
struct Connection {
    peer: Arc<TcpPeer>,
    session: Option<SessionId>,
    input: FrameReader,
    opened_at: Instant,
}

impl Server<'_> {
    fn watch(&self, descriptor: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(key);
        epoll::add(&self.epoll, descriptor, data, epoll::EventFlags::IN)?;
        Ok(())
    }

    fn serve_once(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        let timeout = Timespec::try_from(LOOK_EVERY).unwrap_or_default();
        let spare = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.epoll, spare, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events {
            match event.data.u64() {
                LISTENER => self.accept(),
                BELL => {}
                key => self.read(key),
            }
        }
        self.close_late();
        Ok(())
    }

    fn accept(&mut self) {
        for _ in 0..EVENTS {
            let (stream, remote) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // There are no descriptors left, or the caller is gone.
                Err(_) => return thread::sleep(ACCEPT_AGAIN),
            };
            let remote = canonical(remote);
            let unchecked = self.connections.values().filter(|connection| {
                connection.peer.remote.ip() == remote.ip()
                    && !connection.peer.is_checked.load(Ordering::Relaxed)
            });
            if self.connections.len() >= MAX_CONNECTIONS
                || unchecked.count() >= MAX_UNCHECKED_PER_ADDRESS
            {
                continue;
            }
            // A connection that cannot be set up is closed, as those above.
            let _ = self.open(stream, remote);
        }
    }

    fn open(&mut self, stream: TcpStream, remote: SocketAddr) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        rustix::net::sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER)?;
        let key = self.next_key;
        self.next_key += 1;
        self.watch(stream.as_fd(), key)?;
        let connection = Connection {
            peer: Arc::new(TcpPeer::new(stream, remote)),
            session: None,
            input: FrameReader::default(),
            opened_at: Instant::now(),
        };
        self.connections.insert(key, connection);
        Ok(())
    }

    fn read(&mut self, key: u64) {
        let Some(connection) = self.connections.get_mut(&key) else {
            return;
        };
        let mut datagrams = Vec::new();
        let is_open = connection.read(self.routes, &mut datagrams);
        if let Some(session) = connection.session {
            self.inboxes[shard_of(session, self.inboxes.len())].datagrams(&mut datagrams);
        }
        if !is_open {
            self.close(key);
        }
    }

    fn close_late(&mut self) {
        let now = Instant::now();
        let late: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, connection)| {
                let is_late = now.duration_since(connection.opened_at) >= CHECK_WITHIN;
                is_late && !connection.peer.is_checked.load(Ordering::Relaxed)
            })
            .map(|(key, _)| *key)
            .collect();
        for key in late {
            self.close(key);
        }
    }

    fn close(&mut self, key: u64) {
        if let Some(connection) = self.connections.remove(&key) {
            let _ = epoll::delete(&self.epoll, connection.peer.stream.as_fd());
            connection.peer.close();
        }
    }
}

impl Connection {
    /// Reads what there is; returns whether the connection is still open and keeps the rules.
    fn read(&mut self, routes: &Routes, datagrams: &mut Vec<Datagram>) -> bool {
        while datagrams.len() < FRAMES_AT_ONCE {
            match self.input.next(&mut &self.peer.stream) {
                Ok(Some(bytes)) => {
                    if self.session.is_none() {
                        self.session = routes.of_check(&bytes);
                    }
                    let Some(session) = self.session else {
                        return false;
                    };
                    datagrams.push(Datagram {
                        session,
                        source: self.peer.remote,
                        bytes,
                        tcp: Some(self.peer.clone()),
                    });
                }
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        true
    }
}

/// Returns the index of the shard that a session is in.
pub(super) fn shard_of(session: SessionId, shards: usize) -> usize {
    session as usize % shards
}

/// Returns an address without its wrapping as IPv6.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        // The scope of a link-local address stays.
        IpAddr::V6(_) => address,
        ip => SocketAddr::new(ip, address.port()),
    }
}

/// Frames of a byte stream: a length of two bytes, then so many bytes.
#[derive(Default)]
pub(super) struct FrameReader {
    bytes: Vec<u8>,
}

impl FrameReader {
    /// Returns the next whole frame; `None` until there is one; an error at the end of the stream or of a frame that is too
    /// long or empty.
    pub(super) fn next(&mut self, stream: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
        loop {
            let wanted = match self.bytes.first_chunk::<2>() {
                None => 2,
                Some(len) => 2 + usize::from(u16::from_be_bytes(*len)),
            };
            if wanted > 2 + MAX_FRAME || (self.bytes.len() >= 2 && wanted == 2) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if self.bytes.len() >= 2 && self.bytes.len() == wanted {
                let frame = self.bytes.split_off(2);
                self.bytes.clear();
                return Ok(Some(frame));
            }
            let start = self.bytes.len();
            self.bytes.resize(wanted, 0);
            let read = stream.read(&mut self.bytes[start..]);
            self.bytes.truncate(start + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at each second read, and would block in between.
    struct Slow<'a> {
        bytes: &'a [u8],
        blocks: bool,
    }

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.blocks = !self.blocks;
            if self.blocks {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let len = self.bytes.len().min(1);
            buffer[..len].copy_from_slice(&self.bytes[..len]);
            self.bytes = &self.bytes[len..];
            Ok(len)
        }
    }

    #[test]
    fn frames_are_read_in_any_pieces() {
        let bytes = [0, 3, 1, 2, 3, 0, 1, 9, 0, 2, 7];
        let mut stream = Slow {
            bytes: &bytes,
            blocks: false,
        };
        let mut reader = FrameReader::default();
        let mut frames = Vec::new();
        let end = loop {
            match reader.next(&mut stream) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(frames, [vec![1, 2, 3], vec![9]]);
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn long_and_empty_frames_end_the_connection() {
        for bytes in [&[8, 1, 0, 0][..], &[0, 0, 0, 1]] {
            let read = FrameReader::default().next(&mut &bytes[..]);
            assert_eq!(read.unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
        let mut largest = vec![8, 0];
        largest.resize(2 + MAX_FRAME, 5);
        let read = FrameReader::default().next(&mut &largest[..]).unwrap();
        assert_eq!(read.map(|frame| frame.len()), Some(MAX_FRAME));
    }
}
