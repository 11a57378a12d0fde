//! Queue of a shard (`MAX_ORDERS`, `MAX_DATAGRAMS`, `MAX_MEDIA_BYTES`) and the event that wakes its thread.
//!
//! Whatever the full queue cannot take is dropped and counted, but for orders of the service: for those its socket is not read
//! until there is room, since each changes what a session is.

use std::{
    collections::{HashSet, VecDeque},
    io,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use rustix::event::{EventfdFlags, eventfd};

use super::{
    super::message::{FeedId, Role, SessionId},
    frame::FeedFrame,
    tcp::TcpPeer,
};

/// Orders that may wait.
const MAX_ORDERS: usize = 256;
/// Datagrams that may wait.
const MAX_DATAGRAMS: usize = 4_096;
/// Bytes of media that may wait; the packets are shared by all shards.
const MAX_MEDIA_BYTES: usize = 32 << 20;
/// Longest wait for room for an order: a shard that takes none for so long is stuck, and the process ends.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Work of a shard.
pub(super) enum Job {
    Order(Order),
    Frame {
        frame: Arc<FeedFrame>,
        /// True when frames of the feed before this one were dropped.
        is_after_gap: bool,
    },
    Datagram(Datagram),
}

/// Orders of the service to the sessions of a shard.
pub(super) enum Order {
    Offer(Offer),
    Attach {
        session: SessionId,
        video: Option<FeedId>,
        audio: Option<FeedId>,
    },
    Forget(FeedId),
    Close(SessionId),
}

pub(super) struct Offer {
    pub session: SessionId,
    pub role: Role,
    pub candidates: Vec<SocketAddr>,
    pub sdp: String,
}

/// A datagram for a session, or a frame of RFC 4571 of one of its TCP connections.
pub(super) struct Datagram {
    pub session: SessionId,
    pub source: SocketAddr,
    pub bytes: Vec<u8>,
    /// Connection that it came on; `None` by UDP.
    pub tcp: Option<Arc<TcpPeer>>,
}

pub(super) struct Inbox {
    queue: Mutex<Queue>,
    has_room: Condvar,
    bell: OwnedFd,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    orders: usize,
    datagrams: usize,
    media_bytes: usize,
    /// Feeds whose last frames were dropped.
    gaps: HashSet<FeedId>,
}

impl Inbox {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            queue: Mutex::default(),
            has_room: Condvar::new(),
            bell: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
        })
    }

    /// Returns the descriptor that is readable while work waits.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Queues an order, waiting for room; an error when the shard is stuck.
    pub fn order(&self, order: Order) -> io::Result<()> {
        let mut queue = self.queue.lock();
        while queue.orders >= MAX_ORDERS {
            if self.has_room.wait_for(&mut queue, MAX_WAIT).timed_out() {
                return Err(io::Error::other(
                    "a thread of sessions does not take orders",
                ));
            }
        }
        queue.orders += 1;
        queue.jobs.push_back(Job::Order(order));
        drop(queue);
        self.ring();
        Ok(())
    }

    /// Queues a frame, or drops it.
    pub fn frame(&self, frame: &Arc<FeedFrame>) {
        let mut queue = self.queue.lock();
        if queue.media_bytes >= MAX_MEDIA_BYTES {
            queue.gaps.insert(frame.feed);
            return;
        }
        queue.media_bytes += frame.bytes;
        let is_after_gap = queue.gaps.remove(&frame.feed);
        queue.jobs.push_back(Job::Frame {
            frame: frame.clone(),
            is_after_gap,
        });
        drop(queue);
        self.ring();
    }

    /// Queues datagrams, or drops those that find no room.
    pub fn datagrams(&self, datagrams: &mut Vec<Datagram>) {
        if datagrams.is_empty() {
            return;
        }
        let mut queue = self.queue.lock();
        let room = MAX_DATAGRAMS.saturating_sub(queue.datagrams);
        for datagram in datagrams.drain(..).take(room) {
            queue.datagrams += 1;
            queue.jobs.push_back(Job::Datagram(datagram));
        }
        drop(queue);
        self.ring();
    }

    /// Takes all waiting work.
    pub fn take(&self) -> VecDeque<Job> {
        let mut count = [0; 8];
        // It says EAGAIN when the event was taken before: the queue is looked at in any case.
        let _ = rustix::io::read(&self.bell, &mut count);
        let mut queue = self.queue.lock();
        queue.orders = 0;
        queue.datagrams = 0;
        queue.media_bytes = 0;
        self.has_room.notify_all();
        std::mem::take(&mut queue.jobs)
    }

    /// Wakes the shard's thread.
    pub fn ring(&self) {
        // Its counter never overflows: the thread reads it each time.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}
