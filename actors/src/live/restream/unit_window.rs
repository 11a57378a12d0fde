//! Window of an input's newest units (`restream.buffer`, `webrtc.join_cache`, `MOST_BYTES`, `LONGEST_GROUP`), which outputs and
//! WebRTC relays read by number.
//!
//! One window serves all followers. The input never waits: a unit is put in, units older than the buffer are dropped, and a
//! follower that is late learns how many it missed. Without followers the window is empty, but for the open group of pictures where
//! [`UnitWindow::keep_group`] asks for it: units share their bytes with the packager, so keeping costs no copy.

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
/// Longest open group of pictures that is kept for those who join.
const LONGEST_GROUP: Duration = Duration::from_secs(10);
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
    /// Most bytes of the open group; zero: none is kept.
    most_group_bytes: usize,
    /// The open group, where it is kept and whole.
    group: Option<Group>,
}

/// Units from the last key frame on.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Number of the key frame.
    first: u64,
    bytes: usize,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub struct UnitWindow {
    window: Mutex<Window>,
    /// Touched at each change of the window too: it wakes followers.
    air: watch::Sender<SourceState>,
    /// Number of followers that want units without delay.
    prompt: watch::Sender<usize>,
}

impl UnitWindow {
    /// Sets the state of the input. Units that were put in before are still read.
    pub fn set_air(&self, air: SourceState) {
        let is_new = self.air.send_if_modified(|now| {
            let is_new = *now != air;
            *now = air;
            is_new
        });
        if is_new && air == SourceState::Off {
            let mut window = self.window.lock();
            window.group = None;
            window.shorten(Instant::now());
        }
    }

    pub fn air(&self) -> SourceState {
        *self.air.borrow()
    }

    /// Keeps the units from the last key frame on, up to so many bytes, for those who join; zero keeps none.
    pub fn keep_group(&self, most_bytes: usize) {
        let mut window = self.window.lock();
        window.most_group_bytes = most_bytes;
        if most_bytes == 0 {
            window.group = None;
            window.shorten(Instant::now());
        }
    }

    /// Returns the tracks of the running publisher session.
    pub fn tracks(&self) -> Arc<Tracks> {
        Arc::clone(&self.window.lock().tracks)
    }

    /// Begins another publisher session: other configurations, other times.
    pub fn begin_session(&self) {
        let mut window = self.window.lock();
        window.group = None;
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
        self.follow_from(keep, Window::head)
    }

    /// Follows from the last key frame on, where the window has it; else from now on.
    pub fn follow_from_key_frame(self: &Arc<Self>, keep: Duration) -> Follower {
        self.follow_from(keep, |window| {
            window.last_key_frame().unwrap_or_else(|| window.head())
        })
    }

    fn follow_from(self: &Arc<Self>, keep: Duration, first: impl Fn(&Window) -> u64) -> Follower {
        let mut window = self.window.lock();
        window.followers += 1;
        window.keep = window.keep.max(keep);
        Follower {
            next: first(&window),
            tap: Arc::clone(self),
            air: self.air.subscribe(),
            is_prompt: false,
        }
    }

    /// Returns whether a follower wants units without delay: see [`Follower::promptly`].
    pub fn is_prompt(&self) -> bool {
        *self.prompt.borrow() > 0
    }

    /// Waits until [`UnitWindow::is_prompt`] is `wanted`.
    pub async fn until_prompt(&self, wanted: bool) {
        let mut prompt = self.prompt.subscribe();
        let reached = prompt
            .wait_for(|followers| (*followers > 0) == wanted)
            .await;
        reached.expect("the window keeps its sender");
    }

