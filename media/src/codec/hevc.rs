//! Reads HEVC's `hvcC` record (ISO/IEC 14496-15 §8.3.3) and SPS (ITU-T H.265 §7.3.2.2): size, profile, level,
//! reordering.

use bytes::Bytes;

use super::{
    MAX_PIXELS_PER_SIDE, ParameterSets, VideoCodec, VideoConfig,
    bits::{BitReader, unescape},
    format::{Chroma, SampleFormat},
    parameter_sets::put_nal_units,
    video_frame_size,
    vui::{self, Vui},
};
use crate::Error;

const RECORD: &str = "hvcC record";
const SPS: &str = "HEVC sequence parameter set";

const NAL_VPS: u8 = 32;
const NAL_SPS: u8 = 33;
const NAL_PPS: u8 = 34;

pub(super) fn parse(record: Bytes) -> Result<VideoConfig, Error> {
    let header = Record::read(&record)?;
    let sps = Sps::parse(header.sps)?;
    Ok(VideoConfig {
        codec: VideoCodec::Hevc,
        width: sps.width,
        height: sps.height,
        pixel_aspect: sps.vui.pixel_aspect.unwrap_or((1, 1)),
        frame_rate: vui::frame_rate(sps.vui.clock, 1).or(header.average_frame_rate),
        nal_length_size: header.nal_length_size,
        codecs: sps.tier_level.codecs(),
        profile: sps.tier_level.profile_name(),
        level: sps.tier_level.level_name(),
        bit_depth: sps.bit_depth,
        may_reorder: Some(sps.max_num_reorder > 0),
        record,
    })
}

/// Reads the format of the record's first sequence parameter set.
pub(super) fn sample_format(record: &[u8]) -> Option<SampleFormat> {
    let header = Record::read(record).ok()?;
    let sps = Sps::parse(header.sps).ok()?;
    Some(SampleFormat {
        chroma: Chroma::of_idc(sps.chroma_format),
        bit_depth: sps.bit_depth.max(sps.chroma_bit_depth),
        is_interlaced: sps.tier_level.is_interlaced(),
    })
}

/// The record of parameter sets as a stream carries them, with NAL unit lengths of 4 bytes.
pub(super) fn record(sets: &ParameterSets) -> Result<Vec<u8>, Error> {
    let first = sets.sps.first().map_or(&[][..], |sps| sps);
    let sps = Sps::parse(first)?;
    let mut record = vec![1];
    record.extend(sps.tier_level.bytes());
    // No statement on spatial segments and parallelism, nor on the frame rate.
    record.extend([0xf0, 0, 0xfc]);
    record.push(0xfc | sps.chroma_format as u8);
    record.extend([sps.bit_depth, sps.chroma_bit_depth].map(|depth| 0xf8 | (depth - 8)));
    record.extend([0, 0]);
    record.push(sps.temporal_layers << 3 | u8::from(sps.temporal_nesting) << 2 | 3);
    let arrays = [
        (NAL_VPS, &sets.vps),
        (NAL_SPS, &sets.sps),
        (NAL_PPS, &sets.pps),
    ];
    record.push(arrays.len() as u8);
    for (nal_type, nal_units) in arrays {
        let count = u16::try_from(nal_units.len()).unwrap_or(u16::MAX);
        record.push(0x80 | nal_type);
        record.extend(count.to_be_bytes());
        put_nal_units(&mut record, RECORD, &nal_units[..usize::from(count)])?;
    }
    Ok(record)
}

/// Used fields of the record beside the first sequence parameter set.
struct Record<'a> {
    nal_length_size: u8,
    average_frame_rate: Option<f64>,
    sps: &'a [u8],
}

impl<'a> Record<'a> {
    fn read(record: &'a [u8]) -> Result<Self, Error> {
        let mut bits = BitReader::new(RECORD, record);
        let version = bits.byte(8)?;
        // Writers from before the standard's last draft say 0 and mean the same layout.
        if version > 1 {
            return Err(bits.invalid(format!("its version is {version}, not 1")));
        }
        bits.skip(18 * 8)?;
        let frames_per_256_s = bits.bits(16)?;
        bits.skip(6)?;
        let nal_length_size = bits.byte(2)? + 1;
        if nal_length_size == 3 {
            return Err(bits.invalid("NAL unit lengths of 3 bytes are reserved"));
        }
        let sps = read_arrays(&mut bits)?;
        let average_frame_rate =
            (frames_per_256_s > 0).then(|| f64::from(frames_per_256_s) / 256.0);
        Ok(Self {
            nal_length_size,
            average_frame_rate,
            sps,
        })
    }
}

