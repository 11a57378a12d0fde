//! Reads AV1's `av1C` record (AV1-ISOBMFF §2.3) and sequence header (AV1 specification §5.5): size, profile, level, bit
//! depth.

use bytes::{BufMut, Bytes, BytesMut};

use super::{
    MAX_PIXELS_PER_SIDE, VideoCodec, VideoConfig,
    bits::BitReader,
    format::{Chroma, SampleFormat},
    obu::{self, Obu},
    video_frame_size,
    vui::frame_rate,
};
use crate::Error;

const RECORD: &str = "av1C record";
const SEQUENCE_HEADER: &str = "AV1 sequence header";

/// Marker bit and version 1.
const FIRST_BYTE: u8 = 0x81;
const FIXED_BYTES: usize = 4;

pub(super) fn parse(record: Bytes) -> Result<VideoConfig, Error> {
    match record.first() {
        Some(&FIRST_BYTE) if record.len() >= FIXED_BYTES => {}
        _ => {
            return Err(Error::invalid(
                RECORD,
                "its four fixed bytes do not say version 1",
            ));
        }
    }
    let header = find_sequence_header(&record[FIXED_BYTES..])?.ok_or_else(|| {
        Error::unsupported(
            RECORD,
            "it holds no sequence header; the first key frame may",
        )
    })?;
    let header = SequenceHeader::parse(header.body)?;
    Ok(header.into_config(record))
}

/// Reads the chroma fields of the record's third byte.
pub(super) fn sample_format(record: &[u8], bit_depth: u8) -> Option<SampleFormat> {
    let fields = record.get(..FIXED_BYTES)?[2];
    let chroma = match fields >> 2 & 0b111 {
        0b000 => Chroma::Yuv444,
        0b010 => Chroma::Yuv422,
        0b011 => Chroma::Yuv420,
        _ => Chroma::Monochrome,
    };
    Some(SampleFormat {
        chroma,
        bit_depth,
        is_interlaced: false,
    })
}

/// Builds the record from the first key frame: some encoders send an `av1C` without sequence header.
pub(super) fn from_key_frame(temporal_unit: &[u8]) -> Result<VideoConfig, Error> {
    let obu = find_sequence_header(temporal_unit)?
        .ok_or_else(|| Error::invalid("AV1 temporal unit", "it holds no sequence header"))?;
    let header = SequenceHeader::parse(obu.body)?;
    let record = header.record(obu.body);
    Ok(header.into_config(record))
}

fn find_sequence_header(obus: &[u8]) -> Result<Option<Obu<'_>>, Error> {
    for obu in obu::units(obus) {
        let obu = obu?;
        if obu.kind == obu::SEQUENCE_HEADER {
            return Ok(Some(obu));
        }
    }
    Ok(None)
}

/// Used fields of a sequence header.
#[derive(Debug)]
struct SequenceHeader {
    profile: u8,
    level_index: u8,
    high_tier: bool,
    bit_depth: u8,
    /// `mono_chrome`, `subsampling_x`, `subsampling_y`, `chroma_sample_position` as `av1C` packs them.
    chroma: u8,
    width: u16,
    height: u16,
    frame_rate: Option<f64>,
}

impl SequenceHeader {
    fn parse(body: &[u8]) -> Result<Self, Error> {
        let mut bits = BitReader::new(SEQUENCE_HEADER, body);
        let profile = bits.byte(3)?;
        if profile > 2 {
            return Err(bits.invalid(format!("seq_profile is {profile}, at most 2 is allowed")));
        }
        let still_video_frame = bits.flag()?;
        let reduced_header = bits.flag()?;
        if still_video_frame || reduced_header {
            return Err(Error::unsupported(
                SEQUENCE_HEADER,
                "it describes a still picture",
            ));
        }
        let points = OperatingPoint::read_first(&mut bits)?;
        let (width, height) = read_size(&mut bits)?;
        skip_tools(&mut bits)?;
        let (bit_depth, chroma) = read_colour(&mut bits, profile)?;
        Ok(Self {
            profile,
            level_index: points.level_index,
            high_tier: points.high_tier,
            bit_depth,
            chroma,
            width,
            height,
            frame_rate: points.frame_rate,
        })
    }

    fn into_config(self, record: Bytes) -> VideoConfig {
        VideoConfig {
            codec: VideoCodec::Av1,
            width: self.width,
            height: self.height,
            pixel_aspect: (1, 1),
            frame_rate: self.frame_rate,
            nal_length_size: 0,
            codecs: self.codecs(),
            profile: ["Main", "High", "Professional"][usize::from(self.profile.min(2))].to_owned(),
            level: self.level_name(),
            bit_depth: self.bit_depth,
            // Reordering happens inside temporal units: each one shows exactly one frame, in order.
            may_reorder: Some(false),
            record,
        }
    }

    /// Returns the RFC 6381 name, with the mandatory fields (AV1-ISOBMFF §5).
    fn codecs(&self) -> String {
        let tier = if self.high_tier { 'H' } else { 'M' };
        format!(
            "av01.{}.{:02}{tier}.{:02}",
            self.profile, self.level_index, self.bit_depth
        )
    }

    /// Annex A.3: index 4 is 3.0; index 31 lifts all limits.
    fn level_name(&self) -> String {
        match self.level_index {
            31 => "unbounded".to_owned(),
            index => format!("{}.{}", 2 + index / 4, index % 4),
        }
    }

