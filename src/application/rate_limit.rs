//! Rate limit: requests a minute (`requests_per_minute`) of an account's keys, of a session and of its uploads; fixed window, in memory.
//!
//! Windows are counted on the monotonic clock, so that a clock set back neither blocks nor admits requests. The table
//! is emptied with each new minute and is thereby bounded by the accounts and sessions with requests in one minute.
//!
//! In a cluster windows are the minutes of its clock, and each node adds its requests to the counts of all each second: a budget
//! is exceeded by the requests of one second at most. While the database is away each node counts by itself.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sluice_store::{
    Error, Store,
    counters::{self, Added},
    duration_ms, now_ms,
};
use uuid::Uuid;

/// Length of a window.
const WINDOW: Duration = Duration::from_secs(60);
/// Kind of the counts of all nodes.
const KIND: &str = "requests";
/// Budgets of one statement.
const BUDGETS_PER_TURN: usize = 1_000;

/// The budget that a request counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Budget {
    /// The keys of this account.
    Keys(Uuid),
    Session(Uuid),
    /// Resumable uploads of this session.
    Uploads(Uuid),
}

impl Budget {
    /// Returns the name of the count of all nodes in a minute.
    fn name(self, minute: u64) -> String {
        match self {
            Self::Keys(id) => format!("keys {id} {minute}"),
            Self::Session(id) => format!("session {id} {minute}"),
            Self::Uploads(id) => format!("uploads {id} {minute}"),
        }
    }
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
    /// Beginning of the first window; `None` in a cluster.
    started: Option<Instant>,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    minute: u64,
    used: HashMap<Budget, Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// By all nodes, as far as it is known.
    total: u32,
    /// Part of it that the other nodes do not know of.
    unshared: u32,
}

impl RateLimit {
    pub fn new(now: Instant) -> Self {
        Self {
            started: Some(now),
            counts: Mutex::default(),
        }
    }

    /// Makes the counters of a node, whose windows are those of the others; see [`Self::share`].
    pub fn of_node() -> Self {
        Self {
            started: None,
            counts: Mutex::default(),
        }
    }

    /// Returns the time since the beginning of some window.
    fn elapsed(&self, now: Instant) -> Duration {
        match self.started {
            Some(started) => now.saturating_duration_since(started),
            None => Duration::from_millis(now_ms().unsigned_abs()),
        }
    }

    fn minute(&self, now: Instant) -> u64 {
        self.elapsed(now).as_secs() / WINDOW.as_secs()
    }

    /// Counts one request against `limit` requests a minute (0: no bound).
    pub fn count(&self, budget: Budget, limit: u32, now: Instant) -> RateLimitState {
        let elapsed = self.elapsed(now);
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
        let allowed = used.total < limit;
        used.total = used.total.saturating_add(1).min(limit);
        used.unshared += u32::from(allowed);
        RateLimitState {
            limit,
            remaining: limit - used.total,
            resets_in_s,
            allowed,
        }
    }

