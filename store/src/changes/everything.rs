//! Changes of all accounts, for the directories and caches that every node keeps in memory.
//!
//! A follower reads the rows again that a change names, so it does not matter whether one comes twice, late or in another
//! order. It holds its place in a queue of fixed length; when it falls behind, it has lost everything.

use std::{future::pending, time::Duration};

use tokio::{
    sync::broadcast::{self, error::RecvError},
    time::sleep,
};
use uuid::Uuid;

use super::{Action, Change, ChangeLog, Kind};
use crate::Store;

/// Commits, or reads of PostgreSQL's log, that a follower may lag behind.
pub(super) const MOST_BEHIND: usize = 32;
/// Pause between two attempts to have changes recorded.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Changes that were committed, by this process and by others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Everything {
    /// Accounts and their changes. One without an id: any resource of the kind in this account.
    Changes(Vec<(Uuid, Change)>),
    /// Anything may have changed: what is cached must go, what is listed must be read again.
    Lost,
}

impl Everything {
    /// Makes a message of a commit; `None` when nothing was changed.
    pub(super) fn of(changes: &[(Uuid, Change)], lost: &[(Uuid, Kind)]) -> Option<Self> {
        let any_of = |(account_id, kind): &(Uuid, Kind)| {
            let change = Change {
                kind: *kind,
                id: None,
                action: Action::Changed,
            };
            (*account_id, change)
        };
        let mut all = changes.to_vec();
        all.extend(lost.iter().map(any_of));
        (!all.is_empty()).then_some(Self::Changes(all))
    }
}

/// A reader of all changes of rows; dropping it ends the following.
pub struct EverythingFollower {
    store: Store,
    messages: broadcast::Receiver<Everything>,
    /// Counts as a follower of the log until it is dropped.
    _place: Place,
    has_begun: bool,
}

impl EverythingFollower {
    pub(crate) fn new(store: Store) -> Self {
        let log = store.changes().clone();
        Self {
            messages: log.subscribe_to_everything(),
            _place: Place::take(log),
            has_begun: false,
            store,
        }
    }

    /// Waits for what is next; dropping the future and calling again is fine. The first is [`Everything::Lost`]: whatever is read
    /// after it, every later change follows.
    pub async fn next(&mut self) -> Everything {
        if !self.has_begun {
            self.until_recorded().await;
            self.has_begun = true;
            return Everything::Lost;
        }
        match self.messages.recv().await {
            Ok(message) => message,
            Err(RecvError::Lagged(_)) => Everything::Lost,
            // The sender lives in the store.
            Err(RecvError::Closed) => pending().await,
        }
    }

    /// Returns once each commit that is still to come is recorded. PostgreSQL's log always is.
    async fn until_recorded(&self) {
        while !self.store.changes().is_recorded() {
            // SQLite's writer records from the group of this unit on.
            if self.store.notice_foreign_commits().await.is_err() {
                sleep(TRY_AGAIN).await;
            }
        }
    }
}

/// The place of a follower in the log's count.
struct Place(ChangeLog);

impl Place {
    fn take(log: ChangeLog) -> Self {
        log.everything_followed();
        Self(log)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.everything_left();
    }
}
