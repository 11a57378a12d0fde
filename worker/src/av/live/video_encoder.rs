//! x264 for live viewers: constrained baseline, no B-frames, no look-ahead; key frames each 2 s and on demand.
//!
//! A pipeline lasts as long as the form of the frames. Frames that come faster than they are encoded are left out.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use gst::prelude::*;
use gstreamer as gst;
use gstreamer_app as gst_app;
use gstreamer_video as gst_video;
use sluice_media::{
    av::live::{EncoderId, FromLive, LiveVideo, MAX_MEDIA},
    task::Failure,
};

use super::{
    outlet::Outlet,
    size::{RateLimit, bitrate, fitted},
    times::to_90k,
};
use crate::av::{
    bus, internal, refused,
    sink::{filter, make},
};

/// Decoded frames that wait: those that a reader's beat brings at once, and no more time than that of a beat or two.
const WAITING_FRAMES: std::ops::RangeInclusive<u64> = 3..=12;
const WAITING_TIME: gst::ClockTime = gst::ClockTime::from_mseconds(150);
/// Longest time between two key frames.
const GROUP: gst::ClockTime = gst::ClockTime::from_seconds(2);
/// Shortest time between two key frames on demand.
const DEMAND_PAUSE: Duration = Duration::from_millis(500);
/// Frames of a group, which ends by its time long before.
const GROUP_FRAMES: u32 = 1_000;
/// Milliseconds of the bit rate that a receiver is expected to hold.
const BUFFER_MS: u32 = 500;
/// Pixels of a frame up to which one thread and the better preset are fast enough.
const SMALL_PIXELS: u32 = 1_280 * 720;
/// Threads of an encoder of large frames, each of which makes a slice.
const MOST_THREADS: usize = 4;
/// Rate of a stream that declares none.
const USUAL_RATE: f64 = 30.0;
/// Pause after a failure.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// Result of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    Taken,
    /// The rate has enough without it.
    LeftOut,
    /// The encoder is behind, or has failed.
    Dropped,
}

pub(super) struct VideoEncoder {
    pub id: EncoderId,
    work: LiveVideo,
    outlet: Arc<Outlet>,
    rate: RateLimit,
    running: Option<Running>,
    wants_key: bool,
    key_at: Instant,
    failed_at: Option<Instant>,
}

struct Running {
    pipeline: gst::Pipeline,
    source: gst_app::AppSrc,
    encoder: gst::Element,
    caps: gst::Caps,
    last: gst::ClockTime,
    group_start: gst::ClockTime,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

impl VideoEncoder {
    pub fn new(id: EncoderId, work: LiveVideo, outlet: Arc<Outlet>) -> Self {
        Self {
            id,
            work,
            outlet,
            rate: RateLimit::new(work.max_rate),
            running: None,
            wants_key: false,
            key_at: Instant::now(),
            failed_at: None,
        }
    }

    /// Makes a key frame of the next frame that is at least [`DEMAND_PAUSE`] behind the last one on demand.
    pub fn want_key_frame(&mut self) {
        self.wants_key = true;
    }

    pub fn push(&mut self, sample: &gst::Sample) -> Pushed {
        let (Some(caps), Some(pts)) = (sample.caps(), sample.buffer().and_then(|it| it.pts()))
        else {
            return Pushed::Dropped;
        };
        if !self.rate.admits(pts.nseconds()) {
            return Pushed::LeftOut;
        }
        if let Some(running) = &self.running
            && bus::check(&running.pipeline).is_err()
        {
            self.failed_at = Some(Instant::now());
            self.running = None;
        }
        // An encoder cannot go back in time.
        let fits = |running: &Running| running.caps.as_ref() == caps && pts > running.last;
        if !self.running.as_ref().is_some_and(fits) {
            self.running = None;
            if self
                .failed_at
                .is_some_and(|at| at.elapsed() < FAILURE_PAUSE)
            {
                return Pushed::Dropped;
            }
            match self.start(caps, pts) {
                Ok(running) => self.running = Some(running),
                Err(_) => {
                    self.failed_at = Some(Instant::now());
                    return Pushed::Dropped;
                }
            }
            (self.wants_key, self.key_at) = (false, Instant::now());
        }
        let Some(running) = &mut self.running else {
            return Pushed::Dropped;
        };
        if running.is_behind() {
            return Pushed::Dropped;
        }
        let is_demanded = self.wants_key && self.key_at.elapsed() >= DEMAND_PAUSE;
        if is_demanded || pts >= running.group_start + GROUP {
            running.force_key_frame(pts);
            (self.wants_key, self.key_at) = (false, Instant::now());
        }
        running.last = pts;
        match running.source.push_sample(sample) {
            Ok(_) => Pushed::Taken,
            Err(_) => Pushed::Dropped,
        }
    }

