//! Copied video rendition of an HLS asset: the source's own H.264 frames, checked once, then repackaged as they are.

use std::sync::Arc;

use bytes::Bytes;
use gstreamer as gst;
use parking_lot::Mutex;
use sluice_media::{
    av::{MediaFacts, Report},
    codec::{VideoCodec, VideoConfig},
    hls::vod::{CodedFrame, SegmentBoundaries, VideoRendition, VideoSegmenter},
    task::Failure,
};

use super::{
    super::{
        drive,
        graph::{BranchKind, Graph, Want},
        internal, refused,
        sink::{filter, make},
        source::Input,
    },
    rendition_file::RenditionFile,
    scan::{CopyableSource, Scan},
    unit::{Unit, UnitSink, configuration, sink_to},
    work::LadderTask,
};

/// A last frame of unknown duration.
const VIDEO_FRAME_90K: i64 = 3_000;

/// A source that can be copied.
#[derive(Debug)]
pub(super) struct Copied {
    found: CopyableSource,
    record: Bytes,
}

/// Reads all coded frames; `None`: they have to be encoded.
pub(super) fn look(
    input: &Input,
    facts: &MediaFacts,
    segment_duration_s: u32,
    on_report: &mut dyn FnMut(Report),
) -> Result<Option<Copied>, Failure> {
    // The look is work of its own, so that what ends it does not end the rest.
    let (work, _reports) = LadderTask::new();
    let look = Arc::new(Mutex::new(LookAhead {
        scan: Some(Scan::new(segment_duration_s)),
        record: None,
        is_unfit: false,
    }));
    let looked = read(input, facts, look.clone(), &work, &mut |_| {
        on_report(Report::Working { share: 0.0 });
    });
    let mut look = look.lock();
    if look.is_unfit {
        return Ok(None);
    }
    looked?;
    let cuts = look.scan.take().map(Scan::finish);
    let (Some(Ok(found)), Some(record)) = (cuts, look.record.take()) else {
        return Ok(None);
    };
    if VideoConfig::parse(VideoCodec::Avc, record.clone()).is_err() {
        return Ok(None);
    }
    Ok(Some(Copied { found, record }))
}

/// Runs the coded frames of a source into a taker.
fn read<T: UnitSink>(
    input: &Input,
    facts: &MediaFacts,
    taker: Arc<Mutex<T>>,
    work: &LadderTask,
    on_report: &mut dyn FnMut(Report),
) -> Result<(), Failure> {
    let graph = Graph::parse(input, facts, Want::VIDEO, None)?;
    let units = gst::Caps::builder("video/x-h264")
        .field("stream-format", "avc")
        .field("alignment", "au")
        .build();
    let chain = [
        make("h264parse")?,
        filter(&units)?,
        sink_to(taker, work.clone()),
    ];
    graph.add_chain(&chain.iter().collect::<Vec<_>>())?;
    graph.link(BranchKind::Video, &chain[0])?;
    drive::run(&graph, facts.duration_s().unwrap_or(0.0), on_report)
}

struct LookAhead {
    scan: Option<Scan>,
    record: Option<Bytes>,
    is_unfit: bool,
}

impl LookAhead {
    fn stop(&mut self) -> Failure {
        self.is_unfit = true;
        refused("its frames cannot be copied")
    }
}

impl UnitSink for LookAhead {
    fn take(&mut self, caps: &gst::CapsRef, unit: Unit) -> Result<(), Failure> {
        let record = configuration(caps)?;
        // Another configuration needs another init section.
        if *self.record.get_or_insert_with(|| record.clone()) != record {
            return Err(self.stop());
        }
        let Some(pts_90k) = unit.pts_90k else {
            return Err(self.stop());
        };
        let Some(scan) = &mut self.scan else {
            return Ok(());
        };
        let end_90k = pts_90k + unit.duration_90k.unwrap_or(VIDEO_FRAME_90K);
        let bytes = unit.data.len() as u64;
        scan.observe(pts_90k, end_90k, unit.key, bytes)
            .map_err(|_| self.stop())
    }
}

impl Copied {
    pub(super) fn cuts(&self) -> SegmentBoundaries {
        self.found.cuts.clone()
    }

