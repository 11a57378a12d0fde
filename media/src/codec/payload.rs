//! Checks a video frame's NAL units or OBUs before it is packaged, and finds key frames. One step for each unit, no
//! allocation.

use super::{VideoCodec, VideoConfig, obu};
use crate::Error;

const WHAT: &str = "frame payload";

/// Facts of a traversal of a frame's payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayloadFacts {
    /// A random access frame is inside: H.264 IDR, HEVC IRAP, AV1 key frame.
    pub has_idr: bool,
    /// Coded frame data is inside.
    pub has_slice: bool,
    /// Parameter sets (AV1: a sequence header) are inside.
    pub has_parameter_sets: bool,
}

/// Checks the length-prefixed NAL units or OBUs of one frame. [`Error::Invalid`] when a length leaves the payload, a
/// NAL unit has no header, or the payload is empty.
pub fn check_payload(config: &VideoConfig, payload: &[u8]) -> Result<PayloadFacts, Error> {
    if payload.is_empty() {
        return Err(Error::invalid(WHAT, "it is empty"));
    }
    let mut facts = PayloadFacts::default();
    match config.codec {
        VideoCodec::Avc => for_each_nal_unit(payload, config.nal_length_size, 1, |nal| {
            facts.note_avc(nal)
        })?,
        VideoCodec::Hevc => for_each_nal_unit(payload, config.nal_length_size, 2, |nal| {
            facts.note_hevc(nal)
        })?,
        VideoCodec::Av1 => {
            for obu in obu::units(payload) {
                facts.note_av1(obu?);
            }
        }
    }
    Ok(facts)
}

impl PayloadFacts {
    /// ITU-T H.264 table 7-1.
    fn note_avc(&mut self, nal: &[u8]) {
        match nal[0] & 0x1f {
            5 => (self.has_idr, self.has_slice) = (true, true),
            1..=4 => self.has_slice = true,
            7 | 8 => self.has_parameter_sets = true,
            _ => {}
        }
    }

    /// ITU-T H.265 table 7-1.
    fn note_hevc(&mut self, nal: &[u8]) {
        match nal[0] >> 1 & 0x3f {
            16..=23 => (self.has_idr, self.has_slice) = (true, true),
            0..=31 => self.has_slice = true,
            32..=34 => self.has_parameter_sets = true,
            _ => {}
        }
    }

    /// Reads `show_existing_frame`, then `frame_type`, where 0 is a key frame (AV1 specification §5.9.2).
    fn note_av1(&mut self, obu: obu::Obu<'_>) {
        match obu.kind {
            obu::SEQUENCE_HEADER => self.has_parameter_sets = true,
            obu::FRAME | obu::FRAME_HEADER => {
                self.has_slice = true;
                self.has_idr |= obu
                    .body
                    .first()
                    .is_some_and(|first| first & 0b1110_0000 == 0);
            }
            obu::TILE_GROUP => self.has_slice = true,
            _ => {}
        }
    }
}

fn for_each_nal_unit(
    payload: &[u8],
    length_size: u8,
    header_bytes: usize,
    mut note: impl FnMut(&[u8]),
) -> Result<(), Error> {
    let mut rest = payload;
    while !rest.is_empty() {
        let Some((prefix, behind)) = rest.split_at_checked(usize::from(length_size)) else {
            return Err(Error::invalid(
                WHAT,
                format!("{} bytes are left where a length should be", rest.len()),
            ));
        };
        let length = prefix
            .iter()
            .fold(0, |length, byte| length << 8 | usize::from(*byte));
        if length < header_bytes {
            return Err(Error::invalid(
                WHAT,
                format!("a NAL unit of {length} bytes has no header"),
            ));
        }
        let Some((nal, behind)) = behind.split_at_checked(length) else {
            let left = behind.len();
            return Err(Error::invalid(
                WHAT,
                format!("a NAL unit of {length} bytes is declared where {left} are left"),
            ));
        };
        note(nal);
        rest = behind;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::test_bytes::{self, hex};

    #[test]
    fn facts_by_codec() {
        let (idr, slice, sets) = (0b100, 0b010, 0b001);
        for (config, payload, expected) in [
            (
                test_bytes::avc(),
                "00000002 0910 00000002 6588",
                idr | slice,
            ), // delimiter, IDR
            (test_bytes::avc(), "00000003 419a00", slice),
            (test_bytes::avc(), "00000001 67 00000001 68", sets),
            (test_bytes::avc(), "00000001 06", 0), // SEI alone
            (test_bytes::hevc(), "00000003 2601af", idr | slice), // IDR_W_RADL
            (test_bytes::hevc(), "00000003 2a01af", idr | slice), // CRA
            (test_bytes::hevc(), "00000003 0201d0", slice),
            (test_bytes::hevc(), "00000003 400100 00000003 420100", sets),
            (
                test_bytes::av1(),
                "0a0b0000000cc4ff6736be4010 320210 00",
                idr | slice | sets,
            ),
            (test_bytes::av1(), "1200 320230 00", slice), // inter frame
            (test_bytes::av1(), "1200 1a0188", slice),    // an earlier frame shown again
        ] {
            let facts = check_payload(&config, &hex(payload))
                .unwrap_or_else(|error| panic!("{payload}: {error}"));
            let seen = PayloadFacts {
                has_idr: expected & idr != 0,
                has_slice: expected & slice != 0,
                has_parameter_sets: expected & sets != 0,
            };
            assert_eq!(facts, seen, "{payload}");
        }
    }

    #[test]
    fn lengths_that_leave_the_payload_are_refused() {
        for (config, payload) in [
            (test_bytes::avc(), ""),
            (test_bytes::avc(), "000000"),
            (test_bytes::avc(), "00000000"),
            (test_bytes::avc(), "00000003 6588"),
            (test_bytes::avc(), "ffffffff 6588"),
            (test_bytes::avc(), "00000002 6588 00"),
            (test_bytes::hevc(), "00000001 26"),
            (test_bytes::av1(), "32 05 10"),
            (test_bytes::av1(), "ff"),
        ] {
            assert!(check_payload(&config, &hex(payload)).is_err(), "{payload}");
        }
    }

    #[test]
    fn short_lengths_are_checked_too() {
        for (size, payload) in [(1, "02 6588 02 6588"), (2, "0002 6588")] {
            let config = VideoConfig {
                nal_length_size: size,
                ..test_bytes::avc()
            };
            assert!(check_payload(&config, &hex(payload)).unwrap().has_idr);
        }
    }
}
