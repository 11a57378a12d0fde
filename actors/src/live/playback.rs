//! State of a live input for viewers: phase, rendered playlists, access policy, health, viewers; directory of all inputs by
//! id, playback id and key.
//!
//! Each input has one [`Playback`], whose state its actor publishes. A viewer costs no actor message: a request reads it,
//! and a blocking reload waits on the same `watch`. Playlists are rendered at most once per published state, by the first
//! viewer who asks.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::RwLock;
use sluice_media::hls::{MediaOptions, Window, media_playlist, multivariant_playlist};
use sluice_store::{
    changes::{ChangeLog, Kind},
    live_inputs::{Latency, LiveInput as InputRow},
};
use tokio::sync::watch;
use uuid::Uuid;

use super::{
    Health, InputStatus, Phase, Times,
    history::{History, OffAir},
    restream::unit_window::UnitWindow,
    segment_store::SegmentStore,
    viewers::{PlayId, Viewers},
    webrtc::WebRtcViewers,
};

/// Returns whether parts are listed.
pub(super) fn is_low_latency(row: &InputRow) -> bool {
    row.latency == Latency::Low
}

/// Immutable state of an input at one moment.
#[derive(Debug)]
pub struct Published {
    pub phase: Phase,
    /// Unix milliseconds; set while reconnecting.
    pub reconnect_until_ms: Option<i64>,
    /// The playlist and its bytes, once there is something to list.
    pub view: Option<Arc<View>>,
}

impl Published {
    /// Returns the view whose playlist viewers get; `None` until a player can start.
    pub fn listed(&self) -> Option<Arc<View>> {
        self.view.as_ref().and_then(View::listed)
    }
}

/// A window with the bytes it lists and its playlists, rendered once.
#[derive(Debug)]
pub struct View {
    pub window: Window,
    pub segment_store: Arc<SegmentStore>,
    /// View that is listed until a player can start with this one.
    before: Option<Arc<View>>,
    media: OnceLock<bytes::Bytes>,
    delta: OnceLock<bytes::Bytes>,
}

impl View {
    pub fn new(window: Window, segment_store: Arc<SegmentStore>) -> Self {
        Self {
            window,
            segment_store,
            before: None,
            media: OnceLock::new(),
            delta: OnceLock::new(),
        }
    }

    /// Keeps the playlist of `previous` until a player can start with this view: after skipped media sequence numbers the
    /// window begins with a segment that has hardly any part yet, and the playlist must not disappear meanwhile.
    pub(super) fn following(mut self, previous: Option<&Arc<View>>) -> Self {
        self.before = previous
            .filter(|_| !self.is_playable())
            .and_then(View::listed);
        self
    }

    /// Returns the view whose playlist viewers get: this one, or before a player can start with it the one it follows.
    fn listed(self: &Arc<Self>) -> Option<Arc<View>> {
        if self.is_playable() {
            Some(self.clone())
        } else {
            self.before.clone()
        }
    }

    /// Returns the media playlist; with `skip` the delta update of RFC 8216bis §6.2.5.1.
    pub fn media_playlist(&self, skip: bool) -> bytes::Bytes {
        let cell = if skip { &self.delta } else { &self.media };
        cell.get_or_init(|| media_playlist(&self.window, MediaOptions { skip }).into())
            .clone()
    }

    /// Returns whether a player can start.
    pub fn is_playable(&self) -> bool {
        self.window.is_playable()
    }

    /// Returns the multivariant playlist; `query` is the query of the media playlist's address in it, see
    /// [`multivariant_playlist`].
    pub fn multivariant_playlist(&self, query: &str) -> bytes::Bytes {
        multivariant_playlist(&self.window, query).into()
    }
}

/// Terms of access in the input's row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Watching requires a playback token.
    pub signed: bool,
    /// Exact hosts or `*.` sub-domains; empty: everyone.
    pub allowed_domains: Vec<String>,
    pub low_latency: bool,
}

