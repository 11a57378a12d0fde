//! Decisions about a viewer's line, made once a second: clean or lossy, all frames or key frames only, or too slow.
//!
//! Pure.

use std::time::{Duration, Instant};

/// Share of retransmissions from which a second counts as lossy.
const LOSSY_SHARE: f64 = 0.01;
/// Time without such a second after which the line counts as clean.
const CLEAN_AFTER: Duration = Duration::from_secs(10);
/// Loss from which a line counts as slow; an average, because a second of few packets may lose few of them.
const SLOW_LOSS: f64 = 0.10;
/// The same of loss and retransmissions together: some receivers do not count as lost what was sent again.
const SLOW_LOSS_AND_REPAIR: f64 = 0.18;
/// Weight of the last report in the averages.
const NEWEST: f64 = 0.5;
/// Round-trip time above its smallest from which a line counts as slow: packets queue up in front of it.
const SLOW_RTT_MS: f64 = 300.0;
/// Time of a slow line after which only audio and key frames are sent.
const THIN_AFTER: Duration = Duration::from_secs(3);
/// Time of a line that is not slow after which all is sent again.
const WHOLE_AFTER: Duration = Duration::from_secs(10);
/// Time with key frames only after which the session ends.
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);

/// Counts of the last second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Second {
    /// Packets of video: the loss is the video's, and audio is not sent again.
    pub packets: u32,
    pub retransmitted: u32,
    /// Loss and round-trip time by the receiver's reports, if one came.
    pub loss: Option<f64>,
    pub rtt_ms: Option<f64>,
    /// True when the socket did not take all packets.
    pub was_full: bool,
}

/// State of a line at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Whole,
    Thin,
    TooSlow,
}

#[derive(Debug)]
pub(super) struct Pace {
    lossy_at: Option<Instant>,
    slow_since: Option<Instant>,
    /// Time at which the line was last slow while thin.
    slow_at: Instant,
    thin_since: Option<Instant>,
    floor_rtt_ms: f64,
    /// Averages over the seconds with a report.
    loss: f64,
    repair: f64,
}

impl Pace {
    pub fn new(now: Instant) -> Self {
        Self {
            lossy_at: None,
            slow_since: None,
            slow_at: now,
            thin_since: None,
            floor_rtt_ms: f64::INFINITY,
            loss: 0.0,
            repair: 0.0,
        }
    }

    /// Judges a second.
    pub fn judge(&mut self, second: Second, now: Instant) -> Verdict {
        if f64::from(second.retransmitted) > f64::from(second.packets) * LOSSY_SHARE {
            self.lossy_at = Some(now);
        }
        let is_slow = self.is_slow(second);
        match is_slow {
            true => self.slow_at = now,
            // A second without a report of losses says nothing; the round-trip time may be an earlier one.
            false if second.loss.is_none() => {}
            false => self.slow_since = None,
        }
        if is_slow {
            let since = *self.slow_since.get_or_insert(now);
            if now.duration_since(since) >= THIN_AFTER {
                self.thin_since.get_or_insert(now);
            }
        }
        let Some(thin_since) = self.thin_since else {
            return Verdict::Whole;
        };
        if now.duration_since(self.slow_at) >= WHOLE_AFTER {
            self.thin_since = None;
            return Verdict::Whole;
        }
        match now.duration_since(thin_since) >= GIVE_UP_AFTER {
            true => Verdict::TooSlow,
            false => Verdict::Thin,
        }
    }

    fn is_slow(&mut self, second: Second) -> bool {
        if let Some(rtt_ms) = second.rtt_ms {
            self.floor_rtt_ms = self.floor_rtt_ms.min(rtt_ms);
        }
        let queues = second
            .rtt_ms
            .is_some_and(|rtt_ms| rtt_ms > self.floor_rtt_ms + SLOW_RTT_MS);
        let is_lossy = second.loss.is_some_and(|loss| {
            let repair = f64::from(second.retransmitted) / f64::from(second.packets.max(1));
            self.loss += (loss - self.loss) * NEWEST;
            self.repair += (repair - self.repair) * NEWEST;
            self.loss > SLOW_LOSS || self.loss + self.repair > SLOW_LOSS_AND_REPAIR
        });
        queues || second.was_full || is_lossy
    }

