//! Size of the frames that a container declares, also where no decoder takes them.
//!
//! Decoders take no more than so many pixels a side, and of a track that says that it has more, GStreamer knows only that
//! no decoder takes it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use gst::prelude::*;
use gstreamer as gst;
use parking_lot::Mutex;

use super::super::{
    bus,
    sink::{discard, make},
    source::Input,
};

/// The longest look.
const WITHIN: Duration = Duration::from_secs(5);
const LOOK: gst::ClockTime = gst::ClockTime::from_mseconds(20);

/// Width and height of the track with the longest side; `None`: the container says nothing of that.
pub(super) fn size(input: &Input) -> Option<(u32, u32)> {
    let largest = Arc::new(Mutex::new(None));
    let pipeline = gst::Pipeline::new();
    let looked = look(&pipeline, input, &largest);
    // Stopped also when something failed, since a pipeline must not be dropped while it runs.
    let _ = pipeline.set_state(gst::State::Null);
    looked?;
    *largest.lock()
}

/// Reads the container; `None`: it could not begin.
fn look(
    pipeline: &gst::Pipeline,
    input: &Input,
    largest: &Arc<Mutex<Option<(u32, u32)>>>,
) -> Option<()> {
    let source = input.element();
    let opener = make("parsebin").ok()?;
    pipeline.add_many([&source, &opener]).ok()?;
    source.link(&opener).ok()?;
    let containers = gst::ElementFactory::factories_with_type(
        gst::ElementFactoryType::DEMUXER,
        gst::Rank::MARGINAL,
    );
    let largest = largest.clone();
    opener.connect("autoplug-continue", false, move |values| {
        let caps = values.get(2)?.get::<gst::Caps>().ok()?;
        let mut largest = largest.lock();
        let longest = |size: &(u32, u32)| size.0.max(size.1);
        *largest = largest
            .into_iter()
            .chain(declared(&caps))
            .max_by_key(longest);
        // Beyond what the container says nothing is asked.
        let is_container = |factory: &gst::ElementFactory| factory.can_sink_any_caps(&caps);
        Some(containers.iter().any(is_container).to_value())
    });
    let weak = pipeline.downgrade();
    opener.connect_pad_added(move |_, pad| {
        if let Some(pipeline) = weak.upgrade() {
            discard(&pipeline, pad);
        }
    });
    let is_complete = Arc::new(AtomicBool::new(false));
    let complete = is_complete.clone();
    opener.connect_no_more_pads(move |_| complete.store(true, Ordering::Release));
    pipeline.set_state(gst::State::Paused).ok()?;
    let until = Instant::now() + WITHIN;
    while Instant::now() < until && !is_complete.load(Ordering::Acquire) {
        // An error comes behind what was declared.
        if bus::has_ended(pipeline, LOOK) != Ok(false) {
            break;
        }
    }
    Some(())
}

fn declared(caps: &gst::Caps) -> Option<(u32, u32)> {
    let structure = caps.structure(0)?;
    let side = |name: &str| u32::try_from(structure.get::<i32>(name).ok()?).ok();
    side("width").zip(side("height"))
}
