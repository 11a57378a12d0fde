//! FLV tags of RTMP, legacy and enhanced, to access units: which frames are key frames, which track is carried.
//!
//! Corrupt tags and codecs that are not carried are left out and named, never passed on. A configuration is passed on
//! when it differs from the one before, because encoders repeat it.

mod aggregate;
mod audio;
mod cursor;
mod enhanced;
mod video;

pub use crate::corruption::Corruption;
pub use aggregate::{Aggregate, SubTag};

use std::{borrow::Cow, sync::Arc};

use bytes::{Buf, Bytes};
use sluice_media::{
    codec::{AudioCodec, AudioConfig, VideoCodec, VideoConfig, check_payload},
    unit::{AudioUnit, Unit, VideoUnit},
};

/// Ticks of the 90 kHz clock in a millisecond.
const TICKS_PER_MS: i64 = 90;
/// An AV1 temporal delimiter with its size byte; samples in ISO files go without.
const AV1_TEMPORAL_DELIMITER: [u8; 2] = [0x12, 0x00];

/// Parsed tag; its bytes are `range` of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tag<C> {
    codec: C,
    track: u8,
    /// True when further tracks in the same message were skipped.
    has_other_tracks: bool,
    /// Offset to be added to the message's timestamp.
    offset_ns: u32,
    packet: Packet,
    range: std::ops::Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packet {
    Configuration,
    /// A video frame or an audio frame; `cts_ms` is 0 for audio.
    Frame {
        cts_ms: i32,
        key: bool,
    },
}

/// Turns the tags of one session into units.
#[derive(Debug, Default)]
pub struct Demuxer {
    video: Option<Arc<VideoConfig>>,
    audio: Option<Arc<AudioConfig>>,
    /// The track that is carried: the first that was seen.
    video_track: Option<u8>,
    audio_track: Option<u8>,
    /// Bits of the last MP3 frame's header that make up a configuration.
    mp3_header: [u8; 3],
}

impl Demuxer {
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads one video body. `Ok` where nothing was corrupt, which includes bodies that hold nothing for a decoder.
    pub fn video(
        &mut self,
        time_ms: i64,
        mut body: Bytes,
        units: &mut Vec<Unit>,
    ) -> Result<(), Corruption> {
        let Some(tag) = video::parse(&body, self.video_track)? else {
            return Ok(());
        };
        self.video_track = Some(tag.track);
        cut(&mut body, &tag.range);
        match tag.packet {
            Packet::Configuration => self.video_configuration(tag.codec, body, units)?,
            Packet::Frame { cts_ms, key } => {
                let time_90k = time_90k(time_ms, tag.offset_ns);
                self.video_frame(tag.codec, time_90k, cts_ms, key, body, units)?;
            }
        }
        others("video", tag.has_other_tracks)
    }

    /// Reads one audio body, under the same rules.
    pub fn audio(
        &mut self,
        time_ms: i64,
        mut body: Bytes,
        units: &mut Vec<Unit>,
    ) -> Result<(), Corruption> {
        let Some(tag) = audio::parse(&body, self.audio_track)? else {
            return Ok(());
        };
        self.audio_track = Some(tag.track);
        cut(&mut body, &tag.range);
        match tag.packet {
            Packet::Configuration => self.audio_configuration(tag.codec, body, units)?,
            Packet::Frame { .. } => {
                let time_90k = time_90k(time_ms, tag.offset_ns);
                self.audio_frame(tag.codec, time_90k, body, units)?;
            }
        }
        others("audio", tag.has_other_tracks)
    }

    fn video_configuration(
        &mut self,
        codec: VideoCodec,
        record: Bytes,
        units: &mut Vec<Unit>,
    ) -> Result<(), Corruption> {
        let known = |c: &Arc<VideoConfig>| c.codec == codec && c.record == record;
        if self.video.as_ref().is_some_and(known) {
            return Ok(());
        }
        let config = VideoConfig::parse(codec, copied(&record)).map_err(Corruption::Media)?;
        let config = Arc::new(config);
        self.video = Some(Arc::clone(&config));
        units.push(Unit::VideoConfig(config));
        Ok(())
    }