    /// Returns the number of units in the window, and their bytes.
    #[cfg(test)]
    pub(in crate::live) fn kept(&self) -> (usize, usize) {
        let window = self.window.lock();
        (window.items.len(), window.bytes)
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
                if self.tracks.video.as_ref() != Some(config) {
                    self.group = None;
                }
                let tracks = Arc::make_mut(&mut self.tracks);
                tracks.video = Some(Arc::clone(config));
            }
            Unit::AudioConfig(config) => {
                let tracks = Arc::make_mut(&mut self.tracks);
                tracks.audio = Some(Arc::clone(config));
            }
            Unit::Video(_) | Unit::Audio(_) => {
                self.extend_group(unit);
                if self.followers > 0 || self.group.is_some() {
                    self.bytes += len(unit);
                    self.items.push_back(WindowUnit {
                        tracks: Arc::clone(&self.tracks),
                        unit: unit.clone(),
                        arrived: now,
                    });
                }
            }
        }
    }

    /// Counts a unit that comes next into the open group, which a key frame begins and too many bytes end.
    fn extend_group(&mut self, unit: &Unit) {
        if matches!(unit, Unit::Video(video_frame) if video_frame.key) {
            let first = self.head();
            self.group = Some(Group { first, bytes: 0 });
        }
        let most_bytes = self.most_group_bytes;
        self.group = self.group.and_then(|group| {
            let bytes = group.bytes + len(unit);
            let fits = most_bytes > 0 && bytes <= most_bytes;
            fits.then_some(Group { bytes, ..group })
        });
    }

    fn last_key_frame(&self) -> Option<u64> {
        if let Some(group) = self.group {
            return Some(group.first);
        }
        let is_key = |item: &WindowUnit| matches!(&item.unit, Unit::Video(it) if it.key);
        let at = self.items.iter().rposition(is_key)?;
        // Frames of another configuration or session follow no key frame of this one.
        let has_changed = |item: &WindowUnit| {
            item.tracks.session != self.tracks.session || item.tracks.video != self.tracks.video
        };
        (!has_changed(&self.items[at])).then_some(self.first + at as u64)
    }

    fn shorten(&mut self, now: Instant) {
        while let Some(oldest) = self.items.front() {
            let age = now.duration_since(oldest.arrived);
            let is_of_group = self.group.is_some_and(|group| self.first >= group.first);
            let is_old = match is_of_group {
                true => age > LONGEST_GROUP.max(self.keep),
                false => self.followers == 0 || age > self.keep,
            };
            if !is_old && self.bytes <= MOST_BYTES {
                return;
            }
            if is_of_group {
                self.group = None;
            }
            self.bytes -= len(&oldest.unit);
            self.items.pop_front();
            self.first += 1;
        }
    }

    /// Drops all units but the open group: there is no reader any more.
    fn release(&mut self) {
        self.keep = Duration::ZERO;
        self.shorten(Instant::now());
        self.items.shrink_to_fit();
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
    is_prompt: bool,
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
    /// Asks for units without delay while this follower exists: the publisher's socket is read at once instead of at
    /// `live.read_interval`.
    pub fn promptly(mut self) -> Self {
        if !self.is_prompt {
            self.is_prompt = true;
            self.tap.prompt.send_modify(|followers| *followers += 1);
        }
        self
    }

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
        if self.is_prompt {
            self.tap.prompt.send_modify(|followers| *followers -= 1);
        }
        let mut window = self.tap.window.lock();
        window.followers -= 1;
        if window.followers == 0 {
            window.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use sluice_media::unit::{AudioUnit, VideoUnit};
    use tokio::time::advance;

    use super::*;

    const KEEP: Duration = Duration::from_secs(3);

    fn audio(pts_90k: i64) -> Unit {
        let data = Bytes::from_static(b"audio");
        Unit::Audio(AudioUnit { pts_90k, data })
    }

    fn video(dts_90k: i64, key: bool) -> Unit {
        Unit::Video(VideoUnit {
            dts_90k,
            cts_90k: 0,
            key,
            data: Bytes::from_static(b"0123456789"),
        })
    }

    fn times(items: &[WindowUnit]) -> Vec<i64> {
        let time = |item: &WindowUnit| match &item.unit {
            Unit::Audio(audio) => audio.pts_90k,
            Unit::Video(video_frame) => video_frame.dts_90k,
            other => panic!("{other:?}"),
        };
        items.iter().map(time).collect()
    }

    /// Times of the units that a follower from the last key frame gets first.
    fn joined(tap: &Arc<UnitWindow>) -> Vec<i64> {
        let mut items = Vec::new();
        tap.follow_from_key_frame(KEEP).take(&mut items);
        times(&items)
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

    #[tokio::test(start_paused = true)]
    async fn the_open_group_is_kept_for_those_who_join() {
        let tap = Arc::new(UnitWindow::default());
        tap.put(&[video(1, true), video(2, false)]);
        assert_eq!(
            joined(&tap),
            [0; 0],
            "nothing is kept unless it is asked for"
        );

        tap.keep_group(100);
        tap.put(&[audio(3), video(4, false)]);
        assert_eq!(joined(&tap), [0; 0], "it begins with a key frame");
        tap.put(&[video(5, true), audio(6)]);
        advance(Duration::from_secs(6)).await;
        tap.put(&[video(7, false)]);
        assert_eq!(joined(&tap), [5, 6, 7]);
        assert_eq!(
            joined(&tap),
            [5, 6, 7],
            "and is still there when a reader is gone"
        );
        tap.put(&[video(8, true)]);
        assert_eq!(joined(&tap), [8]);
        assert_eq!(tap.window.lock().bytes, 10);

        tap.keep_group(0);
        assert_eq!(joined(&tap), [0; 0]);
        assert_eq!(tap.window.lock().bytes, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_group_that_is_too_long_or_too_large_is_dropped_whole() {
        let tap = Arc::new(UnitWindow::default());
        tap.keep_group(35);
        tap.put(&[video(1, true), video(2, false), video(3, false)]);
        assert_eq!(joined(&tap), [1, 2, 3]);
        tap.put(&[video(4, false), video(5, false)]);
        assert_eq!(tap.window.lock().bytes, 0);
        assert_eq!(joined(&tap), [0; 0]);

        tap.put(&[video(6, true)]);
        advance(LONGEST_GROUP + Duration::from_millis(1)).await;
        tap.put(&[video(7, false)]);
        assert_eq!(tap.window.lock().bytes, 0);
        assert_eq!(joined(&tap), [0; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_group_ends_with_its_session() {
        let tap = Arc::new(UnitWindow::default());
        tap.keep_group(100);
        tap.put(&[video(1, true)]);
        tap.begin_session();
        assert_eq!(joined(&tap), [0; 0]);
        tap.put(&[video(2, false)]);
        assert_eq!(tap.window.lock().bytes, 0);

        tap.set_air(SourceState::Sending);
        tap.put(&[video(3, true)]);
        tap.set_air(SourceState::Off);
        assert_eq!(tap.window.lock().bytes, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_group_outlasts_the_buffer_of_followers() {
        let tap = Arc::new(UnitWindow::default());
        tap.keep_group(100);
        let _follower = tap.follow(KEEP);
        tap.put(&[video(1, false), video(2, true)]);
        advance(2 * KEEP).await;
        tap.put(&[video(3, false)]);
        assert_eq!(tap.window.lock().items.len(), 2);
        assert_eq!(joined(&tap), [2, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_frame_in_the_buffer_of_another_follower_is_found() {
        let tap = Arc::new(UnitWindow::default());
        let _follower = tap.follow(KEEP);
        tap.put(&[video(1, true), audio(2), video(3, true), video(4, false)]);
        assert_eq!(joined(&tap), [3, 4]);
        tap.begin_session();
        tap.put(&[video(5, false)]);
        assert_eq!(joined(&tap), [0; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_prompt_follower_is_seen_while_it_exists() {
        let tap = Arc::new(UnitWindow::default());
        let ordinary = tap.follow(KEEP);
        assert!(!tap.is_prompt());
        let prompt = tap.follow(KEEP).promptly().promptly();
        tap.until_prompt(true).await;
        drop(ordinary);
        assert!(tap.is_prompt());
        drop(prompt);
        tap.until_prompt(false).await;
        assert!(!tap.is_prompt());
    }
}
