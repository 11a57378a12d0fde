//! Socket of a client, UDP or TCP (RFC 4571), with loss and delay both ways.

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream, UdpSocket},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use str0m::{
    Candidate,
    net::{Protocol, TcpType},
};

use crate::Failure;

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// Most bytes of a datagram, and of a frame of TCP.
const MAX_PACKET: usize = 2048;
/// Packets that are read before others of the client's work: more would let a flood starve it.
const READ_AT_ONCE: usize = 256;

/// Transport of a client's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    #[default]
    Udp,
    Tcp,
}

/// Loss and delay of packets between client and service, in each direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    /// Share of packets of RTP and RTCP that are lost, 0 to 1. Those of ICE and DTLS are not: a handshake whose every packet is sent
    /// again after a second, two, four takes longer than the service waits. TCP loses none.
    pub loss: f64,
    /// Time that a packet takes.
    pub delay: Duration,
}

pub(super) struct Line {
    socket: Socket,
    local: SocketAddr,
    remote: SocketAddr,
    link: Link,
    random: u64,
    sending: VecDeque<(Instant, SocketAddr, Vec<u8>)>,
    arriving: VecDeque<(Instant, SocketAddr, Vec<u8>)>,
}

enum Socket {
    Udp(UdpSocket),
    Tcp {
        stream: TcpStream,
        unsent: Vec<u8>,
        unread: Vec<u8>,
    },
}

impl Line {
    /// Opens a socket on the address from which `remote` is reached.
    pub(super) fn open(
        remote: SocketAddr,
        transport: Transport,
        link: Link,
    ) -> Result<Self, Failure> {
        let (socket, local) = match transport {
            Transport::Udp => {
                // A connected socket would not see a service that answers from another address.
                let probe = UdpSocket::bind(unspecified(remote))?;
                probe.connect(remote)?;
                let socket = UdpSocket::bind((probe.local_addr()?.ip(), 0))?;
                socket.set_nonblocking(true)?;
                let local = socket.local_addr()?;
                (Socket::Udp(socket), local)
            }
            Transport::Tcp => {
                let stream = TcpStream::connect_timeout(&remote, CONNECT_DEADLINE)?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                let local = stream.local_addr()?;
                let (unsent, unread) = (Vec::new(), Vec::new());
                let socket = Socket::Tcp {
                    stream,
                    unsent,
                    unread,
                };
                (socket, local)
            }
        };
        Ok(Self {
            socket,
            local,
            remote,
            link,
            // The same packets are lost each time, as far as times allow.
            random: 0x9e37_79b9_7f4a_7c15,
            sending: VecDeque::new(),
            arriving: VecDeque::new(),
        })
    }

