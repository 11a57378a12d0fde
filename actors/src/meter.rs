//! Monthly meter of image deliveries and a plan's cap on them: blocks are taken durably, and spent from an atomic that the
//! façade reads.
//!
//! A block counts as used in the store before its first delivery, so the cap is never exceeded. What is left of it is given
//! back when the service stops ([`Meter::close`]); a killed service has used it. Accounts without a cap are counted after
//! the fact, every [`SETTLE_EVERY`]; the days' statistics, those of each delivery key among them, and the last uses of keys
//! once a second.
//!
//! Survives a restart of the actor: everything (in [`Meter`]). Mailbox 64, nudges only: one that is dropped is repeated
//! by callers that wait.

mod account;
mod counts;
mod period;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use kameo::{
    Actor,
    actor::ActorRef,
    error::{Infallible, SendError},
    message::{Context, Message},
};
use parking_lot::{Mutex, RwLock};
use sluice_store::{
    Error as StoreError, Store, accounts, deliveries, delivery_keys, now_ms, usage_history,
};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;
use uuid::Uuid;

pub use account::Account;
pub use counts::{CountDelivery, Delivered, KeyCounts};
pub use period::{Quota, Spent};

use self::period::{Period, Refused};
use crate::{
    Error,
    component::{ActorHandle, Component},
};

const MAILBOX: usize = 64;
/// Pause between two writes of the deliveries of accounts without a cap: a killed service loses the count of about as long.
const SETTLE_EVERY: Duration = Duration::from_millis(20);
/// Pause between two writes of the statistics and of the last uses of keys.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// Flushes between two reads of an account's plan: often while its cap is reached, else seldom.
const LOOK_WHEN_USED_UP: u64 = 5;
const LOOK_ALWAYS: u64 = 30;
/// Longest wait of a delivery for a block, before 503; none while the database is known to take no changes.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two nudges of one waiting delivery.
const NUDGE_EVERY: Duration = Duration::from_millis(100);

/// Deliveries a month by the name of a plan; 0: no cap. Unknown plans have none.
pub type Caps = BTreeMap<String, u64>;

/// The handle of the meter. Clones share it; it exists before its actor runs.
#[derive(Clone)]
pub struct Meter {
    shared: Arc<Shared>,
    handle: ActorHandle<MeterWriter>,
}

struct Shared {
    store: Store,
    caps: Caps,
    accounts: RwLock<HashMap<Uuid, Arc<Account>>>,
    /// By the id of a delivery key.
    keys: RwLock<HashMap<Uuid, Arc<KeyCounts>>>,
    /// Day on which old days were last dropped.
    swept_day: AtomicI64,
    /// Keys and when they were last used, since the last flush.
    uses: Mutex<HashMap<Uuid, i64>>,
}

/// Reason why a delivery was not counted.
#[derive(Debug)]
pub enum Rejection {
    /// The month's cap is reached.
    UsedUp(Quota),
    /// The database does not take changes.
    Busy,
}

impl Meter {
    pub fn new(store: Store, caps: Caps) -> Self {
        Self {
            shared: Arc::new(Shared {
                store,
                caps,
                accounts: RwLock::default(),
                keys: RwLock::default(),
                swept_day: AtomicI64::new(0),
                uses: Mutex::default(),
            }),
            handle: ActorHandle::default(),
        }
    }

    /// The component that runs it.
    pub fn component(&self) -> Component {
        Component::new("meter", self.clone(), MAILBOX, self.handle.clone())
    }

    /// The counters of an account, to be kept by anyone who counts often.
    pub fn account(&self, id: Uuid) -> Arc<Account> {
        let accounts = &self.shared.accounts;
        if let Some(account) = accounts.read().get(&id) {
            return account.clone();
        }
        let mut accounts = accounts.write();
        accounts
            .entry(id)
            .or_insert_with(|| Arc::new(Account::new(id)))
            .clone()
    }

    /// The counters of a delivery key, to be kept while it delivers.
    pub(crate) fn key(&self, account_id: Uuid, key_id: Uuid) -> Arc<KeyCounts> {
        let mut keys = self.shared.keys.write();
        let counts = keys
            .entry(key_id)
            .or_insert_with(|| Arc::new(KeyCounts::new(account_id, key_id)));
        counts.clone()
    }

    /// Counts one delivery; dropping what comes back without [`Spent::keep`] takes it back.
    ///
    /// Costs no message while the block lasts; else waits for the next one, [`PATIENCE`] at most.
    pub async fn spend(&self, account: &Arc<Account>) -> Result<Spent, Rejection> {
        if let Ok(spent) = self.try_spend(account) {
            return Ok(spent);
        }
        let spent = self
            .wait(account, || match self.try_spend(account) {
                Ok(spent) => Some(Ok(spent)),
                Err(Refused::UsedUp(quota)) => Some(Err(Rejection::UsedUp(quota))),
                Err(Refused::Empty) => None,
            })
            .await;
        spent.unwrap_or(Err(Rejection::Busy))
    }

