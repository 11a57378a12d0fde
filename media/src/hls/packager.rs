//! Packager of a live broadcast over its publisher sessions: units in, parts out, units dropped.
//!
//! ```text
//! begin_session ─► waiting for tracks ─► running ─► end_session ─► (the next begin_session)
//!                  (track_wait)          (session)
//! ```
//!
//! Nothing in here reads a clock: the wall-clock time of each call is its `now_ms`.

use std::time::Duration;

use super::{
    Output, key_frames::KeyFrames, segmenter::Segmenter, session::SessionPackager,
    track_wait::TrackWait,
};
use crate::unit::{CLOCK_90K, Unit};

/// Settings of the packager.
#[derive(Clone, Debug, PartialEq)]
pub struct PackagerSettings {
    /// Wanted duration of a part; PART-TARGET becomes the nearest whole number of frames.
    pub part_target: Duration,
    /// Shortest segment: from here on the next key frame ends it.
    pub segment_min: Duration,
    /// TARGETDURATION of the broadcast, in seconds: without a key frame a segment ends here.
    pub target_duration_s: u32,
    /// Longest wait of the first track for the other one, in wall-clock time.
    pub track_wait: Duration,
}

/// State that a later packager needs to continue a broadcast after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Continuation {
    /// Number of the next segment; a broadcast's first is 1.
    pub next_msn: u64,
    pub next_init: u32,
    /// Position at which the timeline continues.
    pub end_90k: i64,
    /// Movie fragments written so far; the next one's sequence number is one more.
    pub next_fragment: u32,
    /// PART-TARGET, once a part of the broadcast has settled it.
    pub part_target_90k: Option<u32>,
}

/// Turns the units of one broadcast, over any number of publisher sessions, into parts and segments.
#[derive(Debug)]
pub struct Packager {
    track_wait_ms: i64,
    broadcast: BroadcastPackager,
    phase: Phase,
}

/// State that outlives a publisher session.
#[derive(Debug)]
pub(super) struct BroadcastPackager {
    pub(super) segment_min_90k: i64,
    pub(super) target_duration_90k: i64,
    pub(super) segmenter: Segmenter,
    pub(super) key_frames: KeyFrames,
    /// Start of the next session.
    pub(super) end_90k: i64,
    pub(super) dropped: u64,
}

#[derive(Debug)]
enum Phase {
    /// No publisher, or a change of phase in progress.
    Idle,
    Waiting(TrackWait),
    Running(Box<SessionPackager>),
}

impl Packager {
    /// Makes a packager for a new broadcast, or for one that continues after a restart.
    pub fn new(settings: PackagerSettings, from: Option<Continuation>) -> Self {
        let segment_min_90k = ticks(settings.segment_min);
        let end_90k = from.as_ref().map_or(0, |from| from.end_90k.max(0));
        Self {
            track_wait_ms: i64::try_from(settings.track_wait.as_millis()).unwrap_or(i64::MAX),
            broadcast: BroadcastPackager {
                segment_min_90k,
                target_duration_90k: i64::from(settings.target_duration_s.max(1)) * CLOCK_90K,
                segmenter: Segmenter::new(ticks(settings.part_target).max(1), from),
                key_frames: KeyFrames::new(segment_min_90k),
                end_90k,
                dropped: 0,
            },
            phase: Phase::Idle,
        }
    }

    /// Begins the session of the next publisher: closes open parts and segments. The new session's first segment opens
    /// with a discontinuity, unless it is the broadcast's first.
    pub fn begin_session(&mut self, out: &mut Vec<Output>) {
        self.end_session(out);
        self.broadcast.segmenter.discontinue();
        self.broadcast.key_frames.interrupt();
        self.phase = Phase::Waiting(TrackWait::new(self.track_wait_ms));
    }

    /// Takes the session's next unit. Outside a session it is counted as dropped.
    pub fn push(&mut self, unit: Unit, now_ms: i64, out: &mut Vec<Output>) {
        match &mut self.phase {
            Phase::Idle => self.broadcast.dropped += 1,
            Phase::Waiting(wait) => {
                if !wait.push(unit, now_ms) {
                    self.broadcast.dropped += 1;
                }
                self.tick(now_ms, out);
            }
            Phase::Running(session) => session.push(unit, &mut self.broadcast),
        }
        self.hand_over(out);
    }

    /// Lets wall-clock time pass: the wait for the other track may end.
    pub fn tick(&mut self, now_ms: i64, out: &mut Vec<Output>) {
        if matches!(&self.phase, Phase::Waiting(wait) if wait.is_over(now_ms)) {
            self.run();
        }
        self.hand_over(out);
    }

    /// Ends the publisher's session: emits every whole unit that arrived, and ends the open segment. A last frame lasts
    /// as long as the one before it.
    pub fn end_session(&mut self, out: &mut Vec<Output>) {
        if matches!(&self.phase, Phase::Waiting(wait) if wait.has_media()) {
            self.run();
        }
        if let Phase::Running(mut session) = std::mem::replace(&mut self.phase, Phase::Idle) {
            session.finish(&mut self.broadcast);
        }
        self.hand_over(out);
    }

    /// Units left out so far: before the first key frame, without configuration, too far behind, or a flood.
    pub fn dropped(&self) -> u64 {
        self.broadcast.dropped
    }

    /// The TARGETDURATION that fits this broadcast's key-frame interval: the smallest of 2…6 s. `None` until one whole
    /// interval was seen, as for audio alone.
    pub fn next_target_duration_s(&self) -> Option<u32> {
        self.broadcast.key_frames.target_duration_s()
    }

    /// Ends the wait and hands its units to the session.
    fn run(&mut self) {
        let Phase::Waiting(wait) = std::mem::replace(&mut self.phase, Phase::Idle) else {
            return;
        };
        let mut start = wait.finish();
        let units = std::mem::take(&mut start.units);
        let Some(mut session) = SessionPackager::start(start, &units, &mut self.broadcast) else {
            return;
        };
        for arrived in units {
            session.push(arrived.unit, &mut self.broadcast);
        }
        self.phase = Phase::Running(Box::new(session));
    }

    fn hand_over(&mut self, out: &mut Vec<Output>) {
        out.append(&mut self.broadcast.segmenter.out);
    }
}

fn ticks(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros() * 9 / 100).unwrap_or(i64::MAX)
}
