//! Window of an input's newest units (`restream.buffer`, `MOST_BYTES`), which its outputs read by number.
//!
//! One window serves all followers. The input never waits: a unit is put in, units older than the buffer are dropped, and a
//! follower that is late learns how many it missed. The window exists only while it is followed.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use parking_lot::Mutex;
use sluice_media::{
    codec::{AudioConfig, VideoConfig},
    unit::Unit,
};
use tokio::{sync::watch, time::Instant};

use crate::live::Phase;

/// Most bytes of media in the window, whatever its length in time: 3 s of 80 Mbit/s.
const MOST_BYTES: usize = 32 << 20;
/// Most units taken at a time.
const BATCH: usize = 256;

/// State of an input as a source of units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceState {
    /// No broadcast.
    #[default]
    Off,
    Sending,
    /// The broadcast waits for its encoder.
    Silent,
}

impl From<Phase> for SourceState {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Idle | Phase::Ended => Self::Off,
            Phase::Starting | Phase::Live => Self::Sending,
            Phase::Reconnecting => Self::Silent,
        }
    }
}

/// Tracks of a publisher session at a moment.
#[derive(Clone, Debug, Default)]
pub struct Tracks {
    /// Number of the input's session; times continue within one.
    pub session: u64,
    pub video: Option<Arc<VideoConfig>>,
    pub audio: Option<Arc<AudioConfig>>,
}

/// A video or audio frame with the configurations to decode it.
#[derive(Clone, Debug)]
pub struct WindowUnit {
    pub tracks: Arc<Tracks>,
    pub unit: Unit,
    pub arrived: Instant,
}

#[derive(Debug, Default)]
struct Window {
    tracks: Arc<Tracks>,
    items: VecDeque<WindowUnit>,
    /// Number of the first item.
    first: u64,
    bytes: usize,
    followers: usize,
    keep: Duration,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub struct UnitWindow {
    window: Mutex<Window>,
    /// Touched at each change of the window too: it wakes followers.
    air: watch::Sender<SourceState>,
}

impl UnitWindow {
    /// Sets the state of the input. Units that were put in before are still read.
    pub fn set_air(&self, air: SourceState) {
        self.air.send_if_modified(|now| {
            let is_new = *now != air;
            *now = air;
            is_new
        });
    }

    pub fn air(&self) -> SourceState {
        *self.air.borrow()
    }

    /// Begins another publisher session: other configurations, other times.
    pub fn begin_session(&self) {
        let mut window = self.window.lock();
        window.tracks = Arc::new(Tracks {
            session: window.tracks.session + 1,
            ..Tracks::default()
        });
    }

    /// Adds units of the encoder.
    pub fn put(&self, units: &[Unit]) {
        let mut window = self.window.lock();
        let now = Instant::now();
        for unit in units {
            window.put(unit, now);
        }
        window.shorten(now);
        let is_followed = window.followers > 0;
        drop(window);
        if is_followed {
            self.air.send_modify(|_| {});
        }
    }

    /// Follows from now on; units stay for `keep` at least.
    pub fn follow(self: &Arc<Self>, keep: Duration) -> Follower {
        let mut window = self.window.lock();
        window.followers += 1;
        window.keep = window.keep.max(keep);
        Follower {
            next: window.head(),
            tap: Arc::clone(self),
            air: self.air.subscribe(),
        }
    }

    /// Waits until the input has one of these states, and returns it.
    pub async fn until(&self, wanted: &[SourceState]) -> SourceState {
        let mut air = self.air.subscribe();
        let reached = air.wait_for(|air| wanted.contains(air)).await;
        *reached.expect("the window keeps its sender")
    }
}

impl Window {
    fn head(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    fn put(&mut self, unit: &Unit, now: Instant) {
        match unit {
            Unit::VideoConfig(config) => {
                let tracks = Arc::make_mut(&mut self.tracks);
                tracks.video = Some(Arc::clone(config));
            }
            Unit::AudioConfig(config) => {
                let tracks = Arc::make_mut(&mut self.tracks);
                tracks.audio = Some(Arc::clone(config));
            }
            Unit::Video(_) | Unit::Audio(_) if self.followers > 0 => {
                self.bytes += len(unit);
                self.items.push_back(WindowUnit {
                    tracks: Arc::clone(&self.tracks),
                    unit: unit.clone(),
                    arrived: now,
                });
            }
            Unit::Video(_) | Unit::Audio(_) => {}
        }
    }

    fn shorten(&mut self, now: Instant) {
        while let Some(oldest) = self.items.front()
            && (self.bytes > MOST_BYTES || now.duration_since(oldest.arrived) > self.keep)
        {
            self.bytes -= len(&oldest.unit);
            self.items.pop_front();
            self.first += 1;
        }
    }

    /// Drops all units: there is no reader any more.
    fn clear(&mut self) {
        self.first = self.head();
        self.items = VecDeque::new();
        self.bytes = 0;
        self.keep = Duration::ZERO;
    }
}

fn len(unit: &Unit) -> usize {
    match unit {
        Unit::Video(video_frame) => video_frame.data.len(),
        Unit::Audio(audio) => audio.data.len(),
        Unit::VideoConfig(_) | Unit::AudioConfig(_) => 0,
    }
}

/// A reader; the window is dropped with the last of them.
#[derive(Debug)]
pub struct Follower {
    tap: Arc<UnitWindow>,
    air: watch::Receiver<SourceState>,
    next: u64,
}

/// Units for a follower, or the reason why there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitBatch {
    /// Items, behind `missed` ones that were dropped before they were read.
    Items { missed: u64 },
    /// All has been taken, and the broadcast is over.
    Over,
}

impl Follower {
    /// Waits for items and appends them to `items`. May be dropped at any time.
    pub async fn next(&mut self, items: &mut Vec<WindowUnit>) -> UnitBatch {
        loop {
            // In this order: what is put in before the end is taken before it.
            let air = *self.air.borrow_and_update();
            let before = items.len();
            let missed = self.take(items);
            if items.len() > before {
                return UnitBatch::Items { missed };
            }
            if air == SourceState::Off {
                return UnitBatch::Over;
            }
            let changed = self.air.changed().await;
            changed.expect("the window keeps its sender");
        }
    }

