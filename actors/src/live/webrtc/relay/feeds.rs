//! Feeds of one input: passed on or re-encoded tracks as the gateway gets them; the open group of pictures, from which a feed and
//! the branch begin.
//!
//! What does not fit into the gateway's queue is dropped up to the next key frame.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use sluice_ingest::webrtc::message::{AudioFrame, FeedId, ToGateway, VideoFrame};
use sluice_media::{
    codec::{AudioConfig, VideoCodec, VideoConfig},
    unit::{AudioUnit, Unit, VideoUnit},
};
use tokio::time::Instant;

use super::{
    super::{branch::BranchOutput, frame::frame_data, line::Line, outbox::Outbox},
    RelayContext, unix_us,
    viewers::Plan,
};
use crate::live::restream::unit_window::{Tracks, WindowUnit};

/// Age up to which an audio packet is of the present, in microseconds.
const YOUNG_US: i64 = 300_000;
/// Shortest time between two audio packets in which the service has waited for the second one.
const WAITED: Duration = Duration::from_millis(10);
/// Time after which audio is passed on whatever its age: an encoder may send it that far behind its video.
const OPEN_GROUP_FOR: Duration = Duration::from_secs(2);
/// Most units of the open group.
const MOST_GROUP: usize = 4_096;

/// Tracks of an input at a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    pub video: Option<Arc<VideoConfig>>,
    /// Frames are shown in another order than they are decoded.
    pub reorders: bool,
    pub audio: Option<Arc<AudioConfig>>,
}

/// Feeds that there are at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FeedIdsNow {
    pub video: Option<FeedId>,
    pub audio: Option<FeedId>,
    pub branch_video: Option<FeedId>,
    pub branch_audio: Option<FeedId>,
}

/// See the module documentation.
pub(super) struct Feeds {
    outbox: Arc<Outbox>,
    ids: Arc<AtomicU32>,
    tracks: Arc<Tracks>,
    line: Line,
    /// Presentation time of the latest frame, before it is placed.
    newest_90k: Option<i64>,
    reorders: bool,
    has_changed: bool,
    group: Group,
    /// Units are missing before the next key frame.
    has_gap: bool,
    video: Option<VideoFeed>,
    audio: Option<AudioFeed>,
    branch_video: Option<VideoFeed>,
    branch_audio: Option<AudioFeed>,
    dropped: u64,
}

struct VideoFeed {
    id: FeedId,
    /// Frames before the next key frame are left out.
    awaits_key: bool,
}

struct AudioFeed {
    id: FeedId,
    /// True once a packet was young and waited for. Those before it come at once, from the open group or from a branch that
    /// starts: a viewer would play them one after the other, and stay behind by as much.
    is_live: bool,
    since: Instant,
    last_at: Option<Instant>,
}

/// Placed units from the last key frame on; empty when they were too many.
struct Group {
    units: Vec<WindowUnit>,
    bytes: usize,
    most_bytes: usize,
}

impl Feeds {
    /// `reorders`: what is known of the source's order.
    pub fn new(context: &RelayContext, tracks: Arc<Tracks>, reorders: bool) -> Self {
        let may_reorder = tracks.video.as_ref().and_then(|video| video.may_reorder);
        Self {
            outbox: context.outbox.clone(),
            ids: context.feed_ids.clone(),
            tracks,
            line: Line::default(),
            newest_90k: None,
            reorders: may_reorder.unwrap_or(reorders),
            has_changed: false,
            group: Group {
                units: Vec::new(),
                bytes: 0,
                most_bytes: context.join_cache,
            },
            has_gap: true,
            video: None,
            audio: None,
            branch_video: None,
            branch_audio: None,
            dropped: 0,
        }
    }

    pub fn source(&self) -> Source {
        Source {
            video: self.tracks.video.clone(),
            reorders: self.reorders,
            audio: self.tracks.audio.clone(),
        }
    }

    pub fn ids(&self) -> FeedIdsNow {
        FeedIdsNow {
            video: self.video.as_ref().map(|feed| feed.id),
            audio: self.audio.as_ref().map(|feed| feed.id),
            branch_video: self.branch_video.as_ref().map(|feed| feed.id),
            branch_audio: self.branch_audio.as_ref().map(|feed| feed.id),
        }
    }

