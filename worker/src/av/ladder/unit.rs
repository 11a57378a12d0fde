//! Output of an encoder or parser: the bytes of a video or audio frame, with its time and decoder configuration.

use std::sync::Arc;

use bytes::Bytes;
use gst::prelude::*;
use gstreamer as gst;
use gstreamer_app as gst_app;
use parking_lot::Mutex;
use sluice_media::task::Failure;

use super::{super::refused, work::LadderTask};

/// A coded frame of video or audio.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// Presentation time on the graph's running time; negative: before its beginning. `None`: unknown.
    pub(super) pts_90k: Option<i64>,
    /// `None`: not said.
    pub(super) duration_90k: Option<i64>,
    pub(super) key: bool,
    pub(super) data: Bytes,
}

impl Unit {
    /// Reads a sample; `None`: a buffer without bytes.
    fn read(sample: &gst::Sample) -> Option<Self> {
        let buffer = sample.buffer()?;
        let bytes = buffer
            .map_readable()
            .ok()
            .filter(|bytes| !bytes.is_empty())?;
        Some(Self {
            pts_90k: shown_90k(sample, buffer),
            duration_90k: buffer
                .duration()
                .map(|duration| ticks(i128::from(duration.nseconds()))),
            key: !buffer.flags().contains(gst::BufferFlags::DELTA_UNIT),
            data: Bytes::copy_from_slice(&bytes),
        })
    }
}

fn shown_90k(sample: &gst::Sample, buffer: &gst::BufferRef) -> Option<i64> {
    let segment = sample.segment()?.downcast_ref::<gst::ClockTime>()?;
    let nanoseconds = match segment.to_running_time_full(buffer.pts()?)? {
        gst::Signed::Positive(time) => i128::from(time.nseconds()),
        gst::Signed::Negative(time) => -i128::from(time.nseconds()),
    };
    Some(ticks(nanoseconds))
}

/// Nanoseconds in ticks, to the nearest.
pub(super) fn ticks(nanoseconds: i128) -> i64 {
    (nanoseconds * 9 + 50_000).div_euclid(100_000) as i64
}

/// The decoder configuration that a sample's caps carry.
pub(super) fn configuration(caps: &gst::CapsRef) -> Result<Bytes, Failure> {
    let record = caps
        .structure(0)
        .and_then(|structure| structure.get::<gst::Buffer>("codec_data").ok());
    let bytes = record
        .as_ref()
        .and_then(|record| record.map_readable().ok());
    bytes
        .map(|bytes| Bytes::copy_from_slice(&bytes))
        .ok_or_else(|| refused("coded media came without its configuration"))
}

/// Receiver of units.
pub(super) trait UnitSink: Send + 'static {
    fn take(&mut self, caps: &gst::CapsRef, unit: Unit) -> Result<(), Failure>;
}

/// A sink that passes units to `taker` on the graph's own thread, which so waits for it. What the taker cannot do fails
/// the work and ends the graph; so does a failure elsewhere.
pub(super) fn sink_to<T: UnitSink>(taker: Arc<Mutex<T>>, work: LadderTask) -> gst::Element {
    let callbacks = gst_app::AppSinkCallbacks::builder()
        .new_sample(move |sink| {
            let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
            if work.has_failed() {
                return Err(gst::FlowError::Error);
            }
            let (Some(caps), Some(unit)) = (sample.caps(), Unit::read(&sample)) else {
                return Ok(gst::FlowSuccess::Ok);
            };
            let mut taker = taker.lock();
            match taker.take(caps, unit) {
                Ok(()) => Ok(gst::FlowSuccess::Ok),
                Err(failure) => {
                    work.fail(failure);
                    Err(gst::FlowError::Error)
                }
            }
        })
        .build();
    gst_app::AppSink::builder()
        .sync(false)
        .max_buffers(1)
        .callbacks(callbacks)
        .build()
        .upcast()
}
