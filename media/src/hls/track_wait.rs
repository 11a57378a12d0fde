//! Wait for the second track at the start of a publisher session (`live.track_wait`), and for the first key frame.
//!
//! A track counts as present when it is configured and brought something to start with: a key frame, or an audio frame.
//! Encoders announce tracks that never send, and a playlist that announces them would stall players. Units that arrive
//! meanwhile are kept, so that the wait loses no frame; when too many accumulate, the wait ends.

use std::sync::Arc;

use crate::{
    codec::{AudioConfig, VideoConfig},
    unit::Unit,
};

/// A video track that is announced gets this long for its first key frame before audio starts alone: encoders send
/// one at once, and players cannot add a frame to audio without starting over.
const KEY_FRAME_WAIT_MS: i64 = 10_000;
/// Most units that are kept; with more, the wait ends.
const MAX_UNITS: usize = 4_096;
const MAX_BYTES: usize = 16 << 20;

/// A unit and the wall-clock time of its arrival.
#[derive(Debug)]
pub(super) struct ArrivedUnit {
    pub(super) unit: Unit,
    pub(super) at_ms: i64,
}

/// Tracks with which a session starts.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) video: Announced<VideoConfig>,
    pub(super) audio: Announced<AudioConfig>,
    pub(super) units: Vec<ArrivedUnit>,
}

/// A track's configuration, and whether the track is present.
#[derive(Debug)]
pub(super) struct Announced<C> {
    pub(super) config: Option<Arc<C>>,
    pub(super) ready: bool,
}

impl<C> Announced<C> {
    const NOTHING: Self = Self {
        config: None,
        ready: false,
    };
}

#[derive(Debug)]
pub(super) struct TrackWait {
    limit_ms: i64,
    since_ms: Option<i64>,
    bytes: usize,
    start: Start,
}

impl TrackWait {
    pub(super) fn new(limit_ms: i64) -> Self {
        let start = Start {
            video: Announced::NOTHING,
            audio: Announced::NOTHING,
            units: Vec::new(),
        };
        Self {
            limit_ms,
            since_ms: None,
            bytes: 0,
            start,
        }
    }

    /// Keeps a unit; `false` when it is left out: nothing can decode it.
    pub(super) fn push(&mut self, unit: Unit, now_ms: i64) -> bool {
        let Start { video, audio, .. } = &mut self.start;
        let len = match &unit {
            Unit::VideoConfig(config) if !video.ready => {
                video.config = Some(Arc::clone(config));
                self.since_ms.get_or_insert(now_ms);
                return true;
            }
            Unit::AudioConfig(config) if !audio.ready => {
                audio.config = Some(Arc::clone(config));
                self.since_ms.get_or_insert(now_ms);
                return true;
            }
            Unit::VideoConfig(_) | Unit::AudioConfig(_) => 0,
            Unit::Video(video_frame) => {
                video.ready |= video_frame.key && video.config.is_some();
                if !video.ready {
                    return false;
                }
                video_frame.data.len()
            }
            Unit::Audio(frame) => {
                audio.ready |= audio.config.is_some();
                if !audio.ready {
                    return false;
                }
                frame.data.len()
            }
        };
        self.bytes += len;
        self.start.units.push(ArrivedUnit {
            unit,
            at_ms: now_ms,
        });
        true
    }

    /// Returns whether the session starts now, with the tracks it has.
    pub(super) fn is_over(&self, now_ms: i64) -> bool {
        let (video, audio) = (self.start.video.ready, self.start.audio.ready);
        let full = self.start.units.len() >= MAX_UNITS || self.bytes >= MAX_BYTES;
        (video && audio)
            || ((video || audio) && full)
            || self
                .deadline_ms()
                .is_some_and(|deadline| now_ms >= deadline)
    }

    /// Returns the latest end of the wait; `None` while there is no track that could start.
    fn deadline_ms(&self) -> Option<i64> {
        let since_ms = self.since_ms?;
        let Start { video, audio, .. } = &self.start;
        match (video.ready, audio.ready) {
            (false, false) => None,
            (false, true) if video.config.is_some() => {
                Some(since_ms + self.limit_ms.max(KEY_FRAME_WAIT_MS))
            }
            _ => Some(since_ms + self.limit_ms),
        }
    }

    /// Returns whether a track has come.
    pub(super) fn has_media(&self) -> bool {
        self.start.video.ready || self.start.audio.ready
    }

    pub(super) fn finish(self) -> Start {
        self.start
    }
}
