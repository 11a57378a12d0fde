//! Receivers of the simulation.

use std::time::Duration;

use super::{Dice, SECOND};
use crate::webhooks::schedule::AttemptResult;

/// Behaviour of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Healthy,
    Failing,
    /// Answers well, after seconds.
    Slow,
    /// Until the attempt's time is over.
    Hanging,
    /// Alternates.
    Flapping,
    /// 410, one time in four.
    Going,
    /// Fails and asks for so many seconds; `None`: for some.
    RetryAfter(Option<u64>),
}

impl Manner {
    /// Half of them are healthy.
    pub fn any(dice: &mut Dice) -> Self {
        let manner = dice.pick(&[
            Self::Failing,
            Self::Slow,
            Self::Hanging,
            Self::Flapping,
            Self::Going,
            Self::RetryAfter(None),
            Self::RetryAfter(Some(99_999_999)),
        ]);
        match dice.one_in(2) {
            true => Self::Healthy,
            false => manner,
        }
    }

    /// Returns the duration of an attempt in milliseconds, and its end.
    pub fn answer(self, dice: &mut Dice, timeout: Duration) -> (i64, AttemptResult) {
        let failure = AttemptResult::Failure { retry_after: None };
        match self {
            Self::Healthy => (dice.between(1, 100), AttemptResult::Success),
            Self::Slow => (dice.between(SECOND, 8 * SECOND), AttemptResult::Success),
            Self::Failing => (dice.between(1, 200), failure),
            Self::Hanging => (timeout.as_millis() as i64, failure),
            Self::Flapping if dice.one_in(2) => (dice.between(1, 3 * SECOND), failure),
            Self::Flapping => (dice.between(1, 3 * SECOND), AttemptResult::Success),
            Self::Going if dice.one_in(4) => (dice.between(1, 100), AttemptResult::Gone),
            Self::Going => (dice.between(1, 100), failure),
            Self::RetryAfter(seconds) => {
                let seconds = seconds.unwrap_or_else(|| dice.pick(&[0, 1, 7, 100, 4_000]));
                let retry_after = Some(Duration::from_secs(seconds));
                (dice.between(1, 100), AttemptResult::Failure { retry_after })
            }
        }
    }
}
