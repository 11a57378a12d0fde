//! Audio of a live stream: any codec to Opus, stereo, 20 ms, constrained variable bit rate, without in-band FEC and DTX.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use gst::prelude::*;
use gstreamer as gst;
use gstreamer_app as gst_app;
use gstreamer_pbutils as gst_pbutils;
use sluice_media::{
    av::live::{FromLive, MAX_MEDIA},
    codec::{AudioCodec, AudioConfig},
    task::{Failure, FailureCode},
};

use super::{
    intake::Intake,
    outlet::Outlet,
    times::{to_90k, to_clock},
};
use crate::av::{
    bus, internal, refused,
    sink::{filter, make},
};

/// Length of a packet.
const PACKET_90K: i64 = 90_000 / 50;
/// Coded frames that wait, some seconds.
const MOST_WAITING: u64 = 250;
/// Jump of the times from which on the chain is begun again.
const JUMP_90K: u64 = 10 * 90_000;
/// Shortest time between two starts of a chain.
const RESTART_PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Audio {
    outlet: Arc<Outlet>,
    bitrate: Option<u32>,
    config: Option<(AudioCodec, Bytes)>,
    chain: Option<AudioChain>,
    taken: Arc<AtomicU64>,
    last_pts_90k: i64,
    started_at: Option<Instant>,
}

struct AudioChain {
    pipeline: gst::Pipeline,
    intake: Intake,
}

impl Drop for AudioChain {
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

impl Audio {
    pub fn new(outlet: Arc<Outlet>) -> Self {
        Self {
            outlet,
            bitrate: None,
            config: None,
            chain: None,
            taken: Arc::default(),
            last_pts_90k: 0,
            started_at: None,
        }
    }

    pub fn start(&mut self, bitrate: u32) {
        self.chain = None;
        self.bitrate = Some(bitrate);
    }

    pub fn stop(&mut self) {
        self.chain = None;
        self.bitrate = None;
    }

    pub fn configure(&mut self, codec: AudioCodec, record: Bytes) -> Result<(), Failure> {
        self.chain = None;
        self.config = None;
        self.started_at = None;
        if codec != AudioCodec::Mp3 {
            AudioConfig::parse(codec, record.clone())
                .map_err(|error| Failure::new(FailureCode::Undecodable, error.to_string()))?;
        }
        self.config = Some((codec, record));
        Ok(())
    }

    /// Passes a coded frame on. Fails once for a configuration that cannot be decoded.
    pub fn push(&mut self, pts_90k: i64, data: Bytes) -> Result<(), Failure> {
        let pushed = self.try_push(pts_90k, data);
        if pushed != Ok(true) {
            self.taken.fetch_add(1, Relaxed);
        }
        pushed.map(drop)
    }

    /// Returns whether the chain has the frame.
    fn try_push(&mut self, pts_90k: i64, data: Bytes) -> Result<bool, Failure> {
        let (Some(bitrate), Some(pts)) = (self.bitrate, to_clock(pts_90k)) else {
            return Ok(false);
        };
        if pts_90k.abs_diff(self.last_pts_90k) > JUMP_90K {
            self.chain = None;
        }
        self.last_pts_90k = pts_90k;
        self.look_after();
        if self.chain.is_none() {
            let is_early = self
                .started_at
                .is_some_and(|started_at| started_at.elapsed() < RESTART_PAUSE);
            let Some((codec, record)) = self.config.clone().filter(|_| !is_early) else {
                return Ok(false);
            };
            self.started_at = Some(Instant::now());
            let chain = AudioChain::start(
                coded_caps(codec, record, &data)?,
                codec,
                bitrate,
                &self.taken,
                self.outlet.clone(),
            );
            match chain {
                Ok(chain) => self.chain = Some(chain),
                Err(failure) => {
                    self.config = None;
                    return Err(failure);
                }
            }
        }
        Ok(self.chain.as_mut().is_some_and(|chain| {
            chain.intake.source.current_level_buffers() < MOST_WAITING
                && chain.intake.push(pts, None, data)
        }))
    }

