//! Measurements of a live input for its health: frame rate, bit rate, key-frame interval, drift, audio offset, stalls,
//! jumps.
//!
//! [`Meter::observe`] is on the hot path: constant time, no allocation. All words are made in [`Meter::snapshot`] and
//! [`advice`], which run on request. Time comes in as a parameter: the meter has no clock.

mod advice;
mod track;
mod window;

use std::sync::Arc;

pub use advice::{AdviceContext, LinkStatistics, advice};
use serde::Serialize;
use track::Track;
use window::{Average, ByteWindow, KeyFrames, Reordering};

use crate::{
    codec::{AudioConfig, VideoConfig},
    unit::{AudioUnit, CLOCK_90K, Unit, VideoUnit},
};

const TICKS_PER_MS: i64 = CLOCK_90K / 1_000;

/// Measures one publisher session after the other of a broadcast. Fed with every unit.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    session_began_ms: Option<i64>,
    video_config: Option<Arc<VideoConfig>>,
    audio_config: Option<Arc<AudioConfig>>,
    video: Track,
    audio: Track,
    video_bytes: ByteWindow,
    audio_bytes: ByteWindow,
    key_frames: KeyFrames,
    reordering: Reordering,
    drift_ms: Average,
    av_offset_ms: Average,
    jumps: Events,
    stalls: Events,
}

impl Meter {
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a publisher session; the last encoder's measurements are forgotten.
    pub fn begin_session(&mut self, now_ms: i64) {
        *self = Self {
            session_began_ms: Some(now_ms),
            ..Self::default()
        };
    }

    /// Takes in one unit at its time of arrival.
    pub fn observe(&mut self, unit: &Unit, now_ms: i64) {
        match unit {
            Unit::VideoConfig(config) => self.video_config = Some(Arc::clone(config)),
            Unit::AudioConfig(config) => self.audio_config = Some(Arc::clone(config)),
            Unit::Video(unit) => self.observe_video(unit, now_ms),
            Unit::Audio(unit) => self.observe_audio(unit, now_ms),
        }
    }

    /// Returns the measurements at `now_ms`.
    pub fn snapshot(&self, now_ms: i64) -> Measured {
        let video = self.video_config.as_deref();
        let audio = self.audio_config.as_deref();
        let last_arrival_ms = self
            .video
            .last_arrival_ms()
            .max(self.audio.last_arrival_ms());
        let silent_since_ms = last_arrival_ms.or(self.session_began_ms);
        Measured {
            video_codec: video.map(|config| config.codec.name()),
            video_profile: video.map(|config| format!("{} {}", config.profile, config.level)),
            width: video.map(|config| config.width),
            height: video.map(|config| config.height),
            declared_frame_rate: video.and_then(|config| config.frame_rate),
            frame_rate: self.video.frame_rate(),
            video_bitrate_bps: self.video_bytes.bits_per_second(now_ms),
            audio_bitrate_bps: self.audio_bytes.bits_per_second(now_ms),
            key_frame_interval_s: self.key_frames.mean_interval_s(),
            max_key_frame_interval_s: self.key_frames.longest_interval_s(),
            b_frames: self.reordering.is_used(),
            reorder_delay_ms: self.reordering.delay_ms(),
            audio_codec: audio.map(|config| config.codec.name()),
            sample_rate: audio.map(|config| config.sample_rate),
            channels: audio.map(|config| config.channels),
            timestamp_jumps: self.jumps.count,
            last_timestamp_jump_age_ms: self.jumps.age_ms(now_ms),
            drift_ms: self.drift_ms.value(),
            av_offset_ms: self.av_offset_ms.value(),
            stalls: self.stalls.count,
            last_stall_age_ms: self.stalls.age_ms(now_ms),
            last_media_age_ms: silent_since_ms.map(|since_ms| (now_ms - since_ms).max(0)),
        }
    }

    fn observe_video(&mut self, unit: &VideoUnit, now_ms: i64) {
        self.video_bytes.add(unit.data.len(), now_ms);
        let step = self.video.step(unit.dts_90k, now_ms);
        self.note_step(step, now_ms);
        if step == Step::Jumped {
            self.key_frames.break_off();
        }
        self.key_frames.observe(unit.dts_90k, unit.key);
        self.reordering.observe(unit.cts_90k);
        self.note_drift(self.video.drift_ms());
        self.note_av_offset();
    }

