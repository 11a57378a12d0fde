//! End of a conversion graph: the multiplexer of the format (MP4, MOV, MKV, WebM, Ogg), its queues, and the file.

use std::{
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use gst::prelude::*;
use gstreamer as gst;
use sluice_media::{format::Format, task::Failure};

use crate::av::{
    drive::note_ends,
    graph::{BranchKind, Graph},
    internal, refused,
    sink::{make, to_file},
};

/// Coded bytes of one track that wait for the other's in front of the multiplexer.
const WAITING_BYTES: u32 = 32 << 20;

/// End of each track of a result so far, in nanoseconds from its beginning.
#[derive(Clone, Debug, Default)]
pub struct TrackEnds {
    video: Arc<AtomicU64>,
    audio: Arc<AtomicU64>,
}

impl TrackEnds {
    /// Seconds; 0: nothing came.
    pub fn seconds(&self, kind: BranchKind) -> f64 {
        self.of(kind).load(Ordering::Acquire) as f64 / 1e9
    }

    fn of(&self, kind: BranchKind) -> &Arc<AtomicU64> {
        match kind {
            BranchKind::Video => &self.video,
            BranchKind::Audio => &self.audio,
        }
    }
}

/// Takes the tracks of a result.
pub struct Writer<'a> {
    graph: &'a Graph,
    /// Element that the tracks go into: the multiplexer, or the file itself.
    entry: gst::Element,
    is_multiplexer: bool,
    taken: usize,
    ends: TrackEnds,
}

impl<'a> Writer<'a> {
    pub fn new(graph: &'a Graph, format: Format, output: &OwnedFd) -> Result<Self, Failure> {
        let file = to_file(output)?;
        let multiplexer = multiplexer(format).map(make).transpose()?;
        match &multiplexer {
            Some(multiplexer) => graph.add_chain(&[multiplexer, &file])?,
            None => graph.add_chain(&[&file])?,
        }
        Ok(Self {
            graph,
            is_multiplexer: multiplexer.is_some(),
            entry: multiplexer.unwrap_or(file),
            taken: 0,
            ends: TrackEnds::default(),
        })
    }

    /// Takes the track that ends with that element.
    pub fn take(&mut self, kind: BranchKind, last: Option<&gst::Element>) -> Result<(), Failure> {
        let last = last.ok_or_else(|| internal("a track without elements"))?;
        let queue = make("queue")?;
        queue.set_property("max-size-buffers", 0_u32);
        queue.set_property("max-size-bytes", WAITING_BYTES);
        queue.set_property("max-size-time", 0_u64);
        self.graph.add_chain(&[&queue])?;
        let source = queue.static_pad("src");
        let entry = if self.is_multiplexer {
            self.entry.request_pad_simple(match kind {
                BranchKind::Video => "video_%u",
                BranchKind::Audio => "audio_%u",
            })
        } else {
            self.entry.static_pad("sink")
        };
        let (Some(source), Some(entry)) = (source, entry) else {
            return Err(refused("the format takes no such track"));
        };
        last.link(&queue)
            .map_err(|_| refused("the format takes no such track"))?;
        source
            .link(&entry)
            .map_err(|_| refused("the format takes no such track"))?;
        self.taken += 1;
        Ok(())
    }

    /// Notes the end of each buffer that comes to an element: the encoder, or its substitute. Behind an encoder of
    /// plain samples buffers have no times.
    pub fn follow(&self, kind: BranchKind, element: Option<&gst::Element>) {
        let Some(pad) = element.and_then(|element| element.static_pad("sink")) else {
            return;
        };
        note_ends(&pad, self.ends.of(kind).clone());
    }

    /// Checks that all tracks are linked.
    pub fn finish(self, expected: usize) -> Result<TrackEnds, Failure> {
        if self.taken != expected {
            return Err(internal("a track of the plan was not linked"));
        }
        Ok(self.ends)
    }
}

/// Returns the multiplexer of a format; streams of frames that describe themselves have none.
fn multiplexer(format: Format) -> Option<&'static str> {
    match format {
        Format::Mp4 | Format::M4a => Some("mp4mux"),
        Format::Mov => Some("qtmux"),
        Format::Mkv => Some("matroskamux"),
        Format::Webm => Some("webmmux"),
        Format::Ogg => Some("oggmux"),
        _ => None,
    }
}
