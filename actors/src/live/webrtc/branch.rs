//! Re-encoding branch of one input for WebRTC viewers, by a sandboxed worker process: H.264 without B-frames, Opus.

use bytes::Bytes;
use sluice_media::unit::Unit;
use sluice_worker::process::Launch;

use crate::{compute::Sandbox, live::restream::unit_window::WindowUnit};

/// Tracks that a branch re-encodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchTracks {
    pub video: bool,
    pub audio: bool,
}

/// As many video tracks are re-encoded as `webrtc.max_branches` allows.
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

/// What all branches share: the program, and permits for `webrtc.max_branches`.
#[derive(Clone, Debug)]
pub struct Branches {}

impl Branches {
    /// `max_video`: branches with video at a time, 0 for half the cores, at least one. `max_bitrate`: bits per second of one.
    pub fn new(launch: Launch, sandbox: Sandbox, max_video: usize, max_bitrate: u32) -> Self {
        let _ = (launch, sandbox, max_video, max_bitrate);
        Self {}
    }
}

/// A branch. Dropping it ends its process.
#[derive(Debug)]
pub struct Branch {}

impl Branch {
    /// Starts one in the background; its process starts with the first unit.
    pub fn start(branches: &Branches, tracks: BranchTracks) -> Result<Self, BranchesBusy> {
        let _ = (branches, tracks);
        Ok(Self {})
    }

    /// Changes the tracks that are re-encoded; after an error they are as before.
    pub fn want(&mut self, tracks: BranchTracks) -> Result<(), BranchesBusy> {
        let _ = tracks;
        Ok(())
    }

    /// Passes a unit of the input and never waits: one that does not fit is dropped, with what follows until a key frame.
    /// Units that arrived a while ago are decoded and not encoded, so that a group of pictures that is pushed at the start
    /// shortens the wait for the first frame.
    pub fn push(&mut self, unit: &WindowUnit) {
        let _ = unit;
    }

    /// Passes a unit as [`push`](Self::push) does; configurations come before the units that they are for.
    /// `is_recent` is false for one that is decoded and not encoded.
    pub fn put(&mut self, unit: &Unit, is_recent: bool) {
        let _ = (unit, is_recent);
    }

    /// Asks for a key frame; at most one each 500 ms is made.
    pub fn want_key_frame(&mut self) {}

    /// Returns the next output; `None` when none will come: the machine lacks what is needed. May be dropped at any time.
    pub async fn next(&mut self) -> Option<BranchOutput> {
        std::future::pending().await
    }

    /// Share of a core that the process used in the last seconds, in percent; `None` until it is known.
    pub fn cpu_percent(&self) -> Option<f32> {
        None
    }
}
