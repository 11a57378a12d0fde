//! WebRTC gateway process: ICE, DTLS and SRTP of viewers (WHEP) and publishers (WHIP), by the library str0m.
//!
//! ```text
//! service ═ control socket ═▶ orders ──▶ shards: sessions ──▶ UDP, TCP
//!         ◀═ outbox ═══════════════════════╯   ▲
//!                     UDP ─▶ demux, TCP ─▶ tcp ─╯
//! ```
//!
//! One thread reads the service's orders and makes the packets of each frame, one receives datagrams, one reads TCP connections, one
//! writes to the service, and each shard drives its sessions. Every queue between them has a bound. When the service's end of the
//! socket closes, all sessions are closed, and the process ends.

mod answer;
mod burst;
pub mod crypto;
mod demux;
mod frame;
pub(crate) mod fuzzing;
mod group;
mod inbox;
mod line;
mod outbox;
mod pace;
mod peer;
mod publish_line;
mod publisher;
mod routes;
mod sdp;
mod send;
mod session;
mod shard;
mod tcp;
#[cfg(test)]
mod tests;
mod viewer;

use std::{
    io::{self, Read as _},
    net::{TcpListener, UdpSocket},
    os::unix::net::UnixStream,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use bytes::BytesMut;
use parking_lot::Mutex;

use self::{
    answer::Answerer,
    frame::{Clock, FeedFrame},
    inbox::{Inbox, Offer, Order},
    outbox::Outbox,
    routes::Routes,
    send::{Udp, UdpSender},
    shard::{Shard, Shared},
    tcp::shard_of,
};
use super::message::{FromGateway, ToGateway};

/// Size of a read of orders.
const READ_ORDERS: usize = 256 << 10;
/// Time for the threads to close their sessions at the end.
const CLOSE_DELAY: Duration = Duration::from_secs(1);
/// Time after which a shard that made no round counts as stuck: the heartbeat stops, and the service replaces the process.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// Options of the gateway's start.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Threads that drive sessions; 0: half of the processor's cores.
    pub threads: usize,
    pub max_sessions: usize,
    /// Sessions that are not connected yet.
    pub max_pending: usize,
    pub handshake_timeout: Duration,
    /// Bytes of the open group of pictures that is kept for each video feed.
    pub join_cache_bytes: usize,
    /// True when browsers shall keep their ordinary buffer on clean lines, too.
    pub is_playout_adaptive: bool,
    /// Interval in which publishers are asked for key frames.
    pub keyframe_interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: 0,
            max_sessions: 2_000,
            max_pending: 256,
            handshake_timeout: Duration::from_secs(10),
            join_cache_bytes: 8 << 20,
            is_playout_adaptive: false,
            keyframe_interval: Duration::from_secs(2),
        }
    }
}

/// Serves until the service closes `control`; an error when a part of the gateway cannot continue.
pub fn run(
    control: UnixStream,
    udp: UdpSocket,
    tcp: Option<TcpListener>,
    options: Options,
) -> io::Result<()> {
    let mut gateway = Gateway::new(control, options, tcp.is_some())?;
    gateway.start(udp, tcp)?;
    gateway.shared.outbox.push(&FromGateway::Ready);
    let followed = gateway.follow_orders();
    gateway.end(followed)
}

struct Gateway {
    control: UnixStream,
    shared: Arc<Shared>,
    inboxes: Arc<[Arc<Inbox>]>,
    rounds: Vec<Arc<AtomicU64>>,
    threads: Vec<JoinHandle<()>>,
    /// First error of a thread.
    failure: Arc<Mutex<Option<io::Error>>>,
    /// Wakes the receiving threads at the end.
    bell: Arc<Inbox>,
}

impl Gateway {
    fn new(control: UnixStream, options: Options, has_tcp: bool) -> io::Result<Self> {
        let threads = match options.threads {
            0 => thread::available_parallelism()
                .map_or(1, |cores| cores.get() / 2)
                .max(1),
            threads => threads,
        };
        let inboxes = (0..threads)
            .map(|_| Inbox::new().map(Arc::new))
            .collect::<io::Result<_>>()?;
        Ok(Self {
            control,
            shared: Arc::new(Shared {
                options,
                answerer: Answerer::new(has_tcp),
                routes: Routes::default(),
                outbox: Outbox::default(),
                sessions: AtomicUsize::new(0),
                pending: AtomicUsize::new(0),
                is_over: AtomicBool::new(false),
            }),
            inboxes,
            rounds: (0..threads).map(|_| Arc::default()).collect(),
            threads: Vec::new(),
            failure: Arc::default(),
            bell: Arc::new(Inbox::new()?),
        })
    }

