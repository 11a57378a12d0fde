//! Reads Opus' identification header (RFC 7845 §5.1, also as the `dOps` box lays it out) and packet durations (RFC 6716
//! §3.1).

use bytes::Bytes;

use super::{AudioCodec, AudioConfig};
use crate::Error;

const WHAT: &str = "Opus identification header";
const MAGIC: &[u8] = b"OpusHead";

/// Decoder sample rate, whatever rate was encoded.
const SAMPLE_RATE: u32 = 48_000;
/// 20 ms, which every encoder defaults to.
const DEFAULT_SAMPLES_PER_PACKET: u32 = 960;
/// Longest packet, 120 ms (RFC 6716 §3.2.5).
const MAX_SAMPLES_PER_PACKET: u32 = 5_760;
/// Fields before the channel mapping.
const FIXED_BYTES: usize = 11;

/// The identification header of an Opus stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpusHead {
    /// 1–8.
    pub channels: u8,
    /// Samples at 48 kHz that a decoder throws away at the start.
    pub pre_skip: u16,
    /// The rate of the encoder's input, for information only; Opus always decodes at 48 kHz.
    pub input_sample_rate: u32,
    /// Gain in dB, Q7.8.
    pub output_gain: i16,
    /// `None` for family 0: mono or stereo in one stream.
    pub mapping: Option<OpusMapping>,
}

/// Mapping of the coded streams to the channels (RFC 7845 §5.1.1), for every family but 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpusMapping {
    pub family: u8,
    pub streams: u8,
    pub coupled: u8,
    /// Decoded channel per output channel; only the first `channels` entries mean something.
    pub table: [u8; 8],
}

pub(super) fn parse(record: Bytes) -> Result<AudioConfig, Error> {
    let head = OpusHead::parse(&record)?;
    Ok(AudioConfig {
        codec: AudioCodec::Opus,
        record,
        sample_rate: SAMPLE_RATE,
        channels: head.channels,
        codecs: "opus".to_owned(),
        samples_per_frame: DEFAULT_SAMPLES_PER_PACKET,
    })
}

impl OpusHead {
    /// Reads the header with or without its magic, or the body of a `dOps` box, which some encoders send instead: its
    /// version is 0 and its numbers are big-endian.
    pub(super) fn parse(record: &[u8]) -> Result<Self, Error> {
        let fields = record.strip_prefix(MAGIC).unwrap_or(record);
        let Some((fixed, mapping)) = fields.split_first_chunk::<FIXED_BYTES>() else {
            return Err(Error::invalid(
                WHAT,
                format!("it ends after {} bytes", record.len()),
            ));
        };
        let big_endian = match fixed[0] {
            0 => true,
            version if version >> 4 == 0 => false,
            version => {
                return Err(Error::invalid(
                    WHAT,
                    format!("its version is {version}, at most 15 is allowed"),
                ));
            }
        };
        let u16_at = |at: usize| {
            let pair = [fixed[at], fixed[at + 1]];
            if big_endian {
                u16::from_be_bytes(pair)
            } else {
                u16::from_le_bytes(pair)
            }
        };
        let rate = [fixed[4], fixed[5], fixed[6], fixed[7]];
        let channels = fixed[1];
        if !(1..=8).contains(&channels) {
            return Err(Error::invalid(
                WHAT,
                format!("it has {channels} channels, 1 to 8 are allowed"),
            ));
        }
        Ok(Self {
            channels,
            pre_skip: u16_at(2),
            input_sample_rate: if big_endian {
                u32::from_be_bytes(rate)
            } else {
                u32::from_le_bytes(rate)
            },
            output_gain: u16_at(8) as i16,
            mapping: OpusMapping::parse(fixed[10], channels, mapping)?,
        })
    }
}

impl OpusMapping {
    fn parse(family: u8, channels: u8, bytes: &[u8]) -> Result<Option<Self>, Error> {
        if family == 0 {
            return match channels {
                1 | 2 => Ok(None),
                _ => Err(Error::invalid(
                    WHAT,
                    "more than 2 channels need a channel mapping",
                )),
            };
        }
        let (Some(&[streams, coupled]), Some(entries)) =
            (bytes.first_chunk(), bytes.get(2..2 + usize::from(channels)))
        else {
            return Err(Error::invalid(WHAT, "it ends inside its channel mapping"));
        };
        if streams == 0 || coupled > streams {
            return Err(Error::invalid(
                WHAT,
                format!("{coupled} of its {streams} streams are coupled"),
            ));
        }
        const SILENT: u8 = 255;
        let decoded = u16::from(streams) + u16::from(coupled);
        if entries
            .iter()
            .any(|entry| *entry != SILENT && u16::from(*entry) >= decoded)
        {
            return Err(Error::invalid(
                WHAT,
                "its channel mapping names a stream that is not there",
            ));
        }
        let mut table = [0; 8];
        table[..entries.len()].copy_from_slice(entries);
        Ok(Some(Self {
            family,
            streams,
            coupled,
            table,
        }))
    }
}

