//! Continuity counter of MPEG-TS (ISO/IEC 13818-1 §2.4.3.3): lost and repeated packets.

use super::packet::Packet;

/// Relation of a packet to the one before it on its PID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Next,
    /// The packet before, sent again, which is allowed once.
    Duplicate,
    /// Packets between were lost.
    Gap,
}

/// Follows one PID.
#[derive(Debug, Default)]
pub(super) struct Continuity {
    last: Option<u8>,
    /// The last packet's payload: only the same bytes again are a duplicate.
    payload: Vec<u8>,
    repeated: bool,
}

impl Continuity {
    /// Takes the next packet with a payload.
    pub(super) fn step(&mut self, packet: &Packet<'_>, payload: &[u8]) -> Step {
        let last = self.last.replace(packet.continuity);
        // A packet may be sent twice, not more, and with the same payload (ISO/IEC 13818-1 §2.4.3.3).
        let step = match last {
            None => Step::Next,
            Some(last) if packet.continuity == (last + 1) % 16 => Step::Next,
            Some(last)
                if packet.continuity == last && !self.repeated && self.payload == payload =>
            {
                Step::Duplicate
            }
            Some(_) if packet.discontinuity && packet.starts_unit => Step::Next,
            Some(_) => Step::Gap,
        };
        self.repeated = step == Step::Duplicate;
        self.payload.clear();
        self.payload.extend_from_slice(payload);
        step
    }

    /// Accepts any next counter: packets were discarded on this side.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::packet::Pid;

    #[test]
    fn repetitions_and_gaps_are_distinguished() {
        let packet = |continuity, discontinuity| Packet {
            pid: Pid::PAT,
            starts_unit: true,
            scrambled: false,
            continuity,
            discontinuity,
            random_access: false,
            payload: None,
        };
        let mut continuity = Continuity::default();
        for (counter, marked, payload, expected) in [
            (14, false, b"a", Step::Next),
            (15, false, b"b", Step::Next),
            (0, false, b"c", Step::Next),
            (0, false, b"c", Step::Duplicate),
            (0, false, b"c", Step::Gap), // a second repetition
            (1, false, b"d", Step::Next),
            (1, false, b"e", Step::Gap), // fifteen packets were lost
            (3, false, b"f", Step::Gap),
            (2, false, b"g", Step::Gap),
            (9, true, b"h", Step::Next),
        ] {
            let step = continuity.step(&packet(counter, marked), payload);
            assert_eq!(step, expected, "{counter} {payload:?}");
        }
        continuity.forget();
        assert_eq!(continuity.step(&packet(1, false), b"i"), Step::Next);
    }
}
