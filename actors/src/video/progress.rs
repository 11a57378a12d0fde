//! Progress of a video stream (status, per cent, playable, place in the queue), for callers that wait or follow; counts of
//! ended streams, for metrics.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use sluice_store::{
    Error, Store,
    changes::Kind,
    video,
    video::{Stream, StreamStatus},
};
use uuid::Uuid;

use crate::durable::{
    in_flight::{TaskShares, WHOLE},
    outcome_counters::count_failure,
    progress_channels::Report,
};

/// Progress of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamProgress {
    pub status: StreamStatus,
    /// Per cent.
    pub percent: u8,
    pub playable: bool,
    /// In the queue of the workers, while it waits there; 1 is next.
    pub queue_place: Option<u32>,
}

impl StreamProgress {
    /// Returns the progress in the row.
    pub fn of(stream: &Stream) -> Self {
        Self {
            status: stream.status,
            percent: stream.progress,
            playable: stream.playable,
            queue_place: None,
        }
    }

    /// Returns the progress as other nodes read it.
    pub(super) fn shares(self) -> TaskShares {
        TaskShares {
            thousandths: u32::from(self.percent) * WHOLE / 100,
            queue_place: self.queue_place,
        }
    }
}

impl Report for StreamProgress {
    const KIND: Kind = Kind::Stream;

    async fn look(store: &Store, id: Uuid) -> Result<Self, Error> {
        Ok(Self::of(&video::by_id(&mut store.read().await?, id).await?))
    }

    fn has_ended(&self) -> bool {
        self.status.has_ended()
    }

    fn percent_done(&self) -> Option<u8> {
        Some(self.percent)
    }

    fn queue_place(&self) -> Option<u32> {
        self.queue_place
    }

    fn is_before(&self, other: &Self) -> bool {
        (self.has_ended(), self.percent) < (other.has_ended(), other.percent)
    }

    /// Adds the progress that another node has beyond the row.
    fn beside(self, shares: TaskShares, _: Option<&Self>) -> Self {
        if self.has_ended() {
            return self;
        }
        let percent = u8::try_from(100 * shares.thousandths / WHOLE).unwrap_or(100);
        Self {
            percent: self.percent.max(percent),
            queue_place: shares.queue_place,
            ..self
        }
    }
}

/// Progress of the streams that are worked on, which is newer than their rows.
#[derive(Debug, Default)]
pub(super) struct LatestProgress(Mutex<HashMap<Uuid, StreamProgress>>);

impl LatestProgress {
    pub(super) fn set(&self, id: Uuid, progress: &StreamProgress) {
        match progress.status.has_ended() {
            true => self.remove(id),
            false => drop(self.0.lock().insert(id, *progress)),
        }
    }

    pub(super) fn get(&self, id: Uuid) -> Option<StreamProgress> {
        self.0.lock().get(&id).copied()
    }

    pub(super) fn remove(&self, id: Uuid) {
        self.0.lock().remove(&id);
    }
}

/// Counts of streams since the start, by outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamTotals {
    pub ready: u64,
    /// By error code.
    pub failed: BTreeMap<String, u64>,
}

impl StreamTotals {
    /// Counts a stream that has just ended.
    pub(super) fn ended(&mut self, stream: &Stream) {
        match stream.status {
            StreamStatus::Ready => self.ready += 1,
            _ => count_failure(
                &mut self.failed,
                stream.error_code.as_deref().unwrap_or_default(),
            ),
        }
    }
}
