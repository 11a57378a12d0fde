//! RTP payloads of AV1 ("RTP Payload Format For AV1" 1.0 §4): aggregation header, OBU elements without sizes, fragments.

use bytes::{BufMut as _, BytesMut};

use super::{MAX_PAYLOAD, Malformed, Packets};

/// Types of units that are not sent or that say what a frame is (AV1 specification §6.2.2).
const SEQUENCE_HEADER: u8 = 1;
const TEMPORAL_DELIMITER: u8 = 2;
const TILE_LIST: u8 = 8;
const PADDING: u8 = 15;
/// Fields of a unit's header (§5.3.2).
const FORBIDDEN: u8 = 0x80;
const HAS_EXTENSION: u8 = 4;
const HAS_SIZE: u8 = 2;
/// Bits of the aggregation header (§4.4 of the payload format).
const CONTINUES: u8 = 0x80;
const IS_CONTINUED: u8 = 0x40;
const COUNT_SHIFT: u8 = 4;
const NEW_SEQUENCE: u8 = 0x08;
/// Most elements of a packet whose header counts them, so that its last one needs no length.
const MAX_ELEMENTS: u8 = 3;
/// Least bytes of an element for which a packet with others is used.
const LEAST_ROOM: usize = 16;

/// Returns the packets of a temporal unit. `starts_sequence` sets the N bit of the first packet, which is how receivers know a key
/// frame.
pub(super) fn packetize(temporal_unit: &[u8], starts_sequence: bool) -> Result<Packets, Malformed> {
    let mut writer = Writer::new(starts_sequence);
    for obu in units(temporal_unit) {
        let obu = obu?;
        if !matches!(obu.kind(), TEMPORAL_DELIMITER | TILE_LIST | PADDING) {
            writer.push(&obu)?;
        }
    }
    writer.finish()
}

/// Appends the units with their sizes, without temporal delimiters, tile lists and padding; true when a sequence header is among
/// them, as in every key frame.
pub(super) fn without_delimiters(frame: &[u8], out: &mut BytesMut) -> Result<bool, Malformed> {
    let mut key = false;
    for obu in units(frame) {
        let obu = obu?;
        if matches!(obu.kind(), TEMPORAL_DELIMITER | TILE_LIST | PADDING) {
            continue;
        }
        key |= obu.kind() == SEQUENCE_HEADER;
        out.put_u8(obu.header | HAS_SIZE);
        out.extend(obu.extension);
        let (size, size_bytes) = leb128(obu.body.len());
        out.put_slice(&size[..size_bytes]);
        out.put_slice(obu.body);
    }
    Ok(key)
}

/// An open bitstream unit.
struct Obu<'a> {
    /// First byte, without the flag of the size.
    header: u8,
    extension: Option<u8>,
    body: &'a [u8],
}

impl Obu<'_> {
    fn kind(&self) -> u8 {
        self.header >> 3 & 15
    }
}

/// Iterates over the units of a low-overhead bitstream (§5.2); ends after the first error.
fn units(data: &[u8]) -> impl Iterator<Item = Result<Obu<'_>, Malformed>> {
    let mut rest = data;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some((obu, behind)) = split_first(rest) else {
            rest = &[];
            return Some(Err(Malformed("AV1 unit")));
        };
        rest = behind;
        Some(Ok(obu))
    })
}

fn split_first(data: &[u8]) -> Option<(Obu<'_>, &[u8])> {
    let (&header, mut rest) = data.split_first()?;
    if header & FORBIDDEN != 0 {
        return None;
    }
    let mut extension = None;
    if header & HAS_EXTENSION != 0 {
        let (&byte, behind) = rest.split_first()?;
        (extension, rest) = (Some(byte), behind);
    }
    let mut size = rest.len();
    if header & HAS_SIZE != 0 {
        (size, rest) = read_leb128(rest)?;
    }
    let (body, behind) = rest.split_at_checked(size)?;
    let header = header & !HAS_SIZE;
    let obu = Obu {
        header,
        extension,
        body,
    };
    Some((obu, behind))
}

/// Reads `leb128()` (§4.10.5): at most 8 bytes.
fn read_leb128(data: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (index, &byte) in data.iter().take(8).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, &data[index + 1..]));
        }
    }
    None
}

/// The bytes of `leb128()` and their number.
fn leb128(mut value: usize) -> ([u8; 8], usize) {
    let mut bytes = [0; 8];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            return (bytes, index + 1);
        }
        *byte |= 0x80;
    }
    (bytes, 8)
}

/// Fills packets with units in their order.
struct Writer {
    packets: Packets,
    /// The open packet, with its aggregation header in front.
    open: Vec<u8>,
    /// Bits of the aggregation header but the count.
    flags: u8,
    elements: u8,
    /// Begin of the last element, which has no length yet.
    last_element: usize,
    /// Extension of the units in the packet: layers do not share one (§4.4).
    extension: Option<u8>,
}

impl Writer {
    fn new(starts_sequence: bool) -> Self {
        let mut writer = Self {
            packets: Packets::default(),
            open: Vec::with_capacity(MAX_PAYLOAD),
            flags: 0,
            elements: 0,
            last_element: 0,
            extension: None,
        };
        let flags = if starts_sequence { NEW_SEQUENCE } else { 0 };
        writer.begin(flags);
        writer
    }

    fn begin(&mut self, flags: u8) {
        self.open.clear();
        self.open.push(0);
        self.flags = flags;
        self.elements = 0;
        self.extension = None;
    }

    fn push(&mut self, obu: &Obu<'_>) -> Result<(), Malformed> {
        let of_other_layer =
            obu.extension.is_some() && self.extension.is_some() && obu.extension != self.extension;
        if self.elements == MAX_ELEMENTS || of_other_layer || self.room() < LEAST_ROOM {
            self.send(0)?;
        }
        self.begin_element();
        self.extension = self.extension.or(obu.extension);
        self.open.push(obu.header);
        self.open.extend(obu.extension);
        let mut rest = obu.body;
        loop {
            let (fitting, behind) = rest.split_at(rest.len().min(MAX_PAYLOAD - self.open.len()));
            self.open.extend_from_slice(fitting);
            if behind.is_empty() {
                return Ok(());
            }
            rest = behind;
            self.flags |= IS_CONTINUED;
            self.send(CONTINUES)?;
            self.begin_element();
            self.extension = obu.extension;
        }
    }

    fn finish(mut self) -> Result<Packets, Malformed> {
        self.send(0)?;
        Ok(self.packets)
    }

    /// Bytes that are left for a further element.
    fn room(&self) -> usize {
        let mut room = MAX_PAYLOAD - self.open.len();
        if self.elements > 0 {
            let (_, size_bytes) = leb128(self.open.len() - self.last_element);
            room = room.saturating_sub(size_bytes);
        }
        room
    }

    /// Gives the element before its length, and begins the next one.
    fn begin_element(&mut self) {
        if self.elements > 0 {
            let (size, size_bytes) = leb128(self.open.len() - self.last_element);
            let at = self.last_element;
            self.open.splice(at..at, size[..size_bytes].iter().copied());
        }
        self.elements += 1;
        self.last_element = self.open.len();
    }

    /// Sends the open packet where it has elements, and begins the next one with `flags`.
    fn send(&mut self, flags: u8) -> Result<(), Malformed> {
        if self.elements > 0 {
            self.open[0] = self.flags | self.elements << COUNT_SHIFT;
            self.packets.push(&self.open)?;
            self.begin(flags);
        }
        Ok(())
    }
}
