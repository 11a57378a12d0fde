//! Segments of a video stream's audio rendition: cuts at the frame nearest to the video's boundaries, silence in holes.
//!
//! Frames are on live's sample clock ([`AudioTrack`]), held closer to the timestamps. Holes are filled with silence, so
//! that no segment is missing.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    super::{StreamInfo, audio::AudioTrack, fragment, init},
    MadeSegment, SegmentBoundaries,
};
use crate::codec::AudioConfig;

/// 20 ms: frames that stray further from their timestamps are set again.
const STRAY_90K: i64 = 1_800;
/// Longest silence that is made, a day; a longer hole is corruption.
const MAX_SILENCE_90K: i64 = 86_400 * 90_000;
/// Silent AAC-LC frame of a channel pair (ISO/IEC 14496-3 §4.4.2.1): both channels without a section.
const SILENT_STEREO: &[u8] = &[0x21, 0x00, 0x49, 0x90, 0x02, 0x19, 0x00, 0x23, 0x80];

/// Cuts the audio rendition into segments.
#[derive(Debug)]
pub struct AudioSegmenter {
    config: Arc<AudioConfig>,
    track: AudioTrack,
    cuts: SegmentBoundaries,
    number: u32,
    start_90k: i64,
}

impl AudioSegmenter {
    /// Begins audio of AAC-LC in two channels at the asset's beginning.
    pub fn new(config: AudioConfig, cuts: SegmentBoundaries) -> Self {
        let config = Arc::new(config);
        Self {
            track: AudioTrack::new(config.clone(), 0),
            config,
            cuts,
            number: 0,
            start_90k: 0,
        }
    }

    /// The init section and what playlists say of it.
    pub fn init(&self) -> (Bytes, StreamInfo) {
        let info = init::stream_info(None, Some(&self.config), None);
        (init::encode(None, Some(&self.config), 0), info)
    }

    /// Takes the next frame; the segments that it ends.
    pub fn push(&mut self, pts_90k: i64, data: Bytes) -> Vec<MadeSegment> {
        let mut made = Vec::new();
        self.fill(pts_90k, &mut made);
        self.place(pts_90k, data, &mut made);
        made
    }

    /// The last segment, if frames are left.
    pub fn finish(mut self) -> Option<MadeSegment> {
        let end_90k = self.track.end_90k()?;
        self.close(end_90k)
    }

    /// Puts silence where at least a frame of it has room before `until_90k`.
    fn fill(&mut self, until_90k: i64, made: &mut Vec<MadeSegment>) {
        let frame = self.track.frame_90k();
        let until_90k = until_90k.min(self.end_90k().saturating_add(MAX_SILENCE_90K));
        while self.end_90k() + frame <= until_90k - frame / 2 {
            let end_90k = self.end_90k();
            self.place(end_90k, Bytes::from_static(SILENT_STEREO), made);
            if self.end_90k() <= end_90k {
                return;
            }
        }
    }

    fn place(&mut self, pts_90k: i64, data: Bytes, made: &mut Vec<MadeSegment>) {
        let stray = (pts_90k - self.end_90k()).abs() > STRAY_90K;
        let half_frame = self.track.frame_90k() / 2;
        let next_start = self.cuts.start_90k(self.number.saturating_add(1));
        if self.end_90k().saturating_add(half_frame) >= next_start {
            let end_90k = self.end_90k();
            made.extend(self.close(end_90k));
        }
        self.track.push(pts_90k, stray, data);
    }

    fn end_90k(&self) -> i64 {
        self.track.end_90k().unwrap_or(0)
    }

    /// Ends the open segment with all collected audio, up to `end_90k`.
    fn close(&mut self, end_90k: i64) -> Option<MadeSegment> {
        let frames = self.track.take_before(i64::MAX);
        if frames.is_empty() {
            return None;
        }
        let (number, start_90k) = (self.number, self.start_90k);
        self.number = number.saturating_add(1);
        self.start_90k = end_90k;
        Some(MadeSegment {
            number,
            start_90k,
            duration_90k: u32::try_from(end_90k - start_90k).unwrap_or(u32::MAX),
            key_length: 0,
            data: fragment::encode(number.saturating_add(1), &[], &frames),
        })
    }
}
