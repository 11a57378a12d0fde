//! In-band parameter sets (VPS, SPS, PPS) of H.264 and HEVC, for protocols that send no configuration record.

use bytes::Bytes;

use crate::Error;

/// The sets that hold for a coded sequence, each a NAL unit with its header, without start code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterSets {
    /// Video parameter sets; HEVC only.
    pub vps: Vec<Bytes>,
    pub sps: Vec<Bytes>,
    pub pps: Vec<Bytes>,
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

        let hevc = sets(&[HEVC_VPS], &[HEVC_SPS], &[HEVC_PPS]);
        let config = VideoConfig::from_parameter_sets(VideoCodec::Hevc, &hevc).unwrap();
        assert_eq!(config.record, test_bytes::hevc().record);
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
