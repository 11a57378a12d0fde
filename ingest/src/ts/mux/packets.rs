//! Writes MPEG-TS packets (ISO/IEC 13818-1 §2.4.3.2) of one PID: continuity, adaptation field, PCR.

use bytes::{BufMut, BytesMut};

use crate::ts::packet::{PACKET_BYTES, SYNC};

const HEADER_BYTES: usize = 4;
/// Bytes for the adaptation field and the payload.
const ROOM: usize = PACKET_BYTES - HEADER_BYTES;
const CLOCK_BYTES: usize = 6;
/// Bits of a clock reference's base, and of every time stamp.
const TIME_BITS: u32 = 33;
const STUFFING: u8 = 0xff;

/// Adaptation fields of a unit's first packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Adaptation {
    /// The program clock reference.
    pub(super) clock_90k: Option<i64>,
    /// Decoding can start here.
    pub(super) random_access: bool,
    /// The clock jumps here.
    pub(super) discontinuity: bool,
}

/// Writes the packets of one PID.
#[derive(Debug)]
pub(super) struct PidWriter {
    pid: u16,
    /// The continuity counter of the next packet with a payload.
    counter: u8,
}

impl PidWriter {
    pub(super) fn new(pid: u16) -> Self {
        Self { pid, counter: 0 }
    }

    pub(super) fn pid(&self) -> u16 {
        self.pid
    }

    /// Writes a PES packet or a section with its pointer, in as many packets as it takes; the last is filled up in
    /// front.
    pub(super) fn unit(&mut self, adaptation: Adaptation, unit: &[u8], out: &mut BytesMut) {
        let mut field = adaptation.field();
        let mut rest = unit;
        let mut starts_unit = true;
        while !rest.is_empty() {
            let room = if field.is_empty() {
                ROOM
            } else {
                ROOM - 1 - field.len()
            };
            let (payload, behind) = rest.split_at(room.min(rest.len()));
            self.packet(starts_unit, &field, payload, out);
            rest = behind;
            starts_unit = false;
            field.clear();
        }
    }

    /// Writes a packet without payload, for its adaptation field alone.
    pub(super) fn clock(&mut self, adaptation: Adaptation, out: &mut BytesMut) {
        self.packet(false, &adaptation.field(), &[], out);
    }

    fn packet(&mut self, starts_unit: bool, field: &[u8], payload: &[u8], out: &mut BytesMut) {
        let fill = ROOM - payload.len();
        let has_payload = !payload.is_empty();
        let (field_flag, payload_flag) = (u8::from(fill > 0) << 5, u8::from(has_payload) << 4);
        // A packet without payload repeats the counter of the one before.
        let counter = if has_payload {
            self.counter
        } else {
            self.counter.wrapping_sub(1)
        };
        out.put_u8(SYNC);
        out.put_u16(u16::from(starts_unit) << 14 | self.pid);
        out.put_u8(field_flag | payload_flag | counter & 0x0f);
        if fill > 0 {
            put_field(field, fill, out);
        }
        out.put_slice(payload);
        if has_payload {
            self.counter = (self.counter + 1) & 0x0f;
        }
    }
}

/// Writes the adaptation field in exactly `fill` bytes, its length among them.
fn put_field(field: &[u8], fill: usize, out: &mut BytesMut) {
    let length = fill - 1;
    out.put_u8(length as u8);
    if length == 0 {
        return;
    }
    let no_flags: &[u8] = &[0];
    let field = if field.is_empty() { no_flags } else { field };
    out.put_slice(field);
    out.put_bytes(STUFFING, length - field.len());
}

impl Adaptation {
    /// Returns the adaptation field without its length and stuffing; empty where nothing is to be sent in it.
    fn field(&self) -> Vec<u8> {
        let flags = u8::from(self.discontinuity) << 7
            | u8::from(self.random_access) << 6
            | u8::from(self.clock_90k.is_some()) << 4;
        if flags == 0 {
            return Vec::new();
        }
        let mut field = Vec::with_capacity(1 + CLOCK_BYTES);
        field.push(flags);
        if let Some(clock_90k) = self.clock_90k {
            // 33 bits, 6 reserved ones, and the extension of 9 bits, which is 0.
            let reference = raw(clock_90k) << 15 | 0x3f << 9;
            field.extend_from_slice(&reference.to_be_bytes()[2..]);
        }
        field
    }
}

/// The bits of a time that are sent.
pub(super) fn raw(time_90k: i64) -> u64 {
    time_90k.cast_unsigned() & ((1 << TIME_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::packet::Packet;

    /// (starts a unit, counter, payload) of each packet.
    fn read(bytes: &[u8]) -> Vec<(bool, u8, Vec<u8>)> {
        let (packets, rest) = bytes.as_chunks::<PACKET_BYTES>();
        assert!(rest.is_empty());
        let read = |bytes: &[u8; PACKET_BYTES]| {
            let packet = Packet::parse(bytes).expect("it is whole");
            let payload = packet.payload.unwrap_or_default().to_vec();
            (packet.starts_unit, packet.continuity, payload)
        };
        packets.iter().map(read).collect()
    }

    #[test]
    fn units_of_every_length_come_out_as_they_went_in() {
        let all_fields = Adaptation {
            clock_90k: Some(-1),
            random_access: true,
            discontinuity: true,
        };
        for adaptation in [Adaptation::default(), all_fields] {
            let mut writer = PidWriter::new(0x100);
            let mut expected_counter = 0;
            for length in (1..600).chain([65_000]) {
                let unit: Vec<u8> = (0..length).map(|at| at as u8).collect();
                let mut out = BytesMut::new();
                writer.unit(adaptation, &unit, &mut out);
                let packets = read(&out);
                let joined: Vec<u8> = packets.iter().flat_map(|(.., p)| p.clone()).collect();
                assert_eq!(joined, unit, "{length}");
                for (at, (starts_unit, counter, _)) in packets.into_iter().enumerate() {
                    assert_eq!((starts_unit, counter), (at == 0, expected_counter));
                    expected_counter = (expected_counter + 1) % 16;
                }
            }
        }
    }

    #[test]
    fn a_clock_alone_leaves_the_counter() {
        let mut writer = PidWriter::new(0x100);
        let mut out = BytesMut::new();
        writer.unit(Adaptation::default(), &[1], &mut out);
        let adaptation = Adaptation {
            clock_90k: Some((1 << TIME_BITS) + 5),
            ..Adaptation::default()
        };
        writer.clock(adaptation, &mut out);
        writer.unit(Adaptation::default(), &[2], &mut out);
        let expected = [(true, 0, vec![1]), (false, 0, vec![]), (true, 1, vec![2])];
        assert_eq!(read(&out), expected);
        let reference = &out[PACKET_BYTES..][..12];
        let head = [SYNC, 0x01, 0x00, 0x20, 183, 0x10, 0, 0, 0, 2, 0xfe, 0];
        assert_eq!(reference, head);
    }
}
