//! Change log: what the writer and actors append for followers of `GET /api/changes`, one part for each account that
//! has any.
//!
//! An append takes a lock for a few lines and wakes those who wait; it never waits for a reader. Without followers of its
//! account a change costs one look into a map. Followers of everything have a queue of their own, which is made for the first.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};
use uuid::Uuid;

use super::{
    Batch, Change, Kind, Progress,
    account_log::AccountLog,
    everything::{Everything, MOST_BEHIND},
};

/// The log. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ChangeLog(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Accounts that are followed.
    accounts: Mutex<HashMap<Uuid, Followed>>,
    followers: AtomicUsize,
    everything: OnceLock<broadcast::Sender<Everything>>,
    everything_followers: AtomicUsize,
    last_left_at: Mutex<Option<Instant>>,
    /// True while the writer's connection records changes of rows.
    is_recorded: AtomicBool,
}

#[derive(Debug)]
struct Followed {
    followers: usize,
    account: Arc<Account>,
}

#[derive(Debug)]
struct Account {
    log: Mutex<AccountLog>,
    /// The number of the newest entry.
    newest: watch::Sender<u64>,
}

impl ChangeLog {
    /// Appends what a commit has changed, and the kinds of which it has changed too much.
    pub(crate) fn committed(&self, changes: Vec<(Uuid, Change)>, lost: Vec<(Uuid, Kind)>) {
        if let Some(everything) = self.everything()
            && let Some(message) = Everything::of(&changes, &lost)
        {
            let _ = everything.send(message);
        }
        self.append(changes);
        self.lose(lost);
    }

    /// Appends changes in their order.
    pub fn append(&self, changes: impl IntoIterator<Item = (Uuid, Change)>) {
        self.note(changes, |log, change| {
            log.push(change);
            true
        });
    }

    /// Appends a change of state that has no row.
    pub fn moved(&self, account_id: Uuid, kind: Kind, id: Uuid) {
        self.append([(account_id, Change::of_state(kind, id))]);
    }

    /// Replaces the progress of a row.
    pub fn report(&self, account_id: Uuid, progress: Progress) {
        self.note([(account_id, progress)], AccountLog::report);
    }

    /// Replaces the progress of a row that begins again.
    pub fn restart(&self, account_id: Uuid, progress: Progress) {
        self.note([(account_id, progress)], AccountLog::restart);
    }

    /// Notes kinds of accounts of which not every change is known.
    pub fn lose(&self, kinds: impl IntoIterator<Item = (Uuid, Kind)>) {
        self.note(kinds, |log, kind| {
            log.lose(kind);
            true
        });
    }

    /// Notes a change for all accounts.
    pub fn append_to_all(&self, change: Change) {
        let accounts: Vec<Uuid> = self.0.accounts.lock().keys().copied().collect();
        self.append(accounts.into_iter().map(|account_id| (account_id, change)));
    }

    /// Notes that changes of any kind of all accounts may be unknown.
    pub(crate) fn lose_everything(&self) {
        if let Some(everything) = self.everything() {
            let _ = everything.send(Everything::Lost);
        }
        let accounts: Vec<Uuid> = self.0.accounts.lock().keys().copied().collect();
        self.lose(
            accounts
                .into_iter()
                .flat_map(|account_id| Kind::ALL.map(|kind| (account_id, kind))),
        );
    }

    fn note<T>(
        &self,
        notes: impl IntoIterator<Item = (Uuid, T)>,
        mut add: impl FnMut(&mut AccountLog, T) -> bool,
    ) {
        let mut touched: Vec<Arc<Account>> = Vec::new();
        let accounts = self.0.accounts.lock();
        for (account_id, note) in notes {
            let Some(followed) = accounts.get(&account_id) else {
                continue;
            };
            let account = &followed.account;
            if add(&mut account.log.lock(), note)
                && !touched.iter().any(|it| Arc::ptr_eq(it, account))
            {
                touched.push(account.clone());
            }
        }
        drop(accounts);
        for account in touched {
            let newest = account.log.lock().newest();
            // Two appends may come here in the other order.
            account
                .newest
                .send_if_modified(|known| std::mem::replace(known, newest.max(*known)) < newest);
        }
    }

    /// Follows an account from now on.
    pub fn follow(&self, account_id: Uuid) -> Follower {
        let mut accounts = self.0.accounts.lock();
        let followed = accounts.entry(account_id).or_insert_with(|| Followed {
            followers: 0,
            account: Arc::new(Account {
                log: Mutex::default(),
                newest: watch::Sender::new(0),
            }),
        });
        followed.followers += 1;
        self.0.followers.fetch_add(1, SeqCst);
        let account = followed.account.clone();
        let seen = account.log.lock().newest();
        Follower {
            seen,
            newest: account.newest.subscribe(),
            account,
            account_id,
            log: self.clone(),
        }
    }

