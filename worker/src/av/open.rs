//! Opens a graph: which tracks are taken, queues between them, the wait for first buffers (45 s), seeks to a range.

mod series;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use gst::{glib, prelude::*};
use gstreamer as gst;
use parking_lot::Mutex;
use sluice_media::{
    av::{MediaFacts, Range},
    task::{Failure, FailureCode},
};

use self::series::Series;
use super::{
    bus,
    graph::{Branch, BranchKind, Graph, Want},
    internal, movie, refused,
    sink::make,
    source::Input,
};

/// Time from the start until all branches have their first buffer, and again after a seek.
const READY_WITHIN: Duration = Duration::from_secs(45);
/// Interval at which the bus is read meanwhile.
const LOOK: Duration = Duration::from_millis(10);
/// Decoded frames that wait in a branch.
const WAITING_FRAMES: u32 = 4;
/// Decoded audio that waits in a branch: as long as an encoder of frames may look ahead.
const WAITING_AUDIO: gst::ClockTime = gst::ClockTime::from_seconds(20);
/// Coded bytes of one track that wait for those of another.
const WAITING_BYTES: u32 = 64 << 20;
/// Coded frames and blocks of audio that wait, unless another track has none.
const WAITING_UNITS: u32 = 200;

/// The container whose demultiplexer goes to a place and not to the key frame before it, so that frames are missing.
const LANDS_BEHIND: &str = "MPEG-PS";
/// Longer groups of frames are not met in it.
const LONGEST_GROUP_S: f64 = 5.0;

/// Depth to which tracks are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    Parse,
    Decode,
}

/// Opens an input; the branches that come back hold their first buffers.
pub(super) fn open(
    input: &Input,
    facts: &MediaFacts,
    want: Want,
    range: Option<Range>,
    depth: Depth,
) -> Result<Graph, Failure> {
    let wanted = wanted(facts, want)?;
    let lengthened = movie::lengthened(input);
    let skipped_s = lengthened.as_ref().map_or(0.0, |(_, skipped_s)| *skipped_s);
    let input = lengthened.as_ref().map_or(input, |(input, _)| input);
    let series = Series::of(facts, range);
    let is_series = series.is_some();
    let (graph, opening) = start(input, &wanted, depth, series)?;
    opening.wait(&graph.pipeline, facts)?;
    let graph = graph.with(opening.branches());
    let is_part = |range: &Range| range.start_s > 0.0 || range.duration_s.is_some();
    let range = range.filter(|range| is_part(range) && !is_series);
    if let Some(range) = range {
        opening.forget_buffers();
        let flags = match depth {
            Depth::Parse if !range.accurate => {
                gst::SeekFlags::KEY_UNIT | gst::SeekFlags::SNAP_BEFORE
            }
            _ => gst::SeekFlags::ACCURATE,
        };
        let stop_s = range.duration_s.map(|duration| range.start_s + duration);
        if let Some(stop_s) = stop_s.filter(|_| skipped_s > 0.0) {
            graph.end_at(stop_s);
        }
        // The demultiplexer stops too early by that.
        let stop_s = stop_s.map(|stop_s| stop_s + skipped_s);
        let flags = flags | gst::SeekFlags::FLUSH;
        if depth == Depth::Decode && facts.container == LANDS_BEHIND {
            let early_s = (range.start_s - LONGEST_GROUP_S).max(0.0);
            graph.send_seek(flags, early_s, stop_s)?;
            opening.wait(&graph.pipeline, facts)?;
            graph.begin_at(range.start_s);
        } else {
            graph.send_seek(flags, range.start_s, stop_s)?;
            opening.wait(&graph.pipeline, facts)?;
        }
    }
    Ok(graph)
}

fn wanted(facts: &MediaFacts, want: Want) -> Result<Vec<BranchKind>, Failure> {
    let mut wanted = Vec::new();
    if want.video && facts.video_track().is_some() {
        wanted.push(BranchKind::Video);
    }
    if want.audio && facts.audio_track().is_some() {
        wanted.push(BranchKind::Audio);
    }
    match (wanted.is_empty(), want.video) {
        (false, _) => Ok(wanted),
        (true, false) => Err(Failure::new(
            FailureCode::Impossible,
            "the file has no audio",
        )),
        (true, true) => Err(Failure::new(
            FailureCode::Impossible,
            "the file has no moving frame",
        )),
    }
}

