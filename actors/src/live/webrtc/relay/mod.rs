//! Relay of one watched input: follows its units, decides what each viewer is sent, feeds the gateway (`FOLLOW_BEHIND`).
//!
//! Started by the first session and ended some seconds after the last, so that a reload meets a warm branch. The input does not
//! notice it: a relay is a follower of the input's window. The state is behind a lock that is held for a batch of units; the branch
//! belongs to the task.

mod feeds;
mod viewers;

use std::{
    sync::{Arc, atomic::AtomicU32},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use sluice_ingest::webrtc::message::{FeedId, SessionId, VideoCodecs};
use tokio::{sync::Notify, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, info};

use self::{feeds::Feeds, viewers::Viewers};
use super::{
    WebRtcError,
    branch::{Branch, BranchOutput, BranchTracks, Branches},
    outbox::Outbox,
    report::BranchHealth,
};
use crate::live::{
    Playback,
    restream::unit_window::{SourceState, UnitBatch, WindowUnit},
};

/// Time for which units stay for a relay that is late.
const FOLLOW_BEHIND: Duration = Duration::from_secs(3);

/// Parts of the service that a relay needs.
#[derive(Clone)]
pub(super) struct RelayContext {
    pub outbox: Arc<Outbox>,
    /// `None` where nothing can be re-encoded.
    pub branches: Option<Branches>,
    /// The next feed's id.
    pub feed_ids: Arc<AtomicU32>,
    /// Most bytes of the open group of pictures.
    pub join_cache: usize,
}

/// Codecs that a viewer takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takes {
    pub video: VideoCodecs,
    pub audio: bool,
}

/// See the module documentation.
pub(super) struct Relay {
    playback: Arc<Playback>,
    context: RelayContext,
    state: Mutex<RelayState>,
    /// The viewers or the source changed, or the branch is asked for a key frame.
    changed: Notify,
    over: CancellationToken,
}

struct RelayState {
    viewers: Viewers,
    feeds: Feeds,
    /// Tracks that the branch re-encodes.
    branch: BranchTracks,
    branch_wants_key: bool,
    cpu_percent: Option<f32>,
    /// The plan no longer fits the viewers or the source.
    is_stale: bool,
    /// Since when there has been no session.
    empty_since: Option<Instant>,
}

impl Relay {
    /// Starts the task.
    pub fn start(playback: Arc<Playback>, context: RelayContext, tasks: &TaskTracker) -> Arc<Self> {
        let tracks = playback.tap().tracks();
        let reorders = (playback.health()).is_some_and(|it| it.measured.b_frames == Some(true));
        let state = RelayState {
            viewers: Viewers::new(context.branches.is_some()),
            feeds: Feeds::new(&context, tracks, reorders),
            branch: BranchTracks::default(),
            branch_wants_key: false,
            cpu_percent: None,
            is_stale: false,
            empty_since: Some(Instant::now()),
        };
        let relay = Arc::new(Self {
            playback,
            context,
            state: Mutex::new(state),
            changed: Notify::new(),
            over: CancellationToken::new(),
        });
        tasks.spawn(relay.clone().run());
        relay
    }

    /// Adds a session that is not connected yet, once there is a way to serve it.
    pub async fn join(&self, session: SessionId, takes: Takes) -> Result<(), WebRtcError> {
        let decision = {
            let mut state = self.state.lock();
            state.empty_since = None;
            state.is_stale = true;
            state.viewers.join(session, takes)
        };
        self.changed.notify_one();
        decision.await.unwrap_or(Err(WebRtcError::Unavailable))
    }

    /// Sends a session from now on.
    pub fn connect(&self, session: SessionId) {
        let mut state = self.state.lock();
        state.viewers.connect(session, &self.context.outbox);
    }

