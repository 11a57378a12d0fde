//! Re-encoding branch of one input for WebRTC viewers, by a sandboxed worker process: H.264 without B-frames, Opus.
//!
//! A branch has a task with one worker process at a time, which it replaces when it ends, hangs or sends what no encoder makes.
//! Its input and its output are bounded queues; when one is full, video is dropped up to the next key frame.

mod output;
mod task;
mod watchdog;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use sluice_media::unit::Unit;
use sluice_worker::process::{Launch, Ring};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinHandle,
};

use crate::{
    compute::Sandbox,
    live::restream::unit_window::{Tracks, WindowUnit},
};

/// Messages to the task that wait, and the most bytes in them: the open group of pictures is pushed at once.
const ORDERS: usize = 2_048;
const WAITING_BYTES: usize = 32 << 20;
/// Outputs that wait for the relay.
const OUTPUTS: usize = 256;
/// Age from which on a unit is decoded for later ones and not encoded.
const OLD_AFTER: Duration = Duration::from_millis(500);

/// Tracks that a branch re-encodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchTracks {
    pub video: bool,
    pub audio: bool,
}

/// Rejection of a branch: `webrtc.max_branches` video tracks are re-encoded already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("as many streams are re-encoded for WebRTC as webrtc.max_branches allows")]
pub struct BranchesBusy;

/// Output of a branch, in the order in which it is made; times are those of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchOutput {
    /// An H.264 frame (constrained baseline): NAL units behind lengths of 4 bytes, parameter sets first in a key frame.
    Video {
        key: bool,
        pts_90k: i64,
        data: Bytes,
    },
    /// An Opus packet: stereo, 20 ms.
    Audio { pts_90k: i64, data: Bytes },
    /// Frames that were left out, because the machine is too slow or the source is damaged.
    Dropped { frames: u32 },
    /// The process ended and is replaced; the next video frame is a key frame.
    Replaced { reason: String },
}

/// Terms of all branches: the program, bounds, and permits for `webrtc.max_branches`. Clones share them.
#[derive(Clone, Debug)]
pub struct Branches(Arc<Terms>);

#[derive(Debug)]
struct Terms {
    launch: Arc<Launch>,
    sandbox: Sandbox,
    max_bitrate: u32,
    permits: Arc<Semaphore>,
    max_video: usize,
}

impl Branches {
    /// `launch`: as for other work on video and audio. `max_video`: branches with video at a time, 0 for half the cores, at least
    /// one. `max_bitrate`: bits per second of one.
    pub fn new(launch: Launch, sandbox: Sandbox, max_video: usize, max_bitrate: u32) -> Self {
        let max_video = match max_video {
            0 => thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1)),
            most => most,
        };
        let ring = match launch.ring {
            Ring::Av { registry } => Ring::Live { registry },
            other => other,
        };
        Self(Arc::new(Terms {
            launch: Arc::new(Launch { ring, ..launch }),
            sandbox,
            max_bitrate,
            permits: Arc::new(Semaphore::new(max_video)),
            max_video,
        }))
    }

    /// Branches with video at this moment.
    pub fn with_video(&self) -> usize {
        self.0.max_video - self.0.permits.available_permits()
    }

    fn permit(&self) -> Result<OwnedSemaphorePermit, BranchesBusy> {
        let permits = self.0.permits.clone();
        permits.try_acquire_owned().map_err(|_| BranchesBusy)
    }
}

/// Message to the task of a branch.
#[derive(Debug)]
enum Order {
    Want(BranchTracks),
    WantKeyFrame,
    Unit { unit: Unit, is_old: bool },
}

/// A branch. Dropping it ends its process.
#[derive(Debug)]
pub struct Branch {
    branches: Branches,
    wanted: BranchTracks,
    permit: Option<OwnedSemaphorePermit>,
    orders: mpsc::Sender<Order>,
    waiting_bytes: Arc<AtomicUsize>,
    outputs: mpsc::Receiver<BranchOutput>,
    cpu: Arc<CpuPercent>,
    /// Those of the newest unit.
    source: Option<Arc<Tracks>>,
    /// True after a video unit did not fit.
    waits_for_key: bool,
    task: JoinHandle<()>,
}

impl Drop for Branch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Branch {
    /// Starts one in the background; its process starts with the first unit.
    pub fn start(branches: &Branches, tracks: BranchTracks) -> Result<Self, BranchesBusy> {
        let permit = tracks.video.then(|| branches.permit()).transpose()?;
        let (orders, receiver) = mpsc::channel(ORDERS);
        let (sender, outputs) = mpsc::channel(OUTPUTS);
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let cpu = Arc::new(CpuPercent::default());
        let task = task::BranchTask::new(
            branches.0.clone(),
            tracks,
            task::Incoming::new(receiver, waiting_bytes.clone()),
            sender,
            cpu.clone(),
        );
        Ok(Self {
            branches: branches.clone(),
            wanted: tracks,
            permit,
            orders,
            waiting_bytes,
            outputs,
            cpu,
            source: None,
            waits_for_key: false,
            task: tokio::spawn(task.run()),
        })
    }