    /// True when nothing had to be sent again for a while.
    pub fn is_clean(&self, now: Instant) -> bool {
        self.lossy_at
            .is_none_or(|lossy| now.duration_since(lossy) >= CLEAN_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: Second = Second {
        packets: 700,
        retransmitted: 0,
        loss: Some(0.0),
        rtt_ms: Some(20.0),
        was_full: false,
    };

    /// Judges seconds after one clean one, and gives the verdicts.
    fn verdicts(seconds: impl IntoIterator<Item = Second>) -> Vec<Verdict> {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        pace.judge(CLEAN, start);
        let judge = |(index, second): (u64, Second)| {
            pace.judge(second, start + Duration::from_secs(index + 1))
        };
        (0..).zip(seconds).map(judge).collect()
    }

    #[test]
    fn a_slow_line_is_thinned_and_recovers() {
        let lossy = Second {
            loss: Some(0.3),
            ..CLEAN
        };
        let queueing = Second {
            rtt_ms: Some(321.0),
            ..CLEAN
        };
        let full = Second {
            was_full: true,
            ..CLEAN
        };
        let repaired = Second {
            loss: Some(0.08),
            retransmitted: 210,
            ..CLEAN
        };
        // The average of losses is above its bound for a second of the clean ones.
        for (slow, after) in [(lossy, 1), (queueing, 0), (full, 0), (repaired, 1)] {
            let verdicts = verdicts([slow; 5].into_iter().chain([CLEAN; 12]));
            let thin = verdicts.iter().filter(|verdict| **verdict == Verdict::Thin);
            assert_eq!(verdicts[..3], [Verdict::Whole; 3]);
            assert_eq!(thin.count(), 2 + after + 9, "{slow:?}");
            assert_eq!(verdicts.last(), Some(&Verdict::Whole));
        }
    }

    #[test]
    fn seconds_of_few_losses_do_not_hide_a_bad_line() {
        // Reports of a receiver behind 30 % loss each way, that does not count what was repaired: 30 packets of video a second.
        let reports = [
            (Some(0.13), 5),
            (None, 8),
            (Some(0.07), 7),
            (Some(0.22), 9),
            (Some(0.0), 7),
            (Some(0.03), 4),
            (Some(0.25), 1),
            (Some(0.0), 6),
        ];
        let second = |(loss, retransmitted)| Second {
            packets: 30 + retransmitted,
            retransmitted,
            loss,
            ..CLEAN
        };
        let verdicts = verdicts(reports.into_iter().map(second));
        assert_eq!(verdicts.last(), Some(&Verdict::Thin), "{verdicts:?}");
    }

    #[test]
    fn short_trouble_a_long_line_and_repaired_losses_are_not_slow() {
        let slow = Second {
            loss: Some(0.3),
            ..CLEAN
        };
        let far = Second {
            rtt_ms: Some(319.0),
            ..CLEAN
        };
        let repaired = Second {
            loss: Some(0.01),
            retransmitted: 84,
            ..CLEAN
        };
        for seconds in [[slow, slow, CLEAN, CLEAN, far], [repaired; 5]] {
            let seconds = seconds.into_iter().cycle().take(40);
            assert!(
                verdicts(seconds)
                    .iter()
                    .all(|verdict| *verdict == Verdict::Whole)
            );
        }
    }

    #[test]
    fn a_line_that_stays_slow_is_given_up() {
        let slow = Second {
            loss: Some(0.3),
            ..CLEAN
        };
        let verdicts = verdicts([slow; 40]);
        let too_slow = verdicts
            .iter()
            .position(|verdict| *verdict == Verdict::TooSlow);
        assert_eq!(too_slow, Some(33));
    }

    #[test]
    fn retransmissions_make_a_line_lossy_for_a_while() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut pace = Pace::new(start);
        assert!(pace.is_clean(start));
        pace.judge(
            Second {
                retransmitted: 8,
                ..CLEAN
            },
            start + second,
        );
        assert!(!pace.is_clean(start + second));
        pace.judge(
            Second {
                retransmitted: 7,
                ..CLEAN
            },
            start + 2 * second,
        );
        assert!(!pace.is_clean(start + 10 * second));
        assert!(pace.is_clean(start + 11 * second));
    }
}
