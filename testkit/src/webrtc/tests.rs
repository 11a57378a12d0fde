//! The clients against a service of a few lines: it answers each offer with a session of str0m that sends or counts.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::Arc,
    time::{Duration, Instant},
};

use str0m::{
    Event, Rtc,
    change::SdpOffer,
    media::{Frequency, MediaKind, MediaTime, Mid},
};

use super::{
    line::Line,
    session::{Part, Session},
    *,
};

const DEADLINE: Duration = Duration::from_secs(20);
const FRAME: Duration = Duration::from_millis(33);

/// Address at which offers are answered; the sessions end with the thread, which ends with the process.
fn serve(counted: Shared<Counted>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/session", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut sessions = Vec::new();
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut request = vec![0; 64 << 10];
            let mut length = 0;
            let offer = loop {
                length += socket.read(&mut request[length..]).unwrap();
                let text = std::str::from_utf8(&request[..length]).unwrap();
                let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
                if head.starts_with("DELETE") {
                    break None;
                }
                let expected = head.split("Content-Length: ").nth(1);
                let expected = expected.and_then(|rest| rest.lines().next()?.parse().ok());
                if expected == Some(body.len()) {
                    break Some(SdpOffer::from_sdp_string(body).unwrap());
                }
            };
            let Some(offer) = offer else {
                sessions.clear();
                socket
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                    .unwrap();
                continue;
            };
            let mut rtc = config(&[Codec::H264, Codec::Opus])
                .set_ice_lite(true)
                .build(Instant::now());
            let line =
                Line::open(([127, 0, 0, 1], 9).into(), Transport::Udp, Link::default()).unwrap();
            rtc.add_local_candidate(line.candidate().unwrap());
            let answer = rtc.sdp_api().accept_offer(offer).unwrap().to_sdp_string();
            let part = Service {
                counted: counted.clone(),
                ..Service::default()
            };
            sessions.push(Session::start(rtc, line, part));
            let length = answer.len();
            write!(
                socket,
                "HTTP/1.1 201 Created\r\nlocation: /session/1\r\nContent-Length: {length}\r\n\r\n{answer}"
            )
            .unwrap();
        }
    });
    url
}

/// Frames and packets that came to the service.
#[derive(Debug, Default)]
struct Counted {
    frames: u64,
    audio_packets: u64,
}

/// Sends a small key frame and frames of two packets, and silence, where the peer wants media; counts what the peer sends.
#[derive(Default)]
struct Service {
    counted: Shared<Counted>,
    audio: Option<Mid>,
    video: Option<Mid>,
    connected: Option<Instant>,
    sent: u32,
    wants_key_frame: bool,
}

impl Part for Service {
    fn event(&mut self, _rtc: &mut Rtc, event: Event, now: Instant) {
        match event {
            Event::Connected => self.connected = Some(now),
            Event::MediaAdded(media) if media.kind == MediaKind::Audio => {
                self.audio = Some(media.mid)
            }
            Event::MediaAdded(media) => self.video = Some(media.mid),
            Event::KeyframeRequest(_) => self.wants_key_frame = true,
            Event::MediaData(data) => self.counted.update(|counted| {
                let of_kind = match Some(data.mid) == self.video {
                    true => &mut counted.frames,
                    false => &mut counted.audio_packets,
                };
                *of_kind += 1;
            }),
            _ => {}
        }
    }

    fn work(&mut self, rtc: &mut Rtc, now: Instant) -> Option<Instant> {
        let next = self.connected? + FRAME * self.sent;
        if next > now {
            return Some(next);
        }
        let is_key = self.sent == 0 || std::mem::take(&mut self.wants_key_frame);
        let time = u64::from(self.sent);
        let video = MediaTime::from_90khz(time * 2_970);
        publisher::write(rtc, self.video?, now, video, frame(is_key).data);
        let audio = MediaTime::new(time * 1_584, Frequency::FORTY_EIGHT_KHZ);
        publisher::write(rtc, self.audio?, now, audio, Arc::from([0xfc, 0xff, 0xfe]));
        self.sent += 1;
        Some(now)
    }

    fn ended(&mut self, _how: Ended) {}
}

