//! Video renditions of an HLS asset: planned, then encoded from one decode, or copied; frame rate, deinterlacing,
//! rotation.

use std::sync::Arc;

use gst::prelude::*;
use gstreamer as gst;
use parking_lot::Mutex;
use sluice_media::{
    av::{
        Ladder, LadderVideo, MediaFacts, Range, Report, VideoTrack,
        ladder::{self as plan, Groups},
    },
    codec::{VideoCodec, VideoConfig},
    hls::vod::{CodedFrame, FrameClock, SegmentBoundaries, VideoRendition, VideoSegmenter},
    task::Failure,
};

use super::{
    super::{
        drive,
        graph::{BranchKind, Graph, Want},
        internal, refused, scaler,
        sink::{filter, make},
        source::Input,
    },
    copy,
    drawing::Drawing,
    encoder, metronome,
    rendition_file::RenditionFile,
    unit::{Unit, UnitSink, configuration, sink_to},
};

/// Decoded frames that wait for a rendition's encoder.
const WAITING_FRAMES: u32 = 4;

/// Strategy of the frames' renditions.
#[derive(Debug)]
pub(super) enum Plan {
    Copy(copy::Copied),
    Encode(FrameTiming),
}

/// Presentation times of frames, and their cuts.
#[derive(Clone, Debug)]
pub(super) struct FrameTiming {
    rate: (u32, u32),
    groups: Groups,
    cuts: SegmentBoundaries,
}

/// Looks at the source as far as it takes to know; `None`: there are no frames to make.
pub(super) fn plan(
    ladder: &Ladder,
    input: &Input,
    facts: &MediaFacts,
    on_report: &mut dyn FnMut(Report),
) -> Result<Option<Plan>, Failure> {
    let Some(track) = facts.video_track().filter(|_| !ladder.video.is_empty()) else {
        return match ladder.video.is_empty() {
            true => Ok(None),
            false => Err(internal(
                "renditions of frames were asked for that are not there",
            )),
        };
    };
    if matches!(ladder.video.as_slice(), [only] if only.copy)
        && let Some(copied) = copy::look(input, facts, ladder.segment_duration_s, on_report)?
    {
        return Ok(Some(Plan::Copy(copied)));
    }
    let rate = plan::rate(track);
    Ok(Some(Plan::Encode(FrameTiming {
        rate,
        groups: plan::groups(rate, ladder.segment_duration_s),
        cuts: plan::cuts(rate, ladder.segment_duration_s),
    })))
}

impl Plan {
    pub(super) fn cuts(&self) -> SegmentBoundaries {
        match self {
            Self::Copy(copied) => copied.cuts(),
            Self::Encode(timing) => timing.cuts.clone(),
        }
    }

    /// Makes all renditions of the frames, from where the ladder resumes, and what is drawn of those that are decoded.
    pub(super) fn perform(
        self,
        ladder: &Ladder,
        input: &Input,
        facts: &MediaFacts,
        rendition_files: &[Arc<RenditionFile>],
        drawing: Option<&Drawing>,
    ) -> Result<(), Failure> {
        let first = match ladder.resume {
            Some(resume) if self.cuts().start_90k(resume.number) == resume.at_90k => resume.number,
            Some(_) => return Err(internal("a ladder cannot resume where no segment begins")),
            None => 0,
        };
        match self {
            Self::Copy(copied) => copied.perform(input, facts, first, rendition_files),
            Self::Encode(timing) => {
                let drawing = drawing.filter(|_| first == 0);
                let source = EncoderInput { input, facts };
                encode(&timing, first, ladder, source, rendition_files, drawing)
            }
        }
    }
}

/// Input of the encoders.
#[derive(Clone, Copy)]
struct EncoderInput<'s> {
    input: &'s Input,
    facts: &'s MediaFacts,
}

