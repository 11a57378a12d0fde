//! Queue of coded frames before a decoder; counts those that have left it, so that the service sees a decoder that hangs.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use bytes::Bytes;
use gst::prelude::*;
use gstreamer as gst;
use gstreamer_app as gst_app;

/// Source of a pipeline. It must be dropped after its pipeline has stopped: what is in it then counts as taken.
pub(super) struct Intake {
    pub source: gst_app::AppSrc,
    /// Frames of all queues of the track that were taken.
    taken: Arc<AtomicU64>,
    pushed: u64,
    passed: Arc<AtomicU64>,
}

impl Intake {
    pub fn new(caps: &gst::Caps, taken: Arc<AtomicU64>) -> Self {
        let source = gst_app::AppSrc::builder()
            .caps(caps)
            .format(gst::Format::Time)
            .is_live(true)
            .max_buffers(0)
            .max_bytes(0)
            .build();
        let passed = Arc::new(AtomicU64::new(0));
        let counters = [taken.clone(), passed.clone()];
        let pad = source.static_pad("src").expect("a source has a pad");
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            for counter in &counters {
                counter.fetch_add(1, Relaxed);
            }
            gst::PadProbeReturn::Ok
        });
        Self {
            source,
            taken,
            pushed: 0,
            passed,
        }
    }

    /// Adds a frame; false when the pipeline takes none any more, which is an error on its bus.
    pub fn push(&mut self, pts: gst::ClockTime, dts: Option<gst::ClockTime>, data: Bytes) -> bool {
        let mut buffer = gst::Buffer::from_slice(data);
        let fields = buffer.get_mut().expect("it has one owner");
        fields.set_pts(pts);
        fields.set_dts(dts);
        let is_taken = self.source.push_buffer(buffer).is_ok();
        self.pushed += u64::from(is_taken);
        is_taken
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        let left = self.pushed.saturating_sub(self.passed.load(Relaxed));
        self.taken.fetch_add(left, Relaxed);
    }
}
