//! Month of an account's image deliveries: cap, rest of the block, use (`Quota`), taken in one atomic exchange.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
};

use sluice_store::{Month, deliveries::MeterState};

/// Bits of [`Period::state`] that hold what was used; the others hold the rest of the block. A block has at most 1 000,
/// and deliveries that are taken back add to the rest no more than are in progress.
const USED_BITS: u32 = 44;
const USED: u64 = (1 << USED_BITS) - 1;
const ONE_LEFT: u64 = 1 << USED_BITS;

/// Quota of an account in its month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Deliveries a month; `None`: no cap.
    pub limit: Option<u64>,
    pub used: u64,
    /// Begin of the next month, in Unix seconds.
    pub resets_at_s: i64,
}

impl Quota {
    /// Returns the deliveries that are left; `None`: no cap.
    pub fn remaining(&self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_sub(self.used))
    }
}

/// Reason why no delivery was counted.
#[derive(Debug)]
pub(super) enum Refused {
    /// The block is spent, or the month is over: the next one must be taken.
    Empty,
    UsedUp(Quota),
}

/// A month and its counters. `state` packs rest and use into one word, so that spending is one exchange.
#[derive(Debug)]
pub(super) struct Period {
    /// `None` before anything was read from the store.
    month: Option<Month>,
    ends_at_ms: i64,
    /// 0: no cap.
    cap: u64,
    state: AtomicU64,
    /// The next block should be taken when this much is left.
    low: AtomicU64,
    /// The store has nothing left to give.
    exhausted: AtomicBool,
    /// Part of the use that the store has, of an account without a cap.
    counted: AtomicU64,
}

impl Period {
    /// Makes a period that is over: the first delivery has the store asked.
    pub(super) fn unknown() -> Self {
        Self {
            month: None,
            ends_at_ms: i64::MIN,
            cap: 0,
            state: AtomicU64::new(0),
            low: AtomicU64::new(0),
            exhausted: AtomicBool::new(false),
            counted: AtomicU64::new(0),
        }
    }

    /// Makes it of the store's state; `returned` went back to the store after that.
    pub(super) fn new(cap: u64, state: &MeterState, returned: u64) -> Self {
        let used = state.taken - state.granted.min(state.taken);
        let used = used.saturating_sub(returned) & USED;
        let block = if cap == 0 { 0 } else { state.granted };
        Self {
            month: Some(state.month),
            ends_at_ms: state.month.ends_at(),
            cap,
            state: AtomicU64::new(used | (block << USED_BITS)),
            low: AtomicU64::new(block / 2),
            exhausted: AtomicBool::new(cap > 0 && state.taken >= cap),
            counted: AtomicU64::new(used),
        }
    }

    pub(super) fn month(&self) -> Option<Month> {
        self.month
    }

    pub(super) fn is_of(&self, cap: u64, month: Month) -> bool {
        self.month == Some(month) && self.cap == cap
    }

    /// Returns whether the month is over. A clock set back before the month's begin continues in it.
    pub(super) fn is_over(&self, now_ms: i64) -> bool {
        now_ms >= self.ends_at_ms
    }

    /// Adds a block.
    pub(super) fn grant(&self, state: &MeterState) {
        if self.cap == 0 {
            return;
        }
        self.low.store(state.granted / 2, SeqCst);
        self.state.fetch_add(state.granted << USED_BITS, SeqCst);
        self.exhausted.store(state.taken >= self.cap, SeqCst);
    }

    pub(super) fn spend(self: &Arc<Self>, now_ms: i64) -> Result<Spent, Refused> {
        if self.is_over(now_ms) {
            return Err(Refused::Empty);
        }
        let state = if self.cap == 0 {
            self.state.fetch_add(1, SeqCst) + 1
        } else {
            let one = |state: u64| (state >= ONE_LEFT).then(|| state - ONE_LEFT + 1);
            match self.state.fetch_update(SeqCst, SeqCst, one) {
                Ok(before) => before - ONE_LEFT + 1,
                Err(_) if self.exhausted.load(SeqCst) => {
                    return Err(Refused::UsedUp(self.quota()));
                }
                Err(_) => return Err(Refused::Empty),
            }
        };
        let left = state >> USED_BITS;
        Ok(Spent {
            quota: self.quota_of(state),
            is_low: self.cap > 0
                && (left == 0 || left == self.low.load(SeqCst))
                && !self.exhausted.load(SeqCst),
            period: Some(self.clone()),
        })
    }

    fn take_back(&self) {
        if self.cap == 0 {
            self.state.fetch_sub(1, SeqCst);
        } else {
            self.state.fetch_add(ONE_LEFT - 1, SeqCst);
        }
    }

    /// Returns the rest of the block.
    pub(super) fn held(&self) -> Option<(Month, u64)> {
        Some((self.month?, self.state.load(SeqCst) >> USED_BITS))
    }

