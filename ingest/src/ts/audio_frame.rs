//! Reads audio frames in MPEG-TS: ADTS (ISO/IEC 13818-7 §6.2), MPEG audio (ISO/IEC 11172-3 §2.4.1.3), Opus. The control
//! header of Opus is that of ETSI TS 103 491's predecessor, "Opus in MPEG-TS", as ffmpeg and GStreamer write it.

use std::ops::Range;

use bytes::Bytes;
use sluice_media::codec::{AudioCodec, AudioConfig};

use super::{Corruption, tables::AudioFormat};

const WHAT: &str = "audio frame";
const ADTS_HEADER_BYTES: usize = 7;
const ADTS_CRC_BYTES: usize = 2;
const MPEG_HEADER_BYTES: usize = 4;
/// Kilobits per second of layer 3 by index; 0 is "free format", which no encoder sends.
const MPEG_1_BIT_RATES: [u32; 15] = [
    0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320,
];
const MPEG_2_BIT_RATES: [u32; 15] = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];

/// Whole frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Payload for a decoder, as a range from the start of the given bytes.
    pub(super) body: Range<usize>,
    /// The bits that the configuration follows from.
    pub(super) fingerprint: [u8; 4],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Frame(Frame),
    /// The rest follows later, or there are no bytes at all.
    Incomplete,
}

/// Reads the frame at the start of these bytes.
pub(super) fn read(format: AudioFormat, bytes: &[u8]) -> Result<Read, Corruption> {
    let frame = match format {
        AudioFormat::Adts => adts(bytes)?,
        AudioFormat::Mpeg => mpeg(bytes)?,
        AudioFormat::Opus { .. } => opus(bytes)?,
    };
    Ok(frame
        .filter(|frame| frame.body.end <= bytes.len())
        .map_or(Read::Incomplete, Read::Frame))
}

/// Returns how many bytes are to be skipped to where a frame may start next.
pub(super) fn to_next_sync(format: AudioFormat, bytes: &[u8]) -> usize {
    let is_sync = |at: &usize| match (format, bytes.get(*at + 1)) {
        (_, None) => true,
        (AudioFormat::Adts, Some(next)) => bytes[*at] == 0xff && next & 0xf6 == 0xf0,
        (AudioFormat::Mpeg, Some(next)) => bytes[*at] == 0xff && next & 0xe0 == 0xe0,
        (AudioFormat::Opus { .. }, Some(next)) => bytes[*at] == 0x7f && next & 0xe0 == 0xe0,
    };
    (1..bytes.len()).find(is_sync).unwrap_or(bytes.len())
}

fn invalid(reason: &'static str) -> Corruption {
    Corruption::Invalid { what: WHAT, reason }
}

/// Reads an ADTS header; `None` while it is not whole.
fn adts(bytes: &[u8]) -> Result<Option<Frame>, Corruption> {
    let sync = bytes.iter().zip([0xff, 0xf0]).zip([0xff, 0xf6]);
    if sync
        .into_iter()
        .any(|((byte, wanted), mask)| byte & mask != wanted)
    {
        return Err(invalid("it does not start with ADTS' sync word"));
    }
    let Some(&[_, flags, rate, b3, b4, b5, b6]) = bytes.first_chunk::<ADTS_HEADER_BYTES>() else {
        return Ok(None);
    };
    let has_crc = flags & 1 == 0;
    let header_bytes = ADTS_HEADER_BYTES + if has_crc { ADTS_CRC_BYTES } else { 0 };
    let total = usize::from(b3 & 3) << 11 | usize::from(b4) << 3 | usize::from(b5 >> 5);
    if total <= header_bytes {
        return Err(invalid("its length is no longer than its header"));
    }
    if b6 & 3 != 0 {
        let name = "AAC with several blocks in an ADTS frame".into();
        return Err(Corruption::AudioCodec { name });
    }
    Ok(Some(Frame {
        body: header_bytes..total,
        // Profile, rate, channels; the private bit between is not of the configuration.
        fingerprint: [rate & 0xfd, b3 & 0xc0, 0, 0],
    }))
}

fn mpeg(bytes: &[u8]) -> Result<Option<Frame>, Corruption> {
    let sync = bytes.iter().zip([0xff, 0xe0]);
    if sync
        .into_iter()
        .any(|(byte, wanted)| byte & wanted != wanted)
    {
        return Err(invalid("it does not start with the sync word"));
    }
    let Some(header) = bytes.first_chunk::<MPEG_HEADER_BYTES>() else {
        return Ok(None);
    };
    let config = AudioConfig::from_mp3_frame(header).map_err(Corruption::Media)?;
    let is_mpeg_1 = header[1] >> 3 & 3 == 3;
    let bit_rates = if is_mpeg_1 {
        MPEG_1_BIT_RATES
    } else {
        MPEG_2_BIT_RATES
    };
    let bit_rate = bit_rates
        .get(usize::from(header[2] >> 4))
        .map_or(0, |rate| rate * 1000);
    if bit_rate == 0 {
        return Err(invalid("its bit rate is free or reserved"));
    }
    let padding = u32::from(header[2] >> 1 & 1);
    let total = config.samples_per_frame / 8 * bit_rate / config.sample_rate + padding;
    Ok(Some(Frame {
        body: 0..total as usize,
        fingerprint: [0, header[1] & 0xfe, header[2] & 0x0c, header[3] & 0xc0],
    }))
}

