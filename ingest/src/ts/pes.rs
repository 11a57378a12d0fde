//! Reads PES packets of MPEG-TS (ISO/IEC 13818-1 §2.4.3.6): collected over transport packets, with their times.

use super::Corruption;

const PREFIX_BYTES: usize = 6;
const HEADER_BYTES: usize = 9;
const TIMESTAMP_BYTES: usize = 5;
/// Capacity that is kept between two packets; a larger one was a rare frame's.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// Streams whose packets have no header after the prefix (table 2-21): maps, padding, directories.
const STREAMS_WITHOUT_HEADER: [u8; 8] = [0xbc, 0xbe, 0xbf, 0xf0, 0xf1, 0xf2, 0xf8, 0xff];

/// A whole PES packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pes<'a> {
    /// 33 bits each; without one, the decode time is the presentation time.
    pub(super) pts: Option<u64>,
    pub(super) dts: Option<u64>,
    /// The transport packet that started it was marked as a place to start decoding.
    pub(super) random_access: bool,
    pub(super) payload: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// State between packets, or inside one whose start is unknown or whose rest is discarded.
    Waiting,
    Collecting,
}

/// Collects the PES packets of one PID.
#[derive(Debug)]
pub(super) struct Assembler {
    /// Contents of a PES packet, for [`Corruption`].
    what: &'static str,
    limit_bytes: usize,
    state: State,
    bytes: Vec<u8>,
    random_access: bool,
}

impl Assembler {
    pub(super) fn new(what: &'static str, limit_bytes: usize) -> Self {
        Self {
            what,
            limit_bytes,
            state: State::Waiting,
            bytes: Vec::new(),
            random_access: false,
        }
    }

