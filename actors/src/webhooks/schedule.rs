//! Retry schedule of webhooks (`webhooks.retry_after_s`): next pause ±20 %, `Retry-After` up to `max_retry_after`, probes,
//! replays. Pure.
//!
//! - A failure waits for the schedule's next pause, ±20 % so that deliveries of one outage do not come back together. After
//!   the last pause's attempt the delivery has failed.
//! - `Retry-After` (RFC 9110 §10.2.3) of any failure makes a pause longer, up to `webhooks.max_retry_after`, and never
//!   shorter. A value that is no number of seconds and no date is ignored.
//! - A probe of a suspended endpoint does not advance in the schedule; a replay is one attempt, whatever its outcome; 410
//!   ends the delivery.

use std::time::Duration;

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use sluice_store::{duration_ms, webhooks::Next};

use super::WebhookSettings;

/// Part of a pause by which it may be shorter or longer.
const SPREAD: f64 = 0.2;
/// A date in the three forms of RFC 9110 §5.6.7, as `strptime` has them.
const DATE_FORMS: [&str; 3] = [
    "%a, %d %b %Y %H:%M:%S GMT",
    "%A, %d-%b-%y %H:%M:%S GMT",
    "%a %b %e %H:%M:%S %Y",
];

/// End of an attempt, as far as decisions depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptResult {
    /// 2xx.
    Success,
    Failure {
        /// Pause that the receiver asked for.
        retry_after: Option<Duration>,
    },
    /// 410: the receiver wants nothing any more.
    Gone,
}

/// Purpose of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// After so many failures that advanced in the schedule.
    Delivery { failures: u32 },
    /// Probes whether a suspended endpoint answers again.
    Probe,
    /// A single attempt on request.
    Replay,
}

/// The pauses between attempts.
#[derive(Clone, Debug)]
pub struct RetrySchedule {
    pauses: Vec<Duration>,
    max_retry_after: Duration,
}

impl RetrySchedule {
    pub fn new(settings: &WebhookSettings) -> Self {
        Self {
            pauses: settings
                .retry_after_s
                .iter()
                .map(|seconds| Duration::from_secs(*seconds))
                .collect(),
            max_retry_after: settings.max_retry_after,
        }
    }

    /// Returns the longest possible pause.
    pub fn longest(&self) -> Duration {
        let longest = self.pauses.iter().max().copied().unwrap_or_default();
        longest.mul_f64(1.0 + SPREAD).max(self.max_retry_after)
    }

    /// Returns the next state of a delivery. `draw`: a random number from 0 up to 1.
    pub fn next(&self, purpose: Purpose, ending: AttemptResult, ended_at: i64, draw: f64) -> Next {
        match (ending, purpose) {
            (AttemptResult::Success, _) => Next::Delivered,
            (AttemptResult::Gone, _) | (_, Purpose::Replay) => Next::Failed,
            (_, Purpose::Probe) => Next::Wait,
            (AttemptResult::Failure { retry_after }, Purpose::Delivery { failures }) => {
                let index = usize::try_from(failures).unwrap_or(usize::MAX);
                let Some(pause) = self.pauses.get(index) else {
                    return Next::Failed;
                };
                let pause = spread(*pause, draw);
                let asked = retry_after.unwrap_or_default().min(self.max_retry_after);
                Next::RetryAt(after(ended_at, pause.max(asked)))
            }
        }
    }
}

fn spread(pause: Duration, draw: f64) -> Duration {
    pause.mul_f64(1.0 + SPREAD * (2.0 * draw - 1.0))
}

/// Returns the time after a pause, in milliseconds since 1970.
pub fn after(at_ms: i64, pause: Duration) -> i64 {
    at_ms.saturating_add(duration_ms(pause))
}

/// Reads `Retry-After`: whole seconds, or the time left until a date. `None` for anything else, negative numbers included.
pub fn retry_after(text: &str, now_ms: i64) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that is too long for us is a very long pause.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let left_ms = date_ms(text)?.saturating_sub(now_ms);
    Some(Duration::from_millis(u64::try_from(left_ms).unwrap_or(0)))
}

