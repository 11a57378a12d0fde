//! MPEG-TS demuxer (ISO/IEC 13818-1): H.264, HEVC, AAC (ADTS), Opus and MP3 to units; its counters and bounds.
//!
//! Pure: takes bytes in pieces of any size, returns units. Nothing is allocated by a declared length, every buffer has
//! a bound, and corrupt units are left out whole and reported.

pub(crate) mod annex_b;
mod audio;
mod audio_frame;
mod clock;
mod continuity;
pub mod mux;
mod packet;
mod pes;
mod program;
mod section;
mod sync;
mod tables;
mod track;
pub(crate) mod video;

use sluice_media::unit::Unit;

pub use crate::corruption::Corruption;

use self::{
    packet::{PACKET_BYTES, Packet, Pid},
    program::Programs,
    sync::Synchroniser,
    track::Tracks,
};

/// Most bytes of one PES packet by default.
const MAX_PES_BYTES: usize = 8 * 1024 * 1024;

/// Bounds of one demuxer.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most bytes of one PES packet: one coded frame, or some audio frames.
    pub pes_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pes_bytes: MAX_PES_BYTES,
        }
    }
}

/// Totals since the demuxer was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Transport packets that were read, of any stream.
    pub packets: u64,
    /// Breaks of the continuity counter on the packets that are followed (tables, the video and the audio track).
    pub continuity_errors: u64,
    /// Times that the packets' start had to be searched again.
    pub resyncs: u64,
    /// Frames, audio frames and tables that were left out.
    pub damaged: u64,
}

/// Turns the transport stream of one session into units: of its first program, the first video and the first audio
/// track that can be carried.
#[derive(Debug)]
pub struct Demuxer {
    synchroniser: Synchroniser,
    streams: Streams,
}

/// Consumers of packets, once they are found.
#[derive(Debug)]
struct Streams {
    programs: Programs,
    tracks: Tracks,
    findings: Findings,
}

/// Findings for health.
#[derive(Debug, Default)]
struct Findings {
    counters: Counters,
    last_damage: Option<Corruption>,
}

impl Findings {
    fn damaged(&mut self, corruption: Corruption) {
        self.counters.damaged += 1;
        self.last_damage = Some(corruption);
    }
}

impl Demuxer {
    pub fn new(limits: Limits) -> Self {
        Self {
            synchroniser: Synchroniser::default(),
            streams: Streams {
                programs: Programs::default(),
                tracks: Tracks::new(limits.pes_bytes),
                findings: Findings::default(),
            },
        }
    }

    /// Reads the next bytes, which need not start or end at a packet's edge, and appends the units that became
    /// complete. A frame of undeclared length is complete when the next one starts.
    pub fn push(&mut self, bytes: &[u8], units: &mut Vec<Unit>) {
        let streams = &mut self.streams;
        self.synchroniser
            .push(bytes, |packet| streams.packet(packet, units));
    }

    /// Ends the stream: units that wait for a successor are complete now.
    pub fn flush(&mut self, units: &mut Vec<Unit>) {
        let streams = &mut self.streams;
        self.synchroniser
            .flush(|packet| streams.packet(packet, units));
        streams.tracks.finish(&mut streams.findings, units);
    }

    /// Notes that packets before the next bytes were discarded, which the 4-bit continuity counter may not show:
    /// unfinished units are left out.
    pub fn skipped(&mut self) {
        let Streams {
            programs,
            tracks,
            findings,
        } = &mut self.streams;
        programs.skipped();
        tracks.skipped(findings);
    }

    pub fn counters(&self) -> Counters {
        Counters {
            resyncs: self.synchroniser.resyncs(),
            ..self.streams.findings.counters
        }
    }

    /// Returns the last corruption that was left out, for health.
    pub fn last_damage(&self) -> Option<&Corruption> {
        self.streams.findings.last_damage.as_ref()
    }
}

impl Streams {
    fn packet(&mut self, bytes: &[u8; PACKET_BYTES], units: &mut Vec<Unit>) {
        let Self {
            programs,
            tracks,
            findings,
        } = self;
        findings.counters.packets += 1;
        let Some(packet) = Packet::parse(bytes) else {
            return;
        };
        let Some(payload) = packet.payload else {
            return;
        };
        if programs.wants(packet.pid) {
            if let Some(map) = programs.push(&packet, payload, findings) {
                tracks.follow(map, findings, units);
            }
            return;
        }
        tracks.push(&packet, payload, findings, units);
    }
}
