//! NAL units of H.264 and HEVC in RTP payloads: small ones share an aggregation packet, large ones are cut into fragments of equal
//! size.

use std::ops::Range;

use bytes::{BufMut as _, BytesMut};
use sluice_media::codec::VideoCodec;

use super::{MAX_PAYLOAD, Malformed, Packets};
use crate::ts::annex_b::{self, NalKind};

/// Bytes of the length before each unit of a frame.
const LENGTH_BYTES: usize = 4;
/// Bytes of the length before each unit of an aggregation packet (RFC 6184 §5.7.1, RFC 7798 §4.4.2).
const AGGREGATED_LENGTH_BYTES: usize = 2;

/// Iterates over the positions of a frame's units, without empty ones; ends after the first error.
pub(in crate::webrtc) fn positions(
    frame: &[u8],
) -> impl Iterator<Item = Result<Range<usize>, Malformed>> {
    let mut rest = frame;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let Some((nal, behind)) = split_first(rest) else {
                rest = &[];
                return Some(Err(Malformed("NAL unit ends behind its frame")));
            };
            rest = behind;
            if !nal.is_empty() {
                let end = frame.len() - rest.len();
                return Some(Ok(end - nal.len()..end));
            }
        }
        None
    })
}

/// Iterates over the units of a frame, as [`positions`].
pub(super) fn units(frame: &[u8]) -> impl Iterator<Item = Result<&[u8], Malformed>> {
    positions(frame).map(|range| range.map(|range| &frame[range]))
}

fn split_first(frame: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, behind) = frame.split_first_chunk::<LENGTH_BYTES>()?;
    behind.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// Payload format of one codec, as far as both formats differ.
pub(super) trait Format {
    /// Bytes of a unit's header, which a fragment's headers replace.
    const NAL_HEADER_BYTES: usize;

    /// Appends the header of an aggregation packet of these units.
    fn put_aggregation_header(units: &[&[u8]], out: &mut Vec<u8>);

    /// Appends the headers of a fragment of a unit with this header.
    fn put_fragment_headers(nal_header: &[u8], is_first: bool, is_last: bool, out: &mut Vec<u8>);
}

/// Makes packets of units in their order.
pub(super) struct Writer<'a, F> {
    packets: Packets,
    /// Units that wait to share a packet.
    waiting: Vec<&'a [u8]>,
    /// Payload bytes of an aggregation packet of them.
    waiting_bytes: usize,
    scratch: Vec<u8>,
    format: std::marker::PhantomData<F>,
}

impl<'a, F: Format> Writer<'a, F> {
    pub(super) fn new() -> Self {
        Self {
            packets: Packets::default(),
            waiting: Vec::new(),
            waiting_bytes: F::NAL_HEADER_BYTES,
            scratch: Vec::with_capacity(MAX_PAYLOAD),
            format: std::marker::PhantomData,
        }
    }

    /// Takes a unit that is longer than its header.
    pub(super) fn push(&mut self, nal: &'a [u8]) -> Result<(), Malformed> {
        if nal.len() > MAX_PAYLOAD {
            self.flush()?;
            return self.fragment(nal);
        }
        let bytes = AGGREGATED_LENGTH_BYTES + nal.len();
        if self.waiting_bytes + bytes > MAX_PAYLOAD {
            self.flush()?;
        }
        self.waiting.push(nal);
        self.waiting_bytes += bytes;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Packets, Malformed> {
        self.flush()?;
        Ok(self.packets)
    }

    /// Sends the waiting units; one alone goes without an aggregation packet.
    fn flush(&mut self) -> Result<(), Malformed> {
        match &self.waiting[..] {
            [] => {}
            [nal] => self.packets.push(nal)?,
            units => {
                self.scratch.clear();
                F::put_aggregation_header(units, &mut self.scratch);
                for nal in units {
                    self.scratch.put_u16(nal.len() as u16);
                    self.scratch.extend_from_slice(nal);
                }
                self.packets.push(&self.scratch)?;
            }
        }
        self.waiting.clear();
        self.waiting_bytes = F::NAL_HEADER_BYTES;
        Ok(())
    }

    fn fragment(&mut self, nal: &[u8]) -> Result<(), Malformed> {
        let (header, body) = nal.split_at(F::NAL_HEADER_BYTES);
        let most = MAX_PAYLOAD - F::NAL_HEADER_BYTES - 1;
        let count = body.len().div_ceil(most);
        let fragments = body.chunks(body.len().div_ceil(count));
        let last = fragments.len() - 1;
        for (index, fragment) in fragments.enumerate() {
            self.scratch.clear();
            F::put_fragment_headers(header, index == 0, index == last, &mut self.scratch);
            self.scratch.extend_from_slice(fragment);
            self.packets.push(&self.scratch)?;
        }
        Ok(())
    }
}

/// Appends the units behind start codes with lengths before them, without delimiters and filler; true for a frame at which
/// decoding can start.
pub(super) fn from_start_codes(
    codec: VideoCodec,
    frame: &[u8],
    out: &mut BytesMut,
) -> Result<bool, Malformed> {
    let mut key = false;
    for range in annex_b::nal_units(frame) {
        let nal = &frame[range];
        if nal.is_empty() {
            continue;
        }
        let kind = annex_b::kind(codec, nal).ok_or(Malformed("NAL unit header"))?;
        if kind == NalKind::Dispensable {
            continue;
        }
        key |= kind == NalKind::RandomAccessSlice;
        out.put_u32(nal.len() as u32);
        out.put_slice(nal);
    }
    Ok(key)
}
