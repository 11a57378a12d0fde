//! Frames of feeds as sessions send them: packets made once and shared, and the clock of the service in terms of this process's.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use sluice_media::codec::VideoCodec;

use super::super::{
    message::{AudioFrame, FeedId, Malformed, VideoFrame},
    payload::{self, Packet},
};

/// A frame of a feed, ready to be sent.
#[derive(Debug)]
pub(super) struct FeedFrame {
    pub feed: FeedId,
    pub pts_90k: i64,
    /// Time at which it was sampled, as far as the service knows; not in the future.
    pub sampled_at: Instant,
    /// Bytes of its payloads.
    pub bytes: usize,
    pub content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Video {
        codec: VideoCodec,
        is_key: bool,
        packets: Vec<Packet>,
    },
    /// An Opus packet.
    Audio(Arc<[u8]>),
}

impl FeedFrame {
    /// Makes the packets of a video frame; `None` where it has nothing that a decoder needs.
    pub fn of_video(frame: &VideoFrame, clock: &Clock) -> Result<Option<Self>, Malformed> {
        let packets = payload::packetize(frame)?;
        if packets.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            feed: frame.of,
            pts_90k: frame.pts_90k,
            sampled_at: clock.instant(frame.wallclock_us),
            bytes: packets.iter().map(|packet| packet.payload.len()).sum(),
            content: Content::Video {
                codec: frame.codec,
                is_key: frame.key,
                packets,
            },
        }))
    }

    pub fn of_audio(frame: &AudioFrame, clock: &Clock) -> Self {
        Self {
            feed: frame.of,
            pts_90k: frame.pts_90k,
            sampled_at: clock.instant(frame.wallclock_us),
            bytes: frame.data.len(),
            content: Content::Audio(frame.data[..].into()),
        }
    }

    /// Returns a video frame's packets; none for audio.
    pub fn packets(&self) -> &[Packet] {
        match &self.content {
            Content::Video { packets, .. } => packets,
            Content::Audio(_) => &[],
        }
    }

    /// True for a video frame at which a decoder can start.
    pub fn is_key(&self) -> bool {
        matches!(self.content, Content::Video { is_key: true, .. })
    }
}

/// One moment on the clock of the service and on this process's monotonic one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    at: Instant,
    unix: Duration,
}

/// Interval in which a [`Clock`] is set again: the two clocks drift apart by seconds in a day.
const SET_EVERY: Duration = Duration::from_secs(60);
/// Largest age of a frame that is believed; older ones are from a wrong clock.
const MAX_AGE: Duration = Duration::from_secs(60);

impl Clock {
    pub fn new() -> Self {
        Self {
            at: Instant::now(),
            unix: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default(),
        }
    }

    /// Sets it again where it is time to.
    pub fn keep(&mut self) {
        if self.at.elapsed() >= SET_EVERY {
            *self = Self::new();
        }
    }

    /// Returns the moment of a Unix time in microseconds: at most now, at least [`MAX_AGE`] ago, and now where it is unknown.
    pub fn instant(&self, unix_us: i64) -> Instant {
        let now = Instant::now();
        let Some(unix) = u64::try_from(unix_us).ok().filter(|time| *time != 0) else {
            return now;
        };
        let now_unix = self.unix + now.duration_since(self.at);
        let age = now_unix.saturating_sub(Duration::from_micros(unix));
        now.checked_sub(age.min(MAX_AGE)).unwrap_or(now)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a video frame of packets of 1 250 bytes.
    pub fn video(pts_90k: i64, is_key: bool, bytes: usize) -> Arc<FeedFrame> {
        let packet = |len| Packet {
            payload: vec![0x41; len].into(),
            marker: false,
        };
        Arc::new(FeedFrame {
            feed: 1,
            pts_90k,
            sampled_at: Instant::now(),
            bytes,
            content: Content::Video {
                codec: VideoCodec::Avc,
                is_key,
                packets: (0..bytes)
                    .step_by(1_250)
                    .map(|start| packet(1_250.min(bytes - start)))
                    .collect(),
            },
        })
    }

    #[test]
    fn wallclock_becomes_a_moment_that_is_not_in_the_future() {
        let clock = Clock::new();
        let unix = |before: Duration| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            (now - before).as_micros() as i64
        };
        let age = |unix_us: i64| clock.instant(unix_us).elapsed();
        let second = age(unix(Duration::from_secs(1)));
        assert!(second >= Duration::from_millis(900) && second < MAX_AGE);
        for unknown in [0, -1, i64::MIN, unix(Duration::ZERO) + 5_000_000] {
            assert!(age(unknown) < Duration::from_secs(1));
        }
        assert!(age(1) >= MAX_AGE);
    }
}