    fn start(&mut self, udp: UdpSocket, tcp: Option<TcpListener>) -> io::Result<()> {
        let udp = Arc::new(Udp::new(udp)?);
        for (index, rounds) in self.rounds.clone().into_iter().enumerate() {
            let inbox = self.inboxes[index].clone();
            let sender = UdpSender::new(udp.clone());
            let mut shard = Shard::new(self.shared.clone(), inbox, rounds, sender);
            self.spawn("sessions", move || {
                shard.run();
                Ok(())
            })?;
        }
        let (shared, inboxes, bell) =
            (self.shared.clone(), self.inboxes.clone(), self.bell.clone());
        self.spawn("datagrams", move || {
            demux::serve(&udp, &shared.routes, &inboxes, bell.bell(), &shared.is_over)
        })?;
        if let Some(listener) = tcp {
            let (shared, inboxes, bell) =
                (self.shared.clone(), self.inboxes.clone(), self.bell.clone());
            self.spawn("connections", move || {
                tcp::serve(
                    &listener,
                    &shared.routes,
                    &inboxes,
                    bell.bell(),
                    &shared.is_over,
                )
            })?;
        }
        let (shared, mut writing) = (self.shared.clone(), self.control.try_clone()?);
        let watch = Watch::new(&self.rounds);
        self.spawn("messages", move || {
            shared.outbox.write(&mut writing, || watch.beat(&shared))
        })
    }

    /// Starts a thread; when it fails, the gateway ends.
    fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let (failure, shared) = (self.failure.clone(), self.shared.clone());
        let control = self.control.try_clone()?;
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            let outcome = catch_unwind(AssertUnwindSafe(work))
                .unwrap_or_else(|_| Err(io::Error::other("a thread of the gateway panicked")));
            if let Err(error) = outcome
                && !shared.is_over.load(Ordering::Relaxed)
            {
                failure.lock().get_or_insert(error);
                // Ends the thread that reads orders, and with it the gateway.
                let _ = control.shutdown(std::net::Shutdown::Both);
            }
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// Carries orders out until the service has ended.
    fn follow_orders(&mut self) -> io::Result<()> {
        let mut clock = Clock::new();
        let mut input = BytesMut::new();
        let mut piece = vec![0; READ_ORDERS];
        loop {
            let len = match self.control.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            clock.keep();
            input.extend_from_slice(&piece[..len]);
            while let Some(order) = ToGateway::decode(&mut input).map_err(io::Error::other)? {
                self.carry_out(order, &clock)?;
            }
        }
    }

    fn carry_out(&self, order: ToGateway, clock: &Clock) -> io::Result<()> {
        match order {
            ToGateway::Video(frame) => {
                // A frame that cannot be read is left out: the service has its own eye on its input.
                if let Ok(Some(frame)) = FeedFrame::of_video(&frame, clock) {
                    self.frame(frame);
                }
                Ok(())
            }
            ToGateway::Audio(frame) => {
                self.frame(FeedFrame::of_audio(&frame, clock));
                Ok(())
            }
            ToGateway::Offer {
                session,
                role,
                candidates,
                sdp,
            } => self.inbox_of(session).order(Order::Offer(Offer {
                session,
                role,
                candidates,
                sdp,
            })),
            ToGateway::Attach {
                session,
                video,
                audio,
            } => self.inbox_of(session).order(Order::Attach {
                session,
                video,
                audio,
            }),
            ToGateway::Close { session, .. } => self.inbox_of(session).order(Order::Close(session)),
            ToGateway::Forget(feed) => {
                let mut all = self.inboxes.iter();
                all.try_for_each(|inbox| inbox.order(Order::Forget(feed)))
            }
        }
    }

    fn frame(&self, frame: FeedFrame) {
        let frame = Arc::new(frame);
        for inbox in &*self.inboxes {
            inbox.frame(&frame);
        }
    }

    fn inbox_of(&self, session: u32) -> &Inbox {
        &self.inboxes[shard_of(session, self.inboxes.len())]
    }

    /// Ends all threads, as far as they end in time.
    fn end(self, followed: io::Result<()>) -> io::Result<()> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.bell.ring();
        for inbox in &*self.inboxes {
            inbox.ring();
        }
        self.shared.outbox.end();
        let until = Instant::now() + CLOSE_DELAY;
        while Instant::now() < until && self.threads.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(Duration::from_millis(5));
        }
        let ended = match self.failure.lock().take() {
            Some(error) => Err(error),
            None => followed,
        };
        match ended {
            // The service is gone, and with it what was to be written.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
                ) =>
            {
                Ok(())
            }
            ended => ended,
        }
    }
}

/// Watch over the shards' rounds.
struct Watch {
    rounds: Vec<Arc<AtomicU64>>,
    seen: Mutex<Vec<(u64, Instant)>>,
}

impl Watch {
    fn new(rounds: &[Arc<AtomicU64>]) -> Self {
        Self {
            rounds: rounds.to_vec(),
            seen: Mutex::new(vec![(0, Instant::now()); rounds.len()]),
        }
    }

    /// Returns the heartbeat, as long as no shard is stuck.
    fn beat(&self, shared: &Shared) -> Option<FromGateway> {
        let (mut seen, now) = (self.seen.lock(), Instant::now());
        let mut is_stuck = false;
        for (rounds, (last, at)) in self.rounds.iter().zip(seen.iter_mut()) {
            let rounds = rounds.load(Ordering::Relaxed);
            if rounds != *last {
                (*last, *at) = (rounds, now);
            }
            is_stuck |= now.duration_since(*at) >= STUCK_AFTER;
        }
        let sessions = shared.sessions.load(Ordering::Relaxed);
        (!is_stuck).then(|| FromGateway::Alive {
            sessions: u32::try_from(sessions).unwrap_or(u32::MAX),
        })
    }
}