    /// Adds the requests of this node to the counts of all nodes, and takes those up.
    pub(crate) async fn share(&self, store: &Store) -> Result<(), Error> {
        let (minute, budgets) = self.take_unshared();
        if minute != self.minute(Instant::now()) {
            // What is left of an ended minute bounds nothing.
            return Ok(());
        }
        let mut turns = budgets.chunks(BUDGETS_PER_TURN);
        while let Some(some) = turns.next() {
            let shared = match add_some(store, minute, some).await {
                Ok(()) => totals_of(store, minute, some).await,
                Err(error) => {
                    if !matches!(error, Error::Unknown) {
                        self.put_back(minute, some);
                    }
                    Err(error)
                }
            };
            match shared {
                Ok(totals) => self.take_up(minute, &totals),
                Err(error) => {
                    turns.for_each(|some| self.put_back(minute, some));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Returns the budgets of the present minute with their requests that the other nodes do not know of.
    fn take_unshared(&self) -> (u64, Vec<(Budget, u32)>) {
        let mut counts = self.counts.lock();
        let used = counts.used.iter_mut();
        let unshared = used.map(|(budget, used)| (*budget, std::mem::take(&mut used.unshared)));
        let unshared = unshared.collect();
        (counts.minute, unshared)
    }

    fn put_back(&self, minute: u64, budgets: &[(Budget, u32)]) {
        let mut counts = self.counts.lock();
        if counts.minute != minute {
            return;
        }
        for (budget, unshared) in budgets {
            let used = counts.used.entry(*budget).or_default();
            used.unshared = used.unshared.saturating_add(*unshared);
        }
    }

    fn take_up(&self, minute: u64, totals: &[(Budget, u32)]) {
        let mut counts = self.counts.lock();
        if counts.minute != minute {
            return;
        }
        for (budget, total) in totals {
            let used = counts.used.entry(*budget).or_default();
            used.total = total.saturating_add(used.unshared);
        }
    }
}

/// Adds to the counts of all nodes.
async fn add_some(store: &Store, minute: u64, budgets: &[(Budget, u32)]) -> Result<(), Error> {
    let now_ms = now_ms();
    let window_ms = duration_ms(WINDOW);
    let ends_at = i64::try_from(minute + 1)
        .unwrap_or(i64::MAX)
        .saturating_mul(window_ms);
    let added: Vec<Added> = budgets
        .iter()
        .filter(|(_, unshared)| *unshared > 0)
        .map(|(budget, unshared)| Added {
            name: budget.name(minute),
            used: *unshared,
            ends_at,
        })
        .collect();
    if added.is_empty() {
        return Ok(());
    }
    let adding = store.write_beside(move |tx| {
        Box::pin(async move { counters::add(tx, KIND, &added, now_ms).await })
    });
    adding.await
}

/// Returns the counts of all nodes.
async fn totals_of(
    store: &Store,
    minute: u64,
    budgets: &[(Budget, u32)],
) -> Result<Vec<(Budget, u32)>, Error> {
    let names: HashMap<String, Budget> = budgets
        .iter()
        .map(|(budget, _)| (budget.name(minute), *budget))
        .collect();
    let asked: Vec<String> = names.keys().cloned().collect();
    let mut db = store.read().await?;
    let counts = counters::of_names(&mut db, KIND, &asked, now_ms()).await?;
    let totals = counts.into_iter().filter_map(|count| {
        let total = u32::try_from(count.used).unwrap_or(u32::MAX);
        Some((*names.get(&count.name)?, total))
    });
    Ok(totals.collect())
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

    #[tokio::test]
    async fn nodes_have_one_budget() {
        let folder = tempfile::tempdir().unwrap();
        let settings = sluice_store::StoreSettings::without_reserve(folder.path());
        let store = Store::open(&settings).await.unwrap();
        let minute = || now_ms() / 60_000;
        // Again when a minute ends meanwhile.
        loop {
            let begun = minute();
            let (first, second) = (RateLimit::of_node(), RateLimit::of_node());
            let keys = Budget::Keys(Uuid::now_v7());
            let count = |node: &RateLimit| node.count(keys, 10, Instant::now());
            let are_allowed = (0..4).all(|_| count(&first).allowed && count(&second).allowed);
            for node in [&first, &second, &first] {
                node.share(&store).await.unwrap();
            }
            let left = (count(&first).remaining, count(&second).remaining);
            for node in [&second, &first] {
                node.share(&store).await.unwrap();
            }
            let eleventh = count(&first);
            if minute() == begun {
                assert!(are_allowed && !eleventh.allowed);
                assert_eq!(left, (1, 1));
                return;
            }
        }
    }

    #[tokio::test]
    async fn requests_are_added_once_also_when_the_counts_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let settings = sluice_store::StoreSettings {
            readers: 1,
            busy_timeout: Duration::from_millis(50),
            ..sluice_store::StoreSettings::without_reserve(folder.path())
        };
        let store = Store::open(&settings).await.unwrap();
        // Again when a minute ends meanwhile.
        loop {
            let begun = now_ms() / 60_000;
            let node = RateLimit::of_node();
            let keys = Budget::Keys(Uuid::now_v7());
            let count = || node.count(keys, 10, Instant::now()).remaining;
            let first = count();
            let reader = store.read().await.unwrap();
            let unread = node.share(&store).await;
            drop(reader);
            node.share(&store).await.unwrap();
            let second = count();
            if now_ms() / 60_000 == begun {
                assert!(unread.is_err());
                assert_eq!((first, second), (9, 8));
                return;
            }
        }
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
