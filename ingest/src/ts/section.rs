//! Collects sections of MPEG-TS tables (ISO/IEC 13818-1 §2.4.4) over packets and checks their CRC-32.

/// The most bytes of a section of the tables that are read: 3 before the length, and 1 021.
const MAX_SECTION_BYTES: usize = 1024;
const HEADER_BYTES: usize = 3;
/// Padding after the last section of a packet.
const STUFFING: u8 = 0xff;

/// Outcome of a section.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Section<'a> {
    /// Complete and with the right CRC, which is removed.
    Whole(&'a [u8]),
    Damaged,
}

/// Collects the sections of one PID.
#[derive(Debug, Default)]
pub(super) struct Sections {
    /// The section in progress; empty between two.
    bytes: Vec<u8>,
}

impl Sections {
    /// Discards the section in progress: a packet of it was lost.
    pub(super) fn abandon(&mut self) {
        self.bytes.clear();
    }

    /// Takes a packet's payload, and passes completed sections to `take`.
    pub(super) fn push(
        &mut self,
        starts_unit: bool,
        payload: &[u8],
        mut take: impl FnMut(Section<'_>),
    ) {
        if !starts_unit {
            if !self.bytes.is_empty() {
                self.collect(payload, &mut take);
            }
            return;
        }
        // The pointer field is the offset of the first new section; before it is the rest of the last one.
        let split = payload
            .split_first()
            .and_then(|(pointer, behind)| behind.split_at_checked(usize::from(*pointer)));
        let Some((rest, mut new)) = split else {
            self.abandon();
            return take(Section::Damaged);
        };
        if !self.bytes.is_empty() {
            self.collect(rest, &mut take);
            self.abandon();
        }
        while new.first().is_some_and(|table_id| *table_id != STUFFING) {
            new = self.collect(new, &mut take);
        }
    }

    /// Appends to the section in progress and returns the bytes after its end.
    fn collect<'a>(&mut self, bytes: &'a [u8], take: &mut impl FnMut(Section<'_>)) -> &'a [u8] {
        let (head, behind) = split_at_most(bytes, HEADER_BYTES.saturating_sub(self.bytes.len()));
        self.bytes.extend_from_slice(head);
        let Some(header) = self.bytes.first_chunk::<HEADER_BYTES>() else {
            return behind;
        };
        let total = HEADER_BYTES + usize::from(u16::from_be_bytes([header[1] & 0x0f, header[2]]));
        if total > MAX_SECTION_BYTES {
            self.abandon();
            take(Section::Damaged);
            return &[];
        }
        let (body, behind) = split_at_most(behind, total - self.bytes.len());
        self.bytes.extend_from_slice(body);
        if self.bytes.len() == total {
            take(checked(&self.bytes));
            self.abandon();
        }
        behind
    }
}

fn split_at_most(bytes: &[u8], count: usize) -> (&[u8], &[u8]) {
    bytes.split_at(count.min(bytes.len()))
}

fn checked(section: &[u8]) -> Section<'_> {
    match section.split_last_chunk::<4>() {
        Some((content, _)) if crc_32(section) == 0 => Section::Whole(content),
        _ => Section::Damaged,
    }
}

/// Computes the CRC of Annex A: over a whole section, CRC included, it is 0.
pub(super) fn crc_32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        let mut crc = crc ^ u32::from(*byte) << 24;
        for _ in 0..8 {
            let carry = crc & 0x8000_0000 != 0;
            crc = crc << 1 ^ if carry { 0x04c1_1db7 } else { 0 };
        }
        crc
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section with this body, and its CRC.
    fn section(body: &[u8]) -> Vec<u8> {
        let length = (body.len() + 4) as u16;
        let mut section = vec![0];
        section.extend((0xb000 | length).to_be_bytes());
        section.extend_from_slice(body);
        section.extend(crc_32(&section).to_be_bytes());
        section
    }

    /// Returns the lengths of the complete sections, and how many were damaged.
    fn collected(payloads: &[(bool, Vec<u8>)]) -> (Vec<usize>, usize) {
        let mut sections = Sections::default();
        let (mut whole, mut damaged) = (Vec::new(), 0);
        for (starts_unit, payload) in payloads {
            sections.push(*starts_unit, payload, |section| match section {
                Section::Whole(content) => whole.push(content.len()),
                Section::Damaged => damaged += 1,
            });
            assert!(sections.bytes.len() <= MAX_SECTION_BYTES);
        }
        (whole, damaged)
    }

    #[test]
    fn the_crc_is_that_of_the_standard() {
        assert_eq!(crc_32(b"123456789"), 0x0376_e6e7);
    }

    #[test]
    fn sections_are_collected_over_packets() {
        let (short, long) = (section(&[1; 10]), section(&[2; 300]));
        let two = [&[0][..], &short, &short, &[STUFFING; 9]].concat();
        assert_eq!(collected(&[(true, two)]), (vec![13, 13], 0));

        let start = [&[0][..], &long[..100]].concat();
        let middle = long[100..250].to_vec();
        let end = [&[(long.len() - 250) as u8][..], &long[250..], &short].concat();
        let over_three = [(true, start.clone()), (false, middle), (true, end)];
        assert_eq!(collected(&over_three), (vec![303, 13], 0));

        let header_cut = [
            (true, vec![0, short[0], short[1]]),
            (false, short[2..].to_vec()),
        ];
        assert_eq!(collected(&header_cut), (vec![13], 0));

        let replaced = [(true, start), (true, [&[0][..], &short].concat())];
        assert_eq!(collected(&replaced), (vec![13], 0));
    }

    #[test]
    fn damaged_sections_are_left_out() {
        let mut flipped = [&[0][..], &section(&[1; 10])].concat();
        flipped[6] ^= 1;
        for payload in [
            flipped,
            vec![],                       // no pointer field
            vec![200, 0],                 // it points behind the packet
            vec![0, 0, 0xb0, 3, 1, 2, 3], // shorter than a CRC
            vec![0, 0, 0xbf, 0xff, 1, 2], // longer than a table's section may be
        ] {
            let shown = format!("{payload:02x?}");
            assert_eq!(collected(&[(true, payload)]), (vec![], 1), "{shown}");
        }
        let in_the_middle = [(false, vec![0; 184])];
        assert_eq!(collected(&in_the_middle), (vec![], 0));
    }
}