fn start(
    input: &Input,
    wanted: &[BranchKind],
    depth: Depth,
    series: Option<Arc<Series>>,
) -> Result<(Graph, Arc<Opening>), Failure> {
    let graph = Graph::new();
    let pipeline = &graph.pipeline;
    let source = input.element();
    let opener = make(match depth {
        Depth::Parse => "parsebin",
        Depth::Decode => "decodebin",
    })?;
    if depth == Depth::Decode {
        opener.set_property("max-size-bytes", WAITING_BYTES);
        opener.set_property("max-size-buffers", WAITING_UNITS);
    }
    pipeline
        .add_many([&source, &opener])
        .and_then(|()| source.link(&opener))
        .map_err(|error| internal(error.to_string()))?;
    if let Some(series) = series.as_ref().filter(|_| depth == Depth::Decode) {
        series.listen(&opener);
    }
    let opening = Opening::new(wanted, depth, series);
    if depth == Depth::Parse {
        opening.gather(pipeline)?;
    }
    opening.listen(pipeline, &opener);
    match pipeline.set_state(gst::State::Paused) {
        Ok(_) => Ok((graph, opening)),
        Err(_) => {
            Err(bus::error_on(pipeline).unwrap_or_else(|| refused("its tracks do not begin")))
        }
    }
}

/// State of a graph that is opened. Streaming threads write it, the task's thread reads.
#[derive(Debug)]
struct Opening {
    depth: Depth,
    wanted: Vec<BranchKind>,
    /// Set for a chain: joins its parts.
    series: Option<Arc<Series>>,
    /// Set for a parsed graph: coded tracks wait for one another there.
    interleave: Mutex<Option<gst::Element>>,
    tracks: Mutex<Tracks>,
    /// True once no further track will come.
    is_complete: AtomicBool,
}

#[derive(Debug, Default)]
struct Tracks {
    /// Kind as which a track, by its stream's id, is taken; `None`: it is not.
    taken: HashMap<String, Option<BranchKind>>,
    held: Vec<HeldBranch>,
}

/// A branch that is held back.
#[derive(Debug)]
struct HeldBranch {
    pad: gst::Pad,
    kind: BranchKind,
    probe: Option<gst::PadProbeId>,
    /// True once it has its first buffer, or its end.
    is_ready: Arc<AtomicBool>,
}

impl Opening {
    fn new(wanted: &[BranchKind], depth: Depth, series: Option<Arc<Series>>) -> Arc<Self> {
        Arc::new(Self {
            depth,
            wanted: wanted.to_vec(),
            series,
            interleave: Mutex::new(None),
            tracks: Mutex::default(),
            is_complete: AtomicBool::new(false),
        })
    }

    /// Adds the queue that lets coded tracks wait for one another, as far apart as they may lie in the file.
    fn gather(&self, pipeline: &gst::Pipeline) -> Result<(), Failure> {
        let queue = make("multiqueue")?;
        queue.set_property("max-size-bytes", WAITING_BYTES);
        queue.set_property("max-size-buffers", WAITING_UNITS);
        queue.set_property("max-size-time", 0_u64);
        pipeline
            .add(&queue)
            .map_err(|error| internal(error.to_string()))?;
        *self.interleave.lock() = Some(queue);
        Ok(())
    }