/// The first sequence parameter set; sample entry `hvc1` demands that all three kinds are in the record.
fn read_arrays<'a>(bits: &mut BitReader<'a>) -> Result<&'a [u8], Error> {
    let mut sps = None;
    let (mut has_vps, mut has_pps) = (false, false);
    let arrays = bits.bits(8)?;
    for _ in 0..arrays {
        bits.skip(2)?;
        let nal_type = bits.byte(6)?;
        let nal_units = bits.bits(16)?;
        for _ in 0..nal_units {
            let length = bits.bits(16)? as usize;
            let nal = bits.bytes(length)?;
            match nal_type {
                NAL_VPS => has_vps = true,
                NAL_SPS => _ = sps.get_or_insert(nal),
                NAL_PPS => has_pps = true,
                _ => {}
            }
        }
    }
    match sps {
        Some(sps) if has_vps && has_pps => Ok(sps),
        _ => Err(bits.invalid("a video, sequence or picture parameter set is missing")),
    }
}

/// Used fields of a sequence parameter set.
#[derive(Debug)]
struct Sps {
    /// 1–7.
    temporal_layers: u8,
    temporal_nesting: bool,
    tier_level: ProfileTierLevel,
    /// `chroma_format_idc`: 0 monochrome, 1 4:2:0, 2 4:2:2, 3 4:4:4.
    chroma_format: u32,
    bit_depth: u8,
    chroma_bit_depth: u8,
    width: u16,
    height: u16,
    max_num_reorder: u32,
    vui: Vui,
}

impl Sps {
    fn parse(nal: &[u8]) -> Result<Self, Error> {
        if nal.len() < 2 || nal[0] >> 1 & 0x3f != NAL_SPS {
            return Err(Error::invalid(SPS, "its NAL unit type is not 33"));
        }
        let plain = unescape(&nal[2..]);
        let mut bits = BitReader::new(SPS, &plain);
        bits.skip(4)?;
        let max_sub_layers_minus1 = bits.bits(3)?;
        if max_sub_layers_minus1 > 6 {
            return Err(bits.invalid("it declares 8 sub-layers, at most 7 are allowed"));
        }
        let temporal_nesting = bits.flag()?;
        let tier_level = ProfileTierLevel::read(&mut bits, max_sub_layers_minus1)?;
        bits.ue_up_to(15, "sps_seq_parameter_set_id")?;
        let chroma_format = bits.ue_up_to(3, "chroma_format_idc")?;
        let separate_planes = chroma_format == 3 && bits.flag()?;
        let (width, height) =
            read_size(&mut bits, if separate_planes { 0 } else { chroma_format })?;
        let bit_depth = 8 + bits.ue_up_to(8, "bit_depth_luma_minus8")? as u8;
        let chroma_bit_depth = 8 + bits.ue_up_to(8, "bit_depth_chroma_minus8")? as u8;
        let poc_bits = 4 + bits.ue_up_to(12, "log2_max_pic_order_cnt_lsb_minus4")?;
        let max_num_reorder = read_max_num_reorder(&mut bits, max_sub_layers_minus1)?;
        let mut vui = Vui::default();
        // The fields before a corrupt one are kept; see the module `vui`.
        let _ = read_to_clock(&mut bits, poc_bits, &mut vui);
        Ok(Self {
            temporal_layers: max_sub_layers_minus1 as u8 + 1,
            temporal_nesting,
            tier_level,
            chroma_format,
            bit_depth,
            chroma_bit_depth,
            width,
            height,
            max_num_reorder,
            vui,
        })
    }
}

/// The general part of `profile_tier_level` (§7.3.3).
#[derive(Debug)]
struct ProfileTierLevel {
    space: u8,
    high_tier: bool,
    profile_idc: u8,
    /// Bit 31 is `general_profile_compatibility_flag[0]`.
    compatibility: u32,
    constraints: [u8; 6],
    level_idc: u8,
}

