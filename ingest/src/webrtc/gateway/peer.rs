//! Transport of a session: ICE, DTLS and SRTP of one peer by the library, its addresses and connections, and its deadlines.
//!
//! The library does no input or output: it is given datagrams and the time, and everything it says is drained after each of them.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use str0m::{
    Event, IceConnectionState, Input, Output, Rtc, RtcError,
    net::{DatagramRecv, Protocol, Receive, Transmit},
};

use super::{
    super::message::{FromGateway, GoneReason, SessionId, Transport},
    answer::Answered,
    inbox::Datagram,
    outbox::Outbox,
    routes::{Routes, is_stun},
    send::UdpSender,
    tcp::{Sent, TcpPeer},
};

/// UDP addresses of a session that are routed to it; the oldest gives way.
const MAX_ADDRESSES: usize = 8;
/// TCP connections of a session; the oldest is closed.
const MAX_CONNECTIONS: usize = 4;
/// Time without any RTCP of the peer, while packets are sent to it, after which the session ends (RFC 8083 §4.4): three intervals
/// of the slowest reports, those of audio.
const MAX_WITHOUT_RTCP: Duration = Duration::from_secs(15);
/// Time without media after which the count for [`MAX_WITHOUT_RTCP`] begins again.
const PAUSE: Duration = Duration::from_secs(2);
/// Interval in which what waits for a TCP connection is written again.
const TCP_RETRY: Duration = Duration::from_millis(10);
/// Shortest time between two calls of the library that only pass the time.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
/// Outputs of the library that one call may make; more are an endless loop.
const MAX_OUTPUTS: usize = 100_000;

/// Parts of a session's thread that it is lent.
pub(super) struct Context<'a> {
    pub udp: &'a mut UdpSender,
    pub outbox: &'a Outbox,
    pub routes: &'a Routes,
}

pub(super) struct Peer {
    pub session: SessionId,
    pub rtc: Rtc,
    ufrag: String,
    local_udp: Vec<SocketAddr>,
    local_tcp: Vec<SocketAddr>,
    addresses: Vec<SocketAddr>,
    connections: Vec<Arc<TcpPeer>>,
    offered_at: Instant,
    handshake_timeout: Duration,
    pub connected_at: Option<Instant>,
    has_heard: bool,
    /// Time of the last RTCP packet of the peer, or of the first media packet to it after a pause.
    rtcp_at: Option<Instant>,
    /// Time of the last media packet to the peer.
    media_at: Option<Instant>,
    /// Time at which the library wants to be called again.
    due: Instant,
    /// Protocol and address of the last packet but answers to checks.
    last_sent: Option<(Protocol, SocketAddr)>,
    /// True when packets were not taken since this was asked.
    is_full: bool,
    gone: Option<GoneReason>,
}

impl Peer {
    pub fn new(
        session: SessionId,
        answered: Answered,
        now: Instant,
        handshake_timeout: Duration,
    ) -> Self {
        Self {
            session,
            rtc: answered.rtc,
            ufrag: answered.ufrag,
            local_udp: answered.local_udp,
            local_tcp: answered.local_tcp,
            addresses: Vec::new(),
            connections: Vec::new(),
            offered_at: now,
            handshake_timeout,
            connected_at: None,
            has_heard: false,
            rtcp_at: None,
            media_at: None,
            due: now,
            last_sent: None,
            is_full: false,
            gone: None,
        }
    }

    /// Returns why the session is over, if it is.
    pub fn gone(&self) -> Option<GoneReason> {
        self.gone
    }

    /// Ends the session; the first reason counts.
    pub fn end(&mut self, reason: GoneReason) {
        self.gone.get_or_insert(reason);
    }

    /// Returns the time of the next deadline.
    pub fn due(&self) -> Instant {
        match self.connected_at {
            None => self.due.min(self.offered_at + self.handshake_timeout),
            Some(_) => self.due,
        }
    }

    /// Gives a datagram to the library.
    pub fn receive(&mut self, datagram: &Datagram, now: Instant) {
        self.has_heard = true;
        if let Some(tcp) = &datagram.tcp {
            self.note_connection(tcp);
        }
        if is_rtcp(&datagram.bytes) {
            self.rtcp_at = Some(now);
        }
        let Ok(contents) = DatagramRecv::try_from(&datagram.bytes[..]) else {
            return;
        };
        let (proto, local) = match datagram.tcp {
            Some(_) => (Protocol::Tcp, &self.local_tcp),
            None => (Protocol::Udp, &self.local_udp),
        };
        let Some(destination) = arrived_at(local, datagram.source) else {
            return;
        };
        let receive = Receive {
            proto,
            source: datagram.source,
            destination,
            contents,
        };
        let result = self.rtc.handle_input(Input::Receive(now, receive));
        self.note(result);
    }

    fn note_connection(&mut self, tcp: &Arc<TcpPeer>) {
        if self.connections.iter().any(|known| Arc::ptr_eq(known, tcp)) {
            return;
        }
        if self.connections.len() == MAX_CONNECTIONS {
            self.connections.remove(0).close();
        }
        self.connections.push(tcp.clone());
    }

    /// Passes the time on, and all that the library says since; `on_event` has its events about media.
    pub fn drive(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        mut on_event: impl FnMut(&mut Self, Event),
    ) {
        self.watch(now);
        let result = self.rtc.handle_input(Input::Timeout(now));
        self.note(result);
        self.drain(now, context, &mut on_event);
        context.udp.flush();
        self.is_full |= context.udp.take_full();
        for connection in &self.connections {
            if connection.flush() {
                self.due = self.due.min(now + TCP_RETRY);
            }
        }
    }