    pub(super) fn wants_refill(&self, now_ms: i64) -> bool {
        let left = self.state.load(SeqCst) >> USED_BITS;
        self.is_over(now_ms)
            || (self.cap > 0 && left <= self.low.load(SeqCst) && !self.exhausted.load(SeqCst))
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.exhausted.load(SeqCst)
    }

    /// Closes the period: nothing is spent from here on. Returns the rest.
    pub(super) fn close(&self) -> u64 {
        if self.cap == 0 {
            return 0;
        }
        self.state.fetch_and(USED, SeqCst) >> USED_BITS
    }

    /// Takes the deliveries without a cap that are not in the store yet.
    pub(super) fn take_uncounted(&self) -> u64 {
        if self.cap > 0 || self.month.is_none() {
            return 0;
        }
        let used = self.state.load(SeqCst) & USED;
        // A delivery taken back later is made up for by the next ones.
        used.saturating_sub(self.counted.fetch_max(used, SeqCst))
    }

    /// Puts deliveries back that the store did not take.
    pub(super) fn put_back(&self, uncounted: u64) {
        self.counted.fetch_sub(uncounted, SeqCst);
    }

    pub(super) fn quota(&self) -> Quota {
        self.quota_of(self.state.load(SeqCst))
    }

    fn quota_of(&self, state: u64) -> Quota {
        Quota {
            limit: (self.cap > 0).then_some(self.cap),
            used: state & USED,
            resets_at_s: self.ends_at_ms.div_euclid(1000),
        }
    }
}

/// A counted delivery. Dropped without [`Spent::keep`], it is taken back: nothing was delivered.
#[derive(Debug)]
pub struct Spent {
    quota: Quota,
    is_low: bool,
    period: Option<Arc<Period>>,
}

impl Spent {
    /// Keeps the count: the delivery takes place.
    pub fn keep(mut self) -> Quota {
        self.period = None;
        self.quota
    }

    /// Returns the quota, this delivery included.
    pub fn quota(&self) -> Quota {
        self.quota
    }

    pub(super) fn is_low(&self) -> bool {
        self.is_low
    }
}

impl Drop for Spent {
    fn drop(&mut self) {
        if let Some(period) = &self.period {
            period.take_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_219_200_000;

    fn period(cap: u64, taken: u64, granted: u64) -> Arc<Period> {
        Arc::new(Period::new(
            cap,
            &MeterState {
                month: Month::of(NOW),
                taken,
                granted,
            },
            0,
        ))
    }

    #[test]
    fn a_block_is_spent_once_by_all_threads_together() {
        let period = period(10_000, 3_100, 100);
        let spent: usize = std::thread::scope(|scope| {
            let spenders: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        std::iter::from_fn(|| period.spend(NOW).ok())
                            .map(Spent::keep)
                            .count()
                    })
                })
                .collect();
            spenders
                .into_iter()
                .map(|spender| spender.join().unwrap())
                .sum()
        });
        assert_eq!(spent, 100);
        assert_eq!(period.quota().used, 3_100);
        assert!(matches!(period.spend(NOW), Err(Refused::Empty)));
    }

    #[test]
    fn what_was_not_delivered_is_taken_back() {
        let period = period(100, 100, 1);
        let spent = period.spend(NOW).unwrap();
        assert_eq!(
            (spent.quota().used, spent.quota().remaining()),
            (100, Some(0))
        );
        assert!(matches!(period.spend(NOW), Err(Refused::UsedUp(_))));
        drop(spent);
        assert_eq!(period.spend(NOW).unwrap().keep().used, 100);
        assert!(matches!(period.spend(NOW), Err(Refused::UsedUp(_))));
    }

    #[test]
    fn a_closed_period_gives_nothing_more() {
        let period = period(10_000, 100, 100);
        period.spend(NOW).unwrap().keep();
        assert_eq!(period.close(), 99);
        assert_eq!(period.close(), 0);
        assert!(period.spend(NOW).is_err());
    }

    #[test]
    fn a_month_ends_by_the_clock_and_does_not_begin_again() {
        let period = period(0, 5, 0);
        let end = Month::of(NOW).ends_at();
        for (now, open) in [(end, false), (end - 1, true), (0, true)] {
            assert_eq!(period.spend(now).is_ok(), open, "{now}");
        }
    }

    #[test]
    fn without_a_cap_only_what_is_new_is_counted() {
        let period = period(0, 5, 0);
        period.spend(NOW).unwrap().keep();
        drop(period.spend(NOW).unwrap());
        assert_eq!(period.take_uncounted(), 1);
        assert_eq!(period.take_uncounted(), 0);
        period.put_back(1);
        assert_eq!(period.take_uncounted(), 1);
        let quota = period.quota();
        assert_eq!(
            (quota.limit, quota.used, quota.remaining()),
            (None, 6, None)
        );
    }
}
