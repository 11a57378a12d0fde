//! Many viewers in one thread that cost little: they read the headers of video, which are in the clear, and decrypt audio alone.
//!
//! Audio goes through str0m so that the service has receiver reports; media beyond headers is for [`super::Viewer`].

use std::{
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use str0m::{
    Event, Input, Output, Rtc,
    media::{Direction, MediaKind},
    net::{Protocol, Receive},
};

use super::{Codec, OfferError, Shared, Transport, config, note, offer};
use crate::Failure;

/// Viewers that wait to be taken in by the thread.
const WAITING: usize = 16;
/// The longest sleep of the thread.
const TICK: Duration = Duration::from_millis(10);
/// Packets that are read from one socket before the others have their turn.
const READ_AT_ONCE: usize = 64;
/// Niceness of the thread: viewers would have machines of their own.
const NICENESS: i32 = 10;
/// str0m's own payload type of Opus in an offer; all others are of video.
const OPUS: u8 = 111;
/// Bytes of an RTP header without extensions.
const RTP_HEADER: usize = 12;

/// Counts of a viewer of the crowd; times are since its offer was posted.
#[derive(Clone, Debug, Default)]
pub struct Seat {
    pub connected: Option<Duration>,
    /// End of the first frame of video, key frame or not.
    pub first_frame: Option<Duration>,
    pub frames: u64,
    pub video_packets: u64,
    pub lost_packets: u64,
    /// Bytes of all datagrams.
    pub bytes: u64,
    pub is_over: bool,
}

/// The viewers; they vanish with the value.
#[derive(Debug)]
pub struct Crowd {
    joining: SyncSender<Member>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    seats: Shared<Vec<Seat>>,
}

struct Member {
    seat: usize,
    rtc: Rtc,
    socket: UdpSocket,
    local: SocketAddr,
    start: Instant,
    wake: Instant,
    last_number: Option<u16>,
}

impl Crowd {
    pub fn new() -> Self {
        let (joining, joined) = sync_channel(WAITING);
        let (stop, seats) = (Arc::new(AtomicBool::new(false)), Shared::default());
        let (seen, shared) = (Arc::clone(&stop), Shared::clone(&seats));
        let thread = std::thread::spawn(move || {
            // Linux keeps niceness per thread. Raising it needs no privilege.
            let _ = rustix::process::nice(NICENESS);
            serve(&joined, &seen, &shared);
        });
        Self {
            joining,
            stop,
            thread: Some(thread),
            seats,
        }
    }

    /// Adds a viewer; returns the time until its offer was answered.
    pub async fn join(&self, url: &str) -> Result<Duration, OfferError> {
        let start = Instant::now();
        let mut rtc = config(&[Codec::H264, Codec::Opus]).build(start);
        let mut changes = rtc.sdp_api();
        changes.add_media(MediaKind::Audio, Direction::RecvOnly, None, None, None);
        changes.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
        let (sdp, pending) = changes
            .apply()
            .ok_or_else(|| Failure::from("str0m made no offer"))?;
        let (answer, _) = offer::post(url, None, &sdp.to_sdp_string()).await?;
        let answered = start.elapsed();
        let line = super::accept(
            &mut rtc,
            pending,
            &answer,
            Transport::Udp,
            super::Link::default(),
        )?;
        let socket = line.into_udp().expect("UDP was asked for");
        let seat = self.seats.update(|seats| {
            seats.push(Seat::default());
            seats.len() - 1
        });
        let local = socket.local_addr().map_err(Failure::from)?;
        let member = Member {
            seat,
            rtc,
            socket,
            local,
            start,
            wake: start,
            last_number: None,
        };
        let joining = self.joining.clone();
        let has_joined = tokio::task::spawn_blocking(move || joining.send(member).is_ok())
            .await
            .map_err(Failure::from)?;
        if !has_joined {
            return Err(Failure::from("the crowd's thread has ended").into());
        }
        Ok(answered)
    }

    pub fn seats(&self) -> Vec<Seat> {
        self.seats.update(|seats| seats.clone())
    }
}

impl Default for Crowd {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(joined: &Receiver<Member>, stop: &AtomicBool, seats: &Shared<Vec<Seat>>) {
    let mut members: Vec<Member> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        match joined.try_recv() {
            Ok(member) => {
                members.push(member);
                continue;
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return,
        }
        let now = Instant::now();
        let wake = members.iter().map(|member| member.wake).min();
        let wait = wake.map_or(TICK, |wake| wake.saturating_duration_since(now).min(TICK));
        let readable = readable(&members, wait);
        let now = Instant::now();
        seats.update(|seats| {
            for (member, is_readable) in members.iter_mut().zip(readable) {
                let seat = &mut seats[member.seat];
                if is_readable {
                    member.read(seat, now);
                }
                if member.wake <= now {
                    member.turn(seat, now);
                }
                seat.is_over |= !member.rtc.is_alive();
            }
        });
        members.retain(|member| member.rtc.is_alive());
    }
}

/// Waits until a socket has packets; tells which have.
fn readable(members: &[Member], wait: Duration) -> Vec<bool> {
    let mut sockets: Vec<PollFd<'_>> = members
        .iter()
        .map(|member| PollFd::new(&member.socket, PollFlags::IN))
        .collect();
    let wait = Timespec {
        tv_sec: 0,
        tv_nsec: wait.subsec_nanos().into(),
    };
    // An interrupted wait is a short one.
    let _ = poll(&mut sockets, Some(&wait));
    let has_packets = |socket: &PollFd<'_>| !socket.revents().is_empty();
    sockets.iter().map(has_packets).collect()
}

impl Member {
    fn read(&mut self, seat: &mut Seat, now: Instant) {
        let mut buffer = [0; 2048];
        for _ in 0..READ_AT_ONCE {
            let Ok((length, from)) = self.socket.recv_from(&mut buffer) else {
                return;
            };
            let packet = &buffer[..length];
            seat.bytes += length as u64;
            if let Some(header) = video_header(packet) {
                self.count(seat, header);
                continue;
            }
            if let Ok(receive) = Receive::new(Protocol::Udp, from, self.local, packet) {
                let _ = self.rtc.handle_input(Input::Receive(now, receive));
                self.turn(seat, now);
            }
        }
    }

    fn count(&mut self, seat: &mut Seat, header: &[u8; RTP_HEADER]) {
        let number = u16::from_be_bytes([header[2], header[3]]);
        let is_last_of_frame = header[1] & 0x80 != 0;
        seat.video_packets += 1;
        if let Some(last) = self.last_number {
            let step = number.wrapping_sub(last);
            // Beyond half of the numbers it is one that came late.
            if step < 0x8000 {
                seat.lost_packets += u64::from(step.saturating_sub(1));
            }
        }
        self.last_number = Some(number);
        if is_last_of_frame {
            seat.frames += 1;
            note(&mut seat.first_frame, self.start);
        }
    }

    fn turn(&mut self, seat: &mut Seat, now: Instant) {
        if self.wake <= now {
            let _ = self.rtc.handle_input(Input::Timeout(now));
        }
        loop {
            match self.rtc.poll_output() {
                Ok(Output::Timeout(at)) => {
                    self.wake = at;
                    return;
                }
                Ok(Output::Transmit(packet)) => {
                    let _ = self.socket.send_to(&packet.contents, packet.destination);
                }
                Ok(Output::Event(Event::Connected)) => note(&mut seat.connected, self.start),
                Ok(Output::Event(_)) => {}
                Err(_) => {
                    self.rtc.disconnect();
                    return;
                }
            }
        }
    }
}

/// The header of an RTP packet of video; `None` of audio, RTCP (RFC 5761, section 4), STUN and DTLS.
fn video_header(packet: &[u8]) -> Option<&[u8; RTP_HEADER]> {
    let header = packet.first_chunk()?;
    let kind = header[1] & 0x7f;
    let is_rtp = (128..192).contains(&header[0]) && !(64..96).contains(&kind);
    (is_rtp && kind != OPUS).then_some(header)
}