    /// Returns the account's quota without counting; `None` when the database does not answer.
    pub async fn quota(&self, account: &Arc<Account>) -> Option<Quota> {
        match account.quota(now_ms()) {
            Some(quota) => Some(quota),
            None => self.wait(account, || account.quota(now_ms())).await,
        }
    }

    /// Returns the account's quota as far as it is known without asking the store.
    pub fn published(&self, account_id: Uuid) -> Option<Quota> {
        self.account(account_id).quota(now_ms())
    }

    /// Returns the deliveries that the store counts as used and that this process has not made yet: the rest of its block.
    pub fn held(&self, account_id: Uuid) -> u64 {
        let held = self.account(account_id).period().held();
        held.map_or(0, |(_, rest)| rest)
    }

    /// Writes what was counted and gives every rest back, so that the counts are exact. After the last delivery, and
    /// before the store closes; nothing is spent afterwards.
    pub async fn close(&self) {
        self.flush().await;
        for account in self.all_accounts() {
            // A block that is being taken comes first; none is taken afterwards.
            let Some(turn) = self.wait(&account, || account.take_turn()).await else {
                warn!("the rest of a block counts as used: the database is busy");
                continue;
            };
            if let Err(error) = self.settle(account.id, &account.period()).await {
                warn!(%error, "the rest of a block counts as used");
            }
            turn.keep();
        }
    }

    /// Reads the plan of an account again, whose row was changed by a commit of any node. May be lost: plans are read again from
    /// time to time.
    pub fn account_changed(&self, account_id: Uuid) {
        let is_known = self.shared.accounts.read().contains_key(&account_id);
        if is_known && let Some(keeper) = self.handle.get() {
            let _ = keeper.tell(ReadPlan(account_id)).try_send();
        }
    }

    /// Notes that a key was used.
    pub fn note_use(&self, key_id: Uuid, used_at: i64) {
        let mut uses = self.shared.uses.lock();
        uses.insert(key_id, used_at);
    }

    fn try_spend(&self, account: &Arc<Account>) -> Result<Spent, Refused> {
        let spent = account.spend(now_ms());
        if spent.as_ref().is_ok_and(Spent::is_low) {
            self.nudge(account.id);
        }
        spent
    }

