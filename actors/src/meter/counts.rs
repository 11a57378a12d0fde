//! Counts of image deliveries (hits, misses, bytes) of the present day since the last flush, for an account or a delivery
//! key.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use sluice_store::{deliveries::Day, usage_history::KeyDay};
use uuid::Uuid;

use super::Account;

/// Way in which an image was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    Hit,
    Miss,
}

/// Counts a delivery for the statistics.
pub trait CountDelivery {
    /// `bytes`: of the body.
    fn delivered(&self, how: Delivered, bytes: u64);
}

impl CountDelivery for Arc<Account> {
    fn delivered(&self, how: Delivered, bytes: u64) {
        self.counts.add(how, bytes);
    }
}

/// Counters without a lock.
#[derive(Debug, Default)]
pub(super) struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
    bytes: AtomicU64,
}

impl Counts {
    pub fn add(&self, how: Delivered, bytes: u64) {
        let counter = match how {
            Delivered::Hit => &self.hits,
            Delivered::Miss => &self.misses,
        };
        counter.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Takes the counts since the last call.
    pub fn take(&self, now_ms: i64) -> Day {
        let take = |counter: &AtomicU64| counter.swap(0, Relaxed) as i64;
        Day {
            day: Day::of(now_ms),
            hits: take(&self.hits),
            misses: take(&self.misses),
            bytes: take(&self.bytes),
        }
    }

    /// Returns whether there is nothing to take.
    pub fn is_empty(&self) -> bool {
        self.hits.load(Relaxed) == 0 && self.misses.load(Relaxed) == 0
    }

    pub fn put_back(&self, day: Day) {
        for (counter, count) in [
            (&self.hits, day.hits),
            (&self.misses, day.misses),
            (&self.bytes, day.bytes),
        ] {
            counter.fetch_add(count.unsigned_abs(), Relaxed);
        }
    }
}

/// The counters of a delivery key.
#[derive(Debug)]
pub struct KeyCounts {
    account_id: Uuid,
    key_id: Uuid,
    pub(super) counts: Counts,
}

impl KeyCounts {
    pub(super) fn new(account_id: Uuid, key_id: Uuid) -> Self {
        Self {
            account_id,
            key_id,
            counts: Counts::default(),
        }
    }

    pub(crate) fn add(&self, how: Delivered, bytes: u64) {
        self.counts.add(how, bytes);
    }

    /// Takes the counts since the last call; `None` when there are none.
    pub(super) fn take(&self, now_ms: i64) -> Option<KeyDay> {
        let day = self.counts.take(now_ms);
        (day.hits + day.misses > 0).then_some(KeyDay {
            account_id: self.account_id,
            key_id: self.key_id,
            day,
        })
    }
}
