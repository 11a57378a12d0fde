//! Video of a live stream: its decoder, from key frame to key frame, and the encoders of its frames.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use bytes::Bytes;
use gstreamer as gst;
use parking_lot::Mutex;
use sluice_media::{
    av::live::{EncoderId, LiveProgress, LiveVideo},
    codec::{VideoCodec, VideoConfig},
    task::{Failure, FailureCode},
};

use super::{
    outlet::Outlet,
    video_decoder::{Counts, VideoDecoder},
    video_encoder::{Pushed, VideoEncoder},
};

/// Encoders of a stream.
const MOST_ENCODERS: usize = 8;
/// Jump of the decode times, ahead, from which on a decoder is begun again.
const JUMP_90K: u64 = 10 * 90_000;
/// Shortest time between two starts of a decoder.
const RESTART_PAUSE: Duration = Duration::from_millis(500);
/// Failures of decoders without a frame after which a track is reported as one that cannot be decoded.
const HOPELESS_AFTER: u32 = 3;

type Encoders = Arc<Mutex<Vec<VideoEncoder>>>;

pub(super) struct Video {
    outlet: Arc<Outlet>,
    encoders: Encoders,
    config: Option<VideoConfig>,
    decoder: Option<VideoDecoder>,
    counts: Arc<Counts>,
    waits_for_key: bool,
    last_dts_90k: i64,
    started_at: Option<Instant>,
    /// Failures of decoders since the configuration, and the frames that were decoded at the last of them.
    failures: u32,
    decoded_at_failure: u64,
}

impl Video {
    pub fn new(outlet: Arc<Outlet>) -> Self {
        Self {
            outlet,
            encoders: Encoders::default(),
            config: None,
            decoder: None,
            counts: Arc::default(),
            waits_for_key: true,
            last_dts_90k: 0,
            started_at: None,
            failures: 0,
            decoded_at_failure: 0,
        }
    }

    /// Starts an encoder, or replaces the one of that name.
    pub fn start(&mut self, id: EncoderId, work: LiveVideo) {
        let encoder = VideoEncoder::new(id, work, self.outlet.clone());
        let mut encoders = self.encoders.lock();
        encoders.retain(|it| it.id != id);
        if encoders.len() < MOST_ENCODERS {
            encoders.push(encoder);
        }
    }

    /// Ends an encoder; the decoder ends with the last.
    pub fn stop(&mut self, id: EncoderId) {
        let mut encoders = self.encoders.lock();
        encoders.retain(|it| it.id != id);
        let is_last = encoders.is_empty();
        drop(encoders);
        if is_last {
            self.begin_again();
        }
    }

    pub fn want_key_frame(&mut self, id: EncoderId) {
        let mut encoders = self.encoders.lock();
        if let Some(encoder) = encoders.iter_mut().find(|it| it.id == id) {
            encoder.want_key_frame();
        }
    }

    pub fn configure(&mut self, codec: VideoCodec, record: Bytes) -> Result<(), Failure> {
        self.begin_again();
        self.config = None;
        self.failures = 0;
        let config = VideoConfig::parse(codec, record)
            .map_err(|error| Failure::new(FailureCode::Undecodable, error.to_string()))?;
        self.config = Some(config);
        Ok(())
    }

    /// Passes a coded frame on. Fails once for a configuration that cannot be decoded.
    pub fn push(
        &mut self,
        key: bool,
        is_old: bool,
        dts_90k: i64,
        cts_90k: i32,
        data: Bytes,
    ) -> Result<(), Failure> {
        if self.config.is_none() || self.encoders.lock().is_empty() {
            self.counts.taken.fetch_add(1, Relaxed);
            return Ok(());
        }
        let jumps = dts_90k < self.last_dts_90k || dts_90k.abs_diff(self.last_dts_90k) > JUMP_90K;
        if jumps && self.decoder.is_some() {
            self.begin_again();
        }
        self.last_dts_90k = dts_90k;
        let restarted = self.check();
        if self.waits_for_key && !key {
            self.drop_frame();
            return restarted;
        }
        if self.decoder.as_mut().is_some_and(VideoDecoder::is_behind) {
            self.waits_for_key = true;
            self.drop_frame();
            return restarted;
        }
        if self.decoder.is_none() {
            match self.begin() {
                Ok(true) => {}
                other => {
                    self.drop_frame();
                    return other.and(restarted);
                }
            }
        }
        self.waits_for_key = false;
        let decoder = self.decoder.as_mut();
        if !decoder.is_some_and(|it| it.push(is_old, dts_90k, cts_90k, data)) {
            self.drop_frame();
        }
        restarted
    }

    /// Starts the decoder; false when that has to wait.
    fn begin(&mut self) -> Result<bool, Failure> {
        let is_early = self
            .started_at
            .is_some_and(|started_at| started_at.elapsed() < RESTART_PAUSE);
        let Some(config) = self.config.as_ref().filter(|_| !is_early) else {
            return Ok(false);
        };
        self.started_at = Some(Instant::now());
        let (encoders, counts) = (self.encoders.clone(), self.counts.clone());
        let started = VideoDecoder::start(config, &self.counts, move |sample| {
            encode(&encoders, sample, &counts);
        });
        match started {
            Ok(decoder) => self.decoder = Some(decoder),
            Err(failure) => {
                // The machine will not gain an element meanwhile.
                self.config = None;
                return Err(failure);
            }
        }
        Ok(true)
    }

    fn begin_again(&mut self) {
        self.decoder = None;
        self.waits_for_key = true;
    }

    /// Counts a coded frame that the decoder does not get.
    fn drop_frame(&mut self) {
        self.counts.taken.fetch_add(1, Relaxed);
        self.counts.dropped.fetch_add(1, Relaxed);
    }

    /// Ends a decoder that has failed. Fails after the last of some failures without a decoded frame.
    fn check(&mut self) -> Result<(), Failure> {
        let failed = self.decoder.as_ref().map_or(Ok(()), VideoDecoder::check);
        let Err(failure) = failed else {
            return Ok(());
        };
        self.begin_again();
        let decoded = self.counts.decoded.load(Relaxed);
        match decoded == self.decoded_at_failure {
            true => self.failures += 1,
            false => (self.failures, self.decoded_at_failure) = (1, decoded),
        }
        match self.failures == HOPELESS_AFTER {
            true => Err(failure),
            false => Ok(()),
        }
    }

    pub fn look_after(&mut self) {
        // A failure without further frames matters to no one.
        let _ = self.check();
    }

    pub fn progress(&self) -> LiveProgress {
        LiveProgress {
            video_taken: self.counts.taken.load(Relaxed),
            decoded: self.counts.decoded.load(Relaxed),
            dropped: self.counts.dropped.load(Relaxed),
            ..LiveProgress::default()
        }
    }
}

fn encode(encoders: &Mutex<Vec<VideoEncoder>>, sample: &gst::Sample, counts: &Counts) {
    for encoder in encoders.lock().iter_mut() {
        if encoder.push(sample) == Pushed::Dropped {
            counts.dropped.fetch_add(1, Relaxed);
        }
    }
}
