//! Writes audio frames for MPEG-TS outputs: AAC behind an ADTS header (ISO/IEC 13818-7 §6.2), Opus behind its control
//! header, MP3 unchanged.

use sluice_media::codec::{AudioCodec, AudioConfig, OpusHead};

use super::{super::audio_frame::OPUS_LAYOUTS, Unsupported, pes::StreamId};

const ADTS_HEADER_BYTES: usize = 7;
/// The length field has 13 bits, and counts the header.
const MAX_ADTS_BYTES: usize = (1 << 13) - 1;
/// MPEG-1's lowest sample rate; MPEG-2's are below.
const MPEG_1_FROM_HZ: u32 = 32_000;

/// Writes the frames of one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frames {
    Adts(Adts),
    Mp3 {
        is_mpeg_1: bool,
    },
    Opus {
        /// Number of channels, in Vorbis' layout.
        channels: u8,
    },
}

/// Fields that an ADTS header repeats of the AudioSpecificConfig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Adts {
    /// The object type less 1.
    profile: u8,
    rate_index: u8,
    /// 1–7.
    channels: u8,
}

impl Frames {
    pub(super) fn new(config: &AudioConfig) -> Result<Self, Unsupported> {
        match config.codec {
            AudioCodec::Aac => Adts::new(config).map(Self::Adts),
            AudioCodec::Mp3 => Ok(Self::Mp3 {
                is_mpeg_1: config.sample_rate >= MPEG_1_FROM_HZ,
            }),
            AudioCodec::Opus => match config.opus_head() {
                Some(head) if has_usual_layout(&head) => Ok(Self::Opus {
                    channels: head.channels,
                }),
                _ => Err(Unsupported {
                    what: "Opus with a channel layout of its own",
                    choose: "mono, stereo or 5.1 at the encoder",
                }),
            },
        }
    }

    pub(super) fn codec(&self) -> AudioCodec {
        match self {
            Self::Adts(_) => AudioCodec::Aac,
            Self::Mp3 { .. } => AudioCodec::Mp3,
            Self::Opus { .. } => AudioCodec::Opus,
        }
    }

    pub(super) fn stream_id(&self) -> StreamId {
        match self {
            Self::Adts(_) | Self::Mp3 { .. } => StreamId::Audio,
            Self::Opus { .. } => StreamId::Private,
        }
    }

    /// Appends a frame; `None` for one that is empty or too long for its header.
    pub(super) fn write(&self, frame: &[u8], out: &mut Vec<u8>) -> Option<()> {
        if frame.is_empty() {
            return None;
        }
        match self {
            Self::Adts(adts) => out.extend(adts.header(frame.len())?),
            Self::Mp3 { .. } => {}
            Self::Opus { .. } => put_opus_header(frame.len(), out),
        }
        out.extend_from_slice(frame);
        Some(())
    }
}

impl Adts {
    fn new(config: &AudioConfig) -> Result<Self, Unsupported> {
        let unsupported = |what| Unsupported {
            what,
            choose: "AAC-LC in mono, stereo or 5.1 at the encoder",
        };
        let fields = config.adts().ok_or(unsupported("this kind of AAC"))?;
        let rate_index = fields
            .rate_index
            .ok_or(unsupported("AAC of this sample rate"))?;
        let channels = fields.channel_configuration;
        if !(1..=7).contains(&channels) {
            return Err(unsupported("AAC with a channel layout of its own"));
        }
        if fields.has_short_frames {
            return Err(unsupported("AAC in frames of 960 samples"));
        }
        Ok(Self {
            profile: fields.object_type - 1,
            rate_index,
            channels,
        })
    }

    fn header(&self, frame_bytes: usize) -> Option<[u8; ADTS_HEADER_BYTES]> {
        let total = ADTS_HEADER_BYTES + frame_bytes;
        if total > MAX_ADTS_BYTES {
            return None;
        }
        let Self {
            profile,
            rate_index,
            channels,
        } = *self;
        Some([
            0xff,
            // MPEG-4, no CRC.
            0xf1,
            profile << 6 | rate_index << 2 | channels >> 2,
            channels << 6 | (total >> 11) as u8,
            (total >> 3) as u8,
            // The buffer fullness of a variable bit rate, and one block.
            (total << 5) as u8 | 0x1f,
            0xfc,
        ])
    }
}