    fn listen(self: &Arc<Self>, pipeline: &gst::Pipeline, opener: &gst::Element) {
        let containers = gst::ElementFactory::factories_with_type(
            gst::ElementFactoryType::DEMUXER,
            gst::Rank::MARGINAL,
        );
        let opening = self.clone();
        opener.connect("autoplug-continue", false, move |values| {
            let pad = values.get(1)?.get::<gst::Pad>().ok()?;
            let caps = values.get(2)?.get::<gst::Caps>().ok()?;
            let is_container = containers
                .iter()
                .any(|factory| factory.can_sink_any_caps(&caps));
            Some((is_container || opening.takes(&pad, &caps).is_some()).to_value())
        });
        let opening = self.clone();
        let weak = pipeline.downgrade();
        opener.connect_pad_added(move |_, pad| {
            let Some(pipeline) = weak.upgrade() else {
                return;
            };
            let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
            if let Some(kind) = opening.takes(pad, &caps)
                && let Err(error) = opening.hold(&pipeline, pad, kind)
            {
                gst::element_error!(pipeline, gst::CoreError::Pad, ["{error}"]);
            }
        });
        let opening = self.clone();
        opener.connect_no_more_pads(move |_| opening.is_complete.store(true, Ordering::Release));
    }

    /// Returns the kind as which a track is taken: the first of each wanted kind, and then always; of a chain, the
    /// audio of each part.
    fn takes(&self, pad: &gst::Pad, caps: &gst::Caps) -> Option<BranchKind> {
        let kind = kind_of(caps).filter(|kind| self.wanted.contains(kind));
        if self.series.is_some() {
            return kind;
        }
        let mut tracks = self.tracks.lock();
        let id = stream_id(pad);
        // A stream without a container has its id only behind its parser.
        if id.is_empty() {
            return kind;
        }
        if let Some(taken) = tracks.taken.get(&id) {
            return *taken;
        }
        let is_first = !tracks.taken.values().any(|taken| *taken == kind);
        let taken = kind.filter(|_| is_first);
        tracks.taken.insert(id, taken);
        taken
    }

    /// Makes a branch of a pad, held back at its end.
    fn hold(
        &self,
        pipeline: &gst::Pipeline,
        pad: &gst::Pad,
        kind: BranchKind,
    ) -> Result<(), glib::BoolError> {
        if let Some(series) = &self.series
            && series.resume(pad)?
        {
            return Ok(());
        }
        let (sink, source) = match self.depth {
            Depth::Decode => add_decoded_queue(pipeline, kind)?,
            Depth::Parse => self.coded_queue()?,
        };
        let is_ready = Arc::new(AtomicBool::new(false));
        let probe = block(&source, is_ready.clone());
        self.tracks.lock().held.push(HeldBranch {
            pad: source,
            kind,
            probe,
            is_ready,
        });
        if let Some(series) = &self.series {
            series.enter(&sink);
        }
        pad.link(&sink)
            .map_err(|error| glib::bool_error!("a track cannot be linked: {error}"))?;
        Ok(())
    }

    fn coded_queue(&self) -> Result<(gst::Pad, gst::Pad), glib::BoolError> {
        let queue = self.interleave.lock().clone();
        let sink = queue
            .as_ref()
            .and_then(|queue| queue.request_pad_simple("sink_%u"));
        let source = queue
            .zip(sink.as_ref())
            .and_then(|(queue, sink)| queue.static_pad(&sink.name().replacen("sink", "src", 1)));
        sink.zip(source)
            .ok_or_else(|| glib::bool_error!("no further track can be queued"))
    }