impl From<&InputRow> for Policy {
    fn from(row: &InputRow) -> Self {
        Self {
            signed: row.require_signed_playback,
            allowed_domains: row.allowed_domains.clone(),
            low_latency: is_low_latency(row),
        }
    }
}

/// The readable side of one live input. Exists as long as the input does, on air or not.
#[derive(Debug)]
pub struct Playback {
    pub input_id: Uuid,
    pub account_id: Uuid,
    pub playback_id: String,
    policy: ArcSwap<Policy>,
    state: watch::Sender<Arc<Published>>,
    health: ArcSwapOption<Health>,
    history: Arc<History>,
    /// Reason why the input's source is not pulled at the moment.
    pull_error: ArcSwapOption<String>,
    viewers: Viewers,
    webrtc: WebRtcViewers,
    /// Units of the encoder, for outputs.
    tap: Arc<UnitWindow>,
    last_started_ms: AtomicI64,
    last_ended_ms: AtomicI64,
    fence: AtomicI64,
    /// 0: not known yet.
    target_duration_s: AtomicU32,
    /// Followers of the account's changes learn of state that has no row.
    changes: ChangeLog,
}

/// Target durations after a request for the media playlist in which a player counts as a viewer.
const VIEWER_FOR_TARGETS: i64 = 3;
/// No time yet.
const NEVER: i64 = i64::MIN;

impl Playback {
    pub(super) fn new(row: &InputRow, changes: ChangeLog) -> Self {
        let idle = Published {
            phase: Phase::Idle,
            reconnect_until_ms: None,
            view: None,
        };
        Self {
            input_id: row.id,
            account_id: row.account_id,
            playback_id: row.playback_id.clone(),
            policy: ArcSwap::from_pointee(Policy::from(row)),
            state: watch::Sender::new(Arc::new(idle)),
            health: ArcSwapOption::empty(),
            history: Arc::default(),
            pull_error: ArcSwapOption::empty(),
            viewers: Viewers::default(),
            webrtc: WebRtcViewers::default(),
            tap: Arc::default(),
            last_started_ms: AtomicI64::new(row.last_started_at.unwrap_or(NEVER)),
            last_ended_ms: AtomicI64::new(row.last_ended_at.unwrap_or(NEVER)),
            fence: AtomicI64::new(row.fence),
            target_duration_s: AtomicU32::new(row.last_target_duration_s.unwrap_or(0)),
            changes,
        }
    }

    /// Nudges those who follow the account's changes.
    fn moved(&self) {
        self.changes
            .moved(self.account_id, Kind::LiveInput, self.input_id);
    }

    /// Returns the state of this moment.
    pub fn now(&self) -> Arc<Published> {
        self.state.borrow().clone()
    }

    /// Follows the state; the receiver's first value counts as seen.
    pub fn follow(&self) -> watch::Receiver<Arc<Published>> {
        self.state.subscribe()
    }

    pub fn policy(&self) -> Arc<Policy> {
        self.policy.load_full()
    }

    pub fn health(&self) -> Option<Arc<Health>> {
        self.health.load_full()
    }

    /// Returns the health of the last 15 minutes; kept over reconnects and broadcasts.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Counts a player that asks for the media playlist.
    pub fn note_viewer(&self, play: PlayId, now_ms: i64) {
        self.viewers.note(play, now_ms, self.viewer_for_ms());
    }

    /// Returns the number of players that asked for the media playlist within the last three target durations, or are connected by
    /// WebRTC.
    pub fn viewers(&self, now_ms: i64) -> u64 {
        self.viewers.count(now_ms, self.viewer_for_ms()) + self.webrtc.count()
    }

    pub(super) fn webrtc(&self) -> &WebRtcViewers {
        &self.webrtc
    }

    /// Returns the time for which a player counts after a request; 0 when there is nothing to watch.
    fn viewer_for_ms(&self) -> i64 {
        let view = &self.state.borrow().view;
        let target_s = view
            .as_ref()
            .map_or(0, |view| view.window.header().target_duration_s);
        VIEWER_FOR_TARGETS * i64::from(target_s) * 1_000
    }