    pub fn contains(&self, feed: FeedId) -> bool {
        let ids = self.ids();
        let all = [ids.video, ids.audio, ids.branch_video, ids.branch_audio];
        all.contains(&Some(feed))
    }

    pub fn is_branch_video(&self, feed: FeedId) -> bool {
        self.ids().branch_video == Some(feed)
    }

    /// Returns the frames that were left out since the last call.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// Returns the open group of pictures.
    pub fn group(&self) -> &[WindowUnit] {
        &self.group.units
    }

    /// Takes up the tracks of the next unit; true when it needs another plan.
    pub fn follow(&mut self, tracks: &Arc<Tracks>) -> bool {
        if !Arc::ptr_eq(&self.tracks, tracks) {
            let (is_new, other) = (self.tracks.session != tracks.session, &tracks.video);
            if is_new {
                self.line.break_off();
            }
            if is_new || self.tracks.video != *other {
                let reorders = other.as_ref().and_then(|it| it.may_reorder) == Some(true);
                self.has_changed |= self.reorders != reorders;
                self.reorders = reorders;
                self.newest_90k = None;
                self.miss();
            }
            self.has_changed |= self.tracks.video != *other || self.tracks.audio != tracks.audio;
            self.tracks = Arc::clone(tracks);
        }
        std::mem::take(&mut self.has_changed)
    }

    /// Notes that units are missing.
    pub fn miss(&mut self) {
        self.has_gap = true;
        self.group.clear();
        if let Some(feed) = &mut self.video {
            feed.awaits_key = true;
        }
    }

    /// Sends a unit to the feeds that pass it on; returns it with its place, for the branch.
    pub fn push(&mut self, item: WindowUnit, arrived_us: i64) -> Option<WindowUnit> {
        let unit = match &item.unit {
            Unit::Video(frame) => {
                let pts_90k = frame.dts_90k + i64::from(frame.cts_90k);
                if self.newest_90k.is_some_and(|newest| pts_90k < newest) && !self.reorders {
                    (self.reorders, self.has_changed) = (true, true);
                }
                self.newest_90k = self.newest_90k.max(Some(pts_90k));
                if !frame.key && self.has_gap {
                    return None;
                }
                self.has_gap = false;
                let placed = self.line.place_video(frame, arrived_us);
                Unit::Video(placed)
            }
            Unit::Audio(frame) => {
                let config = item.tracks.audio.as_ref()?;
                Unit::Audio(self.line.place_audio(frame, config, arrived_us))
            }
            Unit::VideoConfig(_) | Unit::AudioConfig(_) => return None,
        };
        let placed = WindowUnit { unit, ..item };
        self.group.push(&placed);
        self.pass(&placed);
        Some(placed)
    }

    fn pass(&mut self, placed: &WindowUnit) {
        match (&placed.unit, &placed.tracks.video) {
            (Unit::Video(frame), Some(config)) => self.pass_video(config, frame),
            (Unit::Audio(frame), _) => self.pass_audio(frame),
            _ => {}
        }
    }

    fn pass_video(&mut self, config: &VideoConfig, frame: &VideoUnit) {
        let Some(feed) = &mut self.video else {
            return;
        };
        if feed.awaits_key && !frame.key {
            return;
        }
        let pts_90k = frame.dts_90k + i64::from(frame.cts_90k);
        let sent = frame_data(config, frame).is_some_and(|data| {
            self.outbox.media(ToGateway::Video(VideoFrame {
                of: feed.id,
                codec: config.codec,
                key: frame.key,
                pts_90k,
                wallclock_us: self.line.wallclock_us(pts_90k),
                data,
            }))
        });
        feed.awaits_key = !sent;
        self.dropped += u64::from(!sent);
    }

    fn pass_audio(&mut self, frame: &AudioUnit) {
        if let Some(feed) = &mut self.audio {
            let sent = feed.send(frame.pts_90k, frame.data.clone(), &self.line, &self.outbox);
            self.dropped += u64::from(!sent);
        }
    }

