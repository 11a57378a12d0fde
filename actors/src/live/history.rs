//! Health of a live input over the last 15 minutes, a sample each second, for graphs (`GET
//! /api/live/inputs/{id}/health/history`).
//!
//! Belongs to the input's `Playback`, so that it survives its actor, continues over reconnects and broadcasts, and is read
//! without a message. Seconds without media have no value, never zero: a graph shows them as a gap. At most
//! [`MOST_KEPT_OFF_AIR`] inputs that are off the air keep theirs, so that its memory has a bound.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use sluice_ingest::publish::LinkStatistics;
use sluice_media::meter::Measured;

/// Seconds, and so samples, that are kept of an input: about 32 KiB.
pub const HISTORY_S: u32 = 900;
/// Inputs off the air that keep their history until it is too old.
const MOST_KEPT_OFF_AIR: usize = 256;
/// Seconds without a sample that are filled with the last one: the actor was late, not the encoder gone.
const LATE_S: i64 = 2;
/// Age of the newest media from which on an encoder counts as silent.
const SILENT_MS: i64 = 2_000;
/// A sample this much older than the newest one shows that the machine's clock was set back.
const SET_BACK_S: i64 = 5;
/// Age of the newest sample from which on an input is off the air: they come each second.
const ENDED_S: i64 = 10;

/// Measurements of one second; `None`: there was nothing to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Unix seconds.
    pub at_s: i64,
    pub video_kbps: Option<u32>,
    pub audio_kbps: Option<u32>,
    pub frame_rate: Option<f32>,
    /// Media time against wall-clock time.
    pub drift_ms: Option<i32>,
    /// `None`: they are not counted.
    pub viewers: Option<u32>,
    /// Packets lost since the sample before; `None` for a protocol that loses none.
    pub lost_packets: Option<u32>,
    pub round_trip_ms: Option<f32>,
}

impl Sample {
    /// Makes the sample of a second in which a publisher is connected.
    pub(super) fn on_air(
        now_ms: i64,
        measured: &Measured,
        line: Option<LinkStatistics>,
        lost_before: u64,
    ) -> Self {
        let at_s = now_ms.div_euclid(1_000);
        let is_silent = measured
            .last_media_age_ms
            .is_none_or(|age_ms| age_ms > SILENT_MS);
        if is_silent {
            return Self::off_air(now_ms);
        }
        let kbps = |bps: Option<u64>| bps.map(|bps| narrow((bps + 500) / 1_000));
        Self {
            at_s,
            video_kbps: kbps(measured.video_bitrate_bps),
            audio_kbps: kbps(measured.audio_bitrate_bps),
            frame_rate: measured.frame_rate.map(|rate| rate as f32),
            drift_ms: measured
                .drift_ms
                .map(|drift_ms| drift_ms.clamp(i32::MIN.into(), i32::MAX.into()) as i32),
            viewers: None,
            lost_packets: line.map(|line| narrow(line.lost.saturating_sub(lost_before))),
            round_trip_ms: line.map(|line| line.rtt_ms as f32),
        }
    }

    /// Makes the sample of a second without an encoder, or with one that sends nothing.
    pub(super) fn off_air(now_ms: i64) -> Self {
        Self {
            at_s: now_ms.div_euclid(1_000),
            ..Self::default()
        }
    }

    pub(super) fn watched_by(self, viewers: Option<u64>) -> Self {
        Self {
            viewers: viewers.map(narrow),
            ..self
        }
    }
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX - 1)
}

/// A sample in 32 bytes: the largest number and NaN are no value.
#[derive(Clone, Copy, Debug)]
struct Packed {
    at_s: u32,
    video_kbps: u32,
    audio_kbps: u32,
    frame_rate: f32,
    drift_ms: i32,
    viewers: u32,
    lost_packets: u32,
    round_trip_ms: f32,
}

impl From<Sample> for Packed {
    fn from(sample: Sample) -> Self {
        Self {
            at_s: u32::try_from(sample.at_s).unwrap_or_default(),
            video_kbps: sample.video_kbps.unwrap_or(u32::MAX),
            audio_kbps: sample.audio_kbps.unwrap_or(u32::MAX),
            frame_rate: sample.frame_rate.unwrap_or(f32::NAN),
            drift_ms: sample.drift_ms.unwrap_or(i32::MAX),
            viewers: sample.viewers.unwrap_or(u32::MAX),
            lost_packets: sample.lost_packets.unwrap_or(u32::MAX),
            round_trip_ms: sample.round_trip_ms.unwrap_or(f32::NAN),
        }
    }
}

