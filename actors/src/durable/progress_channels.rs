//! Followers of jobs, runs and streams (`max_followers`): publishes progress to callers that wait or follow, which read the
//! row again every 2 s.
//!
//! The rows are the truth, nothing here.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use sluice_store::{
    Error as StoreError, Store,
    changes::{Kind, Progress},
    work::Held,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, timeout, timeout_at},
};
use uuid::Uuid;

use super::{
    elsewhere::{Elsewhere, SharedProgress},
    in_flight::{InFlight, InFlightGuard, RunningTask, TaskShares},
};
use crate::{Error, compute::Follow};

/// Time after which a follower reads the row again, although nothing was published: its owner may be gone.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Rows of other nodes that are read at once when their progress has changed; further ones are read by their own followers.
const MOST_READ: usize = 64;

/// Progress of a row.
pub trait Report: Clone + PartialEq + Send + Sync + 'static {
    /// Kind of the rows in the account's changes.
    const KIND: Kind;

    /// Reads it from the row itself.
    fn look(store: &Store, id: Uuid) -> impl Future<Output = Result<Self, StoreError>> + Send;

    fn has_ended(&self) -> bool;

    /// Returns the finished part in per cent, 100 once a row has ended well; `None` when that is not known.
    fn percent_done(&self) -> Option<u8>;

    /// Returns the place in the queue of the workers, while the row waits there; 1 is next.
    fn queue_place(&self) -> Option<u32>;

    /// Returns whether a row never has this progress after the other, so that it is outdated beside it.
    fn is_before(&self, other: &Self) -> bool;

    /// Adds the shares of running tasks. `before`: the last published progress.
    fn beside(self, shares: TaskShares, before: Option<&Self>) -> Self {
        let _ = (shares, before);
        self
    }
}

/// Followers of rows of one kind, and their channels.
pub(crate) struct Followers<R> {
    store: Store,
    channels: ProgressChannels<R>,
    in_flight: InFlight<R>,
    elsewhere: Elsewhere<R>,
    permits: Arc<Semaphore>,
    /// Message for a follower beyond the bound.
    full: &'static str,
}

impl<R: Report> Followers<R> {
    pub(crate) fn new(store: Store, most: usize, full: &'static str) -> Self {
        Self {
            store,
            channels: ProgressChannels::new(),
            in_flight: InFlight::new(),
            elsewhere: Elsewhere::new(),
            permits: Arc::new(Semaphore::new(most)),
            full,
        }
    }

    /// Publishes to followers of a row of this account. Changes may come in any order: one older than the last is left out.
    pub(crate) fn publish(&self, account_id: Uuid, id: Uuid, report: R) {
        let report = self.in_flight.know(account_id, id, report);
        if let Some(progress) = progress_of(id, &report) {
            self.store.changes().report(account_id, progress);
        }
        self.channels.publish(id, report);
    }

    /// Notes that an owner works on the row until the guard is dropped: its running tasks count from now on.
    pub(crate) fn attend(&self, id: Uuid) -> InFlightGuard<R> {
        self.in_flight.attend(id)
    }

    /// Returns a task of a row, and the receiver of its reports, which publishes them to the row's followers.
    pub(crate) fn task(&self, row: Uuid, task: Uuid) -> (RunningTask<R>, Follow) {
        let (channels, in_flight) = (self.channels.clone(), self.in_flight.clone());
        let changes = self.store.changes().clone();
        let follow = Follow::new(move |report| {
            if let Some((account_id, reported)) = in_flight.hear(row, task, &report) {
                if let Some(progress) = progress_of(row, &reported) {
                    changes.report(account_id, progress);
                }
                channels.publish(row, reported);
            }
        });
        (self.in_flight.task(row, task), follow)
    }

    /// Returns the progress to report of a row that was just read.
    pub(crate) fn seen(&self, id: Uuid, seen: R) -> R {
        seen_with(&self.in_flight, &self.elsewhere, id, seen)
    }