/// Samples at 48 kHz in a packet; `None` when the packet cannot be one.
pub(super) fn samples_in(packet: &[u8]) -> Option<u32> {
    let toc = *packet.first()?;
    let configuration = usize::from(toc >> 3);
    let samples_per_frame = match configuration {
        0..12 => [480, 960, 1920, 2880][configuration % 4],
        12..16 => [480, 960][configuration % 2],
        _ => [120, 240, 480, 960][configuration % 4],
    };
    let frames = match toc & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(packet.get(1)? & 0x3f),
    };
    let samples = samples_per_frame * frames;
    (1..=MAX_SAMPLES_PER_PACKET)
        .contains(&samples)
        .then_some(samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::test_bytes::hex;

    #[test]
    fn reads_both_layouts_with_and_without_magic() {
        let stereo = OpusHead {
            channels: 2,
            pre_skip: 312,
            input_sample_rate: 48_000,
            output_gain: 0,
            mapping: None,
        };
        for record in [
            "4f70757348656164 01 02 3801 80bb0000 0000 00",
            "01 02 3801 80bb0000 0000 00",
            "00 02 0138 0000bb80 0000 00", // a dOps body from ffmpeg 9
        ] {
            assert_eq!(OpusHead::parse(&hex(record)), Ok(stereo), "{record}");
        }
        let surround = OpusHead::parse(&hex("000601380000bb80000001 0402 000401020305")).unwrap();
        let table = [0, 4, 1, 2, 3, 5, 0, 0];
        assert_eq!(
            surround.mapping,
            Some(OpusMapping {
                family: 1,
                streams: 4,
                coupled: 2,
                table
            })
        );
    }

    #[test]
    fn a_config_is_always_at_48_khz() {
        let config = parse(hex("01 01 3801 401f0000 00ff 00")).unwrap();
        assert_eq!(
            (
                config.sample_rate,
                config.channels,
                config.samples_per_frame
            ),
            (48_000, 1, 960)
        );
        assert_eq!(config.codecs, "opus");
        let head = config.opus_head().unwrap();
        assert_eq!((head.input_sample_rate, head.output_gain), (8_000, -256));
    }

    #[test]
    fn refuses_what_makes_no_sense() {
        for record in [
            "",
            "4f70757348656164",                      // magic alone
            "01 02 3801 80bb0000 0000",              // no mapping family
            "10 02 3801 80bb0000 0000 00",           // version 16
            "01 00 3801 80bb0000 0000 00",           // no channel
            "01 ff 3801 80bb0000 0000 01 0402",      // 255 channels
            "01 03 3801 80bb0000 0000 00",           // 3 channels without mapping
            "01 06 3801 80bb0000 0000 01 0402 0004", // mapping cut short
            "01 02 3801 80bb0000 0000 01 0102 0001", // more coupled streams than streams
            "01 02 3801 80bb0000 0000 01 0100 0009", // a stream that is not there
        ] {
            assert!(OpusHead::parse(&hex(record)).is_err(), "{record}");
        }
    }

    #[test]
    fn packet_durations_follow_the_table_of_contents() {
        for (packet, expected) in [
            (&[][..], None),
            (&[0x08][..], Some(960)),     // SILK 20 ms
            (&[0x19], Some(5_760)),       // SILK 60 ms, two frames
            (&[0x68], Some(960)),         // hybrid 20 ms
            (&[0x80], Some(120)),         // CELT 2.5 ms
            (&[0xfa], Some(1_920)),       // CELT 20 ms, two frames
            (&[0xfb, 0x83], Some(2_880)), // CELT 20 ms, three frames
            (&[0xfb], None),              // frame count missing
            (&[0xfb, 0x00], None),        // no frame
            (&[0xfb, 0x3f], None),        // 1.26 s
        ] {
            assert_eq!(samples_in(packet), expected, "{packet:02x?}");
        }
    }
}
