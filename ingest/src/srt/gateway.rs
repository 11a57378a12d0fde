//! SRT gateway process: accepts encoders by libsrt, passes payloads to the service, bounds what waits, reports
//! rejections.
//!
//! One thread, the pump, reads the packets that libsrt has put in order, at an interval, for all connections at once;
//! another reads the service's orders. Nothing is kept beyond bounds: while the service does not take its messages,
//! payloads are discarded and counted, and the first that is sent afterwards is marked. When the service's end of the
//! socket closes, the process ends, whatever its state.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{self, Read},
    net::{IpAddr, UdpSocket},
    os::unix::net::UnixStream,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use bytes::BytesMut;
use parking_lot::{Mutex, RwLock};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{SendFlags, send},
};

use super::{
    libsrt::{self, Connection, Listener, MAX_MESSAGE, Received, SocketNumber},
    message::{FromGateway, MAX_DATA, SessionId, ToGateway, begin_data, end_data},
    stream_id::{Reject, StreamId},
    table::{InputId, Table},
};
use crate::publish::{Ended, LinkStatistics};

/// Bytes of messages to the service that may wait; beyond them payloads are discarded.
const MAX_WAITING: usize = 8 << 20;
/// Bytes of them that one connection may fill in an interval, so that a flood on one leaves room for the others.
const MAX_PER_INTERVAL: usize = 2 << 20;
/// Interval of the statistics.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// Rejections reported to the service between two reports; further ones are not reported.
const MAX_REJECTIONS: usize = 32;
/// Callers with a right stream key that are not connected yet; beyond it, the oldest are dropped.
const MAX_ADMITTED: usize = 256;
/// Time within which a caller connects. libsrt checks the passphrase right after the stream key: a caller that is not
/// connected by then was rejected for it.
const CONNECTS_WITHIN: Duration = Duration::from_secs(2);
/// Orders that may wait for the pump; the service's socket is not read meanwhile.
const MAX_ORDERS: usize = 256;
/// Callers whose handshake is done and that wait for the pump.
const BACKLOG: usize = 64;
/// Shortest interval; without one the pump would spin.
const SHORTEST_READ_INTERVAL: Duration = Duration::from_millis(5);
/// Interval of connections which a viewer of WebRTC watches: 1 % of a core more than at 50 ms, and 5 ms of delay on average.
const PROMPT_READ_INTERVAL: Duration = Duration::from_millis(10);
/// Time for the pump to close its connections when the service has ended.
const CLOSE_DELAY: Duration = Duration::from_secs(1);
/// Size of a read of orders.
const READ_ORDERS: usize = 16 << 10;

/// Options of the gateway's start.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub latency: Duration,
    pub idle_timeout: Duration,
    pub read_interval: Duration,
    pub max_connections: usize,
}

/// Serves until the service closes `control`, and ends the process then, or when it cannot continue. Returns only
/// errors of the start.
pub fn run(control: UnixStream, udp: UdpSocket, options: Options) -> io::Result<()> {
    libsrt::start()?;
    let listener_state = Arc::new(ListenerState::default());
    let (sender, orders) = sync_channel(MAX_ORDERS);
    let reading = control.try_clone()?;
    let table = listener_state.clone();
    thread::Builder::new()
        .name("orders".into())
        .spawn(move || follow_orders(reading, &table, &sender))?;
    let mut pump = ConnectionLoop::new(control, udp, orders, listener_state, options);
    let outcome = catch_unwind(AssertUnwindSafe(|| pump.run()));
    if let Ok(Err(error)) = &outcome {
        eprintln!("sluice srt-gateway: {error}");
    }
    libsrt::exit_at_once(!matches!(outcome, Ok(Ok(()))))
}

/// State that libsrt's thread and ours share.
#[derive(Default)]
struct ListenerState {
    table: RwLock<Table>,
    /// True when no further connection is admitted; the pump sets it at each interval.
    is_full: AtomicBool,
    rejections: Mutex<VecDeque<RejectedCaller>>,
    admitted: Mutex<VecDeque<Admitted>>,
}

/// Caller whose stream key was right.
struct Admitted {
    socket: SocketNumber,
    input: InputId,
    remote: IpAddr,
    at: Instant,
}

struct RejectedCaller {
    input: Option<InputId>,
    remote: IpAddr,
    reject: Reject,
}

impl ListenerState {
    /// Decides about a caller, in libsrt's receiving thread.
    fn decide(
        &self,
        socket: SocketNumber,
        stream_id: &[u8],
        remote: IpAddr,
    ) -> Result<String, u16> {
        let id = match self.is_full.load(Ordering::Relaxed) {
            false => StreamId::parse(stream_id),
            true => Err(Reject::Overload),
        };
        let table = self.table.read();
        let decided = id
            .map_err(|reject| (None, reject))
            .and_then(|id| table.judge(&id, remote));
        decided
            .map(|entry| {
                self.admit(socket, entry.id, remote);
                entry.passphrase.clone()
            })
            .map_err(|(input, reject)| {
                self.note(input, remote, reject);
                reject.code()
            })
    }

