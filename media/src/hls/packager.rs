//! Units in, parts out: the state machine.

use std::time::Duration;

use super::Output;
use crate::unit::Unit;

/// How a broadcast is cut.
#[derive(Clone, Debug, PartialEq)]
pub struct PackagerSettings {
    /// What a part should last; PART-TARGET becomes the nearest whole number of pictures.
    pub part_target: Duration,
    /// From here on the next key frame ends a segment.
    pub segment_min: Duration,
    /// TARGETDURATION of the broadcast, in seconds: without a key frame a segment ends here.
    pub target_duration_s: u32,
    /// How long the first track waits for the other one, in wall-clock time.
    pub track_wait: Duration,
}

/// What a later packager needs to go on with a broadcast after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Continuation {
    pub next_msn: u64,
    pub next_init: u32,
    /// Where the timeline goes on.
    pub end_90k: i64,
    /// Sequence number of the next movie fragment.
    pub next_fragment: u32,
    /// PART-TARGET, once a part of the broadcast has settled it.
    pub part_target_90k: Option<u32>,
}

/// Turns the units of one broadcast, over any number of publisher sessions, into parts and segments.
#[derive(Debug)]
pub struct Packager {
    settings: PackagerSettings,
    from: Continuation,
}

impl Packager {
    /// A packager for a new broadcast, or for one that goes on after a restart.
    pub fn new(settings: PackagerSettings, from: Option<Continuation>) -> Self {
        Self {
            settings,
            from: from.unwrap_or_default(),
        }
    }

    /// A publisher takes over: closes what is open, and opens the new session's first segment with a discontinuity,
    /// unless it is the broadcast's first.
    pub fn begin_session(&mut self, now_ms: i64, out: &mut Vec<Output>) {
        self.end_session(now_ms, out);
    }

    /// Takes the next unit of the session.
    pub fn push(&mut self, unit: Unit, now_ms: i64, out: &mut Vec<Output>) {
        let _ = (unit, now_ms, out);
    }

    /// When [`Packager::tick`] must be called if no unit comes before.
    pub fn next_deadline_ms(&self) -> Option<i64> {
        None
    }

    /// Lets wall-clock time pass: a track wait may end.
    pub fn tick(&mut self, now_ms: i64, out: &mut Vec<Output>) {
        let _ = (now_ms, out);
    }

    /// The publisher is gone: every whole unit that arrived goes out, and the open segment ends.
    pub fn end_session(&mut self, now_ms: i64, out: &mut Vec<Output>) {
        let _ = (now_ms, out, &self.from, &self.settings);
    }

    /// Units left out so far: before the first key frame, unusable, or too far behind.
    pub fn dropped(&self) -> u64 {
        0
    }

    /// The TARGETDURATION that fits this broadcast's key-frame interval: the smallest of 2…6 s. `None` until one whole
    /// interval was seen.
    pub fn next_target_duration_s(&self) -> Option<u32> {
        None
    }
}
