//! MPEG transport streams (ISO/IEC 13818-1) to units: H.264, HEVC, AAC (ADTS), Opus and MP3.
//!
//! Pure: takes bytes in pieces of any size, gives units back. Nothing is allocated by a declared length, every buffer has
//! a bound, and whatever is damaged is left out whole and named.

mod damage;

pub use damage::Damage;
use sluice_media::unit::Unit;

/// Bounds of one demuxer.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most bytes of one PES packet: one coded picture, or some audio frames.
    pub pes_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pes_bytes: 8 * 1024 * 1024,
        }
    }
}

/// Totals since the demuxer was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Transport packets that were read, of whatever stream.
    pub packets: u64,
    /// Breaks of the continuity counter on the packets that are followed (tables, the video and the audio track).
    pub continuity_errors: u64,
    /// Times that the packets' start had to be searched anew.
    pub resyncs: u64,
    /// Pictures, audio frames and tables that were left out.
    pub damaged: u64,
}

/// Turns the transport stream of one session into units: of its first program, the first video and the first audio track
/// that can be carried.
#[derive(Debug)]
pub struct Demuxer {
    counters: Counters,
    last_damage: Option<Damage>,
}

impl Demuxer {
    pub fn new(_limits: Limits) -> Self {
        Self {
            counters: Counters::default(),
            last_damage: None,
        }
    }

    /// Reads the next bytes, which need not start or end at a packet's edge, and appends what became complete. A picture
    /// whose length the stream does not tell is complete when the next one starts.
    pub fn push(&mut self, _bytes: &[u8], _units: &mut Vec<Unit>) {}

    /// Ends the stream: what waits for a successor to be complete is complete now.
    pub fn flush(&mut self, _units: &mut Vec<Unit>) {}

    /// Tells that packets before the next bytes were thrown away, which the 4-bit continuity counter may not show:
    /// whatever is unfinished is left out.
    pub fn skipped(&mut self) {}

    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What was left out last, for health.
    pub fn last_damage(&self) -> Option<&Damage> {
        self.last_damage.as_ref()
    }
}
