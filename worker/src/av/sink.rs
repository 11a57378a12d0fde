//! GStreamer sinks and small elements: output to a descriptor, buffers for code of our own, caps filters, discarded pads; the
//! failure when the machine lacks an element.

use std::os::fd::{AsRawFd, OwnedFd};

use gst::prelude::*;
use gstreamer as gst;
use gstreamer_app as gst_app;
use sluice_media::task::Failure;

/// Decoded video or audio that wait for our code.
const WAITING_BUFFERS: u32 = 4;

/// Writes to a seekable file from its position on; multiplexers may go back in it. The descriptor must stay open as
/// long as the element lives.
pub fn to_file(descriptor: &OwnedFd) -> Result<gst::Element, Failure> {
    let sink = make("fdsink")?;
    sink.set_property("fd", descriptor.as_raw_fd());
    Ok(sink)
}

/// Passes buffers of these caps one by one, as fast as they are taken.
///
/// Its state changes at once: a sink that waits for its first buffer on the way to playing, and is flushed by a seek just
/// then, may wait for ever.
pub fn to_us(caps: &gst::Caps) -> gst_app::AppSink {
    gst_app::AppSink::builder()
        .caps(caps)
        .async_(false)
        .sync(false)
        .max_buffers(WAITING_BUFFERS)
        .drop(false)
        .build()
}

/// A new element of a kind that the allow-list has.
pub fn make(factory: &str) -> Result<gst::Element, Failure> {
    gst::ElementFactory::make(factory).build().map_err(|_| {
        Failure::internal(format!(
            "this machine has no GStreamer element {factory}: `sluice doctor` says what is missing"
        ))
    })
}

/// An element that lets only such a stream through.
pub fn filter(caps: &gst::Caps) -> Result<gst::Element, Failure> {
    let filter = make("capsfilter")?;
    filter.set_property("caps", caps);
    Ok(filter)
}

/// Discards a pad's buffers: one without a link would stop what feeds it.
pub(super) fn discard(pipeline: &gst::Pipeline, pad: &gst::Pad) {
    let Ok(sink) = make("fakesink") else { return };
    sink.set_property("async", false);
    if pipeline.add(&sink).is_ok() && sink.sync_state_with_parent().is_ok() {
        let entry = sink.static_pad("sink").expect("a sink has a pad");
        // A link that fails has its error on the bus.
        let _ = pad.link(&entry);
    }
}