fn date_ms(text: &str) -> Option<i64> {
    let date = DATE_FORMS
        .iter()
        .find_map(|form| DateTime::strptime(form, text).ok())?;
    let at: Timestamp = date.to_zoned(TimeZone::UTC).ok()?.timestamp();
    Some(at.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_219_200_000;

    fn schedule() -> RetrySchedule {
        RetrySchedule::new(&WebhookSettings::default())
    }

    fn failure(retry_after: Option<u64>) -> AttemptResult {
        AttemptResult::Failure {
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    fn delivery(failures: u32) -> Purpose {
        Purpose::Delivery { failures }
    }

    #[test]
    fn an_ending_and_a_purpose_decide() {
        use Next::{Delivered, Failed, RetryAt, Wait};
        let at = |seconds: i64| RetryAt(NOW + seconds * 1_000);
        let cases = [
            (Purpose::Probe, failure(None), Wait),
            (Purpose::Probe, failure(Some(99_999_999)), Wait),
            (Purpose::Probe, AttemptResult::Gone, Failed),
            (Purpose::Probe, AttemptResult::Success, Delivered),
            (Purpose::Replay, failure(Some(1)), Failed),
            (Purpose::Replay, AttemptResult::Gone, Failed),
            (Purpose::Replay, AttemptResult::Success, Delivered),
            (delivery(0), AttemptResult::Gone, Failed),
            (delivery(5), AttemptResult::Success, Delivered),
            (delivery(0), failure(None), at(5)),
            (delivery(1), failure(None), at(30)),
            (delivery(4), failure(None), at(1_800)),
            (delivery(5), failure(None), Failed),
            (delivery(5), failure(Some(7)), Failed),
            (delivery(u32::MAX), failure(None), Failed),
            // Never shorter than the schedule, never longer than the setting.
            (delivery(0), failure(Some(0)), at(5)),
            (delivery(1), failure(Some(29)), at(30)),
            (delivery(1), failure(Some(31)), at(31)),
            (delivery(0), failure(Some(99_999_999)), at(3_600)),
            (delivery(0), failure(Some(u64::MAX)), at(3_600)),
        ];
        for (purpose, ending, next) in cases {
            let found = schedule().next(purpose, ending, NOW, 0.5);
            assert_eq!(found, next, "{purpose:?} {ending:?}");
        }
        let at_the_end_of_time = schedule().next(delivery(0), failure(None), i64::MAX, 0.5);
        assert_eq!(at_the_end_of_time, RetryAt(i64::MAX));
    }

    #[test]
    fn pauses_spread_by_a_fifth() {
        for (draw, pause_ms) in [(0.0, 4_000), (0.5, 5_000), (0.999_999, 5_999)] {
            let next = schedule().next(delivery(0), failure(None), NOW, draw);
            assert_eq!(next, Next::RetryAt(NOW + pause_ms), "{draw}");
        }
    }

    #[test]
    fn the_longest_pause_is_of_the_ladder_or_of_the_receiver() {
        let mut settings = WebhookSettings::default();
        assert_eq!(RetrySchedule::new(&settings).longest().as_secs(), 3_600);
        settings.max_retry_after = Duration::ZERO;
        assert_eq!(RetrySchedule::new(&settings).longest().as_secs(), 2_160);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let cases: [(&str, Option<u64>); 22] = [
            ("", None),
            (" ", None),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("1e3", None),
            ("0x10", None),
            ("soon", None),
            ("1, 2", None),
            ("٣", None),
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("00007", Some(7)),
            ("99999999", Some(99_999_999)),
            ("99999999999999999999999999999999999999", Some(u64::MAX)),
            ("Sat, 21 Nov 2026 00:01:30 GMT", Some(90)),
            ("Saturday, 21-Nov-26 00:01:30 GMT", Some(90)),
            ("Sat Nov 21 00:01:30 2026", Some(90)),
            ("Fri, 20 Nov 2026 23:59:59 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
            ("Sat, 21 Nov 2026 00:01:30", None),
            ("Sat, 31 Feb 2026 00:01:30 GMT", None),
        ];
        for (text, seconds) in cases {
            let found = retry_after(text, NOW).map(|pause| pause.as_secs());
            assert_eq!(found, seconds, "{text:?}");
        }
    }
}
