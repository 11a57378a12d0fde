//! Reads AAC's AudioSpecificConfig (ISO/IEC 14496-3 §1.6.2.1): sample rate, channels, HE-AAC (SBR and PS).

use std::ops::RangeInclusive;

use bytes::Bytes;

use super::{AudioCodec, AudioConfig, bits::BitReader};
use crate::Error;

const WHAT: &str = "AudioSpecificConfig";

/// Table 1.18: `samplingFrequencyIndex` 0 to 12.
const SAMPLE_RATES: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];

const MAX_SAMPLE_RATE: u32 = 192_000;

/// Table 1.17: Main, LC, SSR and LTP, which share one specific configuration.
const CORE_TYPES: RangeInclusive<u32> = 1..=4;
const SBR: u32 = 5;
const PS: u32 = 29;

const SBR_SYNC: u32 = 0x2b7;
const PS_SYNC: u32 = 0x548;

/// Largest accepted record. Larger ones exist only in corrupt streams: the longest legal one, with every comment, stays
/// below.
const MAX_RECORD_BYTES: usize = 1024;

pub(super) fn parse(record: Bytes) -> Result<AudioConfig, Error> {
    if record.len() > MAX_RECORD_BYTES {
        return Err(Error::invalid(
            WHAT,
            format!("it is {} bytes long", record.len()),
        ));
    }
    let config = SpecificConfig::read(&mut BitReader::new(WHAT, &record))?;
    Ok(AudioConfig {
        codec: AudioCodec::Aac,
        sample_rate: config.output_rate(),
        channels: config.output_channels(),
        codecs: format!("mp4a.40.{}", config.object_type()),
        samples_per_frame: config.samples_per_frame(),
        record,
    })
}

/// Fields that an ADTS header repeats of the AudioSpecificConfig (ISO/IEC 13818-7 §6.2); of HE-AAC those of its core, in
/// which decoders find the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdtsFields {
    /// 1–4.
    pub object_type: u8,
    /// Index in table 1.18; `None` for another rate.
    pub rate_index: Option<u8>,
    /// Coded value: 7 means eight channels, 0 a layout of the stream's own.
    pub channel_configuration: u8,
    /// Frames have 960 samples.
    pub has_short_frames: bool,
}

pub(super) fn adts(record: &[u8]) -> Option<AdtsFields> {
    let config = SpecificConfig::read(&mut BitReader::new(WHAT, record)).ok()?;
    let rate_index = SAMPLE_RATES
        .iter()
        .position(|&rate| rate == config.core_rate);
    Some(AdtsFields {
        object_type: config.core_type as u8,
        rate_index: rate_index.map(|index| index as u8),
        channel_configuration: config.channel_configuration,
        has_short_frames: config.short_frames,
    })
}

/// The core coder and the extensions that are signalled around or behind it.
#[derive(Debug)]
struct SpecificConfig {
    core_type: u32,
    core_rate: u32,
    channel_configuration: u8,
    core_channels: u8,
    short_frames: bool,
    /// The output rate when spectral band replication is signalled.
    sbr_rate: Option<u32>,
    parametric_stereo: bool,
}

impl SpecificConfig {
    fn read(bits: &mut BitReader<'_>) -> Result<Self, Error> {
        let mut core_type = read_object_type(bits)?;
        let core_rate = read_sample_rate(bits)?;
        let channel_configuration = bits.bits(4)?;
        let hierarchical = matches!(core_type, SBR | PS);
        let mut parametric_stereo = core_type == PS;
        let mut sbr_rate = None;
        if hierarchical {
            sbr_rate = Some(read_sample_rate(bits)?);
            core_type = read_object_type(bits)?;
        }
        if !CORE_TYPES.contains(&core_type) {
            return Err(Error::unsupported(
                "AAC",
                format!("audio object type {core_type}; AAC-LC and HE-AAC are"),
            ));
        }
        let short_frames = bits.flag()?;
        let core_channels = read_general_audio(bits, channel_configuration)?;
        if !hierarchical {
            // What follows is an extension that older decoders do not see; one that cannot be read is not there.
            (sbr_rate, parametric_stereo) = read_appended_extension(bits).unwrap_or_default();
        }
        Ok(Self {
            core_type,
            core_rate,
            channel_configuration: channel_configuration as u8,
            core_channels,
            short_frames,
            sbr_rate,
            parametric_stereo,
        })
    }

