//! Transport streams as encoders, lines and attackers make them.

mod call;
mod ffmpeg;
mod lines;
mod mux;
mod never_panics;
mod remux;
mod rules;
mod streams;

use std::sync::Arc;

use sluice_ingest::ts::{Counters, Demuxer, Limits};
use sluice_media::{
    codec::{AudioConfig, VideoConfig},
    unit::{AudioUnit, Unit, VideoUnit},
};

/// All that a demuxer made of a stream.
#[derive(Debug, Default)]
struct Demuxed {
    video_configs: Vec<Arc<VideoConfig>>,
    audio_configs: Vec<Arc<AudioConfig>>,
    video_frames: Vec<VideoUnit>,
    frames: Vec<AudioUnit>,
    counters: Counters,
    last_damage: Option<String>,
}

impl Demuxed {
    fn take(&mut self, units: &mut Vec<Unit>) {
        for unit in units.drain(..) {
            match unit {
                Unit::VideoConfig(config) => self.video_configs.push(config),
                Unit::AudioConfig(config) => self.audio_configs.push(config),
                Unit::Video(video_frame) => self.video_frames.push(video_frame),
                Unit::Audio(frame) => self.frames.push(frame),
            }
        }
    }

    fn bytes(&self) -> usize {
        let video_frames = self
            .video_frames
            .iter()
            .map(|video_frame| video_frame.data.len());
        video_frames
            .chain(self.frames.iter().map(|frame| frame.data.len()))
            .sum()
    }
}

/// Demuxes a whole stream that arrives in pieces of this size.
fn demux(stream: &[u8], piece: usize) -> Demuxed {
    demux_within(Limits::default(), stream, piece)
}

fn demux_within(limits: Limits, stream: &[u8], piece: usize) -> Demuxed {
    let mut demuxer = Demuxer::new(limits);
    let mut demuxed = Demuxed::default();
    let mut units = Vec::new();
    for piece in stream.chunks(piece.max(1)) {
        demuxer.push(piece, &mut units);
        demuxed.take(&mut units);
    }
    demuxer.flush(&mut units);
    demuxed.take(&mut units);
    demuxed.counters = demuxer.counters();
    demuxed.last_damage = demuxer.last_damage().map(ToString::to_string);
    demuxed
}