impl From<Packed> for Sample {
    fn from(packed: Packed) -> Self {
        let count = |count: u32| Some(count).filter(|count| *count != u32::MAX);
        let measure = |measure: f32| Some(measure).filter(|measure| measure.is_finite());
        Self {
            at_s: packed.at_s.into(),
            video_kbps: count(packed.video_kbps),
            audio_kbps: count(packed.audio_kbps),
            frame_rate: measure(packed.frame_rate),
            drift_ms: Some(packed.drift_ms).filter(|drift_ms| *drift_ms != i32::MAX),
            viewers: count(packed.viewers),
            lost_packets: count(packed.lost_packets),
            round_trip_ms: measure(packed.round_trip_ms),
        }
    }
}

/// The samples of one input.
#[derive(Debug, Default)]
pub struct History(Mutex<VecDeque<Packed>>);

impl History {
    /// Adds a sample; the first one of a second counts.
    pub(super) fn push(&self, sample: Sample) {
        let mut samples = self.0.lock();
        if let Some(newest_s) = samples.back().map(|newest| i64::from(newest.at_s)) {
            match sample.at_s - newest_s {
                step if step < -SET_BACK_S => samples.clear(),
                step if step <= 0 => return,
                _ => {}
            }
        }
        let oldest_s = sample.at_s - i64::from(HISTORY_S);
        while samples
            .front()
            .is_some_and(|oldest| i64::from(oldest.at_s) <= oldest_s)
        {
            samples.pop_front();
        }
        samples.push_back(sample.into());
    }

    /// Returns the newest sample, however old.
    pub fn newest(&self) -> Option<Sample> {
        self.0.lock().back().copied().map(Sample::from)
    }

    /// Returns one sample for each second from the first one within the last `seconds` to `now_ms`, without values where
    /// there is none.
    pub fn last(&self, seconds: u32, now_ms: i64) -> Vec<Sample> {
        let now_s = now_ms.div_euclid(1_000);
        let from_s = now_s - i64::from(seconds.min(HISTORY_S)) + 1;
        // Copied out: the actor must not wait for what is made of them.
        let kept: Vec<Packed> = self.0.lock().iter().copied().collect();
        let kept = kept.into_iter().map(Sample::from);
        fill(
            kept.filter(|sample| (from_s..=now_s).contains(&sample.at_s)),
            now_s,
        )
    }

    fn newest_s(&self) -> Option<i64> {
        self.0.lock().back().map(|newest| newest.at_s.into())
    }

    fn clear(&self) {
        *self.0.lock() = VecDeque::new();
    }
}

/// Puts a sample in each second from the first one to `now_s`.
fn fill(kept: impl Iterator<Item = Sample>, now_s: i64) -> Vec<Sample> {
    let mut filled: Vec<Sample> = Vec::with_capacity(HISTORY_S as usize);
    for sample in kept {
        if let Some(before) = filled.last().copied() {
            let is_late = sample.at_s - before.at_s - 1 <= LATE_S;
            let filling = match is_late {
                // What was lost meanwhile is in the later sample.
                true => Sample {
                    lost_packets: before.lost_packets.map(|_| 0),
                    ..before
                },
                false => Sample::default(),
            };
            filled.extend((before.at_s + 1..sample.at_s).map(|at_s| Sample { at_s, ..filling }));
        }
        filled.push(sample);
    }
    if let Some(newest_s) = filled.last().map(|newest| newest.at_s) {
        // This second's sample may be on its way.
        let known_s = if now_s - newest_s <= LATE_S {
            newest_s
        } else {
            now_s
        };
        filled.extend((newest_s + 1..=known_s).map(|at_s| Sample {
            at_s,
            ..Sample::default()
        }));
    }
    filled
}

/// Histories of inputs that went off the air, the oldest first.
#[derive(Debug, Default)]
pub(super) struct OffAir(Mutex<VecDeque<Weak<History>>>);

