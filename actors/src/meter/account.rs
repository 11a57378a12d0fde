//! Deliveries of one account in the façade: quota of its month, use of its block, turn to refill it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst},
};

use arc_swap::ArcSwap;
use sluice_store::deliveries::Day;
use tokio::sync::{Notify, futures::Notified};
use uuid::Uuid;

use super::{
    counts::Counts,
    period::{Period, Quota, Refused, Spent},
};

/// The counters of one account.
#[derive(Debug)]
pub struct Account {
    pub(super) id: Uuid,
    period: ArcSwap<Period>,
    pub(super) counts: Counts,
    /// True when it was used since its plan was last read.
    active: AtomicBool,
    refilling: AtomicBool,
    closed: AtomicBool,
    changed: Notify,
}

/// Counts to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub uncapped: u64,
    pub day: Day,
}

impl Account {
    pub(super) fn new(id: Uuid) -> Self {
        Self {
            id,
            period: ArcSwap::from_pointee(Period::unknown()),
            counts: Counts::default(),
            active: AtomicBool::new(false),
            refilling: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Returns the quota; `None` until the store was asked for this month.
    pub(super) fn quota(&self, now_ms: i64) -> Option<Quota> {
        let period = self.period.load();
        (!period.is_over(now_ms)).then(|| period.quota())
    }

    pub(super) fn spend(&self, now_ms: i64) -> Result<Spent, Refused> {
        if !self.active.load(Relaxed) {
            self.active.store(true, Relaxed);
        }
        self.period.load().spend(now_ms)
    }

    pub(super) fn period(&self) -> Arc<Period> {
        self.period.load_full()
    }

    pub(super) fn begin(&self, period: Period) {
        self.period.store(Arc::new(period));
    }

    pub(super) fn wants_refill(&self, now_ms: i64) -> bool {
        self.period.load().wants_refill(now_ms)
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.period.load().is_used_up()
    }

    /// Returns whether it was active since the last call.
    pub(super) fn is_active(&self) -> bool {
        self.active.swap(false, Relaxed)
    }

    /// Resolves at the next [`Account::notify`].
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    pub(super) fn notify(&self) {
        self.changed.notify_waiters();
    }

    /// Takes the turn to refill; there is one at a time.
    pub(super) fn take_turn(self: &Arc<Self>) -> Option<Turn> {
        (!self.refilling.swap(true, SeqCst)).then(|| Turn(self.clone()))
    }

    /// Takes the counts since the last call; `None` when there are none.
    pub(super) fn take_counted(&self, now_ms: i64) -> Option<Counted> {
        let counted = Counted {
            uncapped: self.period.load().take_uncounted(),
            day: self.counts.take(now_ms),
        };
        let is_nothing = counted.uncapped == 0 && counted.day.hits == 0 && counted.day.misses == 0;
        (!is_nothing).then_some(counted)
    }

    pub(super) fn put_back(&self, counted: Counted) {
        self.period.load().put_back(counted.uncapped);
        self.counts.put_back(counted.day);
    }
}

/// The turn to refill; given back when dropped.
pub(super) struct Turn(Arc<Account>);

impl Turn {
    /// Keeps the turn for good: no refill follows.
    pub(super) fn keep(self) {
        self.0.closed.store(true, SeqCst);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let closed = self.0.closed.load(SeqCst);
        self.0.refilling.store(closed, SeqCst);
    }
}
