//! Video with in-band parameter sets (MPEG-TS, WebRTC): frames to units, parameter sets to configurations, bounds of NAL units and
//! sets.
//!
//! One PES packet is one frame, as every encoder in use sends it. Parameter sets that the announced configuration
//! holds are removed from the frames; sets that change between two key frames stay in, until the next key frame
//! announces them.

use std::{ops::Range, sync::Arc};

use bytes::{BufMut, Bytes, BytesMut};
use sluice_media::{
    codec::{ParameterSets, VideoCodec, VideoConfig},
    unit::{Unit, VideoUnit},
};

use super::{
    Corruption,
    annex_b::{self, NalKind},
};

const WHAT: &str = "video frame";
/// NAL units of one frame; levels allow at most 600 slices.
pub(crate) const MAX_NAL_UNITS: usize = 4096;
/// Parameter sets of one kind; H.264 allows 32 sequence sets, and encoders use one.
const MAX_SETS: usize = 32;
/// Greatest distance of decoding and presentation of a frame, either way.
const MAX_CTS_90K: i64 = 10 * 90_000;
/// Longest set that is collected; longer ones are left in their frames.
const MAX_SET_BYTES: usize = 16 * 1024;

/// Times at which a frame is decoded and shown, and the flag of its transport packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameTime {
    pub(crate) dts_90k: i64,
    /// Presentation minus decode time.
    pub(crate) cts_90k: i64,
    pub(crate) random_access: bool,
}

/// The video track of a session.
#[derive(Debug)]
pub(crate) struct VideoTrack {
    codec: VideoCodec,
    config: Option<Arc<VideoConfig>>,
    /// The sets that made `config`.
    announced: ParameterSets,
    /// Sets that arrived since and differ, waiting for a key frame.
    fresh: ParameterSets,
    /// NAL units of the current frame.
    nal_units: Vec<(NalKind, Range<usize>)>,
}

impl VideoTrack {
    pub(crate) fn new(codec: VideoCodec) -> Self {
        Self {
            codec,
            config: None,
            announced: ParameterSets::default(),
            fresh: ParameterSets::default(),
            nal_units: Vec::new(),
        }
    }

    pub(crate) fn codec(&self) -> VideoCodec {
        self.codec
    }

    /// Reads the byte stream of one frame. `Ok` where nothing was corrupt, which includes sets without a frame.
    pub(crate) fn push(
        &mut self,
        time: FrameTime,
        payload: &[u8],
        units: &mut Vec<Unit>,
    ) -> Result<(), Corruption> {
        self.push_nal_units(time, payload, annex_b::nal_units(payload), units)
    }

    /// Does what [`VideoTrack::push`] does, for a frame whose NAL units are at these positions.
    pub(crate) fn push_nal_units(
        &mut self,
        time: FrameTime,
        payload: &[u8],
        nal_units: impl Iterator<Item = Range<usize>>,
        units: &mut Vec<Unit>,
    ) -> Result<(), Corruption> {
        if time.cts_90k.abs() > MAX_CTS_90K {
            let reason = "its presentation and its decode time are more than 10 s apart";
            return Err(Corruption::Invalid { what: WHAT, reason });
        }
        self.find_nal_units(payload, nal_units)?;
        let has = |wanted: NalKind| self.nal_units.iter().any(|(kind, _)| *kind == wanted);
        let has_idr = has(NalKind::RandomAccessSlice);
        let has_slice = has_idr || has(NalKind::Slice);
        // The packet's random access flag is trusted only together with parameter sets, by which streams with open GOPs
        // show their entry points.
        let is_entry_point = time.random_access && has_slice && has(NalKind::Sps);
        let key = has_idr || is_entry_point;

        self.collect_sets(payload);
        if !has_slice {
            return Ok(());
        }
        if key || self.config.is_none() {
            self.announce(units)?;
        }
        units.push(Unit::Video(VideoUnit {
            dts_90k: time.dts_90k,
            cts_90k: time.cts_90k as i32,
            key,
            data: self.length_prefixed(payload),
        }));
        Ok(())
    }