fn frame(is_key: bool) -> AccessUnit {
    let sets = [0, 0, 0, 1, 0x67, 66, 0, 31, 0, 0, 0, 1, 0x68, 0xce, 6];
    let slice = [0, 0, 0, 1, if is_key { 0x65 } else { 0x41 }, 0x88];
    let sets = if is_key { &sets[..] } else { &[] };
    let data = [sets, &slice, &[7; 1_500]].concat();
    AccessUnit {
        data: data.into(),
        is_key,
    }
}

#[tokio::test]
async fn a_viewer_counts_frames_and_audio() {
    let url = serve(Shared::default());
    let viewer = Viewer::join(&url, &ViewerOptions::default()).await.unwrap();
    let seen = viewer
        .until("30 frames", DEADLINE, |report| report.frames >= 30)
        .await
        .unwrap();
    assert_eq!(
        (seen.lost_packets, seen.backward_times, seen.broken_frames),
        (0, 0, 0)
    );
    assert_eq!(seen.key_frames, 1);
    assert_eq!(seen.codec, Some(Codec::H264));
    assert!(seen.first_frame >= seen.connected && seen.connected >= seen.answered);
    assert!(seen.audio_packets >= 20);
    assert!(seen.largest_step.as_millis() == 33, "{seen:?}");
    assert_eq!(viewer.leave().await.unwrap().ended, None);
}

#[tokio::test]
async fn a_viewer_on_a_lossy_line_repairs_or_counts() {
    let url = serve(Shared::default());
    let link = Link {
        loss: 0.1,
        delay: Duration::from_millis(20),
    };
    let options = ViewerOptions {
        link,
        ..ViewerOptions::default()
    };
    let viewer = Viewer::join(&url, &options).await.unwrap();
    let seen = viewer
        .until("60 frames", DEADLINE, |report| report.frames >= 60)
        .await
        .unwrap();
    assert!(seen.connected.unwrap() >= 2 * link.delay, "{seen:?}");
    assert_eq!(seen.backward_times, 0);
}

#[tokio::test]
async fn a_crowd_counts_by_headers() {
    let url = serve(Shared::default());
    let crowd = Crowd::new();
    for _ in 0..5 {
        crowd.join(&url).await.unwrap();
    }
    crate::eventually("frames for all", DEADLINE, async || {
        let seats = crowd.seats();
        seats.iter().all(|seat| seat.frames >= 20).then_some(())
    })
    .await
    .unwrap();
    for seat in crowd.seats() {
        assert_eq!(seat.lost_packets, 0);
        assert!(seat.video_packets >= 2 * seat.frames - 1);
        assert!(seat.first_frame >= seat.connected && !seat.is_over);
    }
}

#[tokio::test]
async fn a_publisher_sends_its_clip_in_turns() {
    let counted = Shared::<Counted>::default();
    let url = serve(counted.clone());
    let broadcast = Broadcast {
        video: vec![frame(true), frame(false), frame(false)],
        frames_per_second: 50,
        opus: Vec::new(),
        bearer: Some("input.key".to_owned()),
        transport: Transport::Udp,
        link: Link::default(),
    };
    let publisher = Publisher::publish(&url, &broadcast).await.unwrap();
    publisher
        .until("40 frames", DEADLINE, |report| report.frames >= 40)
        .await
        .unwrap();
    crate::eventually("frames and audio", DEADLINE, async || {
        let reached = counted.update(|counted| counted.frames >= 40 && counted.audio_packets >= 40);
        reached.then_some(())
    })
    .await
    .unwrap();
    assert!(publisher.finish().await.unwrap().frames >= 40);
}

#[tokio::test]
async fn a_rejected_offer_is_an_error_with_the_status() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/whep", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.read(&mut [0; 9_000]);
        let answer = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\n\r\n{\"error\":{}}";
        socket.write_all(answer.as_bytes()).unwrap();
    });
    match Viewer::join(&url, &ViewerOptions::default()).await {
        Err(OfferError::Rejected { status, head, body }) => {
            assert_eq!((status, body.as_str()), (503, "{\"error\":{}}"));
            assert_eq!(head, "retry-after: 5\n");
        }
        other => panic!("{other:?}"),
    }
}
