//! Decoder of a live stream's video, up to frames that every encoder takes: 8 bit 4:2:0, progressive.
//!
//! A frame is given as soon as its bitstream allows: one thread, so that no frame waits for the threads of others.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use bytes::Bytes;
use gst::prelude::*;
use gstreamer as gst;
use gstreamer_app as gst_app;
use sluice_media::{
    codec::{VideoCodec, VideoConfig},
    task::Failure,
};

use super::{intake::Intake, times::to_clock};
use crate::av::{
    bus, internal,
    sink::{filter, make},
};

/// Coded frames and bytes that wait, the open group of pictures at the start above all.
const MOST_WAITING: u64 = 1_200;
const MOST_WAITING_BYTES: u64 = 24 << 20;
/// Most time of the stream that waits once the decoder has caught up with it.
const LATEST: gst::ClockTime = gst::ClockTime::from_seconds(1);
/// Time that waits before a decoder that has caught up.
const CAUGHT_UP: gst::ClockTime = gst::ClockTime::from_mseconds(200);

/// Counts of the track.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub taken: Arc<AtomicU64>,
    pub decoded: AtomicU64,
    pub dropped: AtomicU64,
}

pub(super) struct VideoDecoder {
    pipeline: gst::Pipeline,
    intake: Intake,
    /// Time up to which frames are not encoded.
    old_until: Arc<AtomicU64>,
    /// True once frames have come that are encoded; those before them come faster than they are decoded.
    has_recent: bool,
    has_caught_up: bool,
}

impl Drop for VideoDecoder {
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

impl VideoDecoder {
    /// `on_frame` gets each frame, in the order of showing.
    pub fn start(
        config: &VideoConfig,
        counts: &Arc<Counts>,
        on_frame: impl Fn(&gst::Sample) + Send + 'static,
    ) -> Result<Self, Failure> {
        let intake = Intake::new(&coded_caps(config), counts.taken.clone());
        let old_until = Arc::new(AtomicU64::new(0));
        let sink = gst_app::AppSink::builder()
            .async_(false)
            .sync(false)
            .build();
        sink.set_callbacks(callbacks(counts.clone(), old_until.clone(), on_frame));
        let [parser, decoder] = decoding(config.codec)?;
        let deinterlace = make("deinterlace")?;
        // One frame for each coded one, of both fields.
        deinterlace.set_property_from_str("fields", "top");
        deinterlace.set_property_from_str("method", "yadif");
        let planes = gst::Caps::builder("video/x-raw")
            .field("format", "I420")
            .build();
        let elements = [
            intake.source.upcast_ref(),
            &parser,
            &decoder,
            &make("videoconvertscale")?,
            &filter(&planes)?,
            &deinterlace,
            sink.upcast_ref(),
        ];
        let pipeline = gst::Pipeline::new();
        pipeline
            .add_many(elements)
            .and_then(|()| gst::Element::link_many(elements))
            .map_err(|error| internal(format!("a decoder cannot be built: {error}")))?;
        let this = Self {
            pipeline,
            intake,
            old_until,
            has_recent: false,
            has_caught_up: false,
        };
        this.pipeline
            .set_state(gst::State::Playing)
            .map_err(|_| internal("a decoder does not start"))?;
        Ok(this)
    }

    /// Fails when the pipeline has.
    pub fn check(&self) -> Result<(), Failure> {
        bus::check(&self.pipeline)
    }

    /// Returns whether more waits than the decoder will make up for.
    pub fn is_behind(&mut self) -> bool {
        let waiting = self.intake.source.current_level_time();
        self.has_caught_up |= self.has_recent && waiting <= CAUGHT_UP;
        self.intake.source.current_level_buffers() >= MOST_WAITING
            || self.intake.source.current_level_bytes() >= MOST_WAITING_BYTES
            || self.has_caught_up && waiting > LATEST
    }

    /// Passes a coded frame; false when its times are none.
    pub fn push(&mut self, is_old: bool, dts_90k: i64, cts_90k: i32, data: Bytes) -> bool {
        let pts = dts_90k.checked_add(cts_90k.into()).and_then(to_clock);
        let (Some(pts), Some(dts)) = (pts, to_clock(dts_90k)) else {
            return false;
        };
        if is_old {
            self.old_until.fetch_max(pts.nseconds(), Relaxed);
        }
        self.has_recent |= !is_old;
        self.intake.push(pts, Some(dts), data)
    }
}

fn callbacks(
    counts: Arc<Counts>,
    old_until: Arc<AtomicU64>,
    on_frame: impl Fn(&gst::Sample) + Send + 'static,
) -> gst_app::AppSinkCallbacks {
    gst_app::AppSinkCallbacks::builder()
        .new_sample(move |sink| {
            let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
            counts.decoded.fetch_add(1, Relaxed);
            let pts = sample.buffer().and_then(|buffer| buffer.pts());
            if pts.is_some_and(|pts| pts.nseconds() > old_until.load(Relaxed)) {
                on_frame(&sample);
            }
            Ok(gst::FlowSuccess::Ok)
        })
        .build()
}

/// Returns parser and decoder of a codec.
fn decoding(codec: VideoCodec) -> Result<[gst::Element; 2], Failure> {
    let (parser, decoder) = match codec {
        VideoCodec::Avc => ("h264parse", "avdec_h264"),
        VideoCodec::Hevc => ("h265parse", "avdec_h265"),
        VideoCodec::Av1 => ("av1parse", "av1dec"),
    };
    let decoder = make(decoder)?;
    let set = |name: &str, value: &dyn Fn(&gst::Element)| {
        if decoder.find_property(name).is_some() {
            value(&decoder);
        }
    };
    set("max-threads", &|it| it.set_property("max-threads", 1_i32));
    set("output-corrupt", &|it| {
        it.set_property("output-corrupt", false)
    });
    // A broken frame is left out and does not end the decoder.
    set("max-errors", &|it| it.set_property("max-errors", -1_i32));
    Ok([make(parser)?, decoder])
}

fn coded_caps(config: &VideoConfig) -> gst::Caps {
    let (name, format, alignment) = match config.codec {
        VideoCodec::Avc => ("video/x-h264", "avc", "au"),
        VideoCodec::Hevc => ("video/x-h265", "hvc1", "au"),
        VideoCodec::Av1 => ("video/x-av1", "obu-stream", "tu"),
    };
    let caps = gst::Caps::builder(name)
        .field("stream-format", format)
        .field("alignment", alignment)
        .field("width", i32::from(config.width))
        .field("height", i32::from(config.height));
    match config.codec {
        VideoCodec::Av1 => caps.build(),
        VideoCodec::Avc | VideoCodec::Hevc => caps
            .field("codec_data", gst::Buffer::from_slice(config.record.clone()))
            .build(),
    }
}