fn encode(
    timing: &FrameTiming,
    first: u32,
    ladder: &Ladder,
    EncoderInput { input, facts }: EncoderInput<'_>,
    rendition_files: &[Arc<RenditionFile>],
    drawing: Option<&Drawing>,
) -> Result<(), Failure> {
    let clock = FrameClock::new(timing.rate);
    let start_90k = timing.cuts.start_90k(first);
    let graph = Graph::decode(input, facts, Want::VIDEO, from(start_90k, clock))?;
    let tee = prepare(&graph, facts, timing.rate)?;
    if let Some(pad) = tee.static_pad("sink") {
        let offset = clock.nearest(start_90k);
        metronome::keep_time(&pad, clock, timing.groups.video_frames, offset);
        if let Some(drawing) = drawing {
            drawing.watch(&pad, clock);
        }
    }
    let mut makers = Vec::with_capacity(ladder.video.len());
    for (rung, rendition_file) in ladder.video.iter().zip(rendition_files) {
        makers.push(add_rung(&graph, &tee, rung, rendition_file, timing, first)?);
    }
    let whole_s = facts.duration_s().unwrap_or(0.0);
    let start_s = start_90k as f64 / 90_000.0;
    let work = rendition_files
        .first()
        .map(|rendition_file| rendition_file.work().clone());
    drive::run(&graph, (whole_s - start_s).max(0.0), &mut |report| {
        if let (Some(work), Report::Working { share }) = (&work, report) {
            work.send(Report::Working {
                share: of_whole(share, start_s, whole_s),
            });
        }
    })?;
    drop(graph);
    makers.iter().try_for_each(|maker| {
        let mut maker = maker.lock();
        maker.finish()
    })
}

/// Returns the share of the whole for a share of the part behind `start_s`.
fn of_whole(share: f32, start_s: f64, whole_s: f64) -> f32 {
    if whole_s <= start_s {
        return share;
    }
    let before = (start_s / whole_s) as f32;
    before + share * (1.0 - before)
}

/// Returns a range from a frame on. It begins a quarter of a frame behind the frame's begin: where timestamps are
/// rounded, the frame before it would else come too.
fn from(start_90k: i64, clock: FrameClock) -> Option<Range> {
    (start_90k > 0).then(|| Range {
        start_s: (start_90k as f64 + clock.at_90k(1) as f64 / 4.0) / 90_000.0,
        duration_s: None,
        accurate: true,
    })
}

/// Upright frames at the constant rate, for all renditions.
fn prepare(graph: &Graph, facts: &MediaFacts, rate: (u32, u32)) -> Result<gst::Element, Failure> {
    let mut chain = Vec::new();
    if facts
        .video_track()
        .is_some_and(|track: &VideoTrack| track.interlaced)
    {
        let progressive = make("deinterlace")?;
        // One frame for each frame, not for each field.
        progressive.set_property_from_str("fields", "top");
        chain.push(progressive);
    }
    let upright = make("videoflip")?;
    upright.set_property_from_str("video-direction", "auto");
    let [numerator, denominator] = [rate.0, rate.1].map(|side| side.min(i32::MAX as u32) as i32);
    let caps = gst::Caps::builder("video/x-raw")
        .field("format", "I420")
        .field("framerate", gst::Fraction::new(numerator, denominator))
        .build();
    let tee = make("tee")?;
    chain.extend([
        make("videorate")?,
        upright,
        make("videoconvert")?,
        filter(&caps)?,
        tee.clone(),
    ]);
    graph.add_chain(&chain.iter().collect::<Vec<_>>())?;
    metronome::simplify_segments(&chain[0]);
    metronome::complete_times(&chain[0], FrameClock::new(rate));
    graph.link(BranchKind::Video, &chain[0])?;
    Ok(tee)
}