    fn observe_audio(&mut self, unit: &AudioUnit, now_ms: i64) {
        self.audio_bytes.add(unit.data.len(), now_ms);
        let step = self.audio.step(unit.pts_90k, now_ms);
        let is_main_track = self.video.last_arrival_ms().is_none();
        if is_main_track || step == Step::Jumped {
            self.note_step(step, now_ms);
        }
        if is_main_track {
            self.note_drift(self.audio.drift_ms());
        }
    }

    fn note_step(&mut self, step: Step, now_ms: i64) {
        match step {
            Step::Steady => {}
            Step::Jumped => {
                // Both tracks of an encoder jump together: one event.
                if self
                    .jumps
                    .age_ms(now_ms)
                    .is_none_or(|age_ms| age_ms > 1_000)
                {
                    self.jumps.note(now_ms);
                }
                self.drift_ms = Average::default();
                self.av_offset_ms = Average::default();
            }
            Step::Stalled => self.stalls.note(now_ms),
        }
    }

    fn note_drift(&mut self, drift_ms: Option<i64>) {
        if let Some(drift_ms) = drift_ms {
            self.drift_ms.observe(drift_ms);
        }
    }

    /// Notes the offset of audio by decode time, by which encoders interleave.
    fn note_av_offset(&mut self) {
        if let (Some(audio_90k), Some(video_90k)) = (self.audio.last_90k(), self.video.last_90k()) {
            self.av_offset_ms
                .observe(audio_90k.saturating_sub(video_90k) / TICKS_PER_MS);
        }
    }
}

/// Step of a track from its last unit to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Steady,
    /// Nothing arrived for more than a second, and media time and wall clock agree on it.
    Stalled,
    /// Media time went back, or forward by more than a second that did not pass.
    Jumped,
}

/// Count of an event, and its last time.
#[derive(Clone, Copy, Debug, Default)]
struct Events {
    count: u64,
    last_ms: Option<i64>,
}

impl Events {
    fn note(&mut self, now_ms: i64) {
        self.count += 1;
        self.last_ms = Some(now_ms);
    }

    fn age_ms(&self, now_ms: i64) -> Option<i64> {
        self.last_ms.map(|last_ms| (now_ms - last_ms).max(0))
    }
}

/// Measurements of this publisher session. A value that is not known (yet) is `None`, and `null` on the wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    pub video_codec: Option<&'static str>,
    /// Profile and level, for instance "High 4.1".
    pub video_profile: Option<String>,
    pub width: Option<u16>,
    pub height: Option<u16>,
    /// Frames per second as the encoder declared them.
    pub declared_frame_rate: Option<f64>,
    /// Frames per second over the last 128 frames, by media time; near a usual rate, that rate.
    pub frame_rate: Option<f64>,
    /// Bit rate of the last ten seconds, by time of arrival.
    pub video_bitrate_bps: Option<u64>,
    pub audio_bitrate_bps: Option<u64>,
    /// Mean of the last five distances between key frames, or the one in progress when it is longer than all of them.
    pub key_frame_interval_s: Option<f64>,
    /// Longest distance between key frames, the one in progress included.
    pub max_key_frame_interval_s: Option<f64>,
    /// True when frames are reordered; `None` until enough frames came.
    pub b_frames: Option<bool>,
    /// Difference between the longest and the shortest wait of a frame for its turn.
    pub reorder_delay_ms: Option<i64>,
    pub audio_codec: Option<&'static str>,
    pub sample_rate: Option<u32>,
    pub channels: Option<u8>,
    /// Times that media time went back, or forward by more than 1 s that did not pass.
    pub timestamp_jumps: u64,
    pub last_timestamp_jump_age_ms: Option<i64>,
    /// Media time passed minus wall-clock time passed since the session or the last jump began, averaged; negative
    /// when the encoder falls behind.
    pub drift_ms: Option<i64>,
    /// Latest audio time minus latest video time as they arrive, averaged; positive when audio is ahead.
    pub av_offset_ms: Option<i64>,
    /// Times that nothing came for more than 1 s on the video track, or on the audio track where there is no video.
    pub stalls: u64,
    pub last_stall_age_ms: Option<i64>,
    /// Age of the last unit; before the first one, of the session.
    pub last_media_age_ms: Option<i64>,
}

#[cfg(test)]
mod tests;
