//! In-band parameter sets (VPS, SPS, PPS) of H.264 and HEVC, for protocols that send no configuration record.

use bytes::Bytes;

use super::{VideoCodec, VideoConfig};
use crate::Error;

/// HEVC NAL unit types of VPS, SPS and PPS.
const HEVC_SETS: std::ops::RangeInclusive<u8> = 32..=34;

/// The sets that hold for a coded sequence, each a NAL unit with its header, without start code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterSets {
    /// Video parameter sets; HEVC only.
    pub vps: Vec<Bytes>,
    pub sps: Vec<Bytes>,
    pub pps: Vec<Bytes>,
}

/// Returns the parameter sets of a configuration record, as far as they are inside it: NAL units with their headers, without
/// length. None for AV1.
pub(super) fn sets_of_record(config: &VideoConfig) -> Vec<Bytes> {
    match config.codec {
        VideoCodec::Avc => avc_sets(&config.record),
        VideoCodec::Hevc => hevc_sets(&config.record),
        VideoCodec::Av1 => Vec::new(),
    }
}

/// Reads an `avcC` record (ISO/IEC 14496-15 §5.3.3).
fn avc_sets(record: &Bytes) -> Vec<Bytes> {
    const SPS_COUNT_AT: usize = 5;
    let mut sets = Vec::new();
    let mut at = SPS_COUNT_AT;
    for count_mask in [0x1f, 0xff] {
        let Some(count) = record.get(at) else {
            break;
        };
        at = take_sets(record, at + 1, (count & count_mask).into(), &mut sets);
    }
    sets
}

/// Reads an `hvcC` record (ISO/IEC 14496-15 §8.3.3), without its SEI messages.
fn hevc_sets(record: &Bytes) -> Vec<Bytes> {
    const ARRAY_COUNT_AT: usize = 22;
    let mut sets = Vec::new();
    let mut at = ARRAY_COUNT_AT + 1;
    for _ in 0..record.get(ARRAY_COUNT_AT).copied().unwrap_or(0) {
        let Some(&[_, high, low]) = record.get(at..).and_then(<[u8]>::first_chunk) else {
            break;
        };
        let count = u16::from_be_bytes([high, low]).into();
        at = take_sets(record, at + 3, count, &mut sets);
    }
    sets.retain(|nal| {
        nal.first()
            .is_some_and(|byte| HEVC_SETS.contains(&(byte >> 1 & 0x3f)))
    });
    sets
}

/// Takes `count` NAL units, each after a length of 2 bytes; returns where they end.
fn take_sets(record: &Bytes, mut at: usize, count: usize, sets: &mut Vec<Bytes>) -> usize {
    for _ in 0..count {
        let Some(&[high, low]) = record.get(at..).and_then(<[u8]>::first_chunk) else {
            return record.len();
        };
        let start = at + 2;
        let end = start + usize::from(u16::from_be_bytes([high, low]));
        if end > record.len() {
            return record.len();
        }
        sets.push(record.slice(start..end));
        at = end;
    }
    at
}

/// Writes each NAL unit behind its length in 2 bytes, as `avcC` and `hvcC` hold them.
pub(super) fn put_nal_units(
    record: &mut Vec<u8>,
    what: &'static str,
    nal_units: &[Bytes],
) -> Result<(), Error> {
    for nal in nal_units {
        let Ok(length) = u16::try_from(nal.len()) else {
            let reason = format!("a parameter set of {} bytes does not fit", nal.len());
            return Err(Error::invalid(what, reason));
        };
        record.extend(length.to_be_bytes());
        record.extend_from_slice(nal);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{
        VideoCodec, VideoConfig,
        test_bytes::{self, hex},
    };

    const AVC_SPS: &str = "67640028acd940780227e5c044000003000400000300f03c60c658";
    const AVC_PPS: &str = "68ef8fcb";
    const HEVC_VPS: &str = "40010c01ffff016000000300900000030000030078959409";
    const HEVC_SPS: &str =
        "420101016000000300900000030000030078a003c0801107cb965654a4c2f0168080000003008000000f04";
    const HEVC_PPS: &str = "4401c073c189";

    fn sets(vps: &[&str], sps: &[&str], pps: &[&str]) -> ParameterSets {
        let nal_units = |texts: &[&str]| texts.iter().map(|text| hex(text)).collect();
        ParameterSets {
            vps: nal_units(vps),
            sps: nal_units(sps),
            pps: nal_units(pps),
        }
    }

    /// Compares with the records that ffmpeg makes of the same sets.
    #[test]
    fn records_are_those_that_ffmpeg_writes() {
        let avc = sets(&[], &[AVC_SPS], &[AVC_PPS]);
        let config = VideoConfig::from_parameter_sets(VideoCodec::Avc, &avc).unwrap();
        assert_eq!(config.record, test_bytes::avc().record);
        assert_eq!(config.parameter_sets(), [avc.sps, avc.pps].concat());

        let hevc = sets(&[HEVC_VPS], &[HEVC_SPS], &[HEVC_PPS]);
        let config = VideoConfig::from_parameter_sets(VideoCodec::Hevc, &hevc).unwrap();
        assert_eq!(config.record, test_bytes::hevc().record);
        assert_eq!(
            config.parameter_sets(),
            [hevc.vps, hevc.sps, hevc.pps].concat()
        );
    }

    #[test]
    fn a_truncated_record_gives_the_sets_that_are_in_it() {
        for mut config in [test_bytes::avc(), test_bytes::hevc()] {
            let (whole, record) = (config.parameter_sets(), config.record.clone());
            for length in 0..record.len() {
                config.record = record.slice(..length);
                let sets = config.parameter_sets();
                assert!(whole.starts_with(&sets) && sets.len() <= whole.len());
            }
        }
    }

    #[test]
    fn sets_that_do_not_make_a_record_are_refused() {
        let many = [AVC_SPS; 32];
        let long = ["68"; 70_000].concat();
        for (codec, sets) in [
            (VideoCodec::Avc, sets(&[], &[], &[AVC_PPS])),
            (VideoCodec::Avc, sets(&[], &[AVC_SPS], &[])),
            (VideoCodec::Avc, sets(&[], &["67"], &[AVC_PPS])),
            (VideoCodec::Avc, sets(&[], &many, &[AVC_PPS])),
            (VideoCodec::Avc, sets(&[], &[AVC_SPS], &[&long])),
            (VideoCodec::Hevc, sets(&[], &[HEVC_SPS], &[HEVC_PPS])),
            (VideoCodec::Hevc, sets(&[HEVC_VPS], &[], &[HEVC_PPS])),
            (VideoCodec::Hevc, sets(&[HEVC_VPS], &[HEVC_SPS], &[])),
            (VideoCodec::Hevc, sets(&[HEVC_VPS], &["4201"], &[HEVC_PPS])),
            (VideoCodec::Av1, sets(&[], &[], &[])),
        ] {
            let made = VideoConfig::from_parameter_sets(codec, &sets);
            assert!(made.is_err(), "{codec:?} {:?}", sets.sps.len());
        }
    }
}