    /// Sends what the branch made.
    pub fn push_output(&mut self, output: BranchOutput) {
        match output {
            BranchOutput::Video { key, pts_90k, data } => {
                let Some(feed) = &mut self.branch_video else {
                    return;
                };
                if feed.awaits_key && !key {
                    return;
                }
                let sent = self.outbox.media(ToGateway::Video(VideoFrame {
                    of: feed.id,
                    codec: VideoCodec::Avc,
                    key,
                    pts_90k,
                    wallclock_us: self.line.wallclock_us(pts_90k),
                    data,
                }));
                feed.awaits_key = !sent;
                self.dropped += u64::from(!sent);
            }
            BranchOutput::Audio { pts_90k, data } => {
                if let Some(feed) = &mut self.branch_audio {
                    let sent = feed.send(pts_90k, data, &self.line, &self.outbox);
                    self.dropped += u64::from(!sent);
                }
            }
            BranchOutput::Dropped { frames } => self.dropped += u64::from(frames),
            BranchOutput::Replaced { .. } => {
                if let Some(feed) = &mut self.branch_video {
                    feed.awaits_key = true;
                }
            }
        }
    }

    /// Begins the feeds of a plan and ends the others.
    pub fn carry(&mut self, plan: &Plan) {
        let has_video = self.video.is_some();
        carry_video(&mut self.video, plan.copies_video, &self.ids, &self.outbox);
        carry_video(
            &mut self.branch_video,
            plan.branch.video,
            &self.ids,
            &self.outbox,
        );
        carry_audio(&mut self.audio, plan.copies_audio, &self.ids, &self.outbox);
        carry_audio(
            &mut self.branch_audio,
            plan.branch.audio,
            &self.ids,
            &self.outbox,
        );
        if self.video.is_some() && !has_video {
            let group = std::mem::take(&mut self.group.units);
            for unit in &group {
                if let (Unit::Video(frame), Some(config)) = (&unit.unit, &unit.tracks.video) {
                    self.pass_video(config, frame);
                }
            }
            self.group.units = group;
        }
    }

    pub fn forget_all(&mut self) {
        self.carry(&Plan::default());
    }
}

impl AudioFeed {
    /// Sends a packet of a stream that has become live; false when it did not fit into the queue.
    fn send(&mut self, pts_90k: i64, data: Bytes, line: &Line, outbox: &Outbox) -> bool {
        let wallclock_us = line.wallclock_us(pts_90k);
        let now = Instant::now();
        let last_at = self.last_at.replace(now);
        let is_waited_for = last_at.is_some_and(|last_at| now - last_at >= WAITED);
        let is_young = unix_us() - wallclock_us <= YOUNG_US;
        self.is_live |= is_young && is_waited_for || now - self.since > OPEN_GROUP_FOR;
        !self.is_live
            || outbox.media(ToGateway::Audio(AudioFrame {
                of: self.id,
                pts_90k,
                wallclock_us,
                data,
            }))
    }
}

fn carry_video(feed: &mut Option<VideoFeed>, wanted: bool, ids: &AtomicU32, outbox: &Outbox) {
    match feed {
        None if wanted => {
            *feed = Some(VideoFeed {
                id: ids.fetch_add(1, Relaxed),
                awaits_key: true,
            });
        }
        Some(over) if !wanted => {
            outbox.order(ToGateway::Forget(over.id));
            *feed = None;
        }
        _ => {}
    }
}

fn carry_audio(feed: &mut Option<AudioFeed>, wanted: bool, ids: &AtomicU32, outbox: &Outbox) {
    match feed {
        None if wanted => {
            *feed = Some(AudioFeed {
                id: ids.fetch_add(1, Relaxed),
                is_live: false,
                since: Instant::now(),
                last_at: None,
            });
        }
        Some(over) if !wanted => {
            outbox.order(ToGateway::Forget(over.id));
            *feed = None;
        }
        _ => {}
    }
}

impl Group {
    fn push(&mut self, placed: &WindowUnit) {
        let is_key = matches!(&placed.unit, Unit::Video(frame) if frame.key);
        if is_key {
            self.clear();
        } else if self.units.is_empty() {
            return;
        }
        self.bytes += placed.unit.media_len() as usize;
        if self.bytes > self.most_bytes || self.units.len() == MOST_GROUP {
            return self.clear();
        }
        self.units.push(placed.clone());
    }

    fn clear(&mut self) {
        self.units.clear();
        self.bytes = 0;
    }
}
