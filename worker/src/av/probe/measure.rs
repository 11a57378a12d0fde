//! Duration of a clip whose container does not say, or only estimates (ADTS, MP3, Matroska): by its last timestamp.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use gst::prelude::*;
use gstreamer as gst;
use sluice_media::av::MediaFacts;

use super::super::{
    bus, drive,
    sink::{discard, make},
    source::Input,
};

/// The longest look through a file.
const WITHIN: Duration = Duration::from_secs(15);
/// Larger files are not looked through: it would take longer than it is worth.
const LARGEST: u64 = 2 << 30;
const LOOK: gst::ClockTime = gst::ClockTime::from_mseconds(20);

/// The duration by looking through the whole file; `None`: what the facts say is better, or there is none.
pub(super) fn duration(input: &Input, facts: &MediaFacts, head: &[u8]) -> Option<gst::ClockTime> {
    if !is_doubtful(facts, head) || input.len() > LARGEST {
        return None;
    }
    let pipeline = gst::Pipeline::new();
    let end = Arc::new(AtomicU64::new(0));
    let measured = look_through(&pipeline, input, facts.parts.unwrap_or(1), &end);
    // Stopped also when something failed, since a pipeline must not be dropped while it runs.
    let _ = pipeline.set_state(gst::State::Null);
    measured?;
    let end = end.load(Ordering::Acquire);
    (end > 0).then(|| gst::ClockTime::from_nseconds(end))
}

/// Streams without a container have no duration but what their first bit rate lets one guess; of Matroska that was written
/// while it was recorded, only what has been read so far is known.
fn is_doubtful(facts: &MediaFacts, head: &[u8]) -> bool {
    /// The element's id, RFC 9559 section 5.1.2.10.
    const MATROSKA_DURATION: &[u8] = &[0x44, 0x89];
    match facts.container.as_str() {
        "ADTS" | "MP3" | "MP2" | "AC3" | "EAC3" | "DTS" | "AMR" => true,
        "Matroska" | "WebM" => !head.windows(2).any(|window| window == MATROSKA_DURATION),
        _ => facts.duration_ms.is_none() || facts.parts.is_some(),
    }
}

/// Reads the file to its end; `None`: it did not come to the end of so many parts.
fn look_through(
    pipeline: &gst::Pipeline,
    input: &Input,
    parts: u32,
    end: &Arc<AtomicU64>,
) -> Option<()> {
    let begun = Arc::new(AtomicU32::new(0));
    let source = input.element();
    let opener = make("parsebin").ok()?;
    pipeline.add_many([&source, &opener]).ok()?;
    source.link(&opener).ok()?;
    let weak = pipeline.downgrade();
    let (end, begins) = (end.clone(), begun.clone());
    opener.connect_pad_added(move |_, pad| {
        if let Some(pipeline) = weak.upgrade() {
            drive::note_ends(pad, end.clone());
            discard(&pipeline, pad);
            begins.fetch_add(1, Ordering::Release);
        }
    });
    pipeline.set_state(gst::State::Playing).ok()?;
    let until = Instant::now() + WITHIN;
    while Instant::now() < until {
        match bus::has_ended(pipeline, LOOK) {
            // Between two parts there may be a moment without either.
            Ok(true) if begun.load(Ordering::Acquire) >= parts => return Some(()),
            Ok(_) => {}
            Err(_) => return None,
        }
    }
    None
}