    /// Repackages the frames from segment `first` on.
    pub(super) fn perform(
        &self,
        input: &Input,
        facts: &MediaFacts,
        first: u32,
        rendition_files: &[Arc<RenditionFile>],
    ) -> Result<(), Failure> {
        let rendition_file = rendition_files
            .first()
            .ok_or_else(|| internal("a copied rendition has no file"))?;
        let config = VideoConfig::parse(VideoCodec::Avc, self.record.clone())
            .map_err(|_| refused("its frames cannot be copied"))?;
        let nal_length_size = usize::from(config.nal_length_size);
        let rate = facts
            .video_track()
            .and_then(|track| track.frames_per_second());
        let rendition = VideoRendition {
            config,
            frame_rate: rate,
            delay_90k: self.found.delay_90k,
            cuts: self.cuts(),
        };
        let segmenter = VideoSegmenter::new(rendition, first);
        let (init, info) = segmenter.init();
        rendition_file.begin(&init, info, true)?;
        let copier = Arc::new(Mutex::new(Copier {
            from_90k: self.found.cuts.start_90k(first),
            is_first: true,
            has_begun: false,
            nal_length_size,
            rendition_file: rendition_file.clone(),
            segmenter: Some(segmenter),
        }));
        let work = rendition_file.work();
        read(input, facts, copier.clone(), work, &mut |report| {
            work.send(report);
        })?;
        let mut copier = copier.lock();
        let last = match copier.segmenter.take() {
            Some(segmenter) => segmenter
                .finish(self.found.end_90k)
                .map_err(|_| refused("the times of its frames do not follow one another"))?,
            None => None,
        };
        last.map_or(Ok(()), |segment| rendition_file.store(&segment))
    }
}

/// Makes segments of a source's frames.
struct Copier {
    from_90k: i64,
    is_first: bool,
    /// Frames from `from_90k` on have come.
    has_begun: bool,
    nal_length_size: usize,
    rendition_file: Arc<RenditionFile>,
    segmenter: Option<VideoSegmenter>,
}

impl UnitSink for Copier {
    fn take(&mut self, _: &gst::CapsRef, unit: Unit) -> Result<(), Failure> {
        // The first frame is shown from the beginning on.
        let pts_90k = match std::mem::take(&mut self.is_first) {
            true => 0,
            false => unit.pts_90k.unwrap_or(0).max(0),
        };
        self.has_begun |= unit.key && pts_90k >= self.from_90k;
        let Some(segmenter) = self.segmenter.as_mut().filter(|_| self.has_begun) else {
            return Ok(());
        };
        let video_frame = CodedFrame {
            pts_90k,
            key: unit.key,
            data: without_parameter_sets(unit.data, self.nal_length_size),
        };
        let made = segmenter
            .push(video_frame)
            .map_err(|_| refused("the times of its frames do not follow one another"))?;
        made.map_or(Ok(()), |segment| self.rendition_file.store(&segment))
    }
}

/// Removes parameter sets that are in the track's configuration (`avc1`, ISO/IEC 14496-15 §5.4.2.1): parsers repeat
/// them before key frames.
fn without_parameter_sets(video_frame: Bytes, length_size: usize) -> Bytes {
    let units: Vec<&[u8]> = units(&video_frame, length_size).collect();
    let is_set = |unit: &&[u8]| matches!(unit[length_size] & 0x1f, 7 | 8);
    if !units.iter().any(is_set) {
        return video_frame;
    }
    let kept: Vec<&[u8]> = units.into_iter().filter(|unit| !is_set(unit)).collect();
    Bytes::from(kept.concat())
}

/// The NAL units of a frame, with their lengths; what is malformed ends them.
fn units(mut rest: &[u8], length_size: usize) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = rest.get(..length_size)?.iter();
        let length = length.fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
        let whole = length_size.checked_add(length).filter(|_| length > 0)?;
        let (unit, after) = rest.split_at_checked(whole)?;
        rest = after;
        Some(unit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_sets_are_taken_out() {
        let cases: &[(&[u8], &[u8])] = &[
            (&[], &[]),
            (&[0, 0, 0, 2, 0x65, 9], &[0, 0, 0, 2, 0x65, 9]),
            (
                &[0, 0, 0, 1, 0x67, 0, 0, 0, 1, 0x68, 0, 0, 0, 2, 0x65, 9],
                &[0, 0, 0, 2, 0x65, 9],
            ),
            (&[0, 0, 0, 9, 0x67], &[0, 0, 0, 9, 0x67]),
            (&[0, 0, 0, 0, 0x67], &[0, 0, 0, 0, 0x67]),
        ];
        for (video_frame, expected) in cases {
            let kept = without_parameter_sets(Bytes::copy_from_slice(video_frame), 4);
            assert_eq!(kept.as_ref(), *expected, "{video_frame:?}");
        }
    }
}