    /// Returns begin and end of the newest broadcasts; the end is `None` while one is live or reconnecting.
    pub fn times(&self) -> Times {
        let read = |cell: &AtomicI64| Some(cell.load(Ordering::Relaxed)).filter(|ms| *ms != NEVER);
        Times {
            last_started_ms: read(&self.last_started_ms),
            last_ended_ms: read(&self.last_ended_ms),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.status() == InputStatus::Idle
    }

    pub fn status(&self) -> InputStatus {
        match self.state.borrow().phase {
            Phase::Idle | Phase::Ended => InputStatus::Idle,
            Phase::Starting | Phase::Live => InputStatus::Live,
            Phase::Reconnecting => InputStatus::Reconnecting,
        }
    }

    pub(super) fn publish(
        &self,
        phase: Phase,
        reconnect_until_ms: Option<i64>,
        view: Option<Arc<View>>,
    ) {
        self.tap.set_air(phase.into());
        let before = self.state.send_replace(Arc::new(Published {
            phase,
            reconnect_until_ms,
            view,
        }));
        if before.phase != phase {
            self.moved();
        }
    }

    pub(super) fn tap(&self) -> Arc<UnitWindow> {
        Arc::clone(&self.tap)
    }

    /// Returns the fence of the next broadcast, to which the ledger raises the row's.
    pub(super) fn next_fence(&self) -> i64 {
        self.fence.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Raises the fence to that of the row, which another node may have raised.
    fn raise_fence(&self, fence: i64) {
        self.fence.fetch_max(fence, Ordering::Relaxed);
    }

    /// Returns the target duration that the last broadcast's key frames suggest for the next one.
    pub(super) fn target_duration_s(&self) -> Option<u32> {
        Some(self.target_duration_s.load(Ordering::Relaxed)).filter(|seconds| *seconds > 0)
    }

    pub(super) fn set_target_duration_s(&self, seconds: Option<u32>) {
        if let Some(seconds) = seconds {
            self.target_duration_s.store(seconds, Ordering::Relaxed);
        }
    }

    pub(super) fn set_policy(&self, policy: Policy) {
        self.policy.store(Arc::new(policy));
    }

    /// Returns the reason why the input's source is not pulled at the moment; `None` when it is, or when there is none.
    pub fn pull_error(&self) -> Option<String> {
        self.pull_error.load().as_ref().map(|it| it.to_string())
    }

    pub(super) fn set_pull_error(&self, error: Option<String>) {
        let has_moved = self.pull_error() != error;
        self.pull_error.store(error.map(Arc::new));
        if has_moved {
            self.moved();
        }
    }

    pub(super) fn set_health(&self, health: Option<Health>) {
        let health = health.map(Arc::new);
        let before = self.health.swap(health.clone());
        let has_moved = match (before, health) {
            (Some(before), Some(health)) => health.asks_for_more_than_measuring(&before),
            (before, health) => before.is_some() != health.is_some(),
        };
        if has_moved {
            self.moved();
        }
    }

    pub(super) fn set_started(&self, at_ms: i64) {
        self.last_started_ms.store(at_ms, Ordering::Relaxed);
        self.last_ended_ms.store(NEVER, Ordering::Relaxed);
    }

    pub(super) fn set_ended(&self, at_ms: i64) {
        self.last_ended_ms.store(at_ms, Ordering::Relaxed);
    }
}

/// All live inputs and their playbacks. Written by `LiveInputs` alone; survives its restarts.
#[derive(Debug, Default)]
pub struct Directory {
    entries: RwLock<Entries>,
    /// Inputs whose last broadcast's health is still shown.
    off_air: OffAir,
    /// Counts the changes of rows.
    rows_changed: watch::Sender<u64>,
    /// Log of the state of inputs for followers of an account.
    changes: ChangeLog,
}

#[derive(Debug, Default)]
struct Entries {
    by_input: HashMap<Uuid, Entry>,
    by_playback: HashMap<String, Uuid>,
    by_key_hash: HashMap<String, Uuid>,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub row: Arc<InputRow>,
    pub playback: Arc<Playback>,
}

impl Directory {
    pub(super) fn new(changes: ChangeLog) -> Self {
        Self {
            changes,
            ..Self::default()
        }
    }

    /// Makes a directory of these inputs, for tests of requests.
    #[doc(hidden)]
    pub fn of(rows: impl IntoIterator<Item = InputRow>) -> Self {
        let directory = Self::default();
        for row in rows {
            directory.put(row);
        }
        directory
    }

    pub fn by_input(&self, input_id: Uuid) -> Option<Arc<Playback>> {
        self.entry(input_id).map(|entry| entry.playback)
    }

    pub fn by_playback(&self, playback_id: &str) -> Option<Arc<Playback>> {
        let entries = self.entries.read();
        let input_id = entries.by_playback.get(playback_id)?;
        entries
            .by_input
            .get(input_id)
            .map(|entry| entry.playback.clone())
    }

    pub fn playbacks(&self) -> Vec<Arc<Playback>> {
        let entries = self.entries.read();
        entries
            .by_input
            .values()
            .map(|entry| entry.playback.clone())
            .collect()
    }

    /// Returns the playbacks of inputs that are live or within their reconnect window.
    pub fn on_air(&self) -> Vec<Arc<Playback>> {
        let entries = self.entries.read();
        let playbacks = entries.by_input.values().map(|entry| &entry.playback);
        playbacks
            .filter(|playback| !playback.is_idle())
            .cloned()
            .collect()
    }

    /// Keeps the history of an input that went off the air, whose health is shown for a while.
    pub(super) fn keep_history(&self, playback: &Playback, now_ms: i64) {
        self.off_air.keep(&playback.history, now_ms);
    }

    /// Follows the changes of rows, by their count.
    pub(super) fn follow(&self) -> watch::Receiver<u64> {
        self.rows_changed.subscribe()
    }

    pub(super) fn rows(&self) -> Vec<Arc<InputRow>> {
        let entries = self.entries.read();
        entries
            .by_input
            .values()
            .map(|entry| entry.row.clone())
            .collect()
    }

    pub(super) fn entry(&self, input_id: Uuid) -> Option<Entry> {
        self.entries.read().by_input.get(&input_id).cloned()
    }

    pub(super) fn by_key_hash(&self, hash: &str) -> Option<Entry> {
        let entries = self.entries.read();
        let input_id = entries.by_key_hash.get(hash)?;
        entries.by_input.get(input_id).cloned()
    }

    /// Replaces the row of an input; returns the earlier one.
    pub(super) fn put(&self, row: InputRow) -> Option<Arc<InputRow>> {
        let mut entries = self.entries.write();
        let row = Arc::new(row);
        let (playback, old) = match entries.by_input.get(&row.id) {
            Some(entry) => (entry.playback.clone(), Some(entry.row.clone())),
            None => {
                let playback = Playback::new(&row, self.changes.clone());
                (Arc::new(playback), None)
            }
        };
        playback.set_policy(Policy::from(row.as_ref()));
        playback.raise_fence(row.fence);
        if let Some(old) = &old {
            entries.by_key_hash.remove(&old.stream_key_hash);
        }
        entries
            .by_key_hash
            .insert(row.stream_key_hash.clone(), row.id);
        entries.by_playback.insert(row.playback_id.clone(), row.id);
        entries.by_input.insert(row.id, Entry { row, playback });
        self.rows_changed.send_modify(|changes| *changes += 1);
        old
    }

    pub(super) fn remove(&self, input_id: Uuid) -> Option<Entry> {
        let mut entries = self.entries.write();
        let entry = entries.by_input.remove(&input_id)?;
        entries.by_key_hash.remove(&entry.row.stream_key_hash);
        entries.by_playback.remove(&entry.row.playback_id);
        self.rows_changed.send_modify(|changes| *changes += 1);
        Some(entry)
    }
}
