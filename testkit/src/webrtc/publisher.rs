//! Publisher by WHIP of an H.264 clip and Opus packets, again and again.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use str0m::{
    Event, Rtc,
    media::{Direction, Frequency, Media, MediaKind, MediaTime, Mid},
};

use super::{
    AccessUnit, Codec, Link, OfferError, Resource, Shared, Transport, accept, config, note, offer,
    session::{Ended, Part, Session},
};
use crate::{Failure, eventually};

/// A packet of 20 ms of silence in stereo (RFC 6716, section 3.1).
const SILENCE: [u8; 3] = [0xfc, 0xff, 0xfe];
const OPUS_PACKET: Duration = Duration::from_millis(20);

/// Media that are published.
#[derive(Clone, Debug)]
pub struct Broadcast {
    /// Frames without reordering, the first a key frame.
    pub video: Vec<AccessUnit>,
    pub frames_per_second: u32,
    /// Packets of 20 ms; silence when there are none.
    pub opus: Vec<Arc<[u8]>>,
    /// Key of the input in `Authorization`, when it is not in the address.
    pub bearer: Option<String>,
    pub transport: Transport,
    pub link: Link,
}

/// Counts of a publisher; times are since the offer was posted.
#[derive(Clone, Debug, Default)]
pub struct PublishReport {
    pub connected: Option<Duration>,
    pub frames: u64,
    pub audio_packets: u64,
    /// Each makes the clip begin again at its key frame.
    pub key_frame_requests: u64,
    pub ended: Option<Ended>,
}

/// A publisher in a thread of its own; dropping it is a publisher that vanishes.
#[derive(Debug)]
pub struct Publisher {
    pub answer: String,
    pub resource: Resource,
    report: Shared<PublishReport>,
    session: Session,
}

impl Publisher {
    /// Offers audio and video at this address, and begins to send when it is connected.
    pub async fn publish(url: &str, broadcast: &Broadcast) -> Result<Self, OfferError> {
        let start = Instant::now();
        let mut rtc = config(&[Codec::H264, Codec::Opus]).build(start);
        let mut changes = rtc.sdp_api();
        let audio = changes.add_media(MediaKind::Audio, Direction::SendOnly, None, None, None);
        let video = changes.add_media(MediaKind::Video, Direction::SendOnly, None, None, None);
        let (sdp, pending) = changes
            .apply()
            .ok_or_else(|| Failure::from("str0m made no offer"))?;
        let bearer = broadcast.bearer.as_deref();
        let (answer, resource) = offer::post(url, bearer, &sdp.to_sdp_string()).await?;
        let line = accept(
            &mut rtc,
            pending,
            &answer,
            broadcast.transport,
            broadcast.link,
        )?;
        let report = Shared::<PublishReport>::default();
        let sending = Sending {
            report: report.clone(),
            broadcast: broadcast.clone(),
            start,
            connected: None,
            audio,
            video,
            position: 0,
        };
        Ok(Self {
            answer,
            resource,
            report,
            session: Session::start(rtc, line, sending),
        })
    }

    pub fn report(&self) -> PublishReport {
        self.report.update(|report| report.clone())
    }

    /// Waits until the report fulfils the condition; fails with `what` and the report.
    pub async fn until(
        &self,
        what: &str,
        deadline: Duration,
        condition: impl Fn(&PublishReport) -> bool,
    ) -> Result<PublishReport, Failure> {
        eventually(what, deadline, async || {
            let report = self.report();
            condition(&report).then_some(report)
        })
        .await
        .map_err(|failure| format!("{failure}; {:?}", self.report()).into())
    }

    /// Ends the broadcast by DELETE.
    pub async fn finish(self) -> Result<PublishReport, Failure> {
        self.resource.delete().await?;
        drop(self.session);
        Ok(self.report.update(|report| report.clone()))
    }
}

struct Sending {
    report: Shared<PublishReport>,
    broadcast: Broadcast,
    start: Instant,
    connected: Option<Instant>,
    audio: Mid,
    video: Mid,
    /// Index of the next frame in the clip.
    position: usize,
}

impl Part for Sending {
    fn event(&mut self, _rtc: &mut Rtc, event: Event, now: Instant) {
        match event {
            Event::Connected => {
                self.connected = Some(now);
                self.report
                    .update(|report| note(&mut report.connected, self.start));
            }
            Event::KeyframeRequest(_) => {
                self.position = 0;
                self.report.update(|report| report.key_frame_requests += 1);
            }
            _ => {}
        }
    }

    fn work(&mut self, rtc: &mut Rtc, now: Instant) -> Option<Instant> {
        let connected = self.connected?;
        let frame_time = Duration::from_secs(1) / self.broadcast.frames_per_second.max(1);
        let (frames, packets) = self
            .report
            .update(|report| (report.frames, report.audio_packets));
        let next_frame = connected + frame_time * frames as u32;
        let next_packet = connected + OPUS_PACKET * packets as u32;
        let next = next_frame.min(next_packet);
        if next > now {
            return Some(next);
        }
        if next == next_frame {
            let index = self.position % self.broadcast.video.len();
            self.position = index + 1;
            let data = Arc::clone(&self.broadcast.video[index].data);
            let ticks = frames * 90_000 / u64::from(self.broadcast.frames_per_second.max(1));
            write(rtc, self.video, next, MediaTime::from_90khz(ticks), data);
            self.report.update(|report| report.frames += 1);
        } else {
            let opus = &self.broadcast.opus;
            let data = match opus.len() {
                0 => Arc::from(SILENCE),
                length => Arc::clone(&opus[packets as usize % length]),
            };
            let time = MediaTime::new(packets * 960, Frequency::FORTY_EIGHT_KHZ);
            write(rtc, self.audio, next, time, data);
            self.report.update(|report| report.audio_packets += 1);
        }
        // The session takes one frame of a track at a time.
        Some(now)
    }

    fn ended(&mut self, how: Ended) {
        self.report.update(|report| report.ended = Some(how));
    }
}

/// Hands a frame to the session, by the first payload type that the answer takes. Nothing is sent on a track that only receives.
pub(super) fn write(rtc: &mut Rtc, mid: Mid, wallclock: Instant, time: MediaTime, data: Arc<[u8]>) {
    let is_sending = |media: &Media| media.direction().is_sending();
    if !rtc.media(mid).is_some_and(is_sending) {
        return;
    }
    let Some(writer) = rtc.writer(mid) else {
        return;
    };
    let pt = writer.payload_params().next().map(|params| params.pt());
    if let Some(pt) = pt {
        // A frame that the session does not take is missing at the receiver, where tests look.
        let _ = writer.write(pt, wallclock, time, data);
    }
}
