//! Segments of a video stream's frames: cuts at key frames, composition offsets of B-frames, most bytes of a segment.
//!
//! A segment is two movie fragments: its key frame alone, to which an I-frame playlist points, then the rest. Decode
//! times are the segment's presentation times in rising order, so that a segment begins at its first frame on either
//! scale. Frames that are shown before ones that were decoded earlier would need negative composition offsets, which
//! some readers treat as a shift of the whole track: so all are increased by the reordering delay, and the init
//! section's edit list subtracts it.

use bytes::{Bytes, BytesMut};

use super::{
    super::{
        StreamInfo,
        fragment::{self, VideoSample},
        init,
    },
    MadeSegment, SegmentBoundaries,
};
use crate::{Error, codec::VideoConfig};

/// The most that is collected for one segment: 12 s at 340 Mbit/s.
pub const MAX_SEGMENT_BYTES: usize = 512 << 20;
/// Movie fragments of a segment: sequence numbers follow from the segment's number, so that they rise over a resume.
const FRAGMENTS: u32 = 2;

/// A coded frame, in decode order.
#[derive(Clone, Debug)]
pub struct CodedFrame {
    /// Presentation time on the asset's timeline.
    pub pts_90k: i64,
    /// A decoder can start here, and nothing after it refers to what came before.
    pub key: bool,
    /// NAL units, each behind its length in the size that the configuration declares.
    pub data: Bytes,
}

/// Cuts a video rendition into segments.
#[derive(Debug)]
pub struct VideoSegmenter {
    rendition: VideoRendition,
    number: u32,
    video_frames: Vec<CodedFrame>,
    bytes: usize,
}

/// A video rendition from its first segment to its last.
#[derive(Clone, Debug)]
pub struct VideoRendition {
    pub config: VideoConfig,
    /// Frames per second.
    pub frame_rate: Option<f64>,
    /// The most by which a frame is shown before its place in decode order.
    pub delay_90k: u32,
    pub cuts: SegmentBoundaries,
}

impl VideoSegmenter {
    /// `first`: the number of the first segment that is made; its first frame must be a key frame.
    pub fn new(rendition: VideoRendition, first: u32) -> Self {
        Self {
            rendition,
            number: first,
            video_frames: Vec::new(),
            bytes: 0,
        }
    }

    /// The init section, the same for the same configuration, and what playlists say of it.
    pub fn init(&self) -> (Bytes, StreamInfo) {
        let rendition = &self.rendition;
        let info = init::stream_info(Some(&rendition.config), None, rendition.frame_rate);
        (
            init::encode(Some(&rendition.config), None, rendition.delay_90k),
            info,
        )
    }

    /// Adds the next frame; returns the segment that it ends. [`Error::Invalid`] when no key frame is where a segment
    /// must begin.
    pub fn push(&mut self, video_frame: CodedFrame) -> Result<Option<MadeSegment>, Error> {
        let next_start = self.rendition.cuts.start_90k(self.number.saturating_add(1));
        let is_next = !self.video_frames.is_empty() && video_frame.pts_90k >= next_start;
        if (is_next || self.video_frames.is_empty()) && !video_frame.key {
            return Err(invalid(format!(
                "segment {} has no key frame at its beginning",
                self.number + u32::from(is_next)
            )));
        }
        self.bytes += video_frame.data.len();
        if self.bytes > MAX_SEGMENT_BYTES {
            return Err(invalid(format!(
                "a segment has more than {MAX_SEGMENT_BYTES} bytes"
            )));
        }
        let made = if is_next {
            self.bytes = video_frame.data.len();
            self.close(video_frame.pts_90k)?
        } else {
            None
        };
        self.video_frames.push(video_frame);
        Ok(made)
    }

    /// Returns the last segment, if frames are left; `end_90k` is the end of the last frame.
    pub fn finish(mut self, end_90k: i64) -> Result<Option<MadeSegment>, Error> {
        self.close(end_90k)
    }

    fn close(&mut self, end_90k: i64) -> Result<Option<MadeSegment>, Error> {
        let video_frames = std::mem::take(&mut self.video_frames);
        let Some(start_90k) = video_frames.first().map(|first| first.pts_90k) else {
            return Ok(None);
        };
        let samples = timed(video_frames, end_90k, self.rendition.delay_90k)?;
        let number = self.number;
        self.number = number.saturating_add(1);
        let sequence = number.saturating_mul(FRAGMENTS).saturating_add(1);
        let (key, rest) = samples.split_at(1);
        let key = fragment::encode(sequence, key, &[]);
        let key_length = key.len() as u64;
        let mut data = BytesMut::from(key);
        if !rest.is_empty() {
            data.extend_from_slice(&fragment::encode(sequence.saturating_add(1), rest, &[]));
        }
        let duration = samples.iter().map(|sample| sample.duration_90k).sum();
        Ok(Some(MadeSegment {
            number,
            start_90k,
            duration_90k: duration,
            key_length,
            data: data.freeze(),
        }))
    }
}

/// Gives frames in decode order their decode times and durations.
fn timed(
    video_frames: Vec<CodedFrame>,
    end_90k: i64,
    delay_90k: u32,
) -> Result<Vec<VideoSample>, Error> {
    let mut times: Vec<i64> = video_frames
        .iter()
        .map(|video_frame| video_frame.pts_90k)
        .collect();
    times.sort_unstable();
    let start_90k = video_frames[0].pts_90k;
    if times[0] != start_90k || start_90k < 0 {
        return Err(invalid("a frame is shown before its segment begins"));
    }
    let last = times[times.len() - 1];
    times.push(end_90k.max(last + 1));
    let span = |from: i64, to: i64| {
        u32::try_from(to - from).map_err(|_| invalid("its timestamps lie hours apart"))
    };
    video_frames
        .into_iter()
        .zip(times.windows(2))
        .map(|(video_frame, time)| {
            let cts = i32::try_from(video_frame.pts_90k - time[0] + i64::from(delay_90k));
            Ok(VideoSample {
                at_90k: time[0],
                duration_90k: span(time[0], time[1])?,
                cts_90k: cts.map_err(|_| invalid("its timestamps lie hours apart"))?,
                key: video_frame.key,
                data: video_frame.data,
            })
        })
        .collect()
}

fn invalid(reason: impl Into<String>) -> Error {
    Error::invalid("a rendition of the frames", reason)
}