    fn admit(&self, socket: SocketNumber, input: InputId, remote: IpAddr) {
        let mut admitted = self.admitted.lock();
        if admitted.len() == MAX_ADMITTED {
            admitted.pop_front();
        }
        let at = Instant::now();
        admitted.push_back(Admitted {
            socket,
            input,
            remote,
            at,
        });
    }

    /// Notes that a caller is connected: its passphrase was right.
    fn connected(&self, socket: SocketNumber) {
        let mut admitted = self.admitted.lock();
        admitted.retain(|caller| caller.socket != socket);
    }

    /// Notes the rejections of callers that have not connected in time.
    fn note_wrong_passphrases(&self, now: Instant) {
        loop {
            let mut admitted = self.admitted.lock();
            let is_late = |caller: &Admitted| now.duration_since(caller.at) >= CONNECTS_WITHIN;
            if !admitted.front().is_some_and(is_late) {
                return;
            }
            let caller = admitted.pop_front();
            drop(admitted);
            if let Some(caller) = caller {
                self.note(Some(caller.input), caller.remote, Reject::BadSecret);
            }
        }
    }

    fn note(&self, input: Option<InputId>, remote: IpAddr, reject: Reject) {
        let mut rejections = self.rejections.lock();
        if rejections.len() < MAX_REJECTIONS {
            rejections.push_back(RejectedCaller {
                input,
                remote,
                reject,
            });
        }
    }

    fn take_rejections(&self) -> VecDeque<RejectedCaller> {
        std::mem::take(&mut self.rejections.lock())
    }

    /// Changes the table at once; returns the orders that are for the pump.
    fn apply(&self, order: ToGateway) -> Option<Command> {
        let mut table = self.table.write();
        match order {
            ToGateway::Put(entry) => table.put(entry),
            ToGateway::Remove(id) => table.remove(&id),
            ToGateway::Conflicts(id, addresses) => table.set_conflicts(id, addresses),
            ToGateway::Serve => return Some(Command::Serve),
            ToGateway::Close(session) => return Some(Command::Close(session)),
            ToGateway::Prompt { session, is_prompt } => {
                return Some(Command::Prompt(session, is_prompt));
            }
        }
        None
    }
}

enum Command {
    Serve,
    Close(SessionId),
    Prompt(SessionId, bool),
    /// The service has ended.
    End,
}

/// Reads orders until the service has ended, then ends the process. Serving begins when every order sent by then is in
/// the table, so that no caller that was allowed meanwhile is rejected.
fn follow_orders(
    mut control: UnixStream,
    listener_state: &ListenerState,
    orders: &SyncSender<Command>,
) {
    let mut input = BytesMut::new();
    let mut piece = vec![0; READ_ORDERS];
    let mut shall_serve = false;
    'reading: while let Ok(len @ 1..) = control.read(&mut piece) {
        input.extend_from_slice(&piece[..len]);
        loop {
            let order = match ToGateway::decode(&mut input) {
                Ok(Some(order)) => listener_state.apply(order),
                Ok(None) => break,
                Err(_) => break 'reading,
            };
            let is_over = match order {
                Some(Command::Serve) => {
                    shall_serve = true;
                    false
                }
                Some(order) => orders.send(order).is_err(),
                None => false,
            };
            if is_over {
                break 'reading;
            }
        }
        if shall_serve && !has_more(&control) {
            shall_serve = false;
            if orders.send(Command::Serve).is_err() {
                break;
            }
        }
    }
    // The queue may be full when the pump is stuck: the process ends below in any case.
    let _ = orders.try_send(Command::End);
    thread::sleep(CLOSE_DELAY);
    libsrt::exit_at_once(false);
}