    pub fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    /// Ends a chain that has failed; the next frame begins another.
    pub fn look_after(&mut self) {
        let check = |chain: &AudioChain| bus::check(&chain.pipeline);
        if self.chain.as_ref().is_some_and(|it| check(it).is_err()) {
            self.chain = None;
        }
    }
}

impl AudioChain {
    fn start(
        caps: gst::Caps,
        codec: AudioCodec,
        bitrate: u32,
        taken: &Arc<AtomicU64>,
        outlet: Arc<Outlet>,
    ) -> Result<Self, Failure> {
        let intake = Intake::new(&caps, taken.clone());
        let sink = gst_app::AppSink::builder()
            .async_(false)
            .sync(false)
            .build();
        sink.set_callbacks(callbacks(outlet));
        let samples = gst::Caps::builder("audio/x-raw")
            .field("format", "S16LE")
            .field("layout", "interleaved")
            .field("rate", 48_000)
            .field("channels", 2)
            .build();
        let decoder = match codec {
            AudioCodec::Aac => "avdec_aac",
            AudioCodec::Opus => "opusdec",
            AudioCodec::Mp3 => "avdec_mp3",
        };
        let elements = [
            intake.source.upcast_ref(),
            &make(decoder)?,
            &make("audioconvert")?,
            &make("audioresample")?,
            &filter(&samples)?,
            &opus(bitrate)?,
            sink.upcast_ref(),
        ];
        let pipeline = gst::Pipeline::new();
        pipeline
            .add_many(elements)
            .and_then(|()| gst::Element::link_many(elements))
            .map_err(|error| internal(format!("the audio's chain cannot be built: {error}")))?;
        let this = Self { pipeline, intake };
        this.pipeline
            .set_state(gst::State::Playing)
            .map_err(|_| internal("the audio's chain does not start"))?;
        Ok(this)
    }
}

fn opus(bitrate: u32) -> Result<gst::Element, Failure> {
    let encoder = make("opusenc")?;
    encoder.set_property("bitrate", bitrate.clamp(6_000, 510_000) as i32);
    encoder.set_property_from_str("bitrate-type", "constrained-vbr");
    encoder.set_property_from_str("frame-size", "20");
    encoder.set_property("complexity", 5_i32);
    encoder.set_property("inband-fec", false);
    encoder.set_property("dtx", false);
    Ok(encoder)
}

fn callbacks(outlet: Arc<Outlet>) -> gst_app::AppSinkCallbacks {
    let mut due_90k = None;
    gst_app::AppSinkCallbacks::builder()
        .new_sample(move |sink| {
            let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
            if let Some((pts_90k, data)) = encoded(&sample) {
                // Nanoseconds round a tick away: packets that follow each other do so exactly.
                let follows = |due: &i64| due.abs_diff(pts_90k) <= 2;
                let pts_90k = due_90k.filter(follows).unwrap_or(pts_90k);
                due_90k = Some(pts_90k + PACKET_90K);
                outlet.send(&FromLive::Audio { pts_90k, data });
            }
            Ok(gst::FlowSuccess::Ok)
        })
        .build()
}

/// Returns time and bytes of a packet.
fn encoded(sample: &gst::Sample) -> Option<(i64, Bytes)> {
    let buffer = sample.buffer()?;
    // The encoder's look-ahead, 312 samples, is cut off the first packet's time and not off its samples: its end is right.
    let pts_90k = to_90k(buffer.pts()? + buffer.duration()?) - PACKET_90K;
    let packet = buffer.map_readable().ok()?;
    (packet.len() <= MAX_MEDIA).then(|| (pts_90k, Bytes::copy_from_slice(&packet)))
}

/// `first`: the first frame, by whose header MP3 is known.
fn coded_caps(codec: AudioCodec, record: Bytes, first: &[u8]) -> Result<gst::Caps, Failure> {
    let odd = |error: sluice_media::Error| refused(&error.to_string());
    match codec {
        AudioCodec::Aac => {
            let config = AudioConfig::parse(codec, record).map_err(odd)?;
            Ok(gst::Caps::builder("audio/mpeg")
                .field("mpegversion", 4)
                .field("stream-format", "raw")
                .field("framed", true)
                .field("rate", config.sample_rate as i32)
                .field("channels", i32::from(config.channels))
                .field("codec_data", gst::Buffer::from_slice(config.record))
                .build())
        }
        AudioCodec::Mp3 => {
            let config = AudioConfig::from_mp3_frame(first).map_err(odd)?;
            Ok(gst::Caps::builder("audio/mpeg")
                .field("mpegversion", 1)
                .field("layer", 3)
                .field("parsed", true)
                .field("rate", config.sample_rate as i32)
                .field("channels", i32::from(config.channels))
                .build())
        }
        AudioCodec::Opus => {
            let config = AudioConfig::parse(codec, record).map_err(odd)?;
            let head = config
                .opus_head()
                .ok_or_else(|| refused("its Opus header is of no usual form"))?;
            let mapping = head.mapping;
            let (family, streams, coupled) =
                mapping.as_ref().map_or((0, 1, head.channels - 1), |it| {
                    (it.family, it.streams, it.coupled)
                });
            let channels = usize::from(head.channels);
            let table = mapping.as_ref().map_or(&[][..], |it| &it.table[..channels]);
            gst_pbutils::codec_utils_opus_create_caps(
                48_000,
                head.channels,
                family,
                streams,
                coupled,
                table,
            )
            .map_err(|_| refused("its Opus header is of no usual form"))
        }
    }
}
