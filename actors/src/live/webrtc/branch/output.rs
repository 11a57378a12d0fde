//! Check of what a branch's worker sends: a worker decodes foreign bytes, so its frames are read as any publisher's.

use std::sync::LazyLock;

use bytes::Bytes;
use sluice_media::codec::{
    AudioCodec, AudioConfig, ParameterSets, VideoCodec, VideoConfig, check_payload,
};

/// Largest magnitude of a time, so that sums of times have room.
const MOST_TIME_90K: u64 = 1 << 52;
/// Bytes of an Opus packet of one stream (RFC 6716 §3.4).
const MOST_PACKET_BYTES: usize = 1_276;
/// Samples of a packet.
const PACKET_SAMPLES: u32 = 960;
/// Largest side of a frame.
const MOST_SIDE: u16 = 1_920;
/// NAL unit types (ITU-T H.264 table 7-1).
const SEQUENCE_SET: u8 = 7;
const PICTURE_SET: u8 = 8;
/// Parameter sets of a key frame.
const MOST_SETS: usize = 8;

/// `OpusHead` of two channels.
static OPUS: LazyLock<AudioConfig> = LazyLock::new(|| {
    let head = b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\0";
    AudioConfig::parse(AudioCodec::Opus, Bytes::from_static(head)).expect("a valid header")
});

/// State of the check.
#[derive(Debug, Default)]
pub(super) struct OutputCheck {
    config: Option<VideoConfig>,
    last_pts_90k: Option<i64>,
}

impl OutputCheck {
    /// Checks an H.264 frame: its units, that its times rise, and in a key frame the parameter sets.
    pub fn video(&mut self, key: bool, pts_90k: i64, data: &Bytes) -> Result<(), String> {
        check_time(pts_90k)?;
        if key {
            let config = key_frame_config(data)?;
            if config.may_reorder != Some(false) || config.bit_depth != 8 {
                return Err(format!("a frame of profile {}", config.profile));
            }
            if config.width.max(config.height) > MOST_SIDE {
                return Err(format!("a frame of {}×{}", config.width, config.height));
            }
            self.config = Some(config);
        } else if self.last_pts_90k.is_some_and(|last| pts_90k <= last) {
            return Err("frames whose times do not rise".into());
        }
        self.last_pts_90k = Some(pts_90k);
        let config = self
            .config
            .as_ref()
            .ok_or("a frame before the first key frame")?;
        let facts = check_payload(config, data).map_err(|error| error.to_string())?;
        match facts.has_slice && facts.has_idr == key {
            true => Ok(()),
            false => Err("a frame that is no frame, or another kind of one".into()),
        }
    }

    /// Checks an Opus packet.
    pub fn audio(&self, pts_90k: i64, data: &Bytes) -> Result<(), String> {
        check_time(pts_90k)?;
        match !data.is_empty()
            && data.len() <= MOST_PACKET_BYTES
            && OPUS.samples_in(data) == PACKET_SAMPLES
        {
            true => Ok(()),
            false => Err(format!("an audio packet of {} bytes", data.len())),
        }
    }
}

fn check_time(pts_90k: i64) -> Result<(), String> {
    match pts_90k.unsigned_abs() <= MOST_TIME_90K {
        true => Ok(()),
        false => Err("a time that no stream has".into()),
    }
}

/// Reads the parameter sets at the beginning of a key frame.
fn key_frame_config(data: &Bytes) -> Result<VideoConfig, String> {
    let mut sets = ParameterSets::default();
    let mut at = 0;
    while let Some(length) = data.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        let end = (at + 4).saturating_add(u32::from_be_bytes(*length) as usize);
        let Some(header) = data.get(at + 4).filter(|_| end <= data.len()) else {
            break;
        };
        let kept = match header & 0x1f {
            SEQUENCE_SET => &mut sets.sps,
            PICTURE_SET => &mut sets.pps,
            _ => break,
        };
        if kept.len() == MOST_SETS {
            return Err("too many parameter sets".into());
        }
        kept.push(data.slice(at + 4..end));
        at = end;
    }
    VideoConfig::from_parameter_sets(VideoCodec::Avc, &sets).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Constrained baseline, 160×96.
    const SPS: &[u8] = b"\x67\x42\xc0\x0a\xd9\x0a\x19";
    const PPS: &[u8] = b"\x68\xce\x3c\x80";

    fn frame(units: &[&[u8]]) -> Bytes {
        let mut data = Vec::new();
        for unit in units {
            data.extend((unit.len() as u32).to_be_bytes());
            data.extend_from_slice(unit);
        }
        data.into()
    }

    #[test]
    fn frames_of_an_encoder_pass_and_others_do_not() {
        let key = frame(&[SPS, PPS, b"\x65\x88\x80"]);
        let inter = frame(&[b"\x41\x9a\x80"]);
        let mut check = OutputCheck::default();
        assert!(check.video(false, 0, &inter).is_err());
        check.video(true, 0, &key).unwrap();
        check.video(false, 3_000, &inter).unwrap();
        for (is_key, pts_90k, data) in [
            (false, 3_000, &inter),
            (false, 6_000, &key),
            (true, 6_000, &inter),
            (true, i64::MIN, &key),
            (false, 9_000, &frame(&[])),
            (false, 9_000, &frame(&[b"\x06\x05"])),
            (false, 9_000, &Bytes::from_static(b"\0\0\0\x09\x41")),
            (true, 9_000, &frame(&[PPS, b"\x65\x88"])),
            // High: frames may be reordered.
            (
                true,
                9_000,
                &frame(&[b"\x67\x64\x00\x0a\xd9\x0a\x19", PPS, b"\x65\x88"]),
            ),
        ] {
            assert!(check.video(is_key, pts_90k, data).is_err(), "{data:?}");
        }
        // Another encoder may begin before.
        check.video(true, 0, &key).unwrap();
    }

    #[test]
    fn packets_have_twenty_milliseconds() {
        let check = OutputCheck::default();
        // CELT, full band, 20 ms, stereo, one frame (RFC 6716 §3.1), and the same of 10 ms.
        assert!(check.audio(0, &Bytes::from_static(b"\xfc\x01")).is_ok());
        for packet in [&b""[..], b"\xf4\x01", &[0xfc; 1_300]] {
            assert!(check.audio(0, &Bytes::from_static(packet)).is_err());
        }
    }
}