    /// Removes a session.
    pub fn leave(&self, session: SessionId) {
        let mut state = self.state.lock();
        state.viewers.leave(session);
        state.is_stale = true;
        if state.viewers.is_empty() && state.empty_since.is_none() {
            state.empty_since = Some(Instant::now());
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Returns for how long there has been no session.
    pub fn empty_for(&self) -> Option<Duration> {
        self.state.lock().empty_since.map(|since| since.elapsed())
    }

    /// Asks for a key frame of a feed; false when the feed is another relay's. Only the branch can make one.
    pub fn want_key_frame(&self, feed: FeedId) -> bool {
        let mut state = self.state.lock();
        if !state.feeds.contains(feed) {
            return false;
        }
        if state.feeds.is_branch_video(feed) {
            state.branch_wants_key = true;
            drop(state);
            self.changed.notify_one();
        }
        true
    }

    /// Takes the sessions that can no longer be served.
    pub fn take_unserved(&self) -> Vec<SessionId> {
        self.state.lock().viewers.take_unserved()
    }

    /// Returns the frames that were left out since the last call.
    pub fn take_dropped(&self) -> u64 {
        self.state.lock().feeds.take_dropped()
    }

    /// Returns what viewers are sent.
    pub fn health(&self) -> BranchHealth {
        let state = self.state.lock();
        let cpu_percent = state.cpu_percent.map(f64::from);
        state.viewers.health(cpu_percent)
    }

    pub fn end(&self) {
        self.over.cancel();
    }

    async fn run(self: Arc<Self>) {
        let input = self.playback.input_id;
        debug!(%input, "a relay for WebRTC begins");
        let tap = self.playback.tap();
        let mut follower = tap.follow_from_key_frame(FOLLOW_BEHIND).promptly();
        let mut branch = None;
        let mut items = Vec::new();
        loop {
            self.bring_up_to_date(&mut branch);
            let taken = tokio::select! {
                biased;
                () = self.over.cancelled() => break,
                () = self.changed.notified() => continue,
                output = next_output(&mut branch) => {
                    self.take_output(output, &mut branch);
                    continue;
                }
                taken = follower.next(&mut items) => taken,
            };
            match taken {
                UnitBatch::Items { missed } => self.pass(missed, items.drain(..), &mut branch),
                UnitBatch::Over => tokio::select! {
                    () = self.over.cancelled() => break,
                    () = self.changed.notified() => {}
                    _ = tap.until(&[SourceState::Sending, SourceState::Silent]) => {}
                },
            }
        }
        self.state.lock().feeds.forget_all();
        debug!(%input, "a relay for WebRTC is over");
    }

    /// Passes units to the gateway and to the branch.
    fn pass(
        &self,
        missed: u64,
        items: impl Iterator<Item = WindowUnit>,
        branch: &mut Option<Branch>,
    ) {
        let now_us = unix_us();
        let mut state = self.state.lock();
        if missed > 0 {
            state.feeds.miss();
        }
        for item in items {
            let arrived_us = now_us - item.arrived.elapsed().as_micros() as i64;
            if state.feeds.follow(&item.tracks) {
                self.plan(&mut state, branch);
            }
            if let (Some(placed), Some(branch)) = (state.feeds.push(item, arrived_us), &mut *branch)
            {
                branch.push(&placed);
            }
        }
    }

    fn take_output(&self, output: Option<BranchOutput>, branch: &mut Option<Branch>) {
        let mut state = self.state.lock();
        match output {
            Some(BranchOutput::Replaced { reason }) => {
                info!(input = %self.playback.input_id, reason, "the re-encoding for WebRTC is started again");
            }
            Some(output) => state.feeds.push_output(output),
            // Nothing can be re-encoded on this machine: its viewers are sent what needs none.
            None => {
                *branch = None;
                state.viewers.forgo_branch();
                state.is_stale = true;
            }
        }
        state.cpu_percent = branch.as_ref().and_then(Branch::cpu_percent);
    }

    /// Carries out what has changed since the last time.
    fn bring_up_to_date(&self, branch: &mut Option<Branch>) {
        let mut state = self.state.lock();
        if state.is_stale {
            self.plan(&mut state, branch);
        }
        if std::mem::take(&mut state.branch_wants_key)
            && let Some(branch) = branch
        {
            branch.want_key_frame();
        }
    }

    /// Decides what each viewer is sent, and begins and ends feeds and branch.
    fn plan(&self, state: &mut RelayState, branch: &mut Option<Branch>) {
        state.is_stale = false;
        if state.viewers.is_empty() {
            // The branch stays warm until the relay ends.
            return;
        }
        let mut plan = state.viewers.plan(&state.feeds.source());
        if self.provide(plan.branch, state, branch).is_err() {
            plan = state.viewers.without_video_branch();
            // Audio alone needs no permit.
            let _ = self.provide(plan.branch, state, branch);
        }
        state.feeds.carry(&plan);
        let outbox = &self.context.outbox;
        state.viewers.settle(&state.feeds.ids(), outbox);
    }

    /// Starts, changes or ends the branch.
    fn provide(
        &self,
        wanted: BranchTracks,
        state: &mut RelayState,
        branch: &mut Option<Branch>,
    ) -> Result<(), ()> {
        if wanted == state.branch && (branch.is_some() || wanted == BranchTracks::default()) {
            return Ok(());
        }
        match branch {
            _ if wanted == BranchTracks::default() => *branch = None,
            Some(running) => running.want(wanted).map_err(drop)?,
            None => {
                let branches = self.context.branches.as_ref().ok_or(())?;
                let mut started = Branch::start(branches, wanted).map_err(drop)?;
                for unit in state.feeds.group() {
                    started.push(unit);
                }
                *branch = Some(started);
            }
        }
        state.branch = wanted;
        Ok(())
    }
}

async fn next_output(branch: &mut Option<Branch>) -> Option<BranchOutput> {
    match branch {
        Some(branch) => branch.next().await,
        None => std::future::pending().await,
    }
}

fn unix_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as i64)
}
