//! Rate limit: requests a minute (`requests_per_minute`) of an account's keys, of a session and of its uploads; fixed window, in memory.
//!
//! Windows are counted on the monotonic clock, so that a clock set back neither blocks nor admits requests. The table
//! is emptied with each new minute and is thereby bounded by the accounts and sessions with requests in one minute.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use uuid::Uuid;

/// Length of a window.
const WINDOW: Duration = Duration::from_secs(60);

/// The budget that a request counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Budget {
    /// The keys of this account.
    Keys(Uuid),
    Session(Uuid),
    /// Resumable uploads of this session.
    Uploads(Uuid),
}

/// State of a budget in the current minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitState {
    /// Requests a minute; 0: no bound.
    pub limit: u32,
    pub remaining: u32,
    /// Seconds until the window ends, at least 1.
    pub resets_in_s: u64,
    pub allowed: bool,
}

/// The counters of all budgets.
#[derive(Debug)]
pub struct RateLimit {
    started: Instant,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    minute: u64,
    used: HashMap<Budget, u32>,
}

impl RateLimit {
    pub fn new(now: Instant) -> Self {
        Self {
            started: now,
            counts: Mutex::default(),
        }
    }

    /// Counts one request against `limit` requests a minute (0: no bound).
    pub fn count(&self, budget: Budget, limit: u32, now: Instant) -> RateLimitState {
        let elapsed = now.saturating_duration_since(self.started);
        let resets_in_s = (WINDOW.as_secs() - elapsed.as_secs() % WINDOW.as_secs()).max(1);
        if limit == 0 {
            return RateLimitState {
                limit,
                remaining: 0,
                resets_in_s,
                allowed: true,
            };
        }
        let mut counts = self.counts.lock();
        let minute = elapsed.as_secs() / WINDOW.as_secs();
        if counts.minute != minute {
            counts.minute = minute;
            counts.used.clear();
        }
        let used = counts.used.entry(budget).or_default();
        let allowed = *used < limit;
        *used = used.saturating_add(1).min(limit);
        RateLimitState {
            limit,
            remaining: limit - *used,
            resets_in_s,
            allowed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_counts_down_rejects_and_starts_again() {
        let start = Instant::now();
        let limits = RateLimit::new(start);
        let keys = Budget::Keys(Uuid::now_v7());
        let at = |seconds| limits.count(keys, 2, start + Duration::from_secs(seconds));
        let standing = |remaining, resets_in_s, allowed| RateLimitState {
            limit: 2,
            remaining,
            resets_in_s,
            allowed,
        };
        assert_eq!(at(0), standing(1, 60, true));
        assert_eq!(at(1), standing(0, 59, true));
        assert_eq!(at(59), standing(0, 1, false));
        assert_eq!(at(60), standing(1, 60, true));
    }

    #[test]
    fn budgets_do_not_share_and_zero_means_no_bound() {
        let start = Instant::now();
        let limits = RateLimit::new(start);
        let session = Uuid::now_v7();
        let (first, second) = (Budget::Session(session), Budget::Uploads(session));
        assert!(limits.count(first, 1, start).allowed);
        assert!(!limits.count(first, 1, start).allowed);
        assert!(limits.count(second, 1, start).allowed);
        assert!((0..100).all(|_| limits.count(second, 0, start).allowed));
    }
}
