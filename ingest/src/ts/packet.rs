//! Reads the MPEG-TS packet (ISO/IEC 13818-1 §2.4.3.2): header, adaptation field, payload.

/// Bytes of a transport packet.
pub(super) const PACKET_BYTES: usize = 188;
/// The first byte of every packet.
pub(super) const SYNC: u8 = 0x47;

/// Id of a packet's stream; 13 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pid(u16);

impl Pid {
    /// The program association table's.
    pub(super) const PAT: Self = Self(0);

    pub(super) fn new(bits: u16) -> Self {
        Self(bits & 0x1fff)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub(super) pid: Pid,
    /// A PES packet or a section starts in the payload.
    pub(super) starts_unit: bool,
    pub(super) scrambled: bool,
    pub(super) continuity: u8,
    /// True when the adaptation field announces that the continuity counter starts again.
    pub(super) discontinuity: bool,
    /// True when the adaptation field announces that decoding can start at this PES packet.
    pub(super) random_access: bool,
    /// `None` for packets that carry an adaptation field alone; their counter does not move.
    pub(super) payload: Option<&'a [u8]>,
}

impl<'a> Packet<'a> {
    /// Reads a packet; `None` when its sender set the error flag or its fields contradict each other.
    pub(super) fn parse(bytes: &'a [u8; PACKET_BYTES]) -> Option<Self> {
        let [_, pid_high, pid_low, flags, body @ ..] = bytes;
        let transport_error = pid_high & 0x80 != 0;
        if transport_error {
            return None;
        }
        let (has_adaptation, has_payload) = (flags & 0x20 != 0, flags & 0x10 != 0);
        let (adaptation, payload) = match (has_adaptation, has_payload) {
            (false, false) => return None,
            (false, true) => (&[][..], &body[..]),
            (true, _) => body[1..].split_at_checked(usize::from(body[0]))?,
        };
        let indicators = adaptation.first().copied().unwrap_or(0);
        Some(Self {
            pid: Pid::new(u16::from_be_bytes([*pid_high, *pid_low])),
            starts_unit: pid_high & 0x40 != 0,
            scrambled: flags & 0xc0 != 0,
            continuity: flags & 0x0f,
            discontinuity: indicators & 0x80 != 0,
            random_access: indicators & 0x40 != 0,
            payload: has_payload.then_some(payload),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(head: &[u8]) -> [u8; PACKET_BYTES] {
        let mut bytes = [0xAB; PACKET_BYTES];
        bytes[..head.len()].copy_from_slice(head);
        bytes
    }

    #[test]
    fn headers_are_read() {
        let plain = bytes(&[SYNC, 0x41, 0x02, 0x1c]);
        let packet = Packet::parse(&plain).unwrap();
        assert_eq!(packet.pid, Pid::new(0x102));
        assert_eq!((packet.starts_unit, packet.continuity), (true, 12));
        assert_eq!(packet.payload.unwrap().len(), 184);

        let stuffed = bytes(&[SYNC, 0x01, 0x00, 0xb5, 3, 0xc0, 0xff, 0xff]);
        let packet = Packet::parse(&stuffed).unwrap();
        assert!(packet.scrambled && packet.discontinuity && packet.random_access);
        assert_eq!(packet.payload.unwrap().len(), 180);

        let clock_alone = bytes(&[SYNC, 0x01, 0x00, 0x25, 183, 0x10]);
        assert_eq!(Packet::parse(&clock_alone).unwrap().payload, None);
        let empty_field = bytes(&[SYNC, 0x01, 0x00, 0x35, 0]);
        assert_eq!(
            Packet::parse(&empty_field).unwrap().payload.unwrap().len(),
            183
        );
    }

    #[test]
    fn contradictions_are_refused() {
        for head in [
            &[SYNC, 0x81, 0x00, 0x10][..],  // transport error
            &[SYNC, 0x01, 0x00, 0x00],      // neither adaptation field nor payload
            &[SYNC, 0x01, 0x00, 0x30, 184], // an adaptation field longer than the packet
            &[SYNC, 0x01, 0x00, 0x20, 255],
        ] {
            assert_eq!(Packet::parse(&bytes(head)), None, "{head:02x?}");
        }
    }
}