    /// Publishes a report of a row that began again, although it seems to be older.
    pub(crate) fn begin_again(&self, account_id: Uuid, id: Uuid, report: R) {
        if let Some(progress) = progress_of(id, &report) {
            self.store.changes().restart(account_id, progress);
        }
        self.channels.replace(id, report);
    }

    /// Follows a row from its present state on. [`Error::Busy`] when as many as may do so already.
    pub(crate) fn follow(&self, id: Uuid) -> Result<Follower<R>, Error> {
        let permit = self.permits.clone().try_acquire_owned();
        let permit = permit.map_err(|_| Error::Busy(self.full))?;
        Ok(self.follower(id, Some(permit)))
    }

    /// Returns when the row has ended, or at the deadline.
    pub(crate) async fn wait(&self, id: Uuid, deadline: Instant) -> Result<(), Error> {
        let mut follower = self.follower(id, None);
        while let Ok(report) = timeout_at(deadline, follower.next()).await {
            if report?.has_ended() {
                break;
            }
        }
        Ok(())
    }

    fn follower(&self, id: Uuid, permit: Option<OwnedSemaphorePermit>) -> Follower<R> {
        Follower {
            following: self.channels.follow(id),
            in_flight: self.in_flight.clone(),
            elsewhere: self.elsewhere.clone(),
            store: self.store.clone(),
            id,
            last: None,
            _permit: permit,
        }
    }
}

impl<R: Report> SharedProgress for Followers<R> {
    fn kind(&self) -> Kind {
        R::KIND
    }

    fn shares(&self, id: Uuid) -> Option<TaskShares> {
        self.in_flight.shares(id)
    }

    fn note_elsewhere(&self, held: Vec<Held>) -> BoxFuture<'_, ()> {
        let changed = self.elsewhere.replace(held);
        Box::pin(async move {
            for (_, id) in &changed {
                self.look_again(Some(*id));
            }
            if self.store.changes().followers() == 0 {
                return;
            }
            for (account_id, id) in changed.into_iter().take(MOST_READ) {
                // One that cannot be read is read by those who follow it.
                if let Ok(seen) = R::look(&self.store, id).await
                    && let Some(progress) = progress_of(id, &self.seen(id, seen))
                {
                    self.store.changes().report(account_id, progress);
                }
            }
        })
    }

    fn look_again(&self, id: Option<Uuid>) {
        match id {
            Some(id) if self.in_flight.shares(id).is_some() => {}
            Some(id) => self.channels.look_again(id),
            None => self.channels.look_again_at_all(),
        }
    }
}

/// Returns the progress to report of a row that was just read, whichever node works on it.
fn seen_with<R: Report>(in_flight: &InFlight<R>, elsewhere: &Elsewhere<R>, id: Uuid, seen: R) -> R {
    match in_flight.shares(id) {
        Some(_) => in_flight.seen(id, seen),
        None => elsewhere.seen(id, seen),
    }
}

fn progress_of<R: Report>(id: Uuid, report: &R) -> Option<Progress> {
    Some(Progress {
        kind: R::KIND,
        id,
        percent: report.percent_done()?,
        queue_place: report.queue_place(),
    })
}

/// A follower of a row.
pub struct Follower<R: Report> {
    following: Following<R>,
    in_flight: InFlight<R>,
    elsewhere: Elsewhere<R>,
    store: Store,
    id: Uuid,
    last: Option<R>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl<R: Report> Follower<R> {
    /// Returns the present state at first, then the next one that differs. Never resolves again after the end of the row.
    pub async fn next(&mut self) -> Result<R, Error> {
        loop {
            let report = match self.last {
                None => self.look().await?,
                Some(_) => match timeout(LOOK_AGAIN, self.following.next()).await {
                    Ok(Some(report)) => report,
                    Ok(None) | Err(_) => self.look().await?,
                },
            };
            if self.last.as_ref() != Some(&report) {
                self.last = Some(report.clone());
                return Ok(report);
            }
        }
    }

    async fn look(&self) -> Result<R, Error> {
        let seen = R::look(&self.store, self.id).await?;
        Ok(seen_with(&self.in_flight, &self.elsewhere, self.id, seen))
    }
}

/// The channels of the followers of one row.
type Channel<R> = watch::Sender<Option<R>>;

/// The rows that someone follows.
#[derive(Clone, Debug)]
struct ProgressChannels<R>(Arc<Mutex<HashMap<Uuid, Channel<R>>>>);

impl<R: Report> ProgressChannels<R> {
    fn new() -> Self {
        Self(Arc::default())
    }