    /// The bare socket.
    pub(super) fn into_udp(self) -> Option<UdpSocket> {
        match self.socket {
            Socket::Udp(socket) => Some(socket),
            Socket::Tcp { .. } => None,
        }
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    pub(super) fn protocol(&self) -> Protocol {
        match self.socket {
            Socket::Udp(_) => Protocol::Udp,
            Socket::Tcp { .. } => Protocol::Tcp,
        }
    }

    pub(super) fn candidate(&self) -> Result<Candidate, Failure> {
        Ok(match self.socket {
            Socket::Udp(_) => Candidate::builder().udp().host(self.local).build()?,
            Socket::Tcp { .. } => Candidate::builder()
                .tcp()
                .host(self.local)
                .tcptype(TcpType::Active)
                .build()?,
        })
    }

    /// Sends a packet, or lets it wait or be lost as the link has it.
    pub(super) fn send(&mut self, now: Instant, to: SocketAddr, packet: &[u8]) {
        if is_rtp(packet) && self.is_lost() {
            return;
        }
        if self.link.delay.is_zero() && self.sending.is_empty() {
            self.transmit(to, packet);
        } else {
            let due = now + self.link.delay;
            self.sending.push_back((due, to, packet.to_vec()));
        }
    }

    /// Sends what is due, reads what has come, and returns the next packet that has arrived.
    pub(super) fn receive(
        &mut self,
        now: Instant,
    ) -> Result<Option<(SocketAddr, Vec<u8>)>, Failure> {
        while self.sending.front().is_some_and(|(due, ..)| *due <= now) {
            if let Some((_, to, packet)) = self.sending.pop_front() {
                self.transmit(to, &packet);
            }
        }
        if self.arriving.front().is_none_or(|(due, ..)| *due > now) {
            self.read(now)?;
        }
        let is_due = self.arriving.front().is_some_and(|(due, ..)| *due <= now);
        let packet = self.arriving.pop_front_if(|_| is_due);
        Ok(packet.map(|(_, from, packet)| (from, packet)))
    }

    /// The time at which a packet that waits is due.
    pub(super) fn wake(&self) -> Option<Instant> {
        let queues = [self.sending.front(), self.arriving.front()];
        queues.into_iter().flatten().map(|(due, ..)| *due).min()
    }

    fn read(&mut self, now: Instant) -> Result<(), Failure> {
        let mut buffer = [0; MAX_PACKET];
        for _ in 0..READ_AT_ONCE {
            let (from, packet) = match &mut self.socket {
                Socket::Udp(socket) => match socket.recv_from(&mut buffer) {
                    Ok((length, from)) => (from, buffer[..length].to_vec()),
                    Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(()),
                    // An ICMP error to an earlier packet.
                    Err(cause) if cause.kind() == ErrorKind::ConnectionRefused => continue,
                    Err(cause) => return Err(cause.into()),
                },
                Socket::Tcp { stream, unread, .. } => {
                    if let Some(packet) = frame(unread) {
                        (self.remote, packet)
                    } else {
                        match stream.read(&mut buffer) {
                            Ok(0) => return Err("the service closed the TCP connection".into()),
                            Ok(length) => unread.extend_from_slice(&buffer[..length]),
                            Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(()),
                            Err(cause) => return Err(cause.into()),
                        }
                        continue;
                    }
                }
            };
            if !(is_rtp(&packet) && self.is_lost()) {
                let due = now + self.link.delay;
                self.arriving.push_back((due, from, packet));
            }
        }
        Ok(())
    }

    /// Hands a packet to the kernel; one that it does not take is lost, as on a full line.
    fn transmit(&mut self, to: SocketAddr, packet: &[u8]) {
        match &mut self.socket {
            Socket::Udp(socket) => {
                let _ = socket.send_to(packet, to);
            }
            Socket::Tcp { stream, unsent, .. } => {
                unsent.extend_from_slice(&(packet.len() as u16).to_be_bytes());
                unsent.extend_from_slice(packet);
                if let Ok(length) = stream.write(unsent) {
                    unsent.drain(..length);
                }
            }
        }
    }

    fn is_lost(&mut self) -> bool {
        if self.link.loss <= 0.0 || matches!(self.socket, Socket::Tcp { .. }) {
            return false;
        }
        // Xorshift of 64 bits (Marsaglia).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((self.random >> 11) as f64) < self.link.loss * (1_u64 << 53) as f64
    }
}

/// Returns whether it is a packet of RTP or RTCP (RFC 7983, section 7).
fn is_rtp(packet: &[u8]) -> bool {
    packet
        .first()
        .is_some_and(|first| (128..=191).contains(first))
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Udp(socket) => socket.as_fd(),
            Socket::Tcp { stream, .. } => stream.as_fd(),
        }
    }
}

/// Takes the first frame out of the bytes, when it is whole.
fn frame(unread: &mut Vec<u8>) -> Option<Vec<u8>> {
    let length = usize::from(u16::from_be_bytes(*unread.first_chunk()?));
    let packet = unread.get(2..2 + length)?.to_vec();
    unread.drain(..2 + length);
    Some(packet)
}

fn unspecified(remote: SocketAddr) -> SocketAddr {
    match remote {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0; 16], 0).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(link: Link) -> (Line, UdpSocket) {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let line = Line::open(peer.local_addr().unwrap(), Transport::Udp, link).unwrap();
        (line, peer)
    }

    #[test]
    fn packets_wait_for_the_delay_in_each_direction() {
        let delay = Duration::from_millis(40);
        let (mut line, peer) = pair(Link { loss: 0.0, delay });
        let start = Instant::now();
        line.send(start, peer.local_addr().unwrap(), b"out");
        assert_eq!(line.wake(), Some(start + delay));
        line.receive(start + delay).unwrap();
        let mut buffer = [0; 9];
        let (length, from) = peer.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"out");

        peer.send_to(b"in", from).unwrap();
        let read = start + Duration::from_secs(1);
        while line.wake().is_none() {
            assert_eq!(line.receive(read).unwrap(), None);
        }
        assert_eq!(line.receive(read + delay).unwrap().unwrap().1, b"in");
    }

    #[test]
    fn a_share_of_packets_is_lost() {
        let loss = 0.25;
        let (mut line, _peer) = pair(Link {
            loss,
            delay: Duration::ZERO,
        });
        let lost = (0..10_000).filter(|_| line.is_lost()).count();
        assert!((2_300..2_700).contains(&lost), "{lost} of 10 000");
    }

    #[test]
    fn frames_of_tcp_are_put_together() {
        let mut unread = vec![0, 3, 1, 2];
        assert_eq!(frame(&mut unread), None);
        unread.extend([3, 0, 0, 9]);
        assert_eq!(frame(&mut unread), Some(vec![1, 2, 3]));
        assert_eq!(frame(&mut unread), Some(vec![]));
        assert_eq!(frame(&mut unread), None);
    }
}
