//! Tracks of an RTSP source: which are chosen (H.264, HEVC, AAC), and the units of their frames.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use retina::{
    Timestamp,
    client::Stream,
    codec::{AudioFrame, ParametersRef, VideoFrame, VideoParametersCodec},
};
use sluice_media::{
    codec::{AudioCodec, AudioConfig, VideoCodec, VideoConfig, check_payload},
    unit::{AudioUnit, CLOCK_90K, Unit, VideoUnit},
};

use super::order::{CodedFrame, DecodeTimes};
use crate::{publish::SessionReport, ts::Corruption};

/// Turns the frames of a source into units.
#[derive(Debug)]
pub(super) struct Tracks {
    video: Option<Arc<VideoConfig>>,
    audio: Option<Arc<AudioConfig>>,
    decode_times: DecodeTimes,
    video_frames: Vec<VideoUnit>,
    damaged: u64,
    last_damage: Option<Corruption>,
    bytes_received: u64,
}

impl Tracks {
    pub(super) fn new() -> Self {
        Self {
            video: None,
            audio: None,
            decode_times: DecodeTimes::new(),
            video_frames: Vec::new(),
            damaged: 0,
            last_damage: None,
            bytes_received: 0,
        }
    }

    /// Returns the numbers of the streams to set up: the first of each kind that can be carried. The others are noted.
    pub(super) fn choose(&mut self, streams: &[Stream]) -> Vec<usize> {
        let (mut video, mut audio) = (None, None);
        for (number, stream) in streams.iter().enumerate() {
            let name = || Cow::from(stream.encoding_name().to_ascii_uppercase());
            let left_out = match (stream.media(), stream.encoding_name()) {
                ("video", "h264" | "h265") if video.is_none() => {
                    video = Some(number);
                    continue;
                }
                ("audio", "mpeg4-generic") if audio.is_none() => {
                    audio = Some(number);
                    continue;
                }
                ("video", "h264" | "h265") => Corruption::OtherTrack { what: "video" },
                ("audio", "mpeg4-generic") => Corruption::OtherTrack { what: "audio" },
                ("video", _) => Corruption::VideoCodec {
                    name: name(),
                    choose: "H.264 or HEVC",
                },
                ("audio", _) => Corruption::AudioCodec { name: name() },
                _ => continue,
            };
            self.damaged(left_out);
        }
        [video, audio].into_iter().flatten().collect()
    }

    pub(super) fn report(&self, encoder: Option<&str>) -> SessionReport {
        SessionReport {
            encoder: encoder.map(str::to_owned),
            damaged: self.damaged,
            last_damage: self.last_damage.as_ref().map(ToString::to_string),
            bytes_received: self.bytes_received,
            ..SessionReport::default()
        }
    }

    pub(super) fn video_frame(
        &mut self,
        streams: &[Stream],
        frame: VideoFrame,
        units: &mut Vec<Unit>,
    ) {
        if frame.loss() > 0 {
            self.damaged(Corruption::Lost {
                what: "video frame",
            });
        }
        self.bytes_received += frame.data().len() as u64;
        if self.video.is_none() || frame.has_new_parameters() {
            self.video_configuration(streams, frame.stream_id(), units);
        }
        let Some(config) = self.video.clone() else {
            return self.damaged(Corruption::NoConfiguration { what: "video" });
        };
        let (pts_90k, key) = (time_90k(frame.timestamp()), frame.is_random_access_point());
        let data = Bytes::from(frame.into_data());
        if let Err(error) = check_payload(&config, &data) {
            return self.damaged(Corruption::Media(error));
        }
        let video_frame = CodedFrame { pts_90k, key, data };
        self.decode_times
            .push(video_frame, config.may_reorder, &mut self.video_frames);
        units.extend(self.video_frames.drain(..).map(Unit::Video));
    }

    pub(super) fn audio(&mut self, streams: &[Stream], frame: &AudioFrame, units: &mut Vec<Unit>) {
        if frame.loss() > 0 {
            self.damaged(Corruption::Lost {
                what: "audio frame",
            });
        }
        self.bytes_received += frame.data().len() as u64;
        if self.audio.is_none() {
            self.audio_configuration(streams, frame.stream_id(), units);
        }
        if self.audio.is_none() {
            return self.damaged(Corruption::NoConfiguration { what: "audio" });
        }
        units.push(Unit::Audio(AudioUnit {
            pts_90k: time_90k(frame.timestamp()),
            data: Bytes::copy_from_slice(frame.data()),
        }));
    }

    /// Passes on the frames that wait for their decode times.
    pub(super) fn flush(&mut self, units: &mut Vec<Unit>) {
        self.decode_times.start_over(&mut self.video_frames);
        units.extend(self.video_frames.drain(..).map(Unit::Video));
    }

    fn video_configuration(&mut self, streams: &[Stream], stream: usize, units: &mut Vec<Unit>) {
        let Some(ParametersRef::Video(parameters)) =
            streams.get(stream).and_then(Stream::parameters)
        else {
            return;
        };
        let codec = match parameters.codec_params() {
            VideoParametersCodec::H264 { .. } => VideoCodec::Avc,
            VideoParametersCodec::H265 { .. } => VideoCodec::Hevc,
            _ => return,
        };
        let record = Bytes::copy_from_slice(parameters.extra_data());
        if self
            .video
            .as_ref()
            .is_some_and(|known| known.record == record)
        {
            return;
        }
        match VideoConfig::parse(codec, record) {
            Ok(config) => {
                // Frames of the old configuration come before the new one.
                self.flush(units);
                let config = Arc::new(config);
                self.video = Some(Arc::clone(&config));
                units.push(Unit::VideoConfig(config));
            }
            Err(error) => self.damaged(Corruption::Media(error)),
        }
    }

    fn audio_configuration(&mut self, streams: &[Stream], stream: usize, units: &mut Vec<Unit>) {
        let Some(ParametersRef::Audio(parameters)) =
            streams.get(stream).and_then(Stream::parameters)
        else {
            return;
        };
        let record = Bytes::copy_from_slice(parameters.extra_data());
        match AudioConfig::parse(AudioCodec::Aac, record) {
            Ok(config) => {
                let config = Arc::new(config);
                self.audio = Some(Arc::clone(&config));
                units.push(Unit::AudioConfig(config));
            }
            Err(error) => self.damaged(Corruption::Media(error)),
        }
    }

    fn damaged(&mut self, corruption: Corruption) {
        self.damaged += 1;
        self.last_damage = Some(corruption);
    }
}

/// Returns the time since the source's own zero, which its streams share.
fn time_90k(timestamp: Timestamp) -> i64 {
    let ticks = i128::from(timestamp.elapsed()) * i128::from(CLOCK_90K);
    (ticks / i128::from(timestamp.clock_rate().get())) as i64
}