    /// Follows progress from now on; `None` until some is published.
    fn follow(&self, id: Uuid) -> Following<R> {
        let published = self
            .0
            .lock()
            .entry(id)
            .or_insert_with(|| watch::Sender::new(None))
            .subscribe();
        Following {
            channels: self.clone(),
            id,
            published,
        }
    }

    fn publish(&self, id: Uuid, report: R) {
        if let Some(followers) = self.0.lock().get(&id) {
            followers.send_if_modified(|known| {
                let is_news = known.as_ref().is_none_or(|known| !report.is_before(known));
                if is_news {
                    *known = Some(report);
                }
                is_news
            });
        }
    }

    /// Has the followers of a row read it again.
    fn look_again(&self, id: Uuid) {
        if let Some(followers) = self.0.lock().get(&id) {
            followers.send_replace(None);
        }
    }

    fn look_again_at_all(&self) {
        for followers in self.0.lock().values() {
            followers.send_replace(None);
        }
    }

    fn replace(&self, id: Uuid, report: R) {
        if let Some(followers) = self.0.lock().get(&id) {
            followers.send_replace(Some(report));
        }
    }
}

/// A follower of a row; the row's channel is dropped with its last one.
#[derive(Debug)]
struct Following<R> {
    channels: ProgressChannels<R>,
    id: Uuid,
    published: watch::Receiver<Option<R>>,
}

impl<R: Clone> Following<R> {
    /// Waits for the next report that was not seen yet.
    async fn next(&mut self) -> Option<R> {
        let _ = self.published.changed().await;
        self.published.borrow_and_update().clone()
    }
}

impl<R> Drop for Following<R> {
    fn drop(&mut self) {
        let mut rows = self.channels.0.lock();
        if rows
            .get(&self.id)
            .is_some_and(|followers| followers.receiver_count() <= 1)
        {
            rows.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps done, and whether that is all.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Steps(u32, bool);

    impl Report for Steps {
        const KIND: Kind = Kind::Job;

        async fn look(_: &Store, _: Uuid) -> Result<Self, StoreError> {
            Err(StoreError::NotFound("row"))
        }

        fn has_ended(&self) -> bool {
            self.1
        }

        fn percent_done(&self) -> Option<u8> {
            None
        }

        fn queue_place(&self) -> Option<u32> {
            None
        }

        fn is_before(&self, other: &Self) -> bool {
            (self.1, self.0) < (other.1, other.0)
        }
    }

    #[tokio::test]
    async fn a_row_leaves_the_board_with_its_last_follower() {
        let channels = ProgressChannels::<Steps>::new();
        let id = Uuid::now_v7();
        let (one, two) = (channels.follow(id), channels.follow(id));
        drop(one);
        assert_eq!(channels.0.lock().len(), 1);
        drop(two);
        assert!(channels.0.lock().is_empty());
    }

    #[tokio::test]
    async fn what_is_reported_late_does_not_undo_the_end_but_a_new_beginning_does() {
        let channels = ProgressChannels::new();
        let id = Uuid::now_v7();
        let mut follower = channels.follow(id);
        channels.publish(id, Steps(3, true));
        channels.publish(id, Steps(2, false));
        assert_eq!(follower.next().await, Some(Steps(3, true)));
        channels.replace(id, Steps(1, false));
        assert_eq!(follower.next().await, Some(Steps(1, false)));
        channels.publish(id, Steps(2, false));
        assert_eq!(follower.next().await, Some(Steps(2, false)));
    }
}
