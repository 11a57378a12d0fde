//! Lock-out after failed attempts (sign-in, passwords and tokens of shares): counts by key within a window, at most `CAPACITY`
//! keys.
//!
//! The number of keys is bounded. Room is made at the cost of keys below their limit only: a key at its limit is kept until its
//! window is over, however many others come.

use std::{
    collections::HashMap,
    hash::Hash,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// Most keys that are counted at a time.
const CAPACITY: usize = 10_000;

/// Allows up to `allowed` failed attempts for each key; a window begins with a key's first one.
#[derive(Debug)]
pub(crate) struct AttemptCounter<K> {
    allowed: u32,
    window: Duration,
    counts: Mutex<HashMap<K, Count>>,
}

#[derive(Debug)]
struct Count {
    since: Instant,
    failures: u32,
    /// Failures that the other nodes of a cluster do not know of.
    unshared: u32,
    /// Hashes of the failed tokens that count once each; empty where every attempt counts.
    marks: Vec<u64>,
}

impl<K: Eq + Hash + Clone> AttemptCounter<K> {
    pub(crate) fn new(allowed: u32, window: Duration) -> Self {
        Self {
            allowed,
            window,
            counts: Mutex::default(),
        }
    }

    /// The rest of the window of a key that is at its limit.
    pub(crate) fn locked_out(&self, key: &K, now: Instant) -> Option<Duration> {
        let counts = self.counts.lock();
        let count = counts.get(key)?;
        (count.failures >= self.allowed)
            .then(|| self.left(count, now))
            .filter(|left| !left.is_zero())
    }

    /// Counts a failed attempt; one with a `mark` only when the key does not have that mark. `Err` with the time to
    /// wait when the key is at its limit, or when there is no room because all keys are at theirs.
    pub(crate) fn count(&self, key: K, mark: Option<u64>, now: Instant) -> Result<(), Duration> {
        let mut counts = self.counts.lock();
        if !counts.contains_key(&key) && counts.len() >= CAPACITY {
            self.make_room(&mut counts, now)?;
        }
        let fresh = || Count {
            since: now,
            failures: 0,
            unshared: 0,
            marks: Vec::new(),
        };
        let count = counts.entry(key).or_insert_with(fresh);
        if self.left(count, now).is_zero() {
            *count = fresh();
        }
        if count.failures >= self.allowed {
            return Err(self.left(count, now));
        }
        if let Some(mark) = mark {
            if count.marks.contains(&mark) {
                return Ok(());
            }
            count.marks.push(mark);
        }
        count.failures += 1;
        count.unshared += 1;
        Ok(())
    }

    /// Returns at most `most` keys with the failures that the other nodes do not know of, and the rests of their windows.
    pub(crate) fn take_unshared(&self, most: usize, now: Instant) -> Vec<(K, u32, Duration)> {
        let mut counts = self.counts.lock();
        let unshared = counts.iter_mut().filter(|(_, count)| count.unshared > 0);
        let taken = unshared.take(most).map(|(key, count)| {
            let failures = std::mem::take(&mut count.unshared);
            (key.clone(), failures, self.left(count, now))
        });
        taken.collect()
    }

    /// Puts back what [`Self::take_unshared`] returned.
    pub(crate) fn put_unshared_back(&self, taken: &[(K, u32, Duration)]) {
        let mut counts = self.counts.lock();
        for (key, failures, _) in taken {
            if let Some(count) = counts.get_mut(key) {
                count.unshared = count.unshared.saturating_add(*failures);
            }
        }
    }

    /// Takes one attempt without a mark back, because it was right.
    pub(crate) fn take_back(&self, key: &K) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(key) {
            count.failures = count.failures.saturating_sub(1);
            if count.failures == 0 {
                counts.remove(key);
            }
        }
    }

    /// Lowers the failures of the key to those that all nodes of a cluster have counted since the last success on one of them.
    pub(crate) fn lower_to(&self, key: &K, failures: u32) {
        if let Some(count) = self.counts.lock().get_mut(key) {
            count.failures = count.failures.min(failures);
        }
    }

    /// Forgets all failures of the key.
    pub(crate) fn forget(&self, key: &K) {
        self.counts.lock().remove(key);
    }

    fn make_room(&self, counts: &mut HashMap<K, Count>, now: Instant) -> Result<(), Duration> {
        counts.retain(|_, count| !self.left(count, now).is_zero());
        if counts.len() < CAPACITY {
            return Ok(());
        }
        let below_limit = counts
            .iter()
            .filter(|(_, count)| count.failures < self.allowed);
        let oldest = below_limit.min_by_key(|(_, count)| count.since);
        match oldest.map(|(key, _)| key.clone()) {
            Some(key) => counts.remove(&key),
            None => {
                let first_to_end = counts.values().map(|count| self.left(count, now)).min();
                return Err(first_to_end.unwrap_or(self.window));
            }
        };
        Ok(())
    }

    fn left(&self, count: &Count, now: Instant) -> Duration {
        self.window
            .saturating_sub(now.saturating_duration_since(count.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(600);

    #[test]
    fn a_key_waits_at_its_limit_until_its_window_is_over() {
        let (counter, start) = (AttemptCounter::new(2, WINDOW), Instant::now());
        let count = |key, second| counter.count(key, None, start + Duration::from_secs(second));
        assert_eq!((count("a", 0), count("a", 5)), (Ok(()), Ok(())));
        assert_eq!(count("a", 10), Err(Duration::from_secs(590)));
        assert_eq!(count("b", 10), Ok(()));
        let locked_out =
            |key, second| counter.locked_out(&key, start + Duration::from_secs(second));
        assert_eq!(locked_out("a", 10), Some(Duration::from_secs(590)));
        assert_eq!((locked_out("b", 10), locked_out("c", 10)), (None, None));
        assert_eq!(locked_out("a", 600), None);
        assert_eq!((count("a", 600), count("a", 600)), (Ok(()), Ok(())));
        assert!(count("a", 600).is_err());
        counter.take_back(&"a");
        assert_eq!(count("a", 600), Ok(()));
        counter.forget(&"a");
        assert_eq!((count("a", 601), count("a", 601)), (Ok(()), Ok(())));
    }

    #[test]
    fn a_mark_counts_once() {
        let (counter, now) = (AttemptCounter::new(2, WINDOW), Instant::now());
        for _ in 0..100 {
            assert_eq!(counter.count("a", Some(1), now), Ok(()));
        }
        assert_eq!(counter.locked_out(&"a", now), None);
        assert_eq!(counter.count("a", Some(2), now), Ok(()));
        assert_eq!(counter.locked_out(&"a", now), Some(WINDOW));
        assert_eq!(counter.count("a", Some(1), now), Err(WINDOW));
    }

    #[test]
    fn a_flood_of_keys_stays_in_bounds_and_frees_no_key_at_its_limit() {
        let (counter, start) = (AttemptCounter::new(2, WINDOW), Instant::now());
        for _ in 0..2 {
            assert_eq!(counter.count(0, None, start), Ok(()));
        }
        let later = start + Duration::from_secs(1);
        for key in 1..CAPACITY * 2 {
            assert_eq!(counter.count(key, None, later), Ok(()));
        }
        assert!(counter.counts.lock().len() <= CAPACITY);
        assert!(counter.locked_out(&0, later).is_some());
    }

    #[test]
    fn a_table_full_of_keys_at_their_limit_takes_no_other_until_one_ends() {
        let (counter, start) = (AttemptCounter::new(1, WINDOW), Instant::now());
        let late = start + Duration::from_secs(60);
        for key in 0..CAPACITY {
            let now = if key == 7 { start } else { late };
            assert_eq!(counter.count(key, None, now), Ok(()));
        }
        let left = WINDOW - Duration::from_secs(60);
        assert_eq!(counter.count(CAPACITY, None, late), Err(left));
        assert_eq!(counter.locked_out(&7, late), Some(left));
        assert_eq!(counter.count(CAPACITY, None, start + WINDOW), Ok(()));
    }
}