impl OffAir {
    /// Keeps the history of an input that went off the air, and forgets those that are too many or too old.
    pub fn keep(&self, history: &Arc<History>, now_ms: i64) {
        let now_s = now_ms.div_euclid(1_000);
        let mut kept = self.0.lock();
        let history = Arc::downgrade(history);
        // The first ones belong to inputs that were deleted.
        kept.retain(|other| other.strong_count() > 0 && !other.ptr_eq(&history));
        kept.push_back(history);
        while let Some(oldest) = kept.front().and_then(Weak::upgrade) {
            let newest_s = oldest.newest_s();
            let is_old = newest_s.is_none_or(|at_s| at_s <= now_s - i64::from(HISTORY_S));
            if !is_old && kept.len() <= MOST_KEPT_OFF_AIR {
                return;
            }
            kept.pop_front();
            // One that is on the air again is kept once more at its end.
            if newest_s.is_some_and(|at_s| at_s < now_s - ENDED_S) {
                oldest.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: i64) -> Sample {
        Sample {
            at_s,
            video_kbps: Some(6_000),
            audio_kbps: Some(160),
            frame_rate: Some(59.94),
            drift_ms: Some(-12),
            viewers: Some(3),
            lost_packets: Some(2),
            round_trip_ms: Some(20.5),
        }
    }

    fn history(seconds: impl IntoIterator<Item = i64>) -> History {
        let history = History::default();
        seconds
            .into_iter()
            .for_each(|at_s| history.push(sample(at_s)));
        history
    }

    fn seconds(samples: &[Sample]) -> Vec<i64> {
        samples.iter().map(|sample| sample.at_s).collect()
    }

    #[test]
    fn a_sample_comes_back_as_it_was_in_32_bytes() {
        assert_eq!(size_of::<Packed>(), 32);
        for given in [
            sample(7),
            Sample {
                at_s: 7,
                ..Sample::default()
            },
        ] {
            assert_eq!(Sample::from(Packed::from(given)), given);
        }
        assert_eq!(narrow(u64::MAX), u32::MAX - 1, "a number, not none");
    }

    #[test]
    fn a_window_of_900_seconds_is_kept() {
        let history = history(0..2_000);
        assert_eq!(history.0.lock().len(), 900);
        let all = history.last(HISTORY_S, 1_999_500);
        assert_eq!((all[0].at_s, all.len()), (1_100, 900));
        let some = history.last(5, 1_999_999);
        assert_eq!(seconds(&some), [1_995, 1_996, 1_997, 1_998, 1_999]);
        assert_eq!(history.newest(), Some(sample(1_999)));
        assert!(history.last(900, 9_999_000).is_empty(), "all too old");
    }

    #[test]
    fn a_gap_has_no_values_and_a_late_second_those_before() {
        let history = history([10, 11, 13, 20]);
        let all = history.last(900, 26_000);
        assert_eq!(seconds(&all), (10..=26).collect::<Vec<_>>());
        let of = |at_s: i64| all[(at_s - 10) as usize];
        assert_eq!(of(12).video_kbps, Some(6_000), "late");
        assert_eq!(of(12).lost_packets, Some(0), "not counted twice");
        for gone in (14..20).chain(21..=26) {
            let nothing = Sample {
                at_s: gone,
                ..Sample::default()
            };
            assert_eq!(of(gone), nothing, "{gone}");
        }
        let all = history.last(900, 22_000);
        assert_eq!(all.last().unwrap().at_s, 20, "not gone before it is sure");
    }

    #[test]
    fn a_second_counts_once_and_a_clock_set_back_begins_again() {
        let history = history([100, 100, 99, 101]);
        assert_eq!(seconds(&history.last(900, 101_000)), [100, 101]);
        history.push(sample(50));
        assert_eq!(seconds(&history.last(900, 50_000)), [50]);
    }

    #[test]
    fn old_and_surplus_histories_are_forgotten_and_none_that_is_on_air() {
        let off_air = OffAir::default();
        let ended = |at_s: i64| Arc::new(history([at_s]));
        let (old, on_air) = (ended(1_000), ended(1_000));
        off_air.keep(&old, 1_060_000);
        off_air.keep(&on_air, 1_060_000);
        on_air.push(sample(1_950));
        let newer: Vec<_> = (0..MOST_KEPT_OFF_AIR).map(|_| ended(1_900)).collect();
        for history in &newer {
            off_air.keep(history, 1_950_000);
            off_air.keep(history, 1_950_000);
        }
        assert_eq!(old.newest(), None);
        assert_eq!(on_air.newest(), Some(sample(1_950)));
        assert!(
            newer.iter().all(|history| history.newest().is_some()),
            "once each"
        );
        let newest = ended(1_940);
        off_air.keep(&newest, 1_951_000);
        assert_eq!(newer[0].newest(), None, "one too many");
        assert_eq!(off_air.0.lock().len(), MOST_KEPT_OFF_AIR);
        drop(newer);
        off_air.keep(&newest, 1_951_000);
        assert_eq!(off_air.0.lock().len(), 1, "deleted inputs are forgotten");
    }

    #[test]
    fn a_silent_encoder_has_no_values() {
        let measured = |last_media_age_ms| Measured {
            frame_rate: Some(30.0),
            video_bitrate_bps: Some(2_000_400),
            last_media_age_ms,
            ..Measured::default()
        };
        let line = LinkStatistics {
            lost: 12,
            rtt_ms: 8.0,
            ..LinkStatistics::default()
        };
        let sent = Sample::on_air(5_500, &measured(Some(40)), Some(line), 10);
        assert_eq!(
            (
                sent.at_s,
                sent.video_kbps,
                sent.audio_kbps,
                sent.lost_packets
            ),
            (5, Some(2_000), None, Some(2))
        );
        for age_ms in [Some(2_001), None] {
            let silent = Sample::on_air(5_500, &measured(age_ms), Some(line), 10);
            assert_eq!(silent, Sample::off_air(5_500), "{age_ms:?}");
        }
    }
}