    async fn wait<T>(
        &self,
        account: &Arc<Account>,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let changed = account.changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(value) = ready() {
                return Some(value);
            }
            if Instant::now() >= deadline || self.shared.store.write_failure().is_some() {
                return None;
            }
            self.nudge(account.id);
            let _ = tokio::time::timeout(NUDGE_EVERY, changed).await;
        }
    }

    fn nudge(&self, account_id: Uuid) {
        if let Some(keeper) = self.handle.get() {
            let _ = keeper.tell(Refill(account_id)).try_send();
        }
    }

    /// Takes the next block, or reads plan and month again.
    async fn refill(&self, account: &Arc<Account>) -> Result<(), Error> {
        let before = account.period();
        let (id, caps, now) = (account.id, self.shared.caps.clone(), now_ms());
        let (held, uncounted) = (before.held(), before.take_uncounted());
        let (cap, state) = self
            .shared
            .store
            .write_for(id, move |tx| {
                Box::pin(async move {
                    deliveries::count(tx, id, uncounted, now).await?;
                    let plan = accounts::get(tx, id).await?.plan;
                    let cap = caps.get(&plan).copied().unwrap_or(0);
                    let state = match cap {
                        0 => deliveries::count(tx, id, 0, now).await?,
                        cap => deliveries::take(tx, id, cap, held, now).await?,
                    };
                    Ok((cap, state))
                })
            })
            .await
            .inspect_err(|error| {
                if is_uncounted(error) {
                    before.put_back(uncounted);
                }
            })?;
        if before.is_of(cap, state.month) {
            before.grant(&state);
        } else {
            let unused = self.settle(id, &before).await?;
            let is_same_month = before.month() == Some(state.month);
            let returned = if is_same_month { unused } else { 0 };
            account.begin(Period::new(cap, &state, returned));
        }
        Ok(())
    }

    /// Ends a period: its unused rest goes back, its uncounted deliveries are counted. Returns the rest.
    async fn settle(&self, id: Uuid, period: &Arc<Period>) -> Result<u64, Error> {
        let Some(month) = period.month() else {
            return Ok(0);
        };
        let (unused, uncounted) = (period.close(), period.take_uncounted());
        if unused == 0 && uncounted == 0 {
            return Ok(0);
        }
        let now = now_ms();
        self.shared
            .store
            .write_for(id, move |tx| {
                Box::pin(async move {
                    if uncounted > 0 {
                        deliveries::count(tx, id, uncounted, now).await?;
                    }
                    deliveries::give_back(tx, id, month, unused).await
                })
            })
            .await?;
        Ok(unused)
    }

    /// Writes the deliveries of accounts without a cap since the last time, in one unit of work; does nothing without any.
    async fn settle_uncapped(&self) -> Result<(), Error> {
        let uncounted: Vec<(Uuid, Arc<Period>, u64)> = self
            .all_accounts()
            .into_iter()
            .map(|account| (account.id, account.period()))
            .map(|(id, period)| (id, period.clone(), period.take_uncounted()))
            .filter(|(.., uncounted)| *uncounted > 0)
            .collect();
        if uncounted.is_empty() {
            return Ok(());
        }
        let (mut counts, now) = (uncounted.clone(), now_ms());
        // Units beside each other take rows in one order, so that none waits for one that waits for it.
        counts.sort_unstable_by_key(|(id, ..)| *id);
        let written = self.shared.store.write_beside(move |tx| {
            Box::pin(async move {
                for (id, _, uncounted) in counts {
                    deliveries::count(tx, id, uncounted, now).await?;
                }
                Ok(())
            })
        });
        written.await.inspect_err(|error| {
            for (_, period, uncounted) in uncounted.iter().filter(|_| is_uncounted(error)) {
                period.put_back(*uncounted);
            }
        })?;
        Ok(())
    }

    /// Writes what was counted since the last time; what cannot be written is counted again.
    async fn flush(&self) {
        let accounts: Vec<Arc<Account>> = self.all_accounts();
        let now = now_ms();
        for account in accounts {
            let Some(counted) = account.take_counted(now) else {
                continue;
            };
            let id = account.id;
            let written = self.shared.store.write_beside(move |tx| {
                Box::pin(async move {
                    if counted.uncapped > 0 {
                        deliveries::count(tx, id, counted.uncapped, now).await?;
                    }
                    deliveries::add_to_day(tx, id, counted.day).await
                })
            });
            if let Err(error) = written.await {
                warn!(%error, "deliveries are counted later");
                if is_uncounted(&error) {
                    account.put_back(counted);
                }
            }
        }
        self.flush_keys(now).await;
        self.flush_uses().await;
        self.sweep(now).await;
    }

    /// Writes the deliveries of keys, and forgets the counters of those that were revoked.
    async fn flush_keys(&self, now: i64) {
        let keys: Vec<Arc<KeyCounts>> = {
            let keys = self.shared.keys.read();
            keys.values().cloned().collect()
        };
        let counted: Vec<_> = keys
            .iter()
            .filter_map(|key| Some((key, key.take(now)?)))
            .collect();
        if !counted.is_empty() {
            let mut days: Vec<_> = counted.iter().map(|(_, day)| *day).collect();
            days.sort_unstable_by_key(|day| day.key_id);
            let written = self.shared.store.write_beside(move |tx| {
                Box::pin(async move { usage_history::add_to_key_days(tx, &days).await })
            });
            if let Err(error) = written.await {
                tracing::debug!(%error, "deliveries of keys are counted later");
                for (key, counted) in counted.into_iter().filter(|_| is_uncounted(&error)) {
                    key.counts.put_back(counted.day);
                }
                return;
            }
        }
        drop(keys);
        let mut keys = self.shared.keys.write();
        keys.retain(|_, key| Arc::strong_count(key) > 1 || !key.counts.is_empty());
    }

    /// Drops days beyond the history, once a day.
    async fn sweep(&self, now: i64) {
        let today = deliveries::Day::of(now);
        if self.shared.swept_day.swap(today, Relaxed) == today {
            return;
        }
        let oldest = today - usage_history::KEPT_DAYS + 1;
        let swept = self.shared.store.write_beside(move |tx| {
            Box::pin(async move { usage_history::forget_before(tx, oldest).await })
        });
        if let Err(error) = swept.await {
            tracing::debug!(%error, "old days of the usage are dropped later");
            self.shared.swept_day.store(0, Relaxed);
        }
    }

    async fn flush_uses(&self) {
        let mut uses: Vec<(Uuid, i64)> = {
            let mut uses = self.shared.uses.lock();
            uses.drain().collect()
        };
        if uses.is_empty() {
            return;
        }
        uses.sort_unstable();
        let written = self
            .shared
            .store
            .write_beside(move |tx| Box::pin(async move { delivery_keys::touch(tx, &uses).await }))
            .await;
        if let Err(error) = written {
            tracing::debug!(%error, "the use of delivery keys was not noted");
        }
    }

    fn all_accounts(&self) -> Vec<Arc<Account>> {
        let accounts = self.shared.accounts.read();
        accounts.values().cloned().collect()
    }
}

