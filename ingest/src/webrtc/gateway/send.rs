//! Sending of datagrams: runs of equal size to one address go to the kernel in one call (UDP segmentation offload),
//! `MAX_SEGMENTS` and `MAX_RUN` at most.
//!
//! Kernels and network cards without it answer EINVAL or EIO: the run is then sent datagram by datagram, and `quinn-udp` remembers
//! for the socket.

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::Arc,
};

use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};

/// Most datagrams of a run; the kernel takes 64.
const MAX_SEGMENTS: usize = 60;
/// Most bytes of a run; the kernel takes 65 507.
const MAX_RUN: usize = 64_000;
/// Bytes that the kernel keeps for sending, as far as it allows them.
const SEND_BUFFER: usize = 4 << 20;

/// The UDP socket, which the receiving thread and all shards share.
pub(super) struct Udp {
    pub socket: UdpSocket,
    pub state: UdpSocketState,
    is_ipv6: bool,
}

impl Udp {
    pub fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // Where the machine allows less, that is what there is.
        let _ = state.set_send_buffer_size(UdpSockRef::from(&socket), SEND_BUFFER);
        Ok(Self {
            is_ipv6: socket.local_addr()?.is_ipv6(),
            socket,
            state,
        })
    }

    /// Returns an address as this socket's family writes it.
    fn in_family(&self, address: SocketAddr) -> SocketAddr {
        match address.ip() {
            IpAddr::V4(ip) if self.is_ipv6 => {
                SocketAddr::new(ip.to_ipv6_mapped().into(), address.port())
            }
            _ => address,
        }
    }
}

/// A shard's run of datagrams in the making.
pub(super) struct UdpSender {
    udp: Arc<Udp>,
    run: Vec<u8>,
    destination: SocketAddr,
    segment: usize,
    segments: usize,
    /// True when the run's last datagram is shorter than the others: nothing may follow it.
    is_ended: bool,
    /// True when the socket took none since this was asked.
    is_full: bool,
}

impl UdpSender {
    pub fn new(udp: Arc<Udp>) -> Self {
        Self {
            udp,
            run: Vec::with_capacity(MAX_RUN + 2_048),
            destination: SocketAddr::from(([0, 0, 0, 0], 0)),
            segment: 0,
            segments: 0,
            is_ended: false,
            is_full: false,
        }
    }

    /// Adds a datagram to the run, or ends the run and begins another.
    pub fn push(&mut self, destination: SocketAddr, datagram: &[u8]) {
        let most = self.udp.state.max_gso_segments().min(MAX_SEGMENTS);
        let fits = self.destination == destination
            && !self.is_ended
            && datagram.len() <= self.segment
            && self.segments < most
            && self.run.len() + datagram.len() <= MAX_RUN;
        if !fits {
            self.flush();
        }
        if self.run.is_empty() {
            self.destination = destination;
            self.segment = datagram.len();
            self.is_ended = false;
        }
        self.is_ended = datagram.len() < self.segment;
        self.segments += 1;
        self.run.extend_from_slice(datagram);
    }

    /// Sends the run.
    pub fn flush(&mut self) {
        if self.run.is_empty() {
            return;
        }
        let segment = (self.segments > 1).then_some(self.segment);
        match self.send(&self.run, segment) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_full = true,
            Err(_) if segment.is_some() => self.send_one_by_one(),
            // No route to this address, or a firewall's answer: as a lost datagram.
            Ok(()) | Err(_) => {}
        }
        self.run.clear();
        self.segments = 0;
    }

    fn send_one_by_one(&mut self) {
        for datagram in self.run.chunks(self.segment) {
            if let Err(error) = self.send(datagram, None)
                && error.kind() == io::ErrorKind::WouldBlock
            {
                self.is_full = true;
                return;
            }
        }
    }

    fn send(&self, contents: &[u8], segment_size: Option<usize>) -> io::Result<()> {
        let transmit = Transmit {
            destination: self.udp.in_family(self.destination),
            ecn: None,
            contents,
            segment_size,
            src_ip: None,
        };
        self.udp
            .state
            .try_send(UdpSockRef::from(&self.udp.socket), &transmit)
    }

    /// Returns whether the socket has not taken a run since this was last asked.
    pub fn take_full(&mut self) -> bool {
        std::mem::take(&mut self.is_full)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn runs_arrive_as_the_datagrams_they_were_made_of() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let to = receiver.local_addr().unwrap();
        for address in ["127.0.0.1:0", "[::]:0"] {
            let udp = Udp::new(UdpSocket::bind(address).unwrap()).unwrap();
            let mut sender = UdpSender::new(Arc::new(udp));
            let sizes = [1_200, 1_200, 1_200, 40, 900, 1_200, 7];
            for (index, size) in sizes.into_iter().enumerate() {
                sender.push(to, &vec![index as u8; size]);
            }
            sender.flush();
            assert!(!sender.take_full());
            let mut buffer = [0; 2_048];
            for (index, size) in sizes.into_iter().enumerate() {
                let len = receiver.recv(&mut buffer).unwrap();
                assert_eq!((len, buffer[0]), (size, index as u8), "from {address}");
            }
        }
    }
}
