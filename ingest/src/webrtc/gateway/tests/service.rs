//! The service's end of a gateway that runs in this process.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, UdpSocket},
    os::unix::net::UnixStream,
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use sluice_media::codec::VideoCodec;

use super::super::{
    super::message::{AudioFrame, FeedId, FromGateway, Role, SessionId, ToGateway, VideoFrame},
    Options, run,
};

/// Longest wait of a test.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Service {
    control: UnixStream,
    messages: Receiver<FromGateway>,
    gateway: Option<thread::JoinHandle<std::io::Result<()>>>,
    pub udp: SocketAddr,
    pub tcp: SocketAddr,
}

impl Service {
    pub fn start(options: Options) -> Self {
        let (control, gateways_end) = UnixStream::pair().unwrap();
        // As with the default settings: for both families, and one port for both transports.
        let (tcp, udp) = loop {
            let tcp = TcpListener::bind("[::]:0").unwrap();
            // Another test may have the port for UDP.
            if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()) {
                break (tcp, udp);
            }
        };
        let address = SocketAddr::from(([127, 0, 0, 1], udp.local_addr().unwrap().port()));
        let mut reading = control.try_clone().unwrap();
        let (sender, messages) = channel();
        thread::spawn(move || {
            let (mut input, mut piece) = (BytesMut::new(), vec![0; 1 << 16]);
            while let Ok(len @ 1..) = reading.read(&mut piece) {
                input.extend_from_slice(&piece[..len]);
                while let Some(message) = FromGateway::decode(&mut input).unwrap() {
                    if sender.send(message).is_err() {
                        return;
                    }
                }
            }
        });
        let gateway = thread::spawn(move || run(gateways_end, udp, Some(tcp), options));
        let mut service = Self {
            control,
            messages,
            gateway: Some(gateway),
            udp: address,
            tcp: address,
        };
        service.wait(|message| *message == FromGateway::Ready);
        service
    }

    pub fn send(&mut self, order: &ToGateway) {
        let mut bytes = Vec::new();
        order.encode(&mut bytes);
        self.control.write_all(&bytes).unwrap();
    }

    pub fn offer(&mut self, session: SessionId, role: Role, sdp: &str) {
        self.send(&ToGateway::Offer {
            session,
            role,
            candidates: vec![self.udp],
            sdp: sdp.to_owned(),
        });
    }

    pub fn video(&mut self, feed: FeedId, pts_90k: i64, key: bool, bytes: usize) {
        self.send(&ToGateway::Video(VideoFrame {
            of: feed,
            codec: VideoCodec::Avc,
            key,
            pts_90k,
            wallclock_us: 0,
            data: h264(feed as u8, key, bytes),
        }));
    }

    pub fn audio(&mut self, feed: FeedId, pts_90k: i64) {
        self.send(&ToGateway::Audio(AudioFrame {
            of: feed,
            pts_90k,
            wallclock_us: 0,
            data: Bytes::from_static(&[0xfc, 1, 2, 3]),
        }));
    }

    /// Returns the next message that has not been taken.
    pub fn try_next(&mut self) -> Option<FromGateway> {
        self.messages.try_recv().ok()
    }

    /// Returns the first message for which `is_wanted` holds; the others before it are dropped.
    pub fn wait(&mut self, is_wanted: impl Fn(&FromGateway) -> bool) -> FromGateway {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left).expect("a message");
            if is_wanted(&message) {
                return message;
            }
        }
    }

    /// Closes the control socket and waits for the gateway's end.
    pub fn end(mut self) -> std::io::Result<()> {
        self.control.shutdown(std::net::Shutdown::Both).unwrap();
        self.gateway.take().unwrap().join().unwrap()
    }
}

/// Returns an access unit: in a key frame SPS and PPS, then a slice that carries `mark`.
pub fn h264(mark: u8, key: bool, bytes: usize) -> Bytes {
    let mut unit = Vec::new();
    let mut push = |nal: &[u8]| {
        unit.extend_from_slice(&(nal.len() as u32).to_be_bytes());
        unit.extend_from_slice(nal);
    };
    if key {
        push(&[0x67, 0x42, 0xe0, 0x1f, 0x8c, 0x8d, 0x40]);
        push(&[0x68, 0xce, 0x3c, 0x80]);
    }
    let mut slice = vec![mark; bytes.max(2)];
    slice[0] = if key { 0x65 } else { 0x41 };
    push(&slice);
    unit.into()
}