    fn object_type(&self) -> u32 {
        match (self.parametric_stereo, self.sbr_rate) {
            (true, _) => PS,
            (false, Some(_)) => SBR,
            (false, None) => self.core_type,
        }
    }

    fn output_rate(&self) -> u32 {
        self.sbr_rate.unwrap_or(self.core_rate)
    }

    /// A frame lasts as long as the core coder's, counted at the output's rate.
    fn samples_per_frame(&self) -> u32 {
        let core_samples = if self.short_frames { 960 } else { 1024 };
        let doubled = self
            .sbr_rate
            .is_some_and(|rate| rate == self.core_rate.saturating_mul(2));
        if doubled {
            core_samples * 2
        } else {
            core_samples
        }
    }

    fn output_channels(&self) -> u8 {
        if self.parametric_stereo && self.core_channels == 1 {
            2
        } else {
            self.core_channels
        }
    }
}

fn read_object_type(bits: &mut BitReader<'_>) -> Result<u32, Error> {
    const ESCAPE: u32 = 31;
    match bits.bits(5)? {
        ESCAPE => Ok(32 + bits.bits(6)?),
        object_type => Ok(object_type),
    }
}

fn read_sample_rate(bits: &mut BitReader<'_>) -> Result<u32, Error> {
    const ESCAPE: u32 = 15;
    let rate = match bits.bits(4)? {
        ESCAPE => bits.bits(24)?,
        index => *SAMPLE_RATES
            .get(index as usize)
            .ok_or_else(|| bits.invalid("its sample rate index is reserved"))?,
    };
    if rate == 0 || rate > MAX_SAMPLE_RATE {
        return Err(bits.invalid(format!(
            "its sample rate is {rate} Hz, 1 to {MAX_SAMPLE_RATE} are allowed"
        )));
    }
    Ok(rate)
}

/// Reads GASpecificConfig (§4.4.1) behind its frame length flag; returns the channels.
fn read_general_audio(bits: &mut BitReader<'_>, channel_configuration: u32) -> Result<u8, Error> {
    let depends_on_core = bits.flag()?;
    if depends_on_core {
        bits.skip(14)?;
    }
    let extension = bits.flag()?;
    let channels = match channel_configuration {
        0 => read_program_config(bits)?,
        1..=6 => channel_configuration as u8,
        7 | 12 | 14 => 8,
        11 => 7,
        other => {
            return Err(Error::unsupported(
                "AAC",
                format!("channel configuration {other}"),
            ));
        }
    };
    if extension {
        bits.skip(1)?;
    }
    Ok(channels)
}

/// Reads program_config_element (§4.4.1.1), up to its comment; returns the channels.
fn read_program_config(bits: &mut BitReader<'_>) -> Result<u8, Error> {
    bits.skip(4 + 2 + 4)?;
    let speakers = bits.bits(4)? + bits.bits(4)? + bits.bits(4)?;
    let low_frequency = bits.bits(2)?;
    let associated_data = bits.bits(3)?;
    let coupling = bits.bits(4)?;
    for mixdown_bits in [4, 4, 3] {
        if bits.flag()? {
            bits.skip(mixdown_bits)?;
        }
    }
    let mut channels = low_frequency;
    for _ in 0..speakers {
        let pair = bits.flag()?;
        channels += if pair { 2 } else { 1 };
        bits.skip(4)?;
    }
    bits.skip((4 * low_frequency + 4 * associated_data + 5 * coupling) as usize)?;
    bits.skip(bits.remaining_bits() % 8)?;
    let comment_bytes = bits.bits(8)? as usize;
    bits.skip(comment_bytes * 8)?;
    match channels {
        1..=8 => Ok(channels as u8),
        other => Err(bits.invalid(format!(
            "its program has {other} channels, 1 to 8 are allowed"
        ))),
    }
}