fn has_more(control: &UnixStream) -> bool {
    let mut waiting = [PollFd::new(control, PollFlags::IN)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    matches!(poll(&mut waiting, Some(&at_once)), Ok(1..))
}

struct ConnectionLoop {
    control: UnixStream,
    udp: Option<UdpSocket>,
    listener: Option<Listener>,
    orders: Receiver<Command>,
    listener_state: Arc<ListenerState>,
    options: Options,
    sessions: BTreeMap<SessionId, GatewaySession>,
    next_id: SessionId,
    /// Messages to the service, of which the first `sent` bytes are written.
    out: Vec<u8>,
    sent: usize,
    spare: [u8; MAX_MESSAGE],
    next_report: Instant,
}

struct GatewaySession {
    connection: Connection,
    /// True when payloads were discarded since the last that was sent.
    gap: bool,
    /// True while it is read every [`PROMPT_READ_INTERVAL`].
    is_prompt: bool,
    discarded: u64,
    line: LinkStatistics,
    /// Time at which packets were last seen to arrive, as far as reports show.
    last_arrival: Instant,
    /// End of the peer's session, once it was seen: the rest of the buffer is still read, for a bounded time.
    ending: Option<Ending>,
}

#[derive(Clone, Copy)]
struct Ending {
    how: Ended,
    until: Instant,
}

impl ConnectionLoop {
    fn new(
        control: UnixStream,
        udp: UdpSocket,
        orders: Receiver<Command>,
        listener_state: Arc<ListenerState>,
        options: Options,
    ) -> Self {
        Self {
            control,
            udp: Some(udp),
            listener: None,
            orders,
            listener_state,
            options: Options {
                read_interval: options.read_interval.max(SHORTEST_READ_INTERVAL),
                ..options
            },
            sessions: BTreeMap::new(),
            next_id: 1,
            out: Vec::new(),
            sent: 0,
            spare: [0; MAX_MESSAGE],
            next_report: Instant::now(),
        }
    }

    fn run(&mut self) -> io::Result<()> {
        let mut next_read = Instant::now();
        loop {
            let now = Instant::now();
            if now >= next_read {
                next_read = now + self.options.read_interval;
                self.accept();
                self.read_where(|_| true);
            } else {
                self.read_where(|session| session.is_prompt);
            }
            let is_prompt = self.sessions.values().any(|session| session.is_prompt);
            let next = match is_prompt {
                true => next_read.min(now + PROMPT_READ_INTERVAL),
                false => next_read,
            };
            let is_full = self.sessions.len() >= self.options.max_connections;
            self.listener_state
                .is_full
                .store(is_full, Ordering::Relaxed);
            self.report();
            if self.flush(next)? || self.follow_orders(next)? {
                return Ok(());
            }
        }
    }

    /// Carries orders out until the next interval; returns whether the service has ended.
    fn follow_orders(&mut self, next: Instant) -> io::Result<bool> {
        loop {
            let left = next.saturating_duration_since(Instant::now());
            match self.orders.recv_timeout(left) {
                Ok(Command::Serve) => self.listen()?,
                Ok(Command::Close(session)) => drop(self.sessions.remove(&session)),
                Ok(Command::Prompt(session, is_prompt)) => {
                    if let Some(session) = self.sessions.get_mut(&session) {
                        session.is_prompt = is_prompt;
                    }
                }
                Ok(Command::End) | Err(RecvTimeoutError::Disconnected) => {
                    self.sessions.clear();
                    return Ok(true);
                }
                Err(RecvTimeoutError::Timeout) => return Ok(false),
            }
        }
    }

    fn listen(&mut self) -> io::Result<()> {
        let Some(udp) = self.udp.take() else {
            return Ok(());
        };
        let listener_state = self.listener_state.clone();
        let listener = Listener::listen(
            udp,
            self.options.latency,
            self.options.idle_timeout,
            BACKLOG,
            Box::new(move |socket, stream_id, remote| {
                listener_state.decide(socket, stream_id, remote)
            }),
        )?;
        self.listener = Some(listener);
        let version = libsrt::version();
        FromGateway::Ready { version }.encode(&mut self.out);
        Ok(())
    }

    fn accept(&mut self) {
        let Some(listener) = &self.listener else {
            return;
        };
        for _ in 0..BACKLOG {
            let Some(connection) = listener.accept() else {
                return;
            };
            self.listener_state.connected(connection.socket_number());
            let Ok(id) = StreamId::parse(&connection.stream_id) else {
                continue;
            };
            if self.sessions.len() >= self.options.max_connections {
                let (remote, reject) = (connection.remote.ip(), Reject::Overload);
                self.listener_state.note(None, remote, reject);
                continue;
            }
            let session = self.next_id;
            self.next_id = self.next_id.wrapping_add(1);
            let latency_ms = u32::try_from(connection.latency.as_millis()).unwrap_or(u32::MAX);
            FromGateway::Opened {
                session,
                stream: id.stream_name(),
                remote: connection.remote,
                latency_ms,
            }
            .encode(&mut self.out);
            self.sessions
                .insert(session, GatewaySession::new(connection));
        }
    }

    fn read_where(&mut self, is_read: impl Fn(&GatewaySession) -> bool) {
        let now = Instant::now();
        let mut over = Vec::new();
        for (id, session) in &mut self.sessions {
            if !is_read(session) {
                continue;
            }
            let is_over = match self.out.len() - self.sent < MAX_WAITING {
                true => session.read(*id, &mut self.out),
                false => session.discard(&mut self.spare),
            };
            if is_over {
                let ending = session.note_broken(now, &self.options);
                if now >= ending.until || !session.connection.has_data() {
                    over.push((*id, ending.how));
                }
            }
        }
        for (session, how) in over {
            self.sessions.remove(&session);
            FromGateway::Closed { session, how }.encode(&mut self.out);
        }
    }

    fn report(&mut self) {
        let now = Instant::now();
        if now < self.next_report {
            return;
        }
        self.next_report = now + REPORT_EVERY;
        // Reports may be left out: the next ones have the same totals.
        if self.out.len() - self.sent >= MAX_WAITING {
            return;
        }
        for (id, session) in &mut self.sessions {
            let line = session.look_at_line(now);
            FromGateway::Line { session: *id, line }.encode(&mut self.out);
        }
        self.listener_state.note_wrong_passphrases(now);
        for rejection in self.listener_state.take_rejections() {
            FromGateway::Refused {
                input: rejection.input,
                remote: rejection.remote,
                code: rejection.reject.code(),
            }
            .encode(&mut self.out);
        }
        let open = u32::try_from(self.sessions.len()).unwrap_or(u32::MAX);
        FromGateway::Alive { open }.encode(&mut self.out);
    }

    /// Sends what the service takes until the next interval; returns whether it has ended.
    fn flush(&mut self, next: Instant) -> io::Result<bool> {
        while self.sent < self.out.len() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match send(&self.control, &self.out[self.sent..], flags) {
                Ok(len) => self.sent += len,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let left = next.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    self.wait_writable(left);
                }
                Err(Errno::PIPE | Errno::CONNRESET) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        } else if self.sent > MAX_WAITING / 8 {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        Ok(false)
    }

    fn wait_writable(&self, left: Duration) {
        let timeout = Timespec::try_from(left).unwrap_or_default();
        let mut fds = [PollFd::new(&self.control, PollFlags::OUT)];
        // Whatever the result, sending is tried again.
        let _ = poll(&mut fds, Some(&timeout));
    }
}

impl GatewaySession {
    fn new(connection: Connection) -> Self {
        Self {
            connection,
            gap: false,
            is_prompt: false,
            discarded: 0,
            line: LinkStatistics::default(),
            last_arrival: Instant::now(),
            ending: None,
        }
    }

    /// Moves received packets into messages, the share of one interval at most; returns whether the connection is
    /// over.
    fn read(&mut self, id: SessionId, out: &mut Vec<u8>) -> bool {
        let end = out.len() + MAX_PER_INTERVAL;
        while out.len() < end {
            let start = begin_data(id, self.gap, out);
            let (empty, mut received) = (out.len(), Received::Nothing);
            while out.len() - empty + MAX_MESSAGE <= MAX_DATA {
                let before = out.len();
                out.resize(before + MAX_MESSAGE, 0);
                received = self.connection.receive(&mut out[before..]);
                match received {
                    Received::Message(len) => out.truncate(before + len),
                    Received::Nothing | Received::Broken => {
                        out.truncate(before);
                        break;
                    }
                }
            }
            if out.len() == empty {
                out.truncate(start);
            } else {
                end_data(start, out);
                self.gap = false;
            }
            match received {
                Received::Message(_) => {}
                Received::Nothing => return false,
                Received::Broken => return true,
            }
        }
        false
    }

    /// Discards received packets; returns whether the connection is over.
    fn discard(&mut self, spare: &mut [u8; MAX_MESSAGE]) -> bool {
        let mut bytes = 0;
        while bytes < MAX_PER_INTERVAL {
            match self.connection.receive(spare) {
                Received::Message(len) => {
                    bytes += len;
                    self.discarded += 1;
                    self.gap = true;
                }
                Received::Nothing => return false,
                Received::Broken => return true,
            }
        }
        false
    }

    /// Decides how a broken connection ended: a peer that shut down has sent packets until just now; one that fell
    /// silent has not. The rest of both buffers is read when its time has come.
    fn note_broken(&mut self, now: Instant, options: &Options) -> Ending {
        let is_alive = now.duration_since(self.last_arrival) + REPORT_EVERY < options.idle_timeout;
        let latency = self.connection.latency;
        *self.ending.get_or_insert_with(|| Ending {
            how: if is_alive {
                Ended::Clean
            } else {
                Ended::Dropped
            },
            until: now + latency + 2 * options.read_interval,
        })
    }

    fn look_at_line(&mut self, now: Instant) -> LinkStatistics {
        if let Some(line) = self.connection.line() {
            if line.received > self.line.received {
                self.last_arrival = now;
            }
            self.line = line;
        }
        self.line.discarded = self.discarded;
        self.line
    }
}
