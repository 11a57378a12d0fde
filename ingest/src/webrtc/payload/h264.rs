//! RTP payloads of H.264 (RFC 6184, packetization-mode 1): single NAL units, STAP-A of small ones, FU-A of large ones.

use super::{
    Malformed, Packets,
    nal::{self, Format, Writer},
};

const STAP_A: u8 = 24;
const FU_A: u8 = 28;
/// Fields of a NAL unit's header (ITU-T H.264 §7.3.1).
const FORBIDDEN: u8 = 0x80;
const REF_IDC: u8 = 0x60;
const TYPE: u8 = 0x1f;

pub(super) fn packetize(frame: &[u8]) -> Result<Packets, Malformed> {
    let mut writer = Writer::<H264>::new();
    for nal in nal::units(frame) {
        let nal = nal?;
        if nal[0] & FORBIDDEN != 0 {
            return Err(Malformed("forbidden bit of a NAL unit"));
        }
        if is_sent(nal[0] & TYPE) {
            writer.push(nal)?;
        }
    }
    writer.finish()
}

/// Slices and parameter sets. Messages, delimiters, ends of sequences and filler tell a decoder nothing that it needs; types from 24
/// on are packets of this format.
fn is_sent(nal_type: u8) -> bool {
    matches!(nal_type, 1..=5 | 7 | 8)
}

struct H264;

impl Format for H264 {
    const NAL_HEADER_BYTES: usize = 1;

    fn put_aggregation_header(units: &[&[u8]], out: &mut Vec<u8>) {
        let ref_idc = units.iter().map(|nal| nal[0] & REF_IDC).max();
        out.push(ref_idc.unwrap_or(0) | STAP_A);
    }

    fn put_fragment_headers(nal_header: &[u8], is_first: bool, is_last: bool, out: &mut Vec<u8>) {
        let header = nal_header[0];
        out.push(header & REF_IDC | FU_A);
        out.push(u8::from(is_first) << 7 | u8::from(is_last) << 6 | header & TYPE);
    }
}
