//! Session of a publisher: its frames to the service, and the key frames that it is asked for.
//!
//! A browser sends a key frame only when it is asked. After a loss, and after frames that the service did not take, video continues at
//! the next key frame.

use std::time::{Duration, Instant};

use bytes::Bytes;
use sluice_media::codec::VideoCodec;
use str0m::{
    Event,
    format::Codec,
    media::{KeyframeRequestKind, MediaData, Mid},
};

use super::{
    super::{
        message::{AudioFrame, FromGateway, SessionStatistics, VideoFrame},
        payload,
    },
    outbox::Outbox,
    peer::Peer,
    publish_line::{PublishLine, Report, Track},
};

/// Shortest interval of requests for key frames.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// Interval of statistics.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// Most bytes of an Opus packet (RFC 6716 §3.4: 48 frames of 1 275 bytes do not fit a datagram; a second of the largest does).
const MAX_AUDIO: usize = 64 << 10;

pub(super) struct Publisher {
    video: Option<Mid>,
    keyframe_interval: Duration,
    line: PublishLine,
    next_key_request: Instant,
    key_requested_at: Option<Instant>,
    needs_key_frame: bool,
    statistics: SessionStatistics,
    next_report: Instant,
}

impl Publisher {
    pub fn new(video: Option<Mid>, keyframe_interval: Duration, now: Instant) -> Self {
        Self {
            video,
            keyframe_interval: keyframe_interval.max(ASK_EVERY),
            line: PublishLine::default(),
            next_key_request: now,
            key_requested_at: None,
            needs_key_frame: true,
            statistics: SessionStatistics::default(),
            next_report: now + REPORT_EVERY,
        }
    }

    /// Returns the time of the next deadline.
    pub fn due(&self) -> Instant {
        self.next_report.min(self.next_key_request)
    }

    /// Asks for key frames and reports, at their intervals.
    pub fn advance(&mut self, peer: &mut Peer, outbox: &Outbox, now: Instant) {
        if now >= self.next_key_request {
            self.next_key_request = now + self.keyframe_interval;
            if peer.connected_at.is_some() {
                self.request_key_frame(peer, now);
            }
        }
        if now >= self.next_report {
            self.next_report = now + REPORT_EVERY;
            let statistics = std::mem::take(&mut self.statistics);
            if peer.connected_at.is_some() {
                outbox.push(&FromGateway::Statistics {
                    session: peer.session,
                    statistics,
                });
            }
        }
    }

    fn request_key_frame(&mut self, peer: &mut Peer, now: Instant) {
        let is_early = self
            .key_requested_at
            .is_some_and(|at| now.duration_since(at) < ASK_EVERY);
        let Some(mid) = self.video.filter(|_| !is_early) else {
            return;
        };
        // It is an error only before the first packet of video came.
        if let Some(mut writer) = peer.rtc.writer(mid)
            && writer
                .request_keyframe(None, KeyframeRequestKind::Pli)
                .is_ok()
        {
            self.key_requested_at = Some(now);
            self.statistics.key_frame_requests += 1;
        }
    }

    /// Follows the library's events.
    pub fn follow(&mut self, peer: &mut Peer, event: Event, outbox: &Outbox, now: Instant) {
        match event {
            Event::Connected => self.next_key_request = now,
            Event::MediaData(data) if Some(data.mid) == self.video => {
                self.video(peer, &data, outbox, now);
            }
            Event::MediaData(data) if data.params.spec().codec == Codec::Opus => {
                self.audio(peer, &data, outbox);
            }
            Event::MediaIngressStats(ingress) => {
                if let Some(rtt) = ingress.rtt {
                    self.statistics.rtt_ms = rtt.as_secs_f64() * 1_000.0;
                }
                if let Some(loss) = ingress.loss.map(f64::from).filter(|loss| loss.is_finite()) {
                    self.statistics.loss = self.statistics.loss.max(loss);
                }
            }
            _ => {}
        }
    }

    fn video(&mut self, peer: &mut Peer, data: &MediaData, outbox: &Outbox, now: Instant) {
        let codec = match data.params.spec().codec {
            Codec::H264 => VideoCodec::Avc,
            Codec::H265 => VideoCodec::Hevc,
            Codec::Av1 => VideoCodec::Av1,
            _ => return,
        };
        self.count(data);
        if !data.contiguous {
            self.needs_key_frame = true;
        }
        let pts_90k = self.pts_90k(Track::Video, data, 90_000);
        // A frame that cannot be read is a lost one.
        let frame = payload::depacketized(codec, &data.data).ok().flatten();
        let frame = frame.filter(|frame| frame.key || !self.needs_key_frame);
        let is_taken = frame.is_some_and(|frame| {
            outbox.push(&FromGateway::Video(VideoFrame {
                of: peer.session,
                codec,
                key: frame.key,
                pts_90k,
                wallclock_us: 0,
                data: frame.data,
            }))
        });
        self.needs_key_frame = !is_taken;
        if !is_taken {
            self.statistics.dropped_frames += 1;
            self.request_key_frame(peer, now);
        }
    }

    fn audio(&mut self, peer: &Peer, data: &MediaData, outbox: &Outbox) {
        self.count(data);
        if data.data.is_empty() || data.data.len() > MAX_AUDIO {
            return;
        }
        let frame = AudioFrame {
            of: peer.session,
            pts_90k: self.pts_90k(Track::Audio, data, 48_000),
            wallclock_us: 0,
            data: Bytes::copy_from_slice(&data.data),
        };
        if !outbox.push(&FromGateway::Audio(frame)) {
            self.statistics.dropped_frames += 1;
        }
    }

    fn count(&mut self, data: &MediaData) {
        let packets = data
            .seq_range
            .end()
            .saturating_sub(**data.seq_range.start())
            + 1;
        self.statistics.packets += u32::try_from(packets).unwrap_or(0);
        self.statistics.bytes += u32::try_from(data.data.len()).unwrap_or(0);
    }

    fn pts_90k(&mut self, track: Track, data: &MediaData, rate: i64) -> i64 {
        let in_90k = |time: u64| (i128::from(time) * 90_000 / i128::from(rate)) as i64;
        let report = data.last_sender_info.map(|info| Report {
            ntp: info.ntp_time,
            rtp_90k: in_90k(near(data.time.numer(), info.rtp_time.numer() as u32)),
        });
        self.line
            .pts_90k(track, in_90k(data.time.numer()), data.network_time, report)
    }
}

/// Returns the 64-bit time nearest to `time` whose low 32 bits are `low`: packets and reports count their wraps apart.
fn near(time: u64, low: u32) -> u64 {
    let distance = low.wrapping_sub(time as u32) as i32;
    time.saturating_add_signed(distance.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_near_its_packets_across_a_wrap() {
        let wrap = 1_u64 << 32;
        assert_eq!(near(wrap + 5, u32::MAX), wrap - 1);
        assert_eq!(near(wrap - 1, 5), wrap + 5);
        assert_eq!(near(7, 7), 7);
        assert_eq!(near(0, u32::MAX), 0);
    }
}