/// Returns whether the layout follows from the number of channels.
fn has_usual_layout(head: &OpusHead) -> bool {
    let Some(mapping) = &head.mapping else {
        return true;
    };
    let layout = usize::from(head.channels)
        .checked_sub(1)
        .and_then(|at| OPUS_LAYOUTS.get(at));
    layout.is_some_and(|(coupled, table)| {
        mapping.family <= 1
            && mapping.coupled == *coupled
            && mapping.streams + mapping.coupled == head.channels
            && mapping.table[..table.len()] == **table
    })
}

/// Writes the header of "Opus in MPEG-TS", as ffmpeg and GStreamer read it: a prefix, and the length in bytes of 255.
fn put_opus_header(frame_bytes: usize, out: &mut Vec<u8>) {
    out.extend([0x7f, 0xe0]);
    out.extend(std::iter::repeat_n(0xff, frame_bytes / 0xff));
    out.push((frame_bytes % 0xff) as u8);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::ts::{
        audio_frame::{self, Read},
        tables::AudioFormat,
    };

    fn aac(record: &[u8]) -> Result<Frames, Unsupported> {
        let record = Bytes::copy_from_slice(record);
        Frames::new(&AudioConfig::parse(AudioCodec::Aac, record).unwrap())
    }

    fn opus(record: &[u8]) -> Result<Frames, Unsupported> {
        let record = Bytes::copy_from_slice(record);
        Frames::new(&AudioConfig::parse(AudioCodec::Opus, record).unwrap())
    }

    #[test]
    fn aac_becomes_the_adts_that_says_the_same() {
        for (record, profile, rate_index, channels) in [
            (&[0x11, 0x90][..], 1, 3, 2),               // LC, 48 kHz, stereo
            (&[0x12, 0x08], 1, 4, 1),                   // LC, 44.1 kHz, mono
            (&[0x2b, 0x11, 0x88, 0x00], 1, 6, 2),       // HE, 24 to 48 kHz
            (&[0xeb, 0x09, 0x88, 0x00], 1, 6, 1),       // HE v2
            (&[0x11, 0xb0], 1, 3, 6),                   // 5.1
            (&[0x17, 0x80, 0x5d, 0xc0, 0x10], 1, 3, 2), // 48 kHz written out
        ] {
            let expected = Adts {
                profile,
                rate_index,
                channels,
            };
            assert_eq!(aac(record), Ok(Frames::Adts(expected)), "{record:02x?}");
        }
    }

    #[test]
    fn what_has_no_header_is_refused_in_words() {
        for (refused, words) in [
            (aac(&[0x11, 0x94]), "AAC in frames of 960 samples"),
            (
                aac(&[0x17, 0x80, 0x52, 0x08, 0x10]),
                "AAC of this sample rate",
            ),
            (aac(&[0x11, 0xd8]), "AAC with a channel layout of its own"),
            (
                opus(b"OpusHead\x01\x02\0\0\x80\xbb\0\0\0\0\x01\x02\0\0\x01"),
                "Opus with a channel layout of its own",
            ),
        ] {
            let said = refused.unwrap_err().to_string();
            assert!(said.starts_with(words), "{said}");
            assert!(said.contains("cannot be sent in MPEG-TS: choose"), "{said}");
        }
    }

    #[test]
    fn frames_are_read_back() {
        let adts = aac(&[0x11, 0x90]).unwrap();
        let opus = opus(b"OpusHead\x01\x02\0\0\x80\xbb\0\0\0\0\0").unwrap();
        let formats = [
            (adts, AudioFormat::Adts, MAX_ADTS_BYTES - ADTS_HEADER_BYTES),
            (opus, AudioFormat::Opus { channels: 2 }, 2000),
        ];
        for (frames, format, longest) in formats {
            for length in [1, 254, 255, 256, 510, longest] {
                let frame = vec![0xab; length];
                let mut bytes = Vec::new();
                frames.write(&frame, &mut bytes).unwrap();
                let Ok(Read::Frame(found)) = audio_frame::read(format, &bytes) else {
                    panic!("{format:?} {length}");
                };
                assert_eq!(bytes[found.body.clone()], frame);
                assert_eq!(found.body.end, bytes.len());
            }
            assert_eq!(frames.write(&[], &mut Vec::new()), None);
        }
        let too_long = vec![0; MAX_ADTS_BYTES];
        assert_eq!(adts.write(&too_long, &mut Vec::new()), None);
    }
}