    fn take(&mut self, items: &mut Vec<WindowUnit>) -> u64 {
        let window = self.tap.window.lock();
        if window.items.is_empty() {
            return 0;
        }
        let missed = window.first.saturating_sub(self.next);
        let from = self.next.saturating_sub(window.first) as usize;
        let to = window.items.len().min(from + BATCH);
        items.extend(window.items.range(from.min(to)..to).cloned());
        self.next = window.first + to as u64;
        missed
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut window = self.tap.window.lock();
        window.followers -= 1;
        if window.followers == 0 {
            window.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use sluice_media::unit::AudioUnit;
    use tokio::time::advance;

    use super::*;

    const KEEP: Duration = Duration::from_secs(3);

    fn audio(pts_90k: i64) -> Unit {
        let data = Bytes::from_static(b"audio");
        Unit::Audio(AudioUnit { pts_90k, data })
    }

    fn times(items: &[WindowUnit]) -> Vec<i64> {
        let time = |item: &WindowUnit| match &item.unit {
            Unit::Audio(audio) => audio.pts_90k,
            other => panic!("{other:?}"),
        };
        items.iter().map(time).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_gets_what_comes_after_it() {
        let tap = Arc::new(UnitWindow::default());
        tap.set_air(SourceState::Sending);
        tap.put(&[audio(1)]);
        let mut follower = tap.follow(KEEP);
        tap.put(&[audio(2), audio(3)]);
        let mut items = Vec::new();
        assert_eq!(
            follower.next(&mut items).await,
            UnitBatch::Items { missed: 0 }
        );
        assert_eq!(times(&items), [2, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_reader_learns_how_much_it_missed() {
        let tap = Arc::new(UnitWindow::default());
        tap.set_air(SourceState::Sending);
        let mut follower = tap.follow(KEEP);
        for second in 0..10 {
            tap.put(&[audio(second)]);
            advance(Duration::from_secs(1)).await;
        }
        let mut items = Vec::new();
        assert_eq!(
            follower.next(&mut items).await,
            UnitBatch::Items { missed: 6 }
        );
        assert_eq!(times(&items), [6, 7, 8, 9]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_before_the_end_is_taken_before_it() {
        let tap = Arc::new(UnitWindow::default());
        tap.set_air(SourceState::Sending);
        let mut follower = tap.follow(KEEP);
        tap.put(&[audio(1)]);
        tap.set_air(SourceState::Off);
        let mut items = Vec::new();
        assert_eq!(
            follower.next(&mut items).await,
            UnitBatch::Items { missed: 0 }
        );
        assert_eq!(follower.next(&mut items).await, UnitBatch::Over);
        assert_eq!(times(&items), [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_for_no_one() {
        let tap = Arc::new(UnitWindow::default());
        let follower = tap.follow(KEEP);
        tap.put(&[audio(1)]);
        assert_eq!(tap.window.lock().bytes, 5);
        drop(follower);
        tap.put(&[audio(2)]);
        let window = tap.window.lock();
        assert_eq!((window.bytes, window.items.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_have_a_bound_too() {
        let tap = Arc::new(UnitWindow::default());
        let _follower = tap.follow(KEEP);
        let data = Bytes::from(vec![0; MOST_BYTES / 4]);
        for pts_90k in 0..10 {
            let data = data.clone();
            tap.put(&[Unit::Audio(AudioUnit { pts_90k, data })]);
        }
        let window = tap.window.lock();
        assert_eq!((window.items.len(), window.first), (4, 6));
    }
}
