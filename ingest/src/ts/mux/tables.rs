//! Writes PAT and PMT of MPEG-TS outputs (ISO/IEC 13818-1 §2.4.4), each in one packet.

use bytes::BytesMut;
use sluice_media::codec::VideoCodec;

use super::{
    audio::Frames,
    packets::{Adaptation, PidWriter},
};
use crate::ts::section::crc_32;

const ASSOCIATION_PID: u16 = 0;
const MAP_PID: u16 = 0x1000;
/// PCR PID of a program without a clock.
const NO_CLOCK_PID: u16 = 0x1fff;
const TRANSPORT_STREAM: [u8; 2] = [0, 1];
const PROGRAM: [u8; 2] = [0, 1];
const VERSIONS: u8 = 32;

mod table_id {
    pub(super) const ASSOCIATION: u8 = 0;
    pub(super) const MAP: u8 = 2;
}

/// A track, as the program map lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pid: u16,
    stream_type: u8,
    descriptors: Vec<u8>,
}

impl Entry {
    pub(super) fn video(pid: u16, codec: VideoCodec) -> Self {
        let (stream_type, descriptors) = match codec {
            VideoCodec::Hevc => (0x24, registration(b"HEVC")),
            _ => (0x1b, Vec::new()),
        };
        Self {
            pid,
            stream_type,
            descriptors,
        }
    }

    pub(super) fn audio(pid: u16, frames: &Frames) -> Self {
        let (stream_type, descriptors) = match frames {
            Frames::Adts(_) => (0x0f, Vec::new()),
            Frames::Mp3 { is_mpeg_1: true } => (0x03, Vec::new()),
            Frames::Mp3 { is_mpeg_1: false } => (0x04, Vec::new()),
            Frames::Opus { channels } => {
                let extension = [0x7f, 2, 0x80, *channels];
                (0x06, [registration(b"Opus"), extension.to_vec()].concat())
            }
        };
        Self {
            pid,
            stream_type,
            descriptors,
        }
    }
}

fn registration(format: &[u8; 4]) -> Vec<u8> {
    [&[0x05, 4], &format[..]].concat()
}

/// Writes both tables.
#[derive(Debug)]
pub(super) struct Tables {
    association: PidWriter,
    map: PidWriter,
    /// Version of the map; decoders read it again when it differs.
    version: u8,
    /// The first carries the clock.
    entries: Vec<Entry>,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            association: PidWriter::new(ASSOCIATION_PID),
            map: PidWriter::new(MAP_PID),
            version: 0,
            entries: Vec::new(),
        }
    }
}

impl Tables {
    /// Sets the tracks that are listed; returns whether they changed.
    pub(super) fn set(&mut self, entries: Vec<Entry>) -> bool {
        if entries == self.entries {
            return false;
        }
        self.entries = entries;
        self.version = (self.version + 1) % VERSIONS;
        true
    }

    pub(super) fn write(&mut self, out: &mut BytesMut) {
        let association = self.association_section();
        self.association
            .unit(Adaptation::default(), &association, out);
        let map = self.map_section();
        self.map.unit(Adaptation::default(), &map, out);
    }

    fn association_section(&self) -> Vec<u8> {
        let body = [PROGRAM, (0xe000 | MAP_PID).to_be_bytes()].concat();
        section(table_id::ASSOCIATION, TRANSPORT_STREAM, 0, &body)
    }

    fn map_section(&self) -> Vec<u8> {
        let clock_pid = self.entries.first().map_or(NO_CLOCK_PID, |entry| entry.pid);
        let mut body = (0xe000 | clock_pid).to_be_bytes().to_vec();
        body.extend([0xf0, 0]);
        for entry in &self.entries {
            body.push(entry.stream_type);
            body.extend((0xe000 | entry.pid).to_be_bytes());
            body.extend((0xf000 | entry.descriptors.len() as u16).to_be_bytes());
            body.extend_from_slice(&entry.descriptors);
        }
        section(table_id::MAP, PROGRAM, self.version, &body)
    }
}

/// Returns a section after its pointer field, with its checksum, filled up to a packet as tables are: after the
/// section, not before it.
fn section(table_id: u8, number: [u8; 2], version: u8, body: &[u8]) -> Vec<u8> {
    const PACKET_PAYLOAD_BYTES: usize = 184;
    const BEHIND_LENGTH_BYTES: usize = 5;
    const CHECKSUM_BYTES: usize = 4;
    let length = (BEHIND_LENGTH_BYTES + body.len() + CHECKSUM_BYTES) as u16;
    let mut section = vec![table_id];
    section.extend((0xb000 | length).to_be_bytes());
    section.extend(number);
    section.extend([0xc1 | version << 1, 0, 0]);
    section.extend_from_slice(body);
    section.extend(crc_32(&section).to_be_bytes());
    let mut payload = vec![0];
    payload.extend(section);
    payload.resize(PACKET_PAYLOAD_BYTES, 0xff);
    payload
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::{
        packet::Pid,
        tables::{self, AudioFormat, Program, ProgramMap},
    };

    fn sections(tables: &mut Tables) -> (Vec<u8>, Vec<u8>) {
        let mut out = BytesMut::new();
        tables.write(&mut out);
        assert_eq!(out.len(), 2 * 188);
        let section = |packet: &[u8]| {
            let section = &packet[5..];
            let total = 3 + usize::from(u16::from_be_bytes([section[1] & 0x0f, section[2]]));
            assert_eq!(crc_32(&section[..total]), 0);
            section[..total - 4].to_vec()
        };
        (section(&out[..188]), section(&out[188..]))
    }

    #[test]
    fn our_own_reader_reads_them() {
        let mut tables = Tables::default();
        let opus = Frames::Opus { channels: 6 };
        let entries = vec![
            Entry::video(0x100, VideoCodec::Hevc),
            Entry::audio(0x101, &opus),
        ];
        assert!(tables.set(entries.clone()));
        assert!(!tables.set(entries));
        let (association, map) = sections(&mut tables);
        let program = Program {
            number: 1,
            map: Pid::new(MAP_PID),
        };
        let chosen = tables::choose_program(&association, None);
        assert_eq!(chosen, Some(program));
        let read = tables::read_map(&map, 1, &ProgramMap::default());
        let expected = ProgramMap {
            video: Some((Pid::new(0x100), VideoCodec::Hevc)),
            audio: Some((Pid::new(0x101), AudioFormat::Opus { channels: 6 })),
            left_out: Vec::new(),
        };
        assert_eq!(read, Ok(Some(expected)));
    }

    #[test]
    fn every_change_has_a_version_of_its_own() {
        let mut tables = Tables::default();
        for round in 0..70_u8 {
            let pid = 0x100 + u16::from(round % 2);
            assert!(tables.set(vec![Entry::video(pid, VideoCodec::Avc)]));
            let (_, map) = sections(&mut tables);
            assert_eq!(map[5] >> 1 & 0x1f, (round + 1) % VERSIONS);
        }
    }
}