    fn find_nal_units(
        &mut self,
        payload: &[u8],
        nal_units: impl Iterator<Item = Range<usize>>,
    ) -> Result<(), Corruption> {
        self.nal_units.clear();
        for range in nal_units {
            if self.nal_units.len() == MAX_NAL_UNITS {
                let reason = "it has more than 4096 NAL units";
                return Err(Corruption::Invalid { what: WHAT, reason });
            }
            if range.is_empty() {
                continue;
            }
            let Some(kind) = annex_b::kind(self.codec, &payload[range.clone()]) else {
                let reason = "a NAL unit has no right header";
                return Err(Corruption::Invalid { what: WHAT, reason });
            };
            self.nal_units.push((kind, range));
        }
        if self.nal_units.is_empty() {
            let reason = "it has no NAL unit";
            return Err(Corruption::Invalid { what: WHAT, reason });
        }
        Ok(())
    }

    /// Keeps the parameter sets that differ from the announced ones.
    fn collect_sets(&mut self, payload: &[u8]) {
        let brings = |wanted| self.nal_units.iter().any(|(kind, _)| *kind == wanted);
        // A frame that repeats the announced sets revokes earlier different ones.
        for kind in [NalKind::Vps, NalKind::Sps, NalKind::Pps] {
            if let Some(fresh) = sets_of(&mut self.fresh, kind)
                && brings(kind)
                && self.config.is_some()
            {
                fresh.clear();
            }
        }
        for (kind, range) in &self.nal_units {
            let Some(fresh) = sets_of(&mut self.fresh, *kind) else {
                continue;
            };
            let set = &payload[range.clone()];
            let fits = fresh.len() < MAX_SETS && set.len() <= MAX_SET_BYTES;
            if fits && !fresh.iter().any(|known| known == set) {
                fresh.push(Bytes::copy_from_slice(set));
            }
        }
    }

    /// Applies the arrived sets from this frame on; announces the configuration when it differs.
    fn announce(&mut self, units: &mut Vec<Unit>) -> Result<(), Corruption> {
        let mut sets = self.announced.clone();
        for kind in [NalKind::Vps, NalKind::Sps, NalKind::Pps] {
            let (Some(fresh), Some(held)) =
                (sets_of(&mut self.fresh, kind), sets_of(&mut sets, kind))
            else {
                continue;
            };
            if !fresh.is_empty() {
                *held = std::mem::take(fresh);
            }
        }
        if self.config.is_some() && sets == self.announced {
            return Ok(());
        }
        let needs_vps = self.codec == VideoCodec::Hevc;
        if sets.sps.is_empty() || sets.pps.is_empty() || (needs_vps && sets.vps.is_empty()) {
            self.fresh = sets;
            return Err(Corruption::NoConfiguration { what: "video" });
        }
        let config =
            VideoConfig::from_parameter_sets(self.codec, &sets).map_err(Corruption::Media)?;
        let config = Arc::new(config);
        self.announced = sets;
        self.config = Some(Arc::clone(&config));
        units.push(Unit::VideoConfig(config));
        Ok(())
    }

    /// Returns the frame as files hold it: each NAL unit after its length, without announced sets and dispensable
    /// units.
    fn length_prefixed(&self, payload: &[u8]) -> Bytes {
        let mut data = BytesMut::with_capacity(payload.len() + self.nal_units.len());
        for (kind, range) in &self.nal_units {
            let nal = &payload[range.clone()];
            let is_announced = match kind {
                NalKind::Vps => self.announced.vps.iter().any(|set| set == nal),
                NalKind::Sps => self.announced.sps.iter().any(|set| set == nal),
                NalKind::Pps => self.announced.pps.iter().any(|set| set == nal),
                _ => false,
            };
            if is_announced || *kind == NalKind::Dispensable {
                continue;
            }
            data.put_u32(nal.len() as u32);
            data.put_slice(nal);
        }
        data.freeze()
    }
}

/// The sets of a kind; `None` where the kind is no parameter set.
fn sets_of(sets: &mut ParameterSets, kind: NalKind) -> Option<&mut Vec<Bytes>> {
    match kind {
        NalKind::Vps => Some(&mut sets.vps),
        NalKind::Sps => Some(&mut sets.sps),
        NalKind::Pps => Some(&mut sets.pps),
        _ => None,
    }
}