    /// Waits until every wanted branch has its first buffer or its end.
    fn wait(&self, pipeline: &gst::Pipeline, facts: &MediaFacts) -> Result<(), Failure> {
        let until = Instant::now() + READY_WITHIN;
        loop {
            bus::check(pipeline)?;
            // Asked before the branches: a track that comes last is there when this says so.
            let is_complete = self.is_complete.load(Ordering::Acquire);
            match self.first_missing() {
                None if self.are_ready() => return Ok(()),
                Some(kind) if is_complete => return Err(undecoded(kind, facts)),
                _ => {}
            }
            if Instant::now() > until {
                return Err(Failure::new(
                    FailureCode::TimedOut,
                    format!(
                        "the tracks of the file did not begin within {} seconds",
                        READY_WITHIN.as_secs()
                    ),
                ));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn first_missing(&self) -> Option<BranchKind> {
        let tracks = self.tracks.lock();
        let is_held = |kind: &BranchKind| tracks.held.iter().any(|held| held.kind == *kind);
        self.wanted.iter().copied().find(|kind| !is_held(kind))
    }

    fn are_ready(&self) -> bool {
        let is_ready = |held: &HeldBranch| held.is_ready.load(Ordering::Acquire);
        self.tracks.lock().held.iter().all(is_ready)
    }

    /// Branches become ready again with what comes after a seek.
    fn forget_buffers(&self) {
        for held in &self.tracks.lock().held {
            held.is_ready.store(false, Ordering::Release);
        }
    }

    fn branches(&self) -> Vec<(Branch, Option<gst::PadProbeId>)> {
        let mut tracks = self.tracks.lock();
        tracks
            .held
            .iter_mut()
            .map(|held| {
                let branch = Branch {
                    pad: held.pad.clone(),
                    kind: held.kind,
                };
                (branch, held.probe.take())
            })
            .collect()
    }
}

/// A queue for decoded buffers.
pub(super) fn decoded_queue(kind: BranchKind) -> Result<gst::Element, glib::BoolError> {
    let (buffers, bytes, time) = match kind {
        BranchKind::Video => (WAITING_FRAMES, 0, gst::ClockTime::ZERO),
        BranchKind::Audio => (0, WAITING_BYTES, WAITING_AUDIO),
    };
    gst::ElementFactory::make("queue")
        .property("max-size-buffers", buffers)
        .property("max-size-bytes", bytes)
        .property("max-size-time", time)
        .property("silent", true)
        .build()
}

/// Puts a queue for decoded buffers into a pipeline; its pads.
fn add_decoded_queue(
    pipeline: &gst::Pipeline,
    kind: BranchKind,
) -> Result<(gst::Pad, gst::Pad), glib::BoolError> {
    let queue = decoded_queue(kind)?;
    pipeline.add(&queue)?;
    queue.sync_state_with_parent()?;
    let pads = queue.static_pad("sink").zip(queue.static_pad("src"));
    pads.ok_or_else(|| glib::bool_error!("a queue without pads"))
}

/// Holds a pad at its first buffer or its end, and says when that has come.
fn block(pad: &gst::Pad, is_ready: Arc<AtomicBool>) -> Option<gst::PadProbeId> {
    let mask = gst::PadProbeType::BLOCK
        | gst::PadProbeType::BUFFER
        | gst::PadProbeType::BUFFER_LIST
        | gst::PadProbeType::EVENT_DOWNSTREAM;
    pad.add_probe(mask, move |_, info| {
        let is_header = info.event().is_some_and(|event| {
            !matches!(event.type_(), gst::EventType::Eos | gst::EventType::Gap)
        });
        if is_header {
            return gst::PadProbeReturn::Pass;
        }
        is_ready.store(true, Ordering::Release);
        gst::PadProbeReturn::Ok
    })
}

fn kind_of(caps: &gst::Caps) -> Option<BranchKind> {
    let name = caps.structure(0)?.name();
    match name.split('/').next() {
        Some("video" | "image") => Some(BranchKind::Video),
        Some("audio") => Some(BranchKind::Audio),
        _ => None,
    }
}

/// Returns the id of a track, from the demultiplexer to the end of its chain.
fn stream_id(pad: &gst::Pad) -> String {
    let inner = pad
        .downcast_ref::<gst::GhostPad>()
        .and_then(|ghost| ghost.target());
    let id = inner.as_ref().and_then(|inner| inner.stream_id());
    id.or_else(|| pad.stream_id())
        .map(String::from)
        .unwrap_or_default()
}

fn undecoded(kind: BranchKind, facts: &MediaFacts) -> Failure {
    let (what, codec) = match kind {
        BranchKind::Video => ("frames", facts.video_track().map(|track| &track.codec)),
        BranchKind::Audio => ("audio", facts.audio_track().map(|track| &track.codec)),
    };
    let codec = codec.map_or("unknown", String::as_str);
    Failure::new(
        FailureCode::UnsupportedType,
        format!("the {what} of the file cannot be decoded (codec: {codec})"),
    )
}
