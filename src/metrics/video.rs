//! Work on video and audio, as the ring tells it at a scrape, and video streams: those that are made, and what became of the
//! others.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};
use sluice_actors::{compute::VideoStatus, video::StreamTotals};
use sluice_store::video::StreamCounts;

use super::{Failed, Status, count, signed};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Queued {
    queue: &'static str,
    state: &'static str,
}

/// The metrics of the ring and of what is made in it.
#[derive(Debug, Default)]
pub(super) struct Video {
    tasks: Family<Queued, Gauge>,
    ended: Gauge,
    killed: Gauge,
    retried: Gauge,
    unfinished_streams: Family<Status, Gauge>,
    ended_streams: Family<Status, Gauge>,
    failed_streams: Family<Failed, Gauge>,
}

impl Video {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "video_tasks",
            "Work on video and audio, by queue and by what it does now",
            self.tasks.clone(),
        );
        registry.register(
            "video_tasks_ended",
            "Work on video and audio that has ended in any way since the start",
            self.ended.clone(),
        );
        registry.register(
            "video_tasks_killed",
            "Of it, what was killed for a deadline, a silence or because no caller waited any more",
            self.killed.clone(),
        );
        registry.register(
            "video_tasks_retried",
            "Work on video and audio that was tried again after its process died",
            self.retried.clone(),
        );
        registry.register(
            "video_streams",
            "Video streams that have not ended, by status",
            self.unfinished_streams.clone(),
        );
        registry.register(
            "video_streams_ended",
            "Video streams that ended since the start, by outcome",
            self.ended_streams.clone(),
        );
        registry.register(
            "video_streams_failed",
            "Video streams that failed since the start, by error code",
            self.failed_streams.clone(),
        );
    }

    /// Notes what the ring does, before a scrape.
    pub(super) fn show(&self, ring: &VideoStatus) {
        for (queue, of) in [("short", ring.short), ("long", ring.long)] {
            for (state, number) in [("running", of.running), ("waiting", of.waiting)] {
                let gauge = self.tasks.get_or_create(&Queued { queue, state });
                gauge.set(count(number));
            }
        }
        self.ended.set(signed(ring.ended));
        self.killed.set(signed(ring.killed));
        self.retried.set(signed(ring.retried));
    }

    /// Notes what has become of streams, before a scrape.
    pub(super) fn show_streams(&self, unfinished: &StreamCounts, ended: &StreamTotals) {
        for (status, count) in [
            ("pending", unfinished.pending),
            ("processing", unfinished.processing),
        ] {
            let gauge = self.unfinished_streams.get_or_create(&Status { status });
            gauge.set(count);
        }
        let failed = ended.failed.values().sum();
        for (status, count) in [("ready", ended.ready), ("failed", failed)] {
            let gauge = self.ended_streams.get_or_create(&Status { status });
            gauge.set(signed(count));
        }
        for (code, count) in &ended.failed {
            let code = code.clone();
            let gauge = self.failed_streams.get_or_create(&Failed { code });
            gauge.set(signed(*count));
        }
    }
}
