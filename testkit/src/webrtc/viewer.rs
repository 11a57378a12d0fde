//! Viewer by WHEP that counts what comes.

use std::time::{Duration, Instant};

use str0m::{
    Event, Rtc,
    media::{Direction, KeyframeRequestKind, MediaData, MediaKind, Mid},
    rtp::Extension,
};

use super::{
    Codec, Link, OfferError, Resource, Shared, Transport, accept, config, note, offer,
    session::{Ended, Part, Session},
};
use crate::{Failure, eventually};

/// Time between two requests for a key frame, as browsers keep it.
const KEY_FRAME_REQUESTS: Duration = Duration::from_millis(500);
/// Number of the header extension in our offer.
const PLAYOUT_DELAY: u8 = 12;

#[derive(Clone, Debug)]
pub struct ViewerOptions {
    pub transport: Transport,
    pub link: Link,
    /// Codecs that the viewer offers.
    pub codecs: Vec<Codec>,
}

impl Default for ViewerOptions {
    fn default() -> Self {
        Self {
            transport: Transport::Udp,
            link: Link::default(),
            codecs: vec![Codec::H264, Codec::Opus],
        }
    }
}

/// Counts of a viewer; times are since the offer was posted.
#[derive(Clone, Debug, Default)]
pub struct ViewerReport {
    pub answered: Option<Duration>,
    pub connected: Option<Duration>,
    /// The first whole key frame, with which a player shows something.
    pub first_frame: Option<Duration>,
    pub frames: u64,
    pub key_frames: u64,
    /// Frames that follow a loss which nothing repaired.
    pub broken_frames: u64,
    pub audio_packets: u64,
    pub bytes: u64,
    /// Packets between the numbers of two video frames, or of two of audio, that never came.
    pub lost_packets: u64,
    /// Frames and packets of audio whose RTP time is not behind that of the one before.
    pub backward_times: u64,
    /// The largest step of RTP time between two frames.
    pub largest_step: Duration,
    /// The longest time between the arrivals of two frames.
    pub longest_pause: Duration,
    /// Latest codec of the video.
    pub codec: Option<Codec>,
    /// Latest bounds that the service asks of the player's buffer.
    pub playout_delay: Option<(Duration, Duration)>,
    pub key_frame_requests: u64,
    pub ended: Option<Ended>,
}

/// A viewer in a thread of its own; dropping it is a viewer that vanishes.
#[derive(Debug)]
pub struct Viewer {
    pub answer: String,
    pub resource: Resource,
    report: Shared<ViewerReport>,
    session: Session,
}

impl Viewer {
    /// Offers audio and video at this address, and begins to receive.
    pub async fn join(url: &str, options: &ViewerOptions) -> Result<Self, OfferError> {
        let start = Instant::now();
        let mut rtc = config(&options.codecs)
            .set_extension(PLAYOUT_DELAY, Extension::PlayoutDelay)
            .build(start);
        let mut changes = rtc.sdp_api();
        changes.add_media(MediaKind::Audio, Direction::RecvOnly, None, None, None);
        let video = changes.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
        let (sdp, pending) = changes
            .apply()
            .ok_or_else(|| Failure::from("str0m made no offer"))?;
        let (answer, resource) = offer::post(url, None, &sdp.to_sdp_string()).await?;
        let report = Shared::<ViewerReport>::default();
        report.update(|report| note(&mut report.answered, start));
        let line = accept(&mut rtc, pending, &answer, options.transport, options.link)?;
        let watching = Watching {
            report: report.clone(),
            start,
            video,
            tracks: Default::default(),
            last_request: None,
        };
        Ok(Self {
            answer,
            resource,
            report,
            session: Session::start(rtc, line, watching),
        })
    }

    pub fn report(&self) -> ViewerReport {
        self.report.update(|report| report.clone())
    }

    /// Waits until the report fulfils the condition; fails with `what` and the report.
    pub async fn until(
        &self,
        what: &str,
        deadline: Duration,
        condition: impl Fn(&ViewerReport) -> bool,
    ) -> Result<ViewerReport, Failure> {
        eventually(what, deadline, async || {
            let report = self.report();
            condition(&report).then_some(report)
        })
        .await
        .map_err(|failure| format!("{failure}; {:?}", self.report()).into())
    }

    /// Leaves by DELETE, as a player that is closed.
    pub async fn leave(self) -> Result<ViewerReport, Failure> {
        self.resource.delete().await?;
        drop(self.session);
        Ok(self.report.update(|report| report.clone()))
    }
}

/// Position of a track.
#[derive(Debug, Default)]
struct Track {
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    number: u64,
    time: Duration,
    arrival: Instant,
}

struct Watching {
    report: Shared<ViewerReport>,
    start: Instant,
    video: Mid,
    /// Audio and video.
    tracks: [Track; 2],
    last_request: Option<Instant>,
}

impl Part for Watching {
    fn event(&mut self, rtc: &mut Rtc, event: Event, now: Instant) {
        match event {
            Event::Connected => self
                .report
                .update(|report| note(&mut report.connected, self.start)),
            Event::MediaData(data) => {
                let is_broken = self.take(&data);
                if is_broken {
                    self.request_key_frame(rtc, now);
                }
            }
            _ => {}
        }
    }

    fn work(&mut self, _rtc: &mut Rtc, _now: Instant) -> Option<Instant> {
        None
    }

    fn ended(&mut self, how: Ended) {
        self.report.update(|report| report.ended = Some(how));
    }
}

impl Watching {
    /// Counts a frame or a packet of audio; true when a player would need a key frame now.
    fn take(&mut self, data: &MediaData) -> bool {
        let is_video = data.mid == self.video;
        let track = &mut self.tracks[usize::from(is_video)];
        let (first, last) = (*data.seq_range.start(), *data.seq_range.end());
        let current = Last {
            number: *last,
            time: Duration::from_secs_f64(data.time.as_seconds()),
            arrival: data.network_time,
        };
        let start = self.start;
        self.report.update(|report| {
            report.bytes += data.data.len() as u64;
            if let Some(previous) = &track.last {
                report.lost_packets += first.saturating_sub(previous.number + 1);
                if current.time <= previous.time {
                    report.backward_times += 1;
                } else if is_video {
                    report.largest_step = report.largest_step.max(current.time - previous.time);
                }
                let pause = current.arrival.saturating_duration_since(previous.arrival);
                if is_video {
                    report.longest_pause = report.longest_pause.max(pause);
                }
            }
            track.last = Some(current);
            if !is_video {
                report.audio_packets += 1;
                return false;
            }
            report.frames += 1;
            report.codec = Some(data.params.spec().codec);
            if let (Some(min), Some(max)) =
                (data.ext_vals.play_delay_min, data.ext_vals.play_delay_max)
            {
                report.playout_delay = Some((min.into(), max.into()));
            }
            if data.is_keyframe() {
                report.key_frames += 1;
                note(&mut report.first_frame, start);
                return false;
            }
            report.broken_frames += u64::from(!data.contiguous);
            !data.contiguous
        })
    }

    fn request_key_frame(&mut self, rtc: &mut Rtc, now: Instant) {
        if self
            .last_request
            .is_some_and(|last| now < last + KEY_FRAME_REQUESTS)
        {
            return;
        }
        let asked = rtc
            .writer(self.video)
            .and_then(|mut writer| writer.request_keyframe(None, KeyframeRequestKind::Pli).ok());
        if asked.is_some() {
            self.last_request = Some(now);
            self.report.update(|report| report.key_frame_requests += 1);
        }
    }
}