    fn drain(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        on_event: &mut impl FnMut(&mut Self, Event),
    ) {
        for _ in 0..MAX_OUTPUTS {
            match self.rtc.poll_output() {
                Ok(Output::Timeout(due)) => {
                    self.due = due.max(now + SHORTEST_WAIT);
                    return;
                }
                Ok(Output::Transmit(transmit)) => self.transmit(&transmit, now, context),
                Ok(Output::Event(event)) => {
                    self.follow(&event, now, context);
                    on_event(self, event);
                }
                Err(_) => return self.end(GoneReason::Failed),
            }
        }
        self.end(GoneReason::Failed);
    }

    /// Ends the session at its deadlines.
    fn watch(&mut self, now: Instant) {
        let is_late = now.duration_since(self.offered_at) >= self.handshake_timeout;
        match self.connected_at {
            None if is_late && !self.has_heard => self.end(GoneReason::Unreachable),
            None if is_late => self.end(GoneReason::Handshake),
            _ => {}
        }
        if let (Some(rtcp_at), true) = (self.rtcp_at, self.is_sending(now))
            && now.duration_since(rtcp_at) >= MAX_WITHOUT_RTCP
        {
            self.end(GoneReason::Silent);
        }
        if self
            .connections
            .iter()
            .any(|connection| connection.is_stalled(now))
        {
            self.end(GoneReason::TooSlow);
        }
    }

    /// True when media packets went to the peer a moment ago.
    fn is_sending(&self, now: Instant) -> bool {
        self.media_at
            .is_some_and(|at| now.duration_since(at) < PAUSE)
    }

    fn note(&mut self, result: Result<(), RtcError>) {
        if result.is_err() {
            self.end(GoneReason::Failed);
        }
    }

    fn follow(&mut self, event: &Event, now: Instant, context: &Context<'_>) {
        match event {
            Event::Connected => {
                self.connected_at = Some(now);
                let (protocol, remote) = self
                    .last_sent
                    .unwrap_or((Protocol::Udp, SocketAddr::from(([0, 0, 0, 0], 0))));
                context.outbox.push(&FromGateway::Connected {
                    session: self.session,
                    transport: match protocol {
                        Protocol::Udp => Transport::Udp,
                        _ => Transport::Tcp,
                    },
                    remote,
                    after_ms: milliseconds(now.duration_since(self.offered_at)),
                });
            }
            Event::IceConnectionStateChange(IceConnectionState::Disconnected) => {
                self.end(match self.connected_at {
                    Some(_) => GoneReason::Silent,
                    None => GoneReason::Handshake,
                });
            }
            Event::Closed => self.end(GoneReason::Peer),
            _ => {}
        }
    }

    fn transmit(&mut self, transmit: &Transmit, now: Instant, context: &mut Context<'_>) {
        let (destination, is_check) = (transmit.destination, is_stun(&transmit.contents));
        if !is_check {
            self.last_sent = Some((transmit.proto, destination));
        }
        if is_rtp(&transmit.contents) {
            if !self.is_sending(now) {
                self.rtcp_at = Some(now);
            }
            self.media_at = Some(now);
        }
        match transmit.proto {
            Protocol::Udp => {
                // Checks are answered only where their integrity is right: from now on this address is the session's.
                if is_check {
                    self.note_address(destination, context.routes);
                }
                context.udp.push(destination, &transmit.contents);
            }
            _ => {
                let mut connections = self.connections.iter().rev();
                let connection = connections.find(|connection| connection.remote == destination);
                if let Some(connection) = connection {
                    if is_check {
                        connection.note_checked();
                    }
                    self.is_full |= connection.send(&transmit.contents) == Sent::Full;
                }
            }
        }
    }

    fn note_address(&mut self, address: SocketAddr, routes: &Routes) {
        if self.addresses.contains(&address) {
            // Another session may have had it meanwhile.
            routes.insert_address(address, self.session);
            return;
        }
        if self.addresses.len() == MAX_ADDRESSES {
            let oldest = self.addresses.remove(0);
            routes.remove_address(oldest, self.session);
        }
        self.addresses.push(address);
        routes.insert_address(address, self.session);
    }

    /// Returns whether packets were not taken since this was last asked.
    pub fn take_full(&mut self) -> bool {
        std::mem::take(&mut self.is_full)
    }

    /// Says goodbye (RTCP BYE, DTLS `close_notify`) unless it shall be silent, and removes the session's routes.
    pub fn close(&mut self, now: Instant, context: &mut Context<'_>, is_silent: bool) {
        if !is_silent && self.connected_at.is_some() && self.rtc.close().is_ok() {
            self.drive(now, context, |_, _| {});
        }
        for connection in &self.connections {
            connection.close();
        }
        context
            .routes
            .remove(self.session, &self.ufrag, &self.addresses);
    }
}

/// Returns the local candidate that a packet is said to have arrived at: the socket does not know through which of the addresses
/// of a translation it came, and the library only needs one that it named.
fn arrived_at(local: &[SocketAddr], source: SocketAddr) -> Option<SocketAddr> {
    let of_family = |address: &&SocketAddr| address.is_ipv4() == source.is_ipv4();
    local.iter().find(of_family).or(local.first()).copied()
}

/// True for what can only be RTCP (RFC 5761 §4).
fn is_rtcp(datagram: &[u8]) -> bool {
    matches!(datagram, [128..192, 192..=223, ..])
}

/// True for what can only be RTP (RFC 7983 §7).
fn is_rtp(datagram: &[u8]) -> bool {
    matches!(datagram, [128..192, ..]) && !is_rtcp(datagram)
}

pub(super) fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
