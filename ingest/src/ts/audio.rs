//! MPEG-TS audio: PES packets, which frames of AAC and MP3 may straddle, to audio units.

use std::sync::Arc;

use bytes::Bytes;
use sluice_media::{
    codec::AudioConfig,
    unit::{AudioUnit, CLOCK_90K, Unit},
};

use super::{
    Corruption,
    audio_frame::{self, Read},
    tables::AudioFormat,
};

const WHAT: &str = "audio frame";

/// The audio track of a session.
#[derive(Debug)]
pub(super) struct AudioTrack {
    format: AudioFormat,
    config: Option<Arc<AudioConfig>>,
    /// The header bytes that the configuration follows from.
    fingerprint: [u8; 4],
    /// Start of a frame that continues in the next PES packet; less than a frame.
    rest: Vec<u8>,
    pace: Option<Pace>,
}

/// Time of the next frame: counted in samples from the last time stamp, so that nothing drifts.
#[derive(Clone, Copy, Debug)]
struct Pace {
    from_90k: i64,
    samples: i64,
}

impl AudioTrack {
    pub(super) fn new(format: AudioFormat) -> Self {
        Self {
            format,
            config: None,
            fingerprint: [0; 4],
            rest: Vec::new(),
            pace: None,
        }
    }

    pub(super) fn format(&self) -> AudioFormat {
        self.format
    }

    /// Discards the unfinished frame after a lost PES packet; the next time stamp sets the time.
    pub(super) fn abandon(&mut self) {
        self.rest.clear();
        self.pace = None;
    }

    /// Reads a PES packet's payload. The time is that of the first frame that starts in it.
    pub(super) fn push(
        &mut self,
        pts_90k: Option<i64>,
        payload: &[u8],
        units: &mut Vec<Unit>,
        report: &mut impl FnMut(Corruption),
    ) {
        let carried = self.rest.len();
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.extend_from_slice(payload);
        let mut given_90k = pts_90k;
        let mut searching = false;
        let mut at = 0;
        loop {
            // The time stamp is that of the first frame that starts in this payload, not of the carried one.
            if at >= carried
                && let Some(from_90k) = given_90k.take()
            {
                self.pace = Some(Pace {
                    from_90k,
                    samples: 0,
                });
            }
            match self.read(&bytes[at..], searching) {
                Ok(Read::Frame(frame)) => {
                    searching = false;
                    let data = &bytes[at + frame.body.start..at + frame.body.end];
                    if let Err(corruption) = self.frame(&frame, data, units) {
                        report(corruption);
                    }
                    at += frame.body.end;
                }
                Ok(Read::Incomplete) => break,
                Err(corruption) => {
                    let is_foreign = !matches!(corruption, Corruption::Invalid { .. });
                    if !std::mem::replace(&mut searching, true) {
                        report(corruption);
                    }
                    // Another codec's payload is not searched for frames.
                    at += match is_foreign {
                        true => bytes.len() - at,
                        false => audio_frame::to_next_sync(self.format, &bytes[at..]),
                    };
                }
            }
        }
        bytes.drain(..at);
        self.rest = bytes;
    }

    /// Reads the frame at the start of these bytes. While `searching`, it is accepted only when valid bytes follow.
    fn read(&self, bytes: &[u8], searching: bool) -> Result<Read, Corruption> {
        let read = audio_frame::read(self.format, bytes)?;
        if searching && let Read::Frame(frame) = &read {
            audio_frame::read(self.format, &bytes[frame.body.end..])?;
        }
        Ok(read)
    }

    fn frame(
        &mut self,
        frame: &audio_frame::Frame,
        data: &[u8],
        units: &mut Vec<Unit>,
    ) -> Result<(), Corruption> {
        let is_known = self.config.is_some() && frame.fingerprint == self.fingerprint;
        if !is_known {
            let config = frame.config(self.format, data)?;
            self.fingerprint = frame.fingerprint;
            self.announce(config, units);
        }
        let (Some(config), Some(pace)) = (&self.config, &mut self.pace) else {
            let reason = "it has no timestamp";
            return Err(Corruption::Invalid { what: WHAT, reason });
        };
        let rate = i64::from(config.sample_rate);
        let pts_90k = pace.from_90k + pace.samples * CLOCK_90K / rate;
        pace.samples += i64::from(config.samples_in(data));
        if !data.is_empty() {
            units.push(Unit::Audio(AudioUnit {
                pts_90k,
                data: Bytes::copy_from_slice(data),
            }));
        }
        Ok(())
    }

    fn announce(&mut self, config: AudioConfig, units: &mut Vec<Unit>) {
        if self.config.as_deref() == Some(&config) {
            return;
        }
        let config = Arc::new(config);
        self.config = Some(Arc::clone(&config));
        units.push(Unit::AudioConfig(config));
    }
}