    /// Starts a PES packet with the next payload. One of undeclared length is completed by that.
    pub(super) fn start(
        &mut self,
        random_access: bool,
        take: &mut impl FnMut(Result<Pes<'_>, Corruption>),
    ) {
        self.finish(take);
        self.state = State::Collecting;
        self.random_access = random_access;
    }

    /// Takes the payload of a transport packet.
    pub(super) fn push(
        &mut self,
        payload: &[u8],
        take: &mut impl FnMut(Result<Pes<'_>, Corruption>),
    ) {
        if self.state == State::Waiting {
            return;
        }
        if self.bytes.len() + payload.len() > self.limit_bytes {
            self.clear();
            return take(Err(Corruption::TooLarge {
                what: self.what,
                limit: self.limit_bytes,
            }));
        }
        self.bytes.extend_from_slice(payload);
        if let Some(total) = self
            .declared_bytes()
            .filter(|total| *total <= self.bytes.len())
        {
            self.give(total, take);
        }
    }

    /// Ends the packet in progress: complete where its length is undeclared, truncated where it is declared.
    pub(super) fn finish(&mut self, take: &mut impl FnMut(Result<Pes<'_>, Corruption>)) {
        if self.state == State::Waiting {
            return;
        }
        if self.declared_bytes().is_some() {
            self.clear();
            return take(Err(Corruption::Truncated { what: self.what }));
        }
        self.give(self.bytes.len(), take);
    }

    /// Discards the packet in progress after lost transport packets; returns whether there was one.
    pub(super) fn abandon(&mut self) -> bool {
        let was_collecting = self.state == State::Collecting;
        self.clear();
        was_collecting
    }

    fn declared_bytes(&self) -> Option<usize> {
        let prefix = self.bytes.first_chunk::<PREFIX_BYTES>()?;
        match u16::from_be_bytes([prefix[4], prefix[5]]) {
            // Video may leave the length out (ISO/IEC 13818-1 §2.4.3.7): the next start ends the packet.
            0 => None,
            length => Some(PREFIX_BYTES + usize::from(length)),
        }
    }

    fn give(&mut self, total: usize, take: &mut impl FnMut(Result<Pes<'_>, Corruption>)) {
        match parse(self.what, &self.bytes[..total]) {
            Ok(None) => {}
            Ok(Some(pes)) => take(Ok(Pes {
                random_access: self.random_access,
                ..pes
            })),
            Err(corruption) => take(Err(corruption)),
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.state = State::Waiting;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_CAPACITY);
    }
}

/// Parses a whole packet; `None` for one that holds no media.
fn parse<'a>(what: &'static str, bytes: &'a [u8]) -> Result<Option<Pes<'a>>, Corruption> {
    let invalid = |reason| Corruption::Invalid { what, reason };
    let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() else {
        return Err(Corruption::Truncated { what });
    };
    if prefix[..3] != [0, 0, 1] {
        return Err(invalid("its PES packet does not begin with a start code"));
    }
    if STREAMS_WITHOUT_HEADER.contains(&prefix[3]) {
        return Ok(None);
    }
    let Some(&[.., first_flags, flags, header_bytes]) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Err(Corruption::Truncated { what });
    };
    if first_flags & 0xc0 != 0x80 {
        return Err(invalid("its PES header is not MPEG-2's"));
    }
    if first_flags & 0x30 != 0 {
        return Err(Corruption::Scrambled);
    }
    let split = bytes[HEADER_BYTES..].split_at_checked(usize::from(header_bytes));
    let (header, payload) = split.ok_or(Corruption::Truncated { what })?;
    let (pts, dts) = match flags >> 6 {
        0 => (None, None),
        0b10 => (Some(timestamp(header, 0b0010)), None),
        0b11 => {
            let dts = header.get(TIMESTAMP_BYTES..).unwrap_or_default();
            (
                Some(timestamp(header, 0b0011)),
                Some(timestamp(dts, 0b0001)),
            )
        }
        _ => return Err(invalid("it has a decode time without a presentation time")),
    };
    let checked = |time: Option<Option<u64>>| match time {
        Some(None) => Err(invalid("its timestamp is corrupt")),
        time => Ok(time.flatten()),
    };
    Ok(Some(Pes {
        pts: checked(pts)?,
        dts: checked(dts)?,
        random_access: false,
        payload,
    }))
}

/// Reads a time stamp of 33 bits between marker bits, after 4 bits that indicate which it is.
fn timestamp(bytes: &[u8], kind: u8) -> Option<u64> {
    let &[a, b, c, d, e] = bytes.first_chunk::<TIMESTAMP_BYTES>()?;
    let has_markers = a & c & e & 1 == 1;
    if a >> 4 != kind || !has_markers {
        return None;
    }
    let [a, b, c, d, e] = [a, b, c, d, e].map(u64::from);
    Some((a >> 1 & 7) << 30 | b << 22 | (c >> 1) << 15 | d << 7 | e >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_TIME: [u8; 9] = [0, 0, 1, 0xe0, 0, 0, 0x80, 0, 0];

    /// Returns the packets collected from these payloads (`true` where one starts a packet), and at the stream's end.
    fn collected(limit: usize, payloads: &[(bool, &[u8])]) -> Vec<Result<usize, Corruption>> {
        let mut assembler = Assembler::new("frame", limit);
        let mut out = Vec::new();
        let mut take =
            |pes: Result<Pes<'_>, Corruption>| out.push(pes.map(|pes| pes.payload.len()));
        for (starts, payload) in payloads {
            if *starts {
                assembler.start(false, &mut take);
            }
            assembler.push(payload, &mut take);
            assert!(assembler.bytes.len() <= limit);
        }
        assembler.finish(&mut take);
        out
    }

    #[test]
    fn packets_are_collected() {
        let open = [&NO_TIME[..], &[7; 100]].concat();
        let mut bounded = open.clone();
        bounded[5] = (open.len() - PREFIX_BYTES + 50) as u8;
        let truncated = Err(Corruption::Truncated { what: "frame" });
        let too_large = Err(Corruption::TooLarge {
            what: "frame",
            limit: 150,
        });
        for (payloads, expected) in [
            (&[(true, &open[..]), (false, &[7; 60])][..], vec![Ok(160)]),
            (&[(true, &open), (true, &open)], vec![Ok(100), Ok(100)]),
            (&[(true, &bounded), (false, &[7; 60])], vec![Ok(150)]), // what follows is no one's
            (
                &[
                    (true, &bounded[..4]),
                    (false, &bounded[4..]),
                    (false, &[7; 50]),
                ],
                vec![Ok(150)],
            ),
            (
                &[(true, &bounded), (true, &open)],
                vec![truncated.clone(), Ok(100)],
            ),
            (&[(false, &open)], vec![]), // its start was not seen
            (&[(true, &open[..8])], vec![truncated]),
        ] {
            assert_eq!(collected(1000, payloads), expected);
        }
        let long = [
            (true, &open[..]),
            (false, &[7; 60]),
            (false, &[7; 60]),
            (true, &open),
        ];
        assert_eq!(collected(150, &long), vec![too_large, Ok(100)]);
    }

    #[test]
    fn times_are_read() {
        let both = [
            0, 0, 1, 0xe0, 0, 0, 0x80, 0xc0, 10, 0x3f, 0xff, 0xff, 0xff, 0xff, 0x11, 0, 1, 0, 3, 9,
        ];
        let pes = parse("frame", &both).unwrap().unwrap();
        assert_eq!((pes.pts, pes.dts), (Some((1 << 33) - 1), Some(1)));
        assert_eq!(pes.payload, [9]);

        let padding = [0, 0, 1, 0xbe, 0, 1, 0xff];
        assert_eq!(parse("frame", &padding), Ok(None));
    }

    #[test]
    fn damaged_headers_are_refused() {
        for bytes in [
            &[][..],
            &[0, 0, 2, 0xe0, 0, 0, 0x80, 0, 0], // no start code
            &[0, 0, 1, 0xe0, 0, 0, 0x00, 0, 0], // MPEG-1
            &[0, 0, 1, 0xe0, 0, 0, 0xa0, 0, 0], // scrambled
            &[0, 0, 1, 0xe0, 0, 0, 0x80, 0, 200, 1, 2], // longer than the packet
            &[0, 0, 1, 0xe0, 0, 0, 0x80, 0x40, 5, 0x11, 0, 1, 0, 1], // decode time alone
            &[0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 4, 0x21, 0, 1, 0], // header too short for it
            &[0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5, 0x31, 0, 1, 0, 1], // another kind of time
            &[0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5, 0x21, 0, 0, 0, 1], // a marker bit is missing
            &[0, 0, 1, 0xe0, 0, 0, 0x80, 0xc0, 5, 0x31, 0, 1, 0, 1, 0x11], // no room for the second
        ] {
            assert!(parse("frame", bytes).is_err(), "{bytes:02x?}");
        }
    }
}