    /// Returns the number of followers of accounts.
    pub fn followers(&self) -> usize {
        self.0.followers.load(SeqCst)
    }

    /// Returns whether changes of rows are to be recorded.
    pub(crate) fn is_followed(&self) -> bool {
        self.followers() > 0 || self.0.everything_followers.load(SeqCst) > 0
    }

    /// Returns the queue of followers of everything; `None` while there are none.
    fn everything(&self) -> Option<&broadcast::Sender<Everything>> {
        let is_followed = self.0.everything_followers.load(SeqCst) > 0;
        self.0.everything.get().filter(|_| is_followed)
    }

    pub(super) fn subscribe_to_everything(&self) -> broadcast::Receiver<Everything> {
        let make = || broadcast::channel(MOST_BEHIND).0;
        self.0.everything.get_or_init(make).subscribe()
    }

    pub(super) fn everything_followed(&self) {
        self.0.everything_followers.fetch_add(1, SeqCst);
    }

    pub(super) fn everything_left(&self) {
        *self.0.last_left_at.lock() = Some(Instant::now());
        self.0.everything_followers.fetch_sub(1, SeqCst);
    }

    /// Returns whether changes of rows are recorded for the present followers.
    pub(crate) fn is_recorded(&self) -> bool {
        self.0.is_recorded.load(SeqCst)
    }

    pub(crate) fn set_recorded(&self, is_recorded: bool) {
        self.0.is_recorded.store(is_recorded, SeqCst);
    }

    /// Returns whether there has been no follower for this long.
    pub(crate) fn is_idle_for(&self, time: Duration) -> bool {
        let last_left_at = *self.0.last_left_at.lock();
        !self.is_followed() && last_left_at.is_none_or(|at| at.elapsed() >= time)
    }

    fn leave(&self, account_id: Uuid) {
        let mut accounts = self.0.accounts.lock();
        if let Entry::Occupied(mut followed) = accounts.entry(account_id) {
            followed.get_mut().followers -= 1;
            if followed.get().followers == 0 {
                followed.remove();
            }
        }
        *self.0.last_left_at.lock() = Some(Instant::now());
        self.0.followers.fetch_sub(1, SeqCst);
    }
}

/// A reader of an account's changes, which holds nothing of them; dropping it ends the following.
#[derive(Debug)]
pub struct Follower {
    log: ChangeLog,
    account_id: Uuid,
    account: Arc<Account>,
    newest: watch::Receiver<u64>,
    /// The number up to which it has taken everything.
    seen: u64,
}

impl Follower {
    /// Returns when there is something to take; dropping the future and calling again is fine.
    pub async fn changed(&mut self) {
        // The sender lives in `account`.
        let _ = self.newest.wait_for(|newest| *newest > self.seen).await;
    }

    /// Takes what happened since the last time.
    pub fn take(&mut self) -> Batch {
        let log = self.account.log.lock();
        let batch = log.after(self.seen);
        self.seen = log.newest();
        batch
    }

    /// The number of the newest change that was taken.
    pub fn seen(&self) -> u64 {
        self.seen
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.log.leave(self.account_id);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn followers_get_what_their_account_changes_from_then_on() {
        let log = ChangeLog::default();
        let (account, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let change = Change::of_state(Kind::LiveInput, Uuid::from_u128(3));
        log.append([(account, change)]);
        let (mut one, mut stranger) = (log.follow(account), log.follow(other));
        assert_eq!(one.changed().now_or_never(), None);
        log.append([(account, change), (account, change)]);
        let mut late = log.follow(account);
        one.changed().await;
        assert_eq!(one.take().changes, [change]);
        assert_eq!(one.changed().now_or_never(), None);
        for waiting in [&mut stranger, &mut late] {
            assert_eq!(waiting.changed().now_or_never(), None);
            assert!(waiting.take().is_empty());
        }
        log.lose_everything();
        for lost in [&mut one, &mut stranger, &mut late] {
            lost.changed().await;
            assert_eq!(lost.take().lost, Kind::ALL);
        }
    }

    #[tokio::test]
    async fn an_account_leaves_with_its_last_follower() {
        let log = ChangeLog::default();
        assert!(log.is_idle_for(Duration::MAX));
        let followers = [1, 1, 2].map(|id| log.follow(Uuid::from_u128(id)));
        assert_eq!((log.followers(), log.0.accounts.lock().len()), (3, 2));
        drop(followers);
        assert_eq!((log.followers(), log.0.accounts.lock().len()), (0, 0));
        assert!(log.is_idle_for(Duration::ZERO) && !log.is_idle_for(Duration::from_secs(60)));
    }
}