    /// Changes the tracks that are re-encoded; after an error they are as before.
    pub fn want(&mut self, tracks: BranchTracks) -> Result<(), BranchesBusy> {
        if tracks == self.wanted {
            return Ok(());
        }
        match (tracks.video, &self.permit) {
            (true, None) => self.permit = Some(self.branches.permit()?),
            (false, Some(_)) => self.permit = None,
            _ => {}
        }
        self.wanted = tracks;
        if self.orders.try_send(Order::Want(tracks)).is_err() {
            // The queue is full of units for a process that hangs: another branch begins with what is wanted.
            self.task.abort();
        }
        Ok(())
    }

    /// Passes a unit of the input and never waits: one that does not fit is dropped, with what follows until a key frame.
    /// Units that arrived a while ago are decoded and not encoded, so that a group of pictures that is pushed at the start
    /// shortens the wait for the first frame.
    pub fn push(&mut self, unit: &WindowUnit) {
        let is_same = |before: &Arc<Tracks>| Arc::ptr_eq(before, &unit.tracks);
        if !self.source.as_ref().is_some_and(is_same) {
            self.configure(&unit.tracks);
            self.source = Some(Arc::clone(&unit.tracks));
        }
        self.put(&unit.unit, unit.arrived.elapsed() < OLD_AFTER);
    }

    /// Passes the configurations that differ from those before, all of them for another session, whose times differ.
    fn configure(&mut self, tracks: &Tracks) {
        let before = self.source.clone();
        let before = before.filter(|before| before.session == tracks.session);
        let old_video = before.as_ref().and_then(|it| it.video.as_ref());
        let old_audio = before.as_ref().and_then(|it| it.audio.as_ref());
        if let Some(video) = tracks.video.as_ref().filter(|it| Some(*it) != old_video) {
            self.put(&Unit::VideoConfig(Arc::clone(video)), true);
        }
        if let Some(audio) = tracks.audio.as_ref().filter(|it| Some(*it) != old_audio) {
            self.put(&Unit::AudioConfig(Arc::clone(audio)), true);
        }
    }

    /// Passes a unit as [`push`](Self::push) does; configurations come before the units that they are for.
    /// `is_recent` is false for one that is decoded and not encoded.
    pub fn put(&mut self, unit: &Unit, is_recent: bool) {
        let is_wanted = match unit {
            Unit::Video(frame) => {
                self.waits_for_key &= !frame.key;
                self.wanted.video && !self.waits_for_key
            }
            // Audio in the past is of no use to anyone.
            Unit::Audio(_) => self.wanted.audio && is_recent,
            Unit::VideoConfig(_) | Unit::AudioConfig(_) => true,
        };
        if !is_wanted {
            return;
        }
        let bytes = task::bytes_of(unit);
        let order = Order::Unit {
            unit: unit.clone(),
            is_old: !is_recent,
        };
        let waiting = self.waiting_bytes.fetch_add(bytes, Relaxed);
        if waiting + bytes > WAITING_BYTES || self.orders.try_send(order).is_err() {
            self.waiting_bytes.fetch_sub(bytes, Relaxed);
            self.waits_for_key |= matches!(unit, Unit::Video(_) | Unit::VideoConfig(_));
        }
    }

    /// Asks for a key frame; at most one each 500 ms is made.
    pub fn want_key_frame(&mut self) {
        // A queue that is full has no room for a wish either; viewers repeat it.
        let _ = self.orders.try_send(Order::WantKeyFrame);
    }

    /// Returns the next output; `None` when none will come: the machine lacks what is needed, or the video cannot be decoded. May
    /// be dropped at any time.
    pub async fn next(&mut self) -> Option<BranchOutput> {
        self.outputs.recv().await
    }

    /// Share of a core that the process used in the last seconds, in percent; `None` until it is known.
    pub fn cpu_percent(&self) -> Option<f32> {
        self.cpu.get()
    }
}

/// Share of a core in tenths of a percent, with one added; 0: unknown.
#[derive(Debug, Default)]
struct CpuPercent(AtomicU32);

impl CpuPercent {
    fn set(&self, percent: Option<f32>) {
        let stored = percent.map_or(0, |percent| 1 + (percent * 10.0) as u32);
        self.0.store(stored, Relaxed);
    }

    fn get(&self) -> Option<f32> {
        let stored = self.0.load(Relaxed).checked_sub(1)?;
        Some(stored as f32 / 10.0)
    }
}
