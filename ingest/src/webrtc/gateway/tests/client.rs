//! A peer of the gateway: str0m as an ordinary WebRTC client, over UDP or TCP.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream, UdpSocket},
    time::{Duration, Instant},
};

use str0m::{
    Candidate, Event, Input, Output, Rtc, RtcConfig,
    change::{SdpAnswer, SdpPendingOffer},
    media::{Direction, MediaKind, Mid},
    net::{Protocol, Receive, TcpType},
    rtp::{Extension, RtpPacket},
};

use super::super::crypto;

enum Wire {
    Udp(UdpSocket),
    Tcp(TcpStream, Vec<u8>),
}

pub struct Client {
    pub rtc: Rtc,
    wire: Wire,
    local: SocketAddr,
    pending: Option<SdpPendingOffer>,
    pub video: Mid,
    pub audio: Mid,
    pub is_connected: bool,
    pub is_closed: bool,
    pub packets: Vec<RtpPacket>,
    pub key_frame_requests: usize,
}

impl Client {
    /// Returns a client of a viewer by UDP, and its offer.
    pub fn viewer() -> (Self, String) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let local = socket.local_addr().unwrap();
        let candidate = Candidate::host(local, "udp").unwrap();
        Self::new(Wire::Udp(socket), local, candidate, Direction::RecvOnly)
    }

    /// Returns a client of a viewer by TCP, and its offer.
    pub fn tcp_viewer(gateway: SocketAddr) -> (Self, String) {
        let stream = TcpStream::connect(gateway).unwrap();
        let local = stream.local_addr().unwrap();
        let candidate = Candidate::builder()
            .tcp()
            .host(local)
            .tcptype(TcpType::Active)
            .build()
            .unwrap();
        let wire = Wire::Tcp(stream, Vec::new());
        Self::new(wire, local, candidate, Direction::RecvOnly)
    }

    /// Returns a client of a publisher by UDP, and its offer.
    pub fn publisher() -> (Self, String) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let local = socket.local_addr().unwrap();
        let candidate = Candidate::host(local, "udp").unwrap();
        Self::new(Wire::Udp(socket), local, candidate, Direction::SendOnly)
    }

    fn new(
        wire: Wire,
        local: SocketAddr,
        candidate: Candidate,
        direction: Direction,
    ) -> (Self, String) {
        let mut rtc = RtcConfig::new()
            .set_crypto_provider(crypto::provider())
            .set_dtls_cert(crypto::certificate())
            .set_rtp_mode(direction == Direction::RecvOnly)
            .set_extension(6, Extension::PlayoutDelay)
            .build(Instant::now());
        rtc.add_local_candidate(candidate);
        let mut api = rtc.sdp_api();
        let audio = api.add_media(MediaKind::Audio, direction, None, None, None);
        let video = api.add_media(MediaKind::Video, direction, None, None, None);
        let (offer, pending) = api.apply().unwrap();
        let client = Self {
            rtc,
            wire,
            local,
            pending: Some(pending),
            video,
            audio,
            is_connected: false,
            is_closed: false,
            packets: Vec::new(),
            key_frame_requests: 0,
        };
        (client, offer.to_sdp_string())
    }

    pub fn accept(&mut self, answer: &str) {
        let answer = SdpAnswer::from_sdp_string(answer).unwrap();
        let pending = self.pending.take().unwrap();
        self.rtc.sdp_api().accept_answer(pending, answer).unwrap();
    }

    /// Runs for a moment: until something came, at most 10 ms.
    pub fn step(&mut self) {
        let due = self.drain();
        let now = Instant::now();
        let wait = due
            .saturating_duration_since(now)
            .clamp(Duration::from_millis(1), Duration::from_millis(10));
        match self.receive(wait) {
            Some((bytes, source)) => {
                let (proto, destination) = match self.wire {
                    Wire::Udp(_) => (Protocol::Udp, self.local),
                    Wire::Tcp(..) => (Protocol::Tcp, self.local),
                };
                let receive = Receive::new(proto, source, destination, &bytes).unwrap();
                self.rtc
                    .handle_input(Input::Receive(Instant::now(), receive))
                    .unwrap();
            }
            None => self
                .rtc
                .handle_input(Input::Timeout(Instant::now()))
                .unwrap(),
        }
        self.drain();
    }

    /// Runs until `is_done` holds.
    pub fn run_until(&mut self, mut is_done: impl FnMut(&mut Self) -> bool) {
        let until = Instant::now() + super::service::PATIENCE;
        while !is_done(self) {
            assert!(Instant::now() < until, "the client waits in vain");
            self.step();
        }
    }

    fn drain(&mut self) -> Instant {
        loop {
            match self.rtc.poll_output().unwrap() {
                Output::Timeout(due) => return due,
                Output::Transmit(transmit) => self.send(&transmit.contents, transmit.destination),
                Output::Event(Event::Connected) => self.is_connected = true,
                Output::Event(Event::Closed) => self.is_closed = true,
                Output::Event(Event::RtpPacket(packet)) => self.packets.push(packet),
                Output::Event(Event::KeyframeRequest(_)) => self.key_frame_requests += 1,
                Output::Event(_) => {}
            }
        }
    }

    fn send(&mut self, contents: &[u8], destination: SocketAddr) {
        match &mut self.wire {
            Wire::Udp(socket) => drop(socket.send_to(contents, destination)),
            Wire::Tcp(stream, _) => {
                let mut frame = (contents.len() as u16).to_be_bytes().to_vec();
                frame.extend_from_slice(contents);
                let _ = stream.write_all(&frame);
            }
        }
    }

    fn receive(&mut self, wait: Duration) -> Option<(Vec<u8>, SocketAddr)> {
        let mut buffer = vec![0; 4_096];
        match &mut self.wire {
            Wire::Udp(socket) => {
                socket.set_read_timeout(Some(wait)).unwrap();
                let (len, source) = socket.recv_from(&mut buffer).ok()?;
                buffer.truncate(len);
                Some((buffer, source))
            }
            Wire::Tcp(stream, input) => {
                stream.set_read_timeout(Some(wait)).unwrap();
                let whole = |input: &[u8]| {
                    let len = 2 + usize::from(u16::from_be_bytes(*input.first_chunk::<2>()?));
                    (input.len() >= len).then_some(len)
                };
                if whole(input).is_none() {
                    let len = stream.read(&mut buffer).ok()?;
                    input.extend_from_slice(&buffer[..len]);
                }
                let len = whole(input)?;
                let frame = input.drain(..len).skip(2).collect();
                Some((frame, stream.peer_addr().ok()?))
            }
        }
    }

    /// Returns the received packets of a track in their order.
    pub fn of_track(&self, mid: Mid) -> Vec<&RtpPacket> {
        let pts: Vec<_> = self
            .rtc
            .media(mid)
            .map(|media| media.remote_pts().to_vec())
            .unwrap_or_default();
        let is_of = |packet: &&RtpPacket| pts.contains(&packet.header.payload_type);
        let mut packets: Vec<_> = self.packets.iter().filter(is_of).collect();
        packets.sort_by_key(|packet| packet.seq_no);
        packets
    }

    /// Returns the received frames of the video: RTP time, and whether it is a key frame.
    pub fn frames(&self) -> Vec<(u32, bool)> {
        let mut frames: Vec<(u32, bool)> = Vec::new();
        for packet in self.of_track(self.video) {
            let kind = match packet.payload[0] & 31 {
                28 => packet.payload[1] & 31,
                kind => kind,
            };
            let is_key = kind == 24 || kind == 5;
            match frames.last_mut() {
                Some((time, key)) if *time == packet.header.timestamp => *key |= is_key,
                _ => frames.push((packet.header.timestamp, is_key)),
            }
        }
        frames
    }
}