/// Reads a control header and one Opus packet. Trimming of samples is meant for decoders and skipped.
fn opus(bytes: &[u8]) -> Result<Option<Frame>, Corruption> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let truncated = Corruption::Truncated { what: WHAT };
    let Some((&[sync, flags], sizes)) = bytes.split_first_chunk() else {
        return Err(truncated);
    };
    if sync != 0x7f || flags & 0xe0 != 0xe0 {
        return Err(invalid("it does not start with Opus' control header"));
    }
    let full_bytes = sizes.iter().take_while(|size| **size == 0xff).count();
    let last = *sizes.get(full_bytes).ok_or(truncated.clone())?;
    let packet_bytes = full_bytes * 0xff + usize::from(last);
    let mut start = 2 + full_bytes + 1;
    for trim_flag in [0x10, 0x08] {
        if flags & trim_flag != 0 {
            start += 2;
        }
    }
    if flags & 0x04 != 0 {
        start += 1 + usize::from(*bytes.get(start).ok_or(truncated.clone())?);
    }
    let end = start + packet_bytes;
    // A packet never spans PES packets, so its PES packet has to hold all of it.
    if end > bytes.len() {
        return Err(truncated);
    }
    Ok(Some(Frame {
        body: start..end,
        fingerprint: [0; 4],
    }))
}

impl Frame {
    /// Returns the configuration of this frame; `data` is its body.
    pub(super) fn config(
        &self,
        format: AudioFormat,
        data: &[u8],
    ) -> Result<AudioConfig, Corruption> {
        match format {
            AudioFormat::Adts => adts_config(self.fingerprint),
            AudioFormat::Mpeg => AudioConfig::from_mp3_frame(data).map_err(Corruption::Media),
            AudioFormat::Opus { channels } => opus_config(channels),
        }
    }
}

/// Builds the AudioSpecificConfig that is equivalent to the header.
fn adts_config([rate, channels, ..]: [u8; 4]) -> Result<AudioConfig, Corruption> {
    let object_type = (rate >> 6) + 1;
    let rate_index = rate >> 2 & 0x0f;
    let channel_configuration = (rate & 1) << 2 | channels >> 6;
    if channel_configuration == 0 {
        let name = "AAC with a channel layout of its own".into();
        return Err(Corruption::AudioCodec { name });
    }
    let record = [
        object_type << 3 | rate_index >> 1,
        rate_index << 7 | channel_configuration << 3,
    ];
    AudioConfig::parse(AudioCodec::Aac, Bytes::copy_from_slice(&record)).map_err(Corruption::Media)
}

/// The channel mappings of Vorbis (RFC 7845 §5.1.1.2): coupled streams and decoded channels, by the number of channels.
pub(super) const OPUS_LAYOUTS: [(u8, &[u8]); 8] = [
    (0, &[0]),
    (1, &[0, 1]),
    (1, &[0, 2, 1]),
    (2, &[0, 1, 2, 3]),
    (2, &[0, 4, 1, 2, 3]),
    (2, &[0, 4, 1, 2, 3, 5]),
    (2, &[0, 4, 1, 2, 3, 5, 6]),
    (3, &[0, 6, 1, 2, 3, 4, 5, 7]),
];

/// Makes the identification header for a channel configuration code of the descriptor: 1 to 8 are Vorbis' layouts.
fn opus_config(channels: u8) -> Result<AudioConfig, Corruption> {
    let layout = usize::from(channels)
        .checked_sub(1)
        .and_then(|at| OPUS_LAYOUTS.get(at));
    let Some((coupled, table)) = layout else {
        let name = "Opus with a channel layout of its own".into();
        return Err(Corruption::AudioCodec { name });
    };
    let family = u8::from(channels > 2);
    let mut record = b"OpusHead\x01".to_vec();
    record.extend([channels, 0, 0]);
    record.extend(48_000_u32.to_le_bytes());
    record.extend([0, 0, family]);
    if family == 1 {
        record.extend([channels - coupled, *coupled]);
        record.extend_from_slice(table);
    }
    AudioConfig::parse(AudioCodec::Opus, record.into()).map_err(Corruption::Media)
}
