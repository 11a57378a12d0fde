//! Counts of WebRTC sessions since the start (joins, ends, packets, key frames) and histograms of connects and first frames, for
//! metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sluice_ingest::webrtc::message::SessionStatistics;

use crate::metric::{HistogramValue, Metric, MetricUnit};

/// Upper bounds of the times to a connection and to a first frame, in seconds.
const BUCKETS_S: [f64; 8] = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 10.0];

/// Result of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    Answered,
    Rejected,
    Full,
    Busy,
    Unavailable,
}

/// Reason of an end, as metrics name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client ended it, by DELETE, or a viewer by its connection.
    Client,
    /// A publisher closed its connection without DELETE.
    Disconnected,
    Over,
    Forbidden,
    Stopping,
    Unreachable,
    Handshake,
    Silent,
    TooSlow,
    Failed,
    Gateway,
}

const JOINS: [&str; 5] = ["answered", "rejected", "full", "busy", "unavailable"];
const ENDS: [&str; 11] = [
    "client",
    "disconnected",
    "over",
    "forbidden",
    "stopping",
    "unreachable",
    "handshake",
    "silent",
    "too_slow",
    "failed",
    "gateway",
];

/// Counters that are written by the gateway's reports and read by any caller.
#[derive(Debug, Default)]
pub(super) struct Counters {
    joins: [AtomicU64; JOINS.len()],
    ends: [AtomicU64; ENDS.len()],
    bytes: AtomicU64,
    packets: AtomicU64,
    retransmitted: AtomicU64,
    nacks: AtomicU64,
    key_frame_requests: AtomicU64,
    dropped_frames: AtomicU64,
    pub starts: AtomicU64,
    connects: Histogram,
    first_frames: Histogram,
}

#[derive(Debug, Default)]
struct Histogram {
    /// By the bounds of [`BUCKETS_S`]; the last one has none.
    counts: [AtomicU64; BUCKETS_S.len() + 1],
    sum_ms: AtomicU64,
}

impl Histogram {
    fn note(&self, ms: u32) {
        let seconds = f64::from(ms) / 1_000.0;
        let bucket = BUCKETS_S.iter().position(|bound| seconds <= *bound);
        self.counts[bucket.unwrap_or(BUCKETS_S.len())].fetch_add(1, Relaxed);
        self.sum_ms.fetch_add(ms.into(), Relaxed);
    }

    fn read(&self) -> HistogramValue {
        let counts: Vec<u64> = self
            .counts
            .iter()
            .map(|count| count.load(Relaxed))
            .collect();
        let bounds = BUCKETS_S.into_iter().chain([f64::INFINITY]);
        HistogramValue {
            sum: self.sum_ms.load(Relaxed) as f64 / 1_000.0,
            count: counts.iter().sum(),
            buckets: bounds.zip(counts).collect(),
        }
    }
}

impl Counters {
    pub fn join(&self, join: Join) {
        self.joins[join as usize].fetch_add(1, Relaxed);
    }

    pub fn end(&self, end: End) {
        self.ends[end as usize].fetch_add(1, Relaxed);
    }

    pub fn connect(&self, after_ms: u32) {
        self.connects.note(after_ms);
    }

    pub fn first_frame(&self, after_ms: u32) {
        self.first_frames.note(after_ms);
    }

    pub fn add(&self, statistics: &SessionStatistics) {
        for (counter, more) in [
            (&self.bytes, statistics.bytes),
            (&self.packets, statistics.packets),
            (&self.retransmitted, statistics.retransmitted),
            (&self.nacks, statistics.nacks),
            (&self.key_frame_requests, statistics.key_frame_requests),
            (&self.dropped_frames, statistics.dropped_frames),
        ] {
            counter.fetch_add(more.into(), Relaxed);
        }
    }

    /// Counts frames that did not fit into the gateway's queue.
    pub fn drop_frames(&self, frames: u64) {
        self.dropped_frames.fetch_add(frames, Relaxed);
    }

    pub fn metrics(&self) -> Vec<Metric> {
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        let by = |names: &[&'static str], counters: &[AtomicU64]| -> Vec<(&'static str, u64)> {
            names
                .iter()
                .copied()
                .zip(counters.iter().map(count))
                .collect()
        };
        vec![
            Metric::by_label(
                "webrtc_joins",
                "Offers of WebRTC since the start, by result",
                "result",
                by(&JOINS, &self.joins),
            ),
            Metric::by_label(
                "webrtc_closed",
                "WebRTC sessions that ended since the start, by reason",
                "why",
                by(&ENDS, &self.ends),
            ),
            Metric::gauge(
                "webrtc_egress",
                "Bytes sent to viewers by WebRTC since the start",
                count(&self.bytes),
            )
            .with_unit(MetricUnit::Bytes),
            Metric::gauge(
                "webrtc_packets",
                "Packets sent to viewers by WebRTC since the start",
                count(&self.packets),
            ),
            Metric::gauge(
                "webrtc_retransmitted",
                "Packets sent again to viewers by WebRTC since the start",
                count(&self.retransmitted),
            ),
            Metric::gauge(
                "webrtc_nacks",
                "Reports of lost packets from viewers by WebRTC since the start",
                count(&self.nacks),
            ),
            Metric::gauge(
                "webrtc_key_frame_requests",
                "Key frames that viewers by WebRTC asked for since the start",
                count(&self.key_frame_requests),
            ),
            Metric::gauge(
                "webrtc_dropped_frames",
                "Frames left out for viewers by WebRTC since the start, because a queue or a line did not take them",
                count(&self.dropped_frames),
            ),
            Metric::gauge(
                "webrtc_gateway_restarts",
                "Starts of the WebRTC gateway after its first",
                count(&self.starts).saturating_sub(1),
            ),
            Metric::histogram(
                "webrtc_connect",
                "Time from an offer to its connection",
                self.connects.read(),
            )
            .with_unit(MetricUnit::Seconds),
            Metric::histogram(
                "webrtc_first_frame",
                "Time from a viewer's connection to the first frame sent",
                self.first_frames.read(),
            )
            .with_unit(MetricUnit::Seconds),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_reasons() {
        let counters = Counters::default();
        counters.join(Join::Unavailable);
        counters.end(End::Gateway);
        counters.connect(150);
        assert_eq!(JOINS[Join::Unavailable as usize], "unavailable");
        assert_eq!(ENDS[End::Gateway as usize], "gateway");
        assert_eq!(ENDS[End::TooSlow as usize], "too_slow");
        let connects = counters.connects.read();
        assert_eq!(
            (connects.count, connects.sum, connects.buckets[2].1),
            (1, 0.15, 1)
        );
    }
}