impl ProfileTierLevel {
    fn read(bits: &mut BitReader<'_>, max_sub_layers_minus1: u32) -> Result<Self, Error> {
        let space = bits.byte(2)?;
        let high_tier = bits.flag()?;
        let profile_idc = bits.byte(5)?;
        let compatibility = bits.bits(32)?;
        let mut constraints = [0; 6];
        for byte in &mut constraints {
            *byte = bits.byte(8)?;
        }
        let level_idc = bits.byte(8)?;
        skip_sub_layers(bits, max_sub_layers_minus1)?;
        Ok(Self {
            space,
            high_tier,
            profile_idc,
            compatibility,
            constraints,
            level_idc,
        })
    }

    /// ISO/IEC 14496-15 Annex E.3: compatibility flags in reverse bit order, constraint bytes without trailing zeros.
    fn codecs(&self) -> String {
        let space = ["", "A", "B", "C"][usize::from(self.space & 3)];
        let tier = if self.high_tier { 'H' } else { 'L' };
        let compatibility = self.compatibility.reverse_bits();
        let mut codecs = format!(
            "hvc1.{space}{}.{compatibility:X}.{tier}{}",
            self.profile_idc, self.level_idc
        );
        let significant = self
            .constraints
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        for byte in &self.constraints[..significant] {
            codecs.push_str(&format!(".{byte:X}"));
        }
        codecs
    }

    /// `general_interlaced_source_flag` without `general_progressive_source_flag`.
    fn is_interlaced(&self) -> bool {
        self.constraints[0] >> 6 == 0b01
    }

    /// Returns the bytes as the parameter set and the record hold them.
    fn bytes(&self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[0] = self.space << 6 | u8::from(self.high_tier) << 5 | self.profile_idc;
        bytes[1..5].copy_from_slice(&self.compatibility.to_be_bytes());
        bytes[5..11].copy_from_slice(&self.constraints);
        bytes[11] = self.level_idc;
        bytes
    }

    fn profile_name(&self) -> String {
        match self.profile_idc {
            1 => "Main".to_owned(),
            2 => "Main 10".to_owned(),
            3 => "Main Still Picture".to_owned(),
            4 => "Range Extensions".to_owned(),
            9 => "Screen Content Coding".to_owned(),
            other => format!("profile {other}"),
        }
    }

    fn level_name(&self) -> String {
        let (major, minor) = (self.level_idc / 30, self.level_idc % 30 / 3);
        let tier = if self.high_tier { " High tier" } else { "" };
        format!("{major}.{minor}{tier}")
    }
}

fn skip_sub_layers(bits: &mut BitReader<'_>, count: u32) -> Result<(), Error> {
    let mut present = [(false, false); 6];
    for layer in &mut present[..count as usize] {
        *layer = (bits.flag()?, bits.flag()?);
    }
    if count > 0 {
        bits.skip(2 * (8 - count as usize))?;
    }
    for (profile, level) in &present[..count as usize] {
        bits.skip(if *profile { 88 } else { 0 } + if *level { 8 } else { 0 })?;
    }
    Ok(())
}

/// Width and height inside the conformance window.
fn read_size(bits: &mut BitReader<'_>, chroma_array_type: u32) -> Result<(u16, u16), Error> {
    let width = bits.ue_up_to(MAX_PIXELS_PER_SIDE, "pic_width_in_luma_samples")?;
    let height = bits.ue_up_to(MAX_PIXELS_PER_SIDE, "pic_height_in_luma_samples")?;
    let windowed = bits.flag()?;
    let crop = if windowed {
        [bits.ue()?, bits.ue()?, bits.ue()?, bits.ue()?]
    } else {
        [0; 4]
    };
    let unit = match chroma_array_type {
        1 => (2, 2),
        2 => (2, 1),
        _ => (1, 1),
    };
    video_frame_size(SPS, (width, height), crop, unit)
}

