//! Reads H.264's `avcC` record (ISO/IEC 14496-15 §5.3.3) and SPS (ITU-T H.264 §7.3.2.1): size, profile, level,
//! reordering.

use bytes::Bytes;

use super::{
    MAX_PIXELS_PER_SIDE, ParameterSets, VideoCodec, VideoConfig,
    bits::{BitReader, unescape},
    format::{Chroma as ChromaFormat, SampleFormat},
    parameter_sets::put_nal_units,
    video_frame_size,
    vui::{self, Vui},
};
use crate::Error;

const RECORD: &str = "avcC record";
const SPS: &str = "H.264 sequence parameter set";

/// Profiles whose parameter sets carry chroma format, bit depth and scaling lists (§7.3.2.1.1).
const PROFILES_WITH_CHROMA_INFO: [u8; 13] =
    [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

pub(super) fn parse(record: Bytes) -> Result<VideoConfig, Error> {
    let (nal_length_size, sps) = read_record(&record)?;
    let sps = Sps::parse(sps)?;
    Ok(VideoConfig {
        codec: VideoCodec::Avc,
        width: sps.width,
        height: sps.height,
        pixel_aspect: sps.vui.pixel_aspect.unwrap_or((1, 1)),
        frame_rate: vui::frame_rate(sps.vui.clock, 2),
        nal_length_size,
        codecs: format!(
            "avc1.{:02x}{:02x}{:02x}",
            sps.profile_idc, sps.constraints, sps.level_idc
        ),
        profile: sps.profile_name(),
        level: sps.level_name(),
        bit_depth: sps.chroma.bit_depth,
        may_reorder: sps.may_reorder(),
        record,
    })
}

/// Reads the format of the record's first sequence parameter set.
pub(super) fn sample_format(record: &[u8]) -> Option<SampleFormat> {
    let (_, sps) = read_record(record).ok()?;
    let sps = Sps::parse(sps).ok()?;
    Some(SampleFormat {
        chroma: ChromaFormat::of_idc(sps.chroma.format),
        bit_depth: sps.chroma.bit_depth.max(sps.chroma.chroma_bit_depth),
        is_interlaced: !sps.frames_only,
    })
}

/// The record of parameter sets as a stream carries them, with NAL unit lengths of 4 bytes.
pub(super) fn record(sets: &ParameterSets) -> Result<Vec<u8>, Error> {
    let first = sets.sps.first().map_or(&[][..], |sps| sps);
    let sps = Sps::parse(first)?;
    let (sps_count, pps_count) = (sets.sps.len(), sets.pps.len());
    if sps_count > 31 || pps_count > 255 {
        let reason =
            format!("it would hold {sps_count} sequence and {pps_count} picture parameter sets");
        return Err(Error::invalid(RECORD, reason));
    }
    let mut record = vec![1, sps.profile_idc, sps.constraints, sps.level_idc, 0xff];
    record.push(0xe0 | sps_count as u8);
    put_nal_units(&mut record, RECORD, &sets.sps)?;
    record.push(pps_count as u8);
    put_nal_units(&mut record, RECORD, &sets.pps)?;
    if PROFILES_WITH_CHROMA_INFO.contains(&sps.profile_idc) {
        let chroma = &sps.chroma;
        let depths = [chroma.bit_depth, chroma.chroma_bit_depth].map(|depth| 0xf8 | (depth - 8));
        record.push(0xfc | chroma.format as u8);
        record.extend(depths);
        record.push(0);
    }
    Ok(record)
}

/// The NAL length size and the first sequence parameter set.
fn read_record(record: &[u8]) -> Result<(u8, &[u8]), Error> {
    let mut bits = BitReader::new(RECORD, record);
    let version = bits.byte(8)?;
    if version != 1 {
        return Err(bits.invalid(format!("its version is {version}, not 1")));
    }
    bits.skip(24 + 6)?;
    let nal_length_size = bits.byte(2)? + 1;
    if nal_length_size == 3 {
        return Err(bits.invalid("NAL unit lengths of 3 bytes are reserved"));
    }
    bits.skip(3)?;
    let sps_count = bits.bits(5)?;
    let mut first_sps = None;
    for _ in 0..sps_count {
        let length = bits.bits(16)? as usize;
        let sps = bits.bytes(length)?;
        first_sps.get_or_insert(sps);
    }
    let pps_count = bits.bits(8)?;
    for _ in 0..pps_count {
        let length = bits.bits(16)? as usize;
        bits.bytes(length)?;
    }
    if pps_count == 0 {
        return Err(bits.invalid("it holds no picture parameter set"));
    }
    let sps = first_sps.ok_or_else(|| bits.invalid("it holds no sequence parameter set"))?;
    Ok((nal_length_size, sps))
}

/// Used fields of a sequence parameter set.
#[derive(Debug)]
struct Sps {
    profile_idc: u8,
    constraints: u8,
    level_idc: u8,
    chroma: Chroma,
    width: u16,
    height: u16,
    /// `frame_mbs_only_flag`
    frames_only: bool,
    vui: Vui,
}

impl Sps {
    fn parse(nal: &[u8]) -> Result<Self, Error> {
        if nal.first().is_none_or(|header| header & 0x1f != 7) {
            return Err(Error::invalid(SPS, "its NAL unit type is not 7"));
        }
        let plain = unescape(&nal[1..]);
        let mut bits = BitReader::new(SPS, &plain);
        let profile_idc = bits.byte(8)?;
        let constraints = bits.byte(8)?;
        let level_idc = bits.byte(8)?;
        bits.ue_up_to(31, "seq_parameter_set_id")?;
        let chroma = if PROFILES_WITH_CHROMA_INFO.contains(&profile_idc) {
            Chroma::read(&mut bits)?
        } else {
            Chroma {
                format: 1,
                separate_planes: false,
                bit_depth: 8,
                chroma_bit_depth: 8,
            }
        };
        skip_picture_order(&mut bits)?;
        let (width, height, frames_only) = read_size(&mut bits, &chroma)?;
        let vui = read_vui(&mut bits);
        Ok(Self {
            profile_idc,
            constraints,
            level_idc,
            chroma,
            width,
            height,
            frames_only,
            vui,
        })
    }

    /// `constraint_set{n}_flag`
    fn constraint(&self, n: u8) -> bool {
        self.constraints & (0x80 >> n) != 0
    }

    fn profile_name(&self) -> String {
        let intra_only = self.constraint(3);
        let name = match self.profile_idc {
            44 => "CAVLC 4:4:4 Intra",
            66 if self.constraint(1) => "Constrained Baseline",
            66 => "Baseline",
            77 => "Main",
            88 => "Extended",
            100 if self.constraint(4) && self.constraint(5) => "Constrained High",
            100 if self.constraint(4) => "Progressive High",
            100 => "High",
            110 if intra_only => "High 10 Intra",
            110 => "High 10",
            122 if intra_only => "High 4:2:2 Intra",
            122 => "High 4:2:2",
            244 if intra_only => "High 4:4:4 Intra",
            244 => "High 4:4:4 Predictive",
            other => return format!("profile {other}"),
        };
        name.to_owned()
    }

    fn level_name(&self) -> String {
        let early_profile = matches!(self.profile_idc, 66 | 77 | 88);
        match self.level_idc {
            9 => "1b".to_owned(),
            11 if early_profile && self.constraint(3) => "1b".to_owned(),
            idc => format!("{}.{}", idc / 10, idc % 10),
        }
    }

    /// Returns whether frames may be reordered: where `max_num_reorder_frames` is absent, only the profile can rule it
    /// out (§E.2.1).
    fn may_reorder(&self) -> Option<bool> {
        let intra_only =
            matches!(self.profile_idc, 44 | 86 | 100 | 110 | 122 | 244) && self.constraint(3);
        let without_b_slices = self.profile_idc == 66;
        if intra_only || without_b_slices {
            return Some(false);
        }
        self.vui.max_num_reorder_frames.map(|frames| frames > 0)
    }
}

#[derive(Debug)]
struct Chroma {
    /// `chroma_format_idc`: 0 monochrome, 1 4:2:0, 2 4:2:2, 3 4:4:4.
    format: u32,
    separate_planes: bool,
    bit_depth: u8,
    chroma_bit_depth: u8,
}

impl Chroma {
    fn read(bits: &mut BitReader<'_>) -> Result<Self, Error> {
        let format = bits.ue_up_to(3, "chroma_format_idc")?;
        let separate_planes = format == 3 && bits.flag()?;
        let bit_depth = 8 + bits.ue_up_to(6, "bit_depth_luma_minus8")? as u8;
        let chroma_bit_depth = 8 + bits.ue_up_to(6, "bit_depth_chroma_minus8")? as u8;
        bits.skip(1)?;
        let scaling_matrix_present = bits.flag()?;
        if scaling_matrix_present {
            let lists = if format == 3 { 12 } else { 8 };
            for list in 0..lists {
                if bits.flag()? {
                    skip_scaling_list(bits, if list < 6 { 16 } else { 64 })?;
                }
            }
        }
        Ok(Self {
            format,
            separate_planes,
            bit_depth,
            chroma_bit_depth,
        })
    }

    /// Returns the luma samples of one cropping step, across and down (§7.4.2.1.1, before frames or fields).
    fn crop_unit(&self) -> (u32, u32) {
        if self.separate_planes {
            return (1, 1);
        }
        match self.format {
            1 => (2, 2),
            2 => (2, 1),
            _ => (1, 1),
        }
    }
}

/// Skips `scaling_list` (§7.3.2.1.1.1).
fn skip_scaling_list(bits: &mut BitReader<'_>, size: u32) -> Result<(), Error> {
    let mut last = 8;
    for _ in 0..size {
        let delta = bits.se()?;
        let next = (last + delta).rem_euclid(256);
        if next == 0 {
            break;
        }
        last = next;
    }
    Ok(())
}

/// Skips the fields from `log2_max_frame_num_minus4` to the last one before the size.
fn skip_picture_order(bits: &mut BitReader<'_>) -> Result<(), Error> {
    bits.ue_up_to(12, "log2_max_frame_num_minus4")?;
    match bits.ue_up_to(2, "pic_order_cnt_type")? {
        0 => {
            bits.ue_up_to(12, "log2_max_pic_order_cnt_lsb_minus4")?;
        }
        1 => {
            bits.skip(1)?;
            bits.se()?;
            bits.se()?;
            let cycle = bits.ue_up_to(255, "num_ref_frames_in_pic_order_cnt_cycle")?;
            for _ in 0..cycle {
                bits.se()?;
            }
        }
        _ => {}
    }
    bits.ue_up_to(16, "max_num_ref_frames")?;
    bits.skip(1)
}

/// Width and height after cropping, and `frame_mbs_only_flag`.
fn read_size(bits: &mut BitReader<'_>, chroma: &Chroma) -> Result<(u16, u16, bool), Error> {
    let most_macroblocks = MAX_PIXELS_PER_SIDE / 16;
    let macroblocks_across = 1 + bits.ue_up_to(most_macroblocks - 1, "pic_width_in_mbs_minus1")?;
    let map_units_down =
        1 + bits.ue_up_to(most_macroblocks - 1, "pic_height_in_map_units_minus1")?;
    let frames_only = bits.flag()?;
    let fields_per_unit = if frames_only { 1 } else { 2 };
    if !frames_only {
        bits.skip(1)?;
    }
    bits.skip(1)?;
    let cropped = bits.flag()?;
    let crop = if cropped {
        [bits.ue()?, bits.ue()?, bits.ue()?, bits.ue()?]
    } else {
        [0; 4]
    };
    let (unit_across, unit_down) = chroma.crop_unit();
    let (width, height) = video_frame_size(
        SPS,
        (
            macroblocks_across * 16,
            map_units_down * 16 * fields_per_unit,
        ),
        crop,
        (unit_across, unit_down * fields_per_unit),
    )?;
    Ok((width, height, frames_only))
}

fn read_vui(bits: &mut BitReader<'_>) -> Vui {
    let mut vui = Vui::default();
    // The fields before a corrupt one are kept; see the module `vui`.
    let _ = read_vui_fields(bits, &mut vui);
    vui
}

/// Reads `vui_parameters` (§E.1.1).
fn read_vui_fields(bits: &mut BitReader<'_>, vui: &mut Vui) -> Result<(), Error> {
    let vui_present = bits.flag()?;
    if !vui_present {
        return Ok(());
    }
    vui::read_video_frame_fields(bits, vui)?;
    let timing_info_present = bits.flag()?;
    if timing_info_present {
        vui::read_clock(bits, vui)?;
        bits.skip(1)?;
    }
    let nal_hrd = bits.flag()?;
    if nal_hrd {
        skip_hrd(bits)?;
    }
    let vcl_hrd = bits.flag()?;
    if vcl_hrd {
        skip_hrd(bits)?;
    }
    if nal_hrd || vcl_hrd {
        bits.skip(1)?;
    }
    bits.skip(1)?;
    let bitstream_restriction = bits.flag()?;
    if bitstream_restriction {
        bits.skip(1)?;
        for _ in 0..4 {
            bits.ue()?;
        }
        vui.max_num_reorder_frames = Some(bits.ue_up_to(16, "max_num_reorder_frames")?);
    }
    Ok(())
}

/// Skips `hrd_parameters` (§E.1.2).
fn skip_hrd(bits: &mut BitReader<'_>) -> Result<(), Error> {
    let buffers = 1 + bits.ue_up_to(31, "cpb_cnt_minus1")?;
    bits.skip(8)?;
    for _ in 0..buffers {
        bits.ue()?;
        bits.ue()?;
        bits.skip(1)?;
    }
    bits.skip(20)
}

#[cfg(test)]
#[path = "avc_tests.rs"]
mod tests;