/// Returns whether what a failed change should have counted is to be counted again. After a commit of unknown outcome it is not:
/// deliveries that are counted twice cost their account what it did not use.
fn is_uncounted(error: &StoreError) -> bool {
    !matches!(error, StoreError::Unknown)
}

/// The actor: takes blocks, one at a time for an account, and writes what was counted.
struct MeterWriter {
    meter: Meter,
    flushes: u64,
    /// The timer of the next flush, aborted with the actor: one that panicked leaves none behind.
    next_flush: AbortOnDropHandle<Result<(), SendError<Flush>>>,
    _settling: AbortOnDropHandle<()>,
}

/// The account's block runs low, or nothing is known of it yet.
#[derive(Debug)]
struct Refill(Uuid);

/// The account's plan may have changed.
#[derive(Debug)]
struct ReadPlan(Uuid);

/// Write the counts.
#[derive(Debug)]
struct Flush;

/// The counts are written; the timer of the next flush can start.
#[derive(Debug)]
struct Flushed;

impl Actor for MeterWriter {
    type Args = Meter;
    type Error = Infallible;

    async fn on_start(meter: Meter, me: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(Self {
            _settling: AbortOnDropHandle::new(tokio::spawn(settle_often(meter.clone()))),
            meter,
            flushes: 0,
            next_flush: after_a_while(&me),
        })
    }
}

fn after_a_while(
    keeper: &ActorRef<MeterWriter>,
) -> AbortOnDropHandle<Result<(), SendError<Flush>>> {
    AbortOnDropHandle::new(keeper.tell(Flush).send_after(FLUSH_EVERY))
}

/// Pauses after each write for at least as long as it took, so that others get the writer. After a failure the next flush
/// comes first, which writes each account alone.
async fn settle_often(meter: Meter) {
    loop {
        let began = Instant::now();
        let pause = match meter.settle_uncapped().await {
            Ok(()) => SETTLE_EVERY.max(began.elapsed()),
            Err(error) => {
                tracing::debug!(%error, "deliveries are counted with the next flush");
                FLUSH_EVERY
            }
        };
        tokio::time::sleep(pause).await;
    }
}

impl MeterWriter {
    /// Takes a block off the loop, at most one at a time for an account.
    fn refill(&self, account: Arc<Account>) {
        let Some(turn) = account.take_turn() else {
            return;
        };
        let meter = self.meter.clone();
        tokio::spawn(async move {
            let outcome = meter.refill(&account).await;
            // First, so that anyone who wakes up to an empty block again finds the turn free.
            drop(turn);
            match outcome {
                Ok(()) => account.notify(),
                // Those who wait ask again, in their own time.
                Err(error) => {
                    warn!(%error, account = %account.id, "no block of deliveries could be taken");
                }
            }
        });
    }
}

impl Message<Refill> for MeterWriter {
    type Reply = ();

    async fn handle(&mut self, Refill(id): Refill, _: &mut Context<Self, ()>) {
        let account = self.meter.account(id);
        if account.wants_refill(now_ms()) {
            self.refill(account);
        }
    }
}

impl Message<ReadPlan> for MeterWriter {
    type Reply = ();

    async fn handle(&mut self, ReadPlan(id): ReadPlan, _: &mut Context<Self, ()>) {
        self.refill(self.meter.account(id));
    }
}

impl Message<Flush> for MeterWriter {
    type Reply = ();

    async fn handle(&mut self, _: Flush, context: &mut Context<Self, ()>) {
        self.flushes += 1;
        for account in self.meter.all_accounts() {
            let every = if account.is_used_up() {
                LOOK_WHEN_USED_UP
            } else {
                LOOK_ALWAYS
            };
            if self.flushes.is_multiple_of(every) && account.is_active() {
                self.refill(account);
            }
        }
        let (meter, me) = (self.meter.clone(), context.actor_ref().clone());
        tokio::spawn(async move {
            meter.flush().await;
            let _ = me.tell(Flushed).await;
        });
    }
}

impl Message<Flushed> for MeterWriter {
    type Reply = ();

    async fn handle(&mut self, _: Flushed, context: &mut Context<Self, ()>) {
        self.next_flush = after_a_while(context.actor_ref());
    }
}