/// `sps_max_num_reorder_pics` of the highest sub-layer.
fn read_max_num_reorder(
    bits: &mut BitReader<'_>,
    max_sub_layers_minus1: u32,
) -> Result<u32, Error> {
    let each_layer = bits.flag()?;
    let entries = if each_layer {
        max_sub_layers_minus1 + 1
    } else {
        1
    };
    let mut max_num_reorder = 0;
    for _ in 0..entries {
        bits.ue_up_to(15, "sps_max_dec_pic_buffering_minus1")?;
        max_num_reorder = bits.ue_up_to(16, "sps_max_num_reorder_pics")?;
        bits.ue()?;
    }
    Ok(max_num_reorder)
}

/// Skips the fields between the reorder depth and the VUI, and reads the VUI's clock.
fn read_to_clock(bits: &mut BitReader<'_>, poc_bits: u32, vui: &mut Vui) -> Result<(), Error> {
    for _ in 0..6 {
        bits.ue()?;
    }
    let scaling_lists_enabled = bits.flag()?;
    if scaling_lists_enabled && bits.flag()? {
        skip_scaling_lists(bits)?;
    }
    bits.skip(2)?;
    let pcm_enabled = bits.flag()?;
    if pcm_enabled {
        bits.skip(8)?;
        bits.ue()?;
        bits.ue()?;
        bits.skip(1)?;
    }
    skip_reference_picture_sets(bits)?;
    let long_term_video_frames = bits.flag()?;
    if long_term_video_frames {
        let count = bits.ue_up_to(32, "num_long_term_ref_pics_sps")?;
        bits.skip((count * (poc_bits + 1)) as usize)?;
    }
    bits.skip(2)?;
    let vui_present = bits.flag()?;
    if vui_present {
        read_vui(bits, vui)?;
    }
    Ok(())
}

/// Skips `scaling_list_data` (§7.3.4).
fn skip_scaling_lists(bits: &mut BitReader<'_>) -> Result<(), Error> {
    for size_id in 0..4 {
        let matrices = if size_id == 3 { 2 } else { 6 };
        for _ in 0..matrices {
            let coded = bits.flag()?;
            if !coded {
                bits.ue()?;
                continue;
            }
            if size_id > 1 {
                bits.se()?;
            }
            let coefficients = 64.min(1 << (4 + 2 * size_id));
            for _ in 0..coefficients {
                bits.se()?;
            }
        }
    }
    Ok(())
}

/// Skips the short-term `st_ref_pic_set` structures of the parameter set (§7.3.7).
fn skip_reference_picture_sets(bits: &mut BitReader<'_>) -> Result<(), Error> {
    let sets = bits.ue_up_to(64, "num_short_term_ref_pic_sets")?;
    let mut previous_video_frames = 0;
    for set in 0..sets {
        let predicted = set > 0 && bits.flag()?;
        previous_video_frames = if predicted {
            skip_predicted_set(bits, previous_video_frames)?
        } else {
            let negative = bits.ue_up_to(16, "num_negative_pics")?;
            let positive = bits.ue_up_to(16, "num_positive_pics")?;
            for _ in 0..negative + positive {
                bits.ue()?;
                bits.skip(1)?;
            }
            negative + positive
        };
    }
    Ok(())
}

/// Skips a set that is coded as a difference from the one before; returns how many frames it names.
fn skip_predicted_set(bits: &mut BitReader<'_>, reference_pictures: u32) -> Result<u32, Error> {
    bits.skip(1)?;
    bits.ue()?;
    let mut video_frames = 0;
    for _ in 0..=reference_pictures {
        let used_by_current = bits.flag()?;
        let used_later = used_by_current || bits.flag()?;
        video_frames += u32::from(used_later);
    }
    Ok(video_frames)
}

/// Reads the VUI (§E.2.1), up to the timing fields.
fn read_vui(bits: &mut BitReader<'_>, vui: &mut Vui) -> Result<(), Error> {
    vui::read_video_frame_fields(bits, vui)?;
    bits.skip(3)?;
    let default_display_window = bits.flag()?;
    if default_display_window {
        for _ in 0..4 {
            bits.ue()?;
        }
    }
    let timing_info_present = bits.flag()?;
    if timing_info_present {
        vui::read_clock(bits, vui)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "hevc_tests.rs"]
mod tests;