    fn start(&self, caps: &gst::CapsRef, pts: gst::ClockTime) -> Result<Running, Failure> {
        let info = gst_video::VideoInfo::from_caps(caps)
            .map_err(|_| refused("its frames are of no usual form"))?;
        let (aspect, rate) = (info.par(), info.fps());
        let positive = |number: i32| u32::try_from(number).unwrap_or(1);
        let size = fitted(
            (info.width(), info.height()),
            (positive(aspect.numer()), positive(aspect.denom())),
            &self.work,
        );
        let rate = match (rate.numer(), rate.denom()) {
            (1.., 1..) => f64::from(rate.numer()) / f64::from(rate.denom()),
            _ => USUAL_RATE,
        };
        let rate = rate.min(self.work.max_rate.into());
        let raw = gst::Caps::builder("video/x-raw")
            .field("format", "I420")
            .field("width", size.0 as i32)
            .field("height", size.1 as i32)
            .field("pixel-aspect-ratio", gst::Fraction::new(1, 1))
            .build();
        let coded = gst::Caps::builder("video/x-h264")
            .field("stream-format", "avc")
            .field("alignment", "au")
            .field("profile", "constrained-baseline")
            .build();
        let source = gst_app::AppSrc::builder()
            .caps(&caps.to_owned())
            .format(gst::Format::Time)
            .is_live(true)
            .max_buffers(0)
            .max_bytes(0)
            .build();
        let encoder = x264(size, bitrate(size, rate, &self.work))?;
        let sink = gst_app::AppSink::builder()
            .async_(false)
            .sync(false)
            .build();
        sink.set_callbacks(self.callbacks());
        let pipeline = gst::Pipeline::new();
        let elements = [
            source.upcast_ref(),
            &make("videoconvertscale")?,
            &filter(&raw)?,
            &encoder,
            &filter(&coded)?,
            sink.upcast_ref(),
        ];
        pipeline
            .add_many(elements)
            .and_then(|()| gst::Element::link_many(elements))
            .map_err(|error| internal(format!("an encoder cannot be built: {error}")))?;
        let running = Running {
            pipeline,
            source,
            encoder,
            caps: caps.to_owned(),
            last: gst::ClockTime::ZERO,
            group_start: pts,
        };
        running
            .pipeline
            .set_state(gst::State::Playing)
            .map_err(|_| internal("an encoder does not start"))?;
        Ok(running)
    }

    fn callbacks(&self) -> gst_app::AppSinkCallbacks {
        let (outlet, id) = (self.outlet.clone(), self.id);
        gst_app::AppSinkCallbacks::builder()
            .new_sample(move |sink| {
                let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
                if let Some(message) = encoded(id, &sample) {
                    outlet.send(&message);
                }
                Ok(gst::FlowSuccess::Ok)
            })
            .build()
    }
}

impl Running {
    fn is_behind(&self) -> bool {
        let frames = self.source.current_level_buffers();
        frames >= *WAITING_FRAMES.end()
            || frames >= *WAITING_FRAMES.start() && self.source.current_level_time() >= WAITING_TIME
    }

    fn force_key_frame(&mut self, pts: gst::ClockTime) {
        self.group_start = pts;
        if let Some(pad) = self.encoder.static_pad("src") {
            let event = gst_video::UpstreamForceKeyUnitEvent::builder()
                .all_headers(true)
                .build();
            pad.send_event(event);
        }
    }
}

fn x264(size: (u32, u32), bitrate: u32) -> Result<gst::Element, Failure> {
    let is_small = size.0 * size.1 <= SMALL_PIXELS;
    let threads = match is_small {
        true => 1,
        false => thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS)),
    };
    let encoder = make("x264enc")?;
    encoder.set_property_from_str("tune", "zerolatency");
    encoder.set_property_from_str(
        "speed-preset",
        if is_small { "superfast" } else { "ultrafast" },
    );
    encoder.set_property("bitrate", (bitrate / 1_000).max(1));
    encoder.set_property("vbv-buf-capacity", BUFFER_MS);
    encoder.set_property("key-int-max", GROUP_FRAMES);
    encoder.set_property("bframes", 0_u32);
    encoder.set_property("threads", threads as u32);
    encoder.set_property("aud", false);
    encoder.set_property_from_str("option-string", "scenecut=0");
    Ok(encoder)
}

/// Returns the message of an encoded frame.
fn encoded(encoder: EncoderId, sample: &gst::Sample) -> Option<FromLive> {
    let buffer = sample.buffer()?;
    // Running time is that of the frame that went in, also where the encoder has moved its own times.
    let segment = sample.segment()?.downcast_ref::<gst::ClockTime>()?;
    let pts_90k = to_90k(segment.to_running_time(buffer.pts()?)?);
    let key = !buffer.flags().contains(gst::BufferFlags::DELTA_UNIT);
    let frame = buffer.map_readable().ok()?;
    let mut data = Vec::new();
    if key && frame.get(4).is_none_or(|header| header & 0x1f != 7) {
        let record = sample
            .caps()?
            .structure(0)?
            .get::<gst::Buffer>("codec_data");
        put_parameter_sets(&record.ok()?.map_readable().ok()?, &mut data)?;
    }
    data.extend_from_slice(&frame);
    (data.len() <= MAX_MEDIA).then(|| FromLive::Video {
        encoder,
        key,
        pts_90k,
        data: data.into(),
    })
}

/// Writes the sets of an `avcC` record (ISO/IEC 14496-15 §5.3.3), each behind its length in 4 bytes.
fn put_parameter_sets(record: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = record.get(5..)?;
    for _ in 0..2 {
        let (count, mut behind) = rest.split_first()?;
        for _ in 0..count & 0x1f {
            let (length, body) = behind.split_first_chunk::<2>()?;
            let length = u16::from_be_bytes(*length);
            let (set, next) = body.split_at_checked(length.into())?;
            out.extend(u32::from(length).to_be_bytes());
            out.extend_from_slice(set);
            behind = next;
        }
        rest = behind;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_a_record_are_written_with_longer_lengths() {
        let record = b"\x01\x42\xc0\x1f\xff\xe1\0\x03\x67\x42\xc0\x01\0\x02\x68\xce";
        let mut out = Vec::new();
        assert_eq!(put_parameter_sets(record, &mut out), Some(()));
        assert_eq!(out, b"\0\0\0\x03\x67\x42\xc0\0\0\0\x02\x68\xce");
        for length in 0..record.len() {
            assert_eq!(put_parameter_sets(&record[..length], &mut Vec::new()), None);
        }
    }
}
