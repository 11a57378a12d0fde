//! A small muxer, for streams that no encoder makes.

const PACKET_BYTES: usize = 188;
const MAP_PID: u16 = 0x1000;

/// Writes a program with these streams.
#[derive(Debug, Default)]
pub struct Mux {
    pub bytes: Vec<u8>,
    counters: std::collections::HashMap<u16, u8>,
}

impl Mux {
    /// Starts with tables: stream types and PIDs.
    pub fn new(streams: &[(u8, u16)]) -> Self {
        let mut mux = Self::default();
        mux.section(0, &[0, 0, 1, 0xc1, 0, 0, 0, 1, 0xf0, 0]);
        mux.map(streams);
        mux
    }

    pub fn map(&mut self, streams: &[(u8, u16)]) {
        let mut body = vec![2, 0, 1, 0xc1, 0, 0, 0xe1, 0, 0xf0, 0];
        for (stream_type, pid) in streams {
            body.push(*stream_type);
            body.extend((0xe000 | pid).to_be_bytes());
            body.extend([0xf0, 0]);
        }
        self.section(MAP_PID, &body);
    }

    /// Writes a section; `body` is the table's number, then the bytes after the length.
    fn section(&mut self, pid: u16, body: &[u8]) {
        let mut section = vec![body[0]];
        section.extend((0xb000 | (body.len() as u16 + 3)).to_be_bytes());
        section.extend(&body[1..]);
        section.extend(crc_32(&section).to_be_bytes());
        section.insert(0, 0);
        section.resize(PACKET_BYTES - 4, 0xff);
        self.packet(pid, true, &section);
    }

    /// Writes a PES packet with a time, in as many transport packets as needed, with `length` as declared length.
    pub fn pes(&mut self, pid: u16, pts: Option<u64>, length: u16, payload: &[u8]) {
        let mut pes = vec![0, 0, 1, 0xe0];
        pes.extend(length.to_be_bytes());
        match pts {
            None => pes.extend([0x80, 0, 0]),
            Some(pts) => {
                pes.extend([0x80, 0x80, 5]);
                pes.extend([
                    0x21 | (pts >> 29) as u8 & 0x0e,
                    (pts >> 22) as u8,
                    (pts >> 14) as u8 | 1,
                    (pts >> 7) as u8,
                    (pts << 1) as u8 | 1,
                ]);
            }
        }
        pes.extend(payload);
        for (at, part) in pes.chunks(PACKET_BYTES - 4).enumerate() {
            self.packet(pid, at == 0, part);
        }
    }

    /// A packet, with stuffing in front of a short payload.
    pub fn packet(&mut self, pid: u16, starts_unit: bool, payload: &[u8]) {
        let counter = self.counters.entry(pid).or_insert(15);
        *counter = (*counter + 1) % 16;
        let [high, low] = (pid | if starts_unit { 0x4000 } else { 0 }).to_be_bytes();
        let stuffing = PACKET_BYTES - 4 - payload.len();
        let adaptation = if stuffing > 0 { 0x30 } else { 0x10 };
        self.bytes.extend([0x47, high, low, adaptation | *counter]);
        if stuffing > 0 {
            self.bytes.push(stuffing as u8 - 1);
        }
        if stuffing > 1 {
            self.bytes.push(0);
            self.bytes.extend(vec![0xff; stuffing - 2]);
        }
        self.bytes.extend(payload);
    }
}

fn crc_32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 24, |crc, _| {
            crc << 1 ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 }
        })
    })
}
