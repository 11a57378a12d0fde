//! RTP payloads of HEVC (RFC 7798): single NAL units, aggregation packets of small ones (VPS, SPS, PPS together), fragmentation
//! units of large ones.

use super::{
    Malformed, Packets,
    nal::{self, Format, Writer},
};

const AGGREGATION: u8 = 48;
const FRAGMENTATION: u8 = 49;
/// Fields of a NAL unit's header (ITU-T H.265 §7.3.1.2).
const FORBIDDEN: u16 = 0x8000;
const TYPE_SHIFT: u16 = 9;
const TYPE: u16 = 0x3f << TYPE_SHIFT;
const LAYER_AND_TEMPORAL_ID: u16 = 0x1ff;
const TEMPORAL_ID: u16 = 7;

pub(super) fn packetize(frame: &[u8]) -> Result<Packets, Malformed> {
    let mut writer = Writer::<H265>::new();
    for nal in nal::units(frame) {
        let nal = nal?;
        let header = *nal.first_chunk().ok_or(Malformed("NAL unit header"))?;
        let header = u16::from_be_bytes(header);
        if header & FORBIDDEN != 0 {
            return Err(Malformed("forbidden bit of a NAL unit"));
        }
        if is_sent(nal_type(header)) {
            writer.push(nal)?;
        }
    }
    writer.finish()
}

/// Slices and parameter sets. Delimiters, ends of sequences, filler and messages tell a decoder nothing that it needs; types from 48
/// on are packets of this format.
fn is_sent(nal_type: u8) -> bool {
    nal_type <= 34
}

fn nal_type(header: u16) -> u8 {
    ((header & TYPE) >> TYPE_SHIFT) as u8
}

fn with_type(header: u16, nal_type: u8) -> [u8; 2] {
    (header & LAYER_AND_TEMPORAL_ID | u16::from(nal_type) << TYPE_SHIFT).to_be_bytes()
}

struct H265;

impl Format for H265 {
    const NAL_HEADER_BYTES: usize = 2;

    /// Layer and temporal id are the lowest of the units (§4.4.2).
    fn put_aggregation_header(units: &[&[u8]], out: &mut Vec<u8>) {
        let headers = units
            .iter()
            .map(|nal| u16::from_be_bytes([nal[0], nal[1]]) & LAYER_AND_TEMPORAL_ID);
        let layer = headers.clone().map(|ids| ids & !TEMPORAL_ID).min();
        let temporal_id = headers.map(|ids| ids & TEMPORAL_ID).min();
        let ids = layer.unwrap_or(0) | temporal_id.unwrap_or(0);
        out.extend(with_type(ids, AGGREGATION));
    }

    fn put_fragment_headers(nal_header: &[u8], is_first: bool, is_last: bool, out: &mut Vec<u8>) {
        let header = u16::from_be_bytes([nal_header[0], nal_header[1]]);
        out.extend(with_type(header, FRAGMENTATION));
        out.push(u8::from(is_first) << 7 | u8::from(is_last) << 6 | nal_type(header));
    }
}
