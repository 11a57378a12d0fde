//! Synthetic encoders: units as a publisher would send them, each payload naming its unit.

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    codec::{AudioCodec, AudioConfig, VideoCodec, VideoConfig},
    unit::{AudioUnit, Unit, VideoUnit},
};

/// Stamps that a publisher gives its units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stamps {
    /// Whole milliseconds, cut off, as RTMP's.
    Milliseconds,
    /// Exact to the tick, as MPEG-TS's.
    Exact,
}

/// A publisher's settings.
#[derive(Clone, Debug)]
pub(super) struct Encoder {
    pub(super) frame_rate: f64,
    /// Frames from one key frame to the next.
    pub(super) gop: usize,
    pub(super) b_frames: bool,
    pub(super) stamps: Stamps,
    pub(super) video: bool,
    pub(super) audio: bool,
    pub(super) sample_rate: u32,
    /// Seconds after which audio begins.
    pub(super) audio_from_s: f64,
    /// Seconds by which audio arrives later than video of the same time.
    pub(super) audio_lag_s: f64,
    /// The first timestamp in ticks.
    pub(super) first_90k: i64,
    /// Distinguishes the payloads of sessions.
    pub(super) name: u8,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            frame_rate: 30.0,
            gop: 60,
            b_frames: false,
            stamps: Stamps::Milliseconds,
            video: true,
            audio: true,
            sample_rate: 48_000,
            audio_from_s: 0.0,
            audio_lag_s: 0.0,
            first_90k: 0,
            name: b'a',
        }
    }
}

pub(in crate::hls) fn video_config(frame_rate: Option<f64>, version: u8) -> Arc<VideoConfig> {
    Arc::new(VideoConfig {
        codec: VideoCodec::Avc,
        record: Bytes::copy_from_slice(&[1, 0x64, 0, version, 0xff, 0xe0, 0]),
        width: 1_920,
        height: 1_080,
        pixel_aspect: (1, 1),
        frame_rate,
        nal_length_size: 4,
        codecs: "avc1.640028".to_owned(),
        profile: "High".to_owned(),
        level: "4".to_owned(),
        bit_depth: 8,
        may_reorder: None,
    })
}

pub(in crate::hls) fn audio_config(sample_rate: u32) -> Arc<AudioConfig> {
    Arc::new(AudioConfig {
        codec: AudioCodec::Aac,
        record: Bytes::from_static(&[0x11, 0x90]),
        sample_rate,
        channels: 2,
        codecs: "mp4a.40.2".to_owned(),
        samples_per_frame: 1_024,
    })
}

pub(super) fn video_frame(dts_90k: i64, key: bool, data: impl Into<Bytes>) -> Unit {
    Unit::Video(VideoUnit {
        dts_90k,
        cts_90k: 0,
        key,
        data: data.into(),
    })
}

pub(super) fn frame(pts_90k: i64, data: impl Into<Bytes>) -> Unit {
    Unit::Audio(AudioUnit {
        pts_90k,
        data: data.into(),
    })
}

impl Encoder {
    /// The configurations, then `seconds` of units in order of arrival.
    pub(super) fn units(&self, seconds: f64) -> Vec<Unit> {
        let mut units = self.configs();
        units.extend(self.media(seconds));
        units
    }

    pub(super) fn configs(&self) -> Vec<Unit> {
        let mut configs = Vec::new();
        if self.video {
            configs.push(Unit::VideoConfig(video_config(Some(self.frame_rate), 40)));
        }
        if self.audio && self.audio_from_s == 0.0 {
            configs.push(Unit::AudioConfig(audio_config(self.sample_rate)));
        }
        configs
    }

    pub(super) fn media(&self, seconds: f64) -> Vec<Unit> {
        let mut timed: Vec<(f64, Unit)> = Vec::new();
        if self.video {
            let video_frames = (seconds * self.frame_rate).round() as usize;
            timed.extend((0..video_frames).map(|index| self.video_frame(index)));
        }
        if self.audio {
            let frame_s = 1_024.0 / f64::from(self.sample_rate);
            let first = (self.audio_from_s / frame_s).ceil() as usize;
            let frames = (seconds / frame_s).floor() as usize;
            timed.extend((first..frames).map(|index| self.frame(index, frame_s)));
            if self.audio_from_s > 0.0 {
                let config = Unit::AudioConfig(audio_config(self.sample_rate));
                timed.push((self.audio_from_s - 0.001, config));
            }
        }
        timed.sort_by(|a, b| a.0.total_cmp(&b.0));
        timed.into_iter().map(|(_, unit)| unit).collect()
    }

    fn video_frame(&self, index: usize) -> (f64, Unit) {
        let time_s = index as f64 / self.frame_rate;
        let dts_90k = self.stamp(time_s);
        let pts_s = time_s + self.reorder(index) as f64 / self.frame_rate;
        let unit = Unit::Video(VideoUnit {
            dts_90k,
            cts_90k: (self.stamp(pts_s) - dts_90k) as i32,
            key: index.is_multiple_of(self.gop),
            data: self.payload(b'v', index),
        });
        (time_s, unit)
    }

    /// Composition offset in frames: I/P at 2, then the two B between at 0 and 1 … in decode order I P B B.
    fn reorder(&self, index: usize) -> usize {
        match (self.b_frames, index % self.gop % 3) {
            (false, _) => 0,
            (true, 0) if index.is_multiple_of(self.gop) => 1,
            (true, 1) => 3,
            (true, _) => 0,
        }
    }

    fn frame(&self, index: usize, frame_s: f64) -> (f64, Unit) {
        let time_s = index as f64 * frame_s;
        (
            time_s + self.audio_lag_s,
            frame(self.stamp(time_s), self.payload(b'a', index)),
        )
    }

    fn stamp(&self, time_s: f64) -> i64 {
        let ticks = match self.stamps {
            Stamps::Milliseconds => ((time_s * 1_000.0 + 1e-6).floor() as i64) * 90,
            Stamps::Exact => (time_s * 90_000.0).round() as i64,
        };
        self.first_90k + ticks
    }

    fn payload(&self, track: u8, index: usize) -> Bytes {
        let mut data = vec![self.name, track];
        data.extend_from_slice(&(index as u32).to_be_bytes());
        data.into()
    }
}