    fn record(&self, header_body: &[u8]) -> Bytes {
        let depth_bits = match self.bit_depth {
            8 => 0b00,
            10 => 0b10,
            _ => 0b11,
        };
        let mut record = BytesMut::with_capacity(FIXED_BYTES + 1 + 4 + header_body.len());
        record.put_u8(FIRST_BYTE);
        record.put_u8(self.profile << 5 | self.level_index);
        record.put_u8(u8::from(self.high_tier) << 7 | depth_bits << 5 | self.chroma);
        record.put_u8(0);
        obu::write_sized(&mut record, obu::SEQUENCE_HEADER, header_body);
        record.freeze()
    }
}

/// Operating point that is played: the first one.
#[derive(Debug)]
struct OperatingPoint {
    level_index: u8,
    high_tier: bool,
    frame_rate: Option<f64>,
}

impl OperatingPoint {
    fn read_first(bits: &mut BitReader<'_>) -> Result<Self, Error> {
        let mut rate = None;
        let mut delay_bits = None;
        let timing_info_present = bits.flag()?;
        if timing_info_present {
            rate = read_timing(bits)?;
            let decoder_model_present = bits.flag()?;
            if decoder_model_present {
                delay_bits = Some(bits.bits(5)? + 1);
                bits.skip(32 + 5 + 5)?;
            }
        }
        let display_delay_present = bits.flag()?;
        let count = bits.bits(5)? + 1;
        let mut first = None;
        for _ in 0..count {
            bits.skip(12)?;
            let level_index = bits.byte(5)?;
            let high_tier = level_index > 7 && bits.flag()?;
            if let Some(delay_bits) = delay_bits
                && bits.flag()?
            {
                bits.skip(2 * delay_bits as usize + 1)?;
            }
            if display_delay_present && bits.flag()? {
                bits.skip(4)?;
            }
            first.get_or_insert((level_index, high_tier));
        }
        let (level_index, high_tier) = first.expect("the count is at least one");
        Ok(Self {
            level_index,
            high_tier,
            frame_rate: rate,
        })
    }
}

/// Reads `timing_info` (§5.5.3); returns a rate only where frames are evenly spaced.
fn read_timing(bits: &mut BitReader<'_>) -> Result<Option<f64>, Error> {
    let clock = (bits.bits(32)?, bits.bits(32)?);
    let equal_interval = bits.flag()?;
    if !equal_interval {
        return Ok(None);
    }
    // uvlc() (§4.10.3) writes the same bits as ue(v).
    let ticks_per_video_frame = bits.ue()?.saturating_add(1);
    Ok(frame_rate(Some(clock), ticks_per_video_frame))
}

fn read_size(bits: &mut BitReader<'_>) -> Result<(u16, u16), Error> {
    let width_bits = bits.bits(4)? + 1;
    let height_bits = bits.bits(4)? + 1;
    let width = bits.bits(width_bits)? + 1;
    let height = bits.bits(height_bits)? + 1;
    if width > MAX_PIXELS_PER_SIDE || height > MAX_PIXELS_PER_SIDE {
        return Err(bits.invalid(format!(
            "its frame is {width}×{height}, over {MAX_PIXELS_PER_SIDE}"
        )));
    }
    video_frame_size(SEQUENCE_HEADER, (width, height), [0; 4], (1, 1))
}

/// The coding tools between size and colour.
fn skip_tools(bits: &mut BitReader<'_>) -> Result<(), Error> {
    let frame_ids_present = bits.flag()?;
    if frame_ids_present {
        bits.skip(4 + 3)?;
    }
    bits.skip(3 + 4)?;
    let order_hints = bits.flag()?;
    if order_hints {
        bits.skip(2)?;
    }
    const SELECT: u32 = 2;
    let choose_screen_content = bits.flag()?;
    let screen_content = if choose_screen_content {
        SELECT
    } else {
        bits.bits(1)?
    };
    if screen_content > 0 {
        let choose_integer_mv = bits.flag()?;
        if !choose_integer_mv {
            bits.skip(1)?;
        }
    }
    if order_hints {
        bits.skip(3)?;
    }
    bits.skip(3)
}

/// Reads `color_config` (§5.5.2): bit depth, and the chroma fields as `av1C` packs them.
fn read_colour(bits: &mut BitReader<'_>, profile: u8) -> Result<(u8, u8), Error> {
    let high_depth = bits.flag()?;
    let twelve_bit = profile == 2 && high_depth && bits.flag()?;
    let bit_depth = match (high_depth, twelve_bit) {
        (_, true) => 12,
        (true, false) => 10,
        (false, false) => 8,
    };
    let monochrome = profile != 1 && bits.flag()?;
    let colour_described = bits.flag()?;
    let colour = if colour_described {
        bits.bits(24)?
    } else {
        0x02_02_02
    };
    if monochrome {
        return Ok((bit_depth, 0b1_11_00));
    }
    const SRGB_IDENTITY: u32 = 0x01_0d_00;
    if colour == SRGB_IDENTITY {
        return Ok((bit_depth, 0));
    }
    bits.skip(1)?;
    let (halved_across, halved_down) = match profile {
        0 => (true, true),
        1 => (false, false),
        _ if bit_depth == 12 => {
            let across = bits.flag()?;
            (across, across && bits.flag()?)
        }
        _ => (true, false),
    };
    let position = if halved_across && halved_down {
        bits.byte(2)?
    } else {
        0
    };
    Ok((
        bit_depth,
        u8::from(halved_across) << 3 | u8::from(halved_down) << 2 | position,
    ))
}

#[cfg(test)]
#[path = "av1_tests.rs"]
mod tests;
