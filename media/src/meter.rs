//! Measuring a broadcast as its units pass, and saying in plain words what its encoder should change.

use serde::Serialize;

use crate::unit::Unit;

/// Measures one broadcast session. Fed with every unit: constant time, no allocation.
#[derive(Clone, Debug, Default)]
pub struct Meter;

impl Meter {
    pub fn new() -> Self {
        Self
    }

    /// A publisher session begins: clocks and rates start over, totals go on.
    pub fn begin_session(&mut self, now_ms: i64) {
        let _ = now_ms;
    }

    /// Takes in one unit at its time of arrival.
    pub fn observe(&mut self, unit: &Unit, now_ms: i64) {
        let _ = (unit, now_ms);
    }

    /// What is known at `now_ms`.
    pub fn snapshot(&self, now_ms: i64) -> Measured {
        let _ = now_ms;
        Measured::default()
    }
}

/// What was measured. A value that is not known (yet) is `None` and `null` on the wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    pub video_codec: Option<&'static str>,
    /// Profile and level, for instance "High 4.1".
    pub video_profile: Option<String>,
    pub width: Option<u16>,
    pub height: Option<u16>,
    /// Pictures per second over the last seconds, by media time.
    pub frame_rate: Option<f64>,
    pub video_bitrate_bps: Option<u64>,
    pub audio_bitrate_bps: Option<u64>,
    /// Mean of the last few distances between key frames.
    pub key_frame_interval_s: Option<f64>,
    /// Longest distance between key frames in this session, the one under way included.
    pub max_key_frame_interval_s: Option<f64>,
    /// Whether pictures are reordered; `None` until enough pictures came to tell.
    pub b_frames: Option<bool>,
    pub audio_codec: Option<&'static str>,
    pub sample_rate: Option<u32>,
    pub channels: Option<u8>,
    /// Times the media clock went back, or forward by more than 1 s.
    pub timestamp_jumps: u64,
    /// Media time minus wall-clock time since the session began; negative when the encoder falls behind.
    pub drift_ms: Option<i64>,
    /// Latest audio time minus latest video time as they arrived; positive when audio is ahead.
    pub av_offset_ms: Option<i64>,
    /// Age of the last unit.
    pub last_media_age_ms: Option<i64>,
    /// Times in this session when no unit arrived for more than a second.
    pub stalls: u64,
}

/// What the meter cannot know and advice needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdviceContext {
    /// The broadcast's `EXT-X-TARGETDURATION`.
    pub target_duration_s: u32,
    /// The input asks for low latency.
    pub low_latency: bool,
    /// Units left out of this session because their bytes were damaged or their codec is not carried.
    pub damaged_units: u64,
    /// In plain words, what the last of them was.
    pub last_damage: Option<String>,
    /// Why segments cannot be written, if so.
    pub disk_trouble: Option<String>,
    /// Why the database cannot be reached, if so.
    pub database_trouble: Option<String>,
    /// Times another encoder with the same key was refused or displaced.
    pub conflicts: u64,
    /// Addresses of the encoders that fight for the key, as many as are known.
    pub conflict_addresses: Vec<String>,
}

/// Plain words that name the encoder setting to change; empty for a healthy stream.
pub fn advice(measured: &Measured, context: &AdviceContext) -> Vec<String> {
    let _ = (measured, context);
    Vec::new()
}