/// Backward compatible signalling: the output rate with band replication, and whether parametric stereo is used.
fn read_appended_extension(bits: &mut BitReader<'_>) -> Option<(Option<u32>, bool)> {
    if bits.remaining_bits() < 16 || bits.bits(11).ok()? != SBR_SYNC {
        return None;
    }
    let object_type = read_object_type(bits).ok()?;
    let sbr_present = object_type == SBR && bits.flag().ok()?;
    if !sbr_present {
        return None;
    }
    let rate = read_sample_rate(bits).ok()?;
    let parametric_stereo =
        bits.remaining_bits() >= 12 && bits.bits(11).ok()? == PS_SYNC && bits.flag().ok()?;
    Some((Some(rate), parametric_stereo))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::test_bytes::hex;

    /// (record, sample rate, channels, codecs, samples per frame)
    type Row = (&'static str, u32, u8, &'static str, u32);

    #[test]
    fn reads_what_encoders_send() {
        let rows: [Row; 12] = [
            ("1210", 44_100, 2, "mp4a.40.2", 1024),            // OBS
            ("119056e500", 48_000, 2, "mp4a.40.2", 1024),      // ffmpeg 9: extension says "no SBR"
            ("120856e500", 44_100, 1, "mp4a.40.2", 1024),      // ffmpeg 9, mono
            ("11b056e500", 48_000, 6, "mp4a.40.2", 1024),      // ffmpeg 9, 5.1
            ("11b8", 48_000, 8, "mp4a.40.2", 1024),            // 7.1
            ("1194", 48_000, 2, "mp4a.40.2", 960),             // frames of 960
            ("2b11880 0", 48_000, 2, "mp4a.40.5", 2048),       // SBR around the core, 24 kHz inside
            ("131056e598", 48_000, 2, "mp4a.40.5", 2048),      // SBR behind the core
            ("eb098800", 48_000, 2, "mp4a.40.29", 2048),       // PS around the core
            ("130856e59d4880", 48_000, 2, "mp4a.40.29", 2048), // PS behind the core
            ("1780 5dc0 10", 48_000, 2, "mp4a.40.2", 1024),    // rate written out
            (
                "11802000 4420 0000 00".trim_end(),
                48_000,
                2,
                "mp4a.40.2",
                1024,
            ), // channels by program config
        ];
        for (record, sample_rate, channels, codecs, samples_per_frame) in rows {
            let config = parse(hex(record)).unwrap_or_else(|error| panic!("{record}: {error}"));
            let seen = (
                config.sample_rate,
                config.channels,
                config.codecs.as_str(),
                config.samples_per_frame,
            );
            assert_eq!(
                seen,
                (sample_rate, channels, codecs, samples_per_frame),
                "{record}"
            );
        }
    }

    #[test]
    fn refuses_what_makes_no_sense() {
        for record in [
            "",
            "12",
            "1690",             // reserved rate index 13
            "178000000810",     // rate 0 written out
            "17ffffffff90",     // rate of 16 MHz
            "1248 ",            // channel configuration 9
            "f9 48 40 00",      // object type 42 (xHE-AAC)
            "b910",             // object type 23 (AAC-LD)
            "0010",             // object type 0
            "1180000000000000", // program config without any channel
        ] {
            assert!(parse(hex(record)).is_err(), "{record}");
        }
        assert!(parse(Bytes::from(vec![0x12; MAX_RECORD_BYTES + 1])).is_err());
    }
}