fn add_rung(
    graph: &Graph,
    tee: &gst::Element,
    rung: &LadderVideo,
    rendition_file: &Arc<RenditionFile>,
    timing: &FrameTiming,
    first: u32,
) -> Result<Arc<Mutex<VideoSegmentWriter>>, Failure> {
    let size = gst::Caps::builder("video/x-raw")
        .field("width", i32::try_from(rung.width).unwrap_or(i32::MAX))
        .field("height", i32::try_from(rung.height).unwrap_or(i32::MAX))
        .field("pixel-aspect-ratio", gst::Fraction::new(1, 1))
        .build();
    let queue = make("queue")?;
    queue.set_property("max-size-buffers", WAITING_FRAMES);
    queue.set_property("max-size-bytes", 0_u32);
    queue.set_property("max-size-time", 0_u64);
    let maker = Arc::new(Mutex::new(VideoSegmentWriter::new(
        timing,
        first,
        rendition_file,
    )));
    let chain = [
        queue,
        make(scaler::FACTORY)?,
        filter(&size)?,
        encoder::h264(rung, timing.groups)?,
        filter(&encoder::h264_caps(rung))?,
        sink_to(maker.clone(), rendition_file.work().clone()),
    ];
    graph.add_chain(&chain.iter().collect::<Vec<_>>())?;
    tee.link(&chain[0])
        .map_err(|error| internal(format!("a rendition cannot be linked: {error}")))?;
    Ok(maker)
}

/// Makes segments of an encoder's frames.
struct VideoSegmentWriter {
    clock: FrameClock,
    rate: f64,
    cuts: SegmentBoundaries,
    first: u32,
    /// Index of the frame with which this run begins.
    offset: u64,
    /// Behind the last frame so far.
    next: u64,
    rendition_file: Arc<RenditionFile>,
    segmenter: Option<VideoSegmenter>,
}

impl VideoSegmentWriter {
    fn new(timing: &FrameTiming, first: u32, rendition_file: &Arc<RenditionFile>) -> Self {
        let clock = FrameClock::new(timing.rate);
        let offset = clock.nearest(timing.cuts.start_90k(first));
        Self {
            clock,
            rate: f64::from(timing.rate.0) / f64::from(timing.rate.1),
            cuts: timing.cuts.clone(),
            first,
            offset,
            next: offset,
            rendition_file: rendition_file.clone(),
            segmenter: None,
        }
    }

    /// The segmenter, once the encoder has said what it writes.
    fn segmenter(&mut self, caps: &gst::CapsRef) -> Result<&mut VideoSegmenter, Failure> {
        if self.segmenter.is_none() {
            let config = VideoConfig::parse(VideoCodec::Avc, configuration(caps)?)
                .map_err(|_| refused("its frames cannot be encoded"))?;
            let rendition = VideoRendition {
                config,
                frame_rate: Some(self.rate),
                delay_90k: u32::try_from(self.clock.at_90k(encoder::REORDERED)).unwrap_or(0),
                cuts: self.cuts.clone(),
            };
            let segmenter = VideoSegmenter::new(rendition, self.first);
            let (init, info) = segmenter.init();
            self.rendition_file.begin(&init, info, false)?;
            self.segmenter = Some(segmenter);
        }
        Ok(self.segmenter.as_mut().expect("it was just made"))
    }

    fn finish(&mut self) -> Result<(), Failure> {
        let end_90k = self.clock.at_90k(self.next);
        let last = match self.segmenter.take() {
            Some(segmenter) => segmenter
                .finish(end_90k)
                .map_err(|_| refused("the times of its frames do not follow one another"))?,
            None => None,
        };
        last.map_or(Ok(()), |segment| self.rendition_file.store(&segment))
    }
}

impl UnitSink for VideoSegmentWriter {
    fn take(&mut self, caps: &gst::CapsRef, unit: Unit) -> Result<(), Failure> {
        let pts_90k = unit
            .pts_90k
            .ok_or_else(|| refused("a frame came without its time"))?;
        let index = self.offset + self.clock.nearest(pts_90k);
        self.next = self.next.max(index + 1);
        let video_frame = CodedFrame {
            pts_90k: self.clock.at_90k(index),
            key: unit.key,
            data: unit.data,
        };
        let made = self
            .segmenter(caps)?
            .push(video_frame)
            .map_err(|_| refused("the times of its frames do not follow one another"))?;
        made.map_or(Ok(()), |segment| self.rendition_file.store(&segment))
    }
}