    fn video_frame(
        &self,
        codec: VideoCodec,
        dts_90k: i64,
        cts_ms: i32,
        flagged_key: bool,
        mut data: Bytes,
        units: &mut Vec<Unit>,
    ) -> Result<(), Corruption> {
        let Some(config) = self.video.as_ref().filter(|c| c.codec == codec) else {
            return Err(Corruption::NoConfiguration { what: "video" });
        };
        if codec == VideoCodec::Av1 && data.starts_with(&AV1_TEMPORAL_DELIMITER) {
            data.advance(AV1_TEMPORAL_DELIMITER.len());
        }
        if data.is_empty() {
            return Ok(());
        }
        let facts = check_payload(config, &data).map_err(Corruption::Media)?;
        // Encoders set the flag wrongly in both directions. Without an IDR frame, the flag is trusted only together
        // with parameter sets, by which streams with open GOPs show their entry points.
        let is_entry_point = flagged_key && facts.has_slice && facts.has_parameter_sets;
        let key = facts.has_idr || is_entry_point;
        units.push(Unit::Video(VideoUnit {
            dts_90k,
            cts_90k: cts_ms * TICKS_PER_MS as i32,
            key,
            data,
        }));
        Ok(())
    }

    fn audio_configuration(
        &mut self,
        codec: AudioCodec,
        record: Bytes,
        units: &mut Vec<Unit>,
    ) -> Result<(), Corruption> {
        let config = AudioConfig::parse(codec, copied(&record)).map_err(Corruption::Media)?;
        self.announce_audio(config, units);
        Ok(())
    }

    fn audio_frame(
        &mut self,
        codec: AudioCodec,
        pts_90k: i64,
        data: Bytes,
        units: &mut Vec<Unit>,
    ) -> Result<(), Corruption> {
        if data.is_empty() {
            return Ok(());
        }
        if codec == AudioCodec::Mp3 {
            self.mp3_configuration(&data, units)?;
        }
        if self.audio.as_ref().is_none_or(|c| c.codec != codec) {
            return Err(Corruption::NoConfiguration { what: "audio" });
        }
        units.push(Unit::Audio(AudioUnit { pts_90k, data }));
        Ok(())
    }

    /// Derives the MP3 configuration, which every frame's header repeats.
    fn mp3_configuration(&mut self, frame: &[u8], units: &mut Vec<Unit>) -> Result<(), Corruption> {
        let Some(&[_, version, rate, mode]) = frame.first_chunk::<4>() else {
            return Err(Corruption::Truncated { what: "MP3 frame" });
        };
        let header = [version & 0xFE, rate & 0x0C, mode & 0xC0];
        let is_mp3 = self
            .audio
            .as_ref()
            .is_some_and(|c| c.codec == AudioCodec::Mp3);
        if is_mp3 && header == self.mp3_header {
            return Ok(());
        }
        let config = AudioConfig::from_mp3_frame(frame).map_err(Corruption::Media)?;
        self.mp3_header = header;
        self.announce_audio(config, units);
        Ok(())
    }

    fn announce_audio(&mut self, config: AudioConfig, units: &mut Vec<Unit>) {
        if self.audio.as_deref() == Some(&config) {
            return;
        }
        let config = Arc::new(config);
        self.audio = Some(Arc::clone(&config));
        units.push(Unit::AudioConfig(config));
    }
}

fn time_90k(time_ms: i64, offset_ns: u32) -> i64 {
    time_ms * TICKS_PER_MS + i64::from(offset_ns) * TICKS_PER_MS / 1_000_000
}

/// Copies a configuration, which lives as long as the session: a slice would keep its whole read buffer.
fn copied(record: &Bytes) -> Bytes {
    Bytes::copy_from_slice(record)
}

fn cut(body: &mut Bytes, range: &std::ops::Range<usize>) {
    body.truncate(range.end);
    body.advance(range.start);
}

fn others(what: &'static str, has_other_tracks: bool) -> Result<(), Corruption> {
    match has_other_tracks {
        true => Err(Corruption::OtherTrack { what }),
        false => Ok(()),
    }
}

/// The usual name of a codec by its FourCC, or the FourCC itself.
fn fourcc_name(fourcc: [u8; 4]) -> Cow<'static, str> {
    match &fourcc {
        b"vp08" => "VP8".into(),
        b"vp09" => "VP9".into(),
        b"vvc1" => "VVC".into(),
        b"ac-3" => "AC-3".into(),
        b"ec-3" => "E-AC-3".into(),
        b"fLaC" => "FLAC".into(),
        other => other.escape_ascii().to_string().into(),
    }
}

#[cfg(test)]
mod tests;
