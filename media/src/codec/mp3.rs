//! Reads the MP3 frame header (ISO/IEC 11172-3 §2.4.1.3, 13818-3 §2.4.1.3, MPEG-2.5): sample rate, channels.

use bytes::Bytes;

use super::{AudioCodec, AudioConfig};
use crate::Error;

const WHAT: &str = "MP3 frame";

/// RFC 6381 name. Apple's HLS authoring rules name `mp4a.40.34`, and hls.js maps it to the `mp3` that media source
/// extensions of browsers expect; only the latter would understand plain `mp3` in a playlist.
const CODECS: &str = "mp4a.40.34";

/// MPEG-1 rates; MPEG-2 halves them, MPEG-2.5 halves them again.
const SAMPLE_RATES: [u32; 3] = [44_100, 48_000, 32_000];

pub(super) fn from_frame(frame: &[u8]) -> Result<AudioConfig, Error> {
    let Some(&[sync, kind, rates, mode]) = frame.first_chunk() else {
        return Err(Error::invalid(
            WHAT,
            format!("it ends after {} bytes", frame.len()),
        ));
    };
    if sync != 0xff || kind & 0xe0 != 0xe0 {
        return Err(Error::invalid(WHAT, "it does not start with the sync word"));
    }
    let layer_code = kind >> 1 & 3;
    match layer_code {
        1 => {}
        0 => return Err(Error::invalid(WHAT, "its layer is reserved")),
        code => {
            return Err(Error::unsupported(
                "MPEG audio",
                format!("layer {}; layer 3 is", 4 - code),
            ));
        }
    }
    let (rate_divisor, samples_per_frame) = match kind >> 3 & 3 {
        3 => (1, 1152),
        2 => (2, 576),
        0 => (4, 576),
        _ => return Err(Error::invalid(WHAT, "its version is reserved")),
    };
    if rates >> 4 == 15 {
        return Err(Error::invalid(WHAT, "its bit rate is reserved"));
    }
    let rate = SAMPLE_RATES
        .get(usize::from(rates >> 2 & 3))
        .ok_or_else(|| Error::invalid(WHAT, "its sample rate is reserved"))?;
    const MONO: u8 = 3;
    Ok(AudioConfig {
        codec: AudioCodec::Mp3,
        record: Bytes::new(),
        sample_rate: rate / rate_divisor,
        channels: if mode >> 6 == MONO { 1 } else { 2 },
        codecs: CODECS.to_owned(),
        samples_per_frame,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::test_bytes::hex;

    #[test]
    fn reads_the_header_of_each_version() {
        for (frame, sample_rate, channels, samples) in [
            ("fffb90640000023c", 44_100, 2, 1152), // lame, 128 kbit/s joint stereo
            ("fff380c400197862", 22_050, 1, 576),  // lame, MPEG-2 mono
            ("ffe384c4", 12_000, 1, 576),          // MPEG-2.5
            ("fffa9800", 32_000, 2, 1152),         // with CRC
        ] {
            let config = from_frame(&hex(frame)).unwrap_or_else(|error| panic!("{frame}: {error}"));
            let seen = (
                config.sample_rate,
                config.channels,
                config.samples_per_frame,
            );
            assert_eq!(seen, (sample_rate, channels, samples), "{frame}");
            assert_eq!(config.codecs, "mp4a.40.34");
        }
    }

    #[test]
    fn refuses_what_is_no_frame() {
        for frame in [
            "",
            "fffb90",
            "494433 04",
            "ffeb9064",
            "fff99064",
            "fffbf064",
            "fffb9c64",
            "fffd9064",
            "ffff9064",
        ] {
            assert!(from_frame(&hex(frame)).is_err(), "{frame}");
        }
    }
}
