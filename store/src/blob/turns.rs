//! Turns of uploads to the object store, and of downloads (`store.objects_at_once`): how long they are waited for
//! (`store.objects_timeout`), and how many downloads may wait.
//!
//! A turn lasts for a whole request. While the object store is away that is `store.objects_timeout`, so that without an end to
//! the waits the last of many would come to nothing after minutes. On a slow line it is minutes too, and nothing is wrong. So:
//!
//! - A caller that has read nothing yet waits for `store.objects_timeout` ([`Turns::turn_soon`], `flights::landed_soon`): a client
//!   is answered 503 with `Retry-After`, a job waits and is tried again.
//! - Uploads, and downloads that continue what was begun, wait while requests of others succeed or are under way
//!   ([`Turns::turn`]), and end when the object store is away. The error is the same one as that of a request, so that jobs,
//!   video streams and recordings try again without a failure that counts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};

use crate::{Error, StoreSettings};

/// Requests that may wait, for each turn, before work that begins is rejected.
const WAITING_PER_TURN: usize = 32;

/// Turns of requests in one direction, in the order in which they were asked for.
#[derive(Debug)]
pub(super) struct Turns {
    /// Name of a request, for messages.
    request: &'static str,
    permits: Arc<Semaphore>,
    at_once: usize,
    patience: Duration,
    waiting: AtomicUsize,
    outcomes: Mutex<Outcomes>,
    /// Wakes those who wait at each failure.
    failed: Notify,
}

/// Counts of requests that have ended.
#[derive(Debug, Default)]
struct Outcomes {
    failed: u64,
    /// Value of `failed` when a request succeeded last.
    failed_before_success: u64,
}

impl Outcomes {
    /// Returns how many requests failed since there were `before` failures and since the last success.
    fn failed_in_a_row(&self, before: u64) -> u64 {
        self.failed - before.max(self.failed_before_success)
    }
}

impl Turns {
    pub(super) fn new(request: &'static str, settings: &StoreSettings) -> Self {
        let at_once = settings.objects_at_once;
        Self {
            request,
            permits: Arc::new(Semaphore::new(at_once)),
            at_once,
            patience: settings.objects_timeout,
            waiting: AtomicUsize::new(0),
            outcomes: Mutex::default(),
            failed: Notify::new(),
        }
    }

    /// Waits for a turn for as long as the object store can be used, however slow the line; the bytes of a piece are in memory
    /// only while the turn lasts.
    ///
    /// `Error::Objects` after `store.objects_timeout` at the earliest, once as many requests as there are turns have failed
    /// during the wait and none has succeeded since the first of them.
    pub(super) async fn turn(&self) -> Result<OwnedSemaphorePermit, Error> {
        let _waiting = Waiting::of(self);
        self.turn_unless_away().await
    }

    /// Waits for a turn as [`Turns::turn`] does, for work that begins. `Error::Objects` at once when too many requests wait.
    pub(super) async fn first_turn(&self) -> Result<OwnedSemaphorePermit, Error> {
        let waiting = Waiting::of(self);
        let most = self.at_once * WAITING_PER_TURN;
        if waiting.others >= most {
            return Err(self.rejected(format!("{most} wait for a turn")));
        }
        self.turn_unless_away().await
    }

    /// Waits for a turn for `store.objects_timeout`, then `Error::Objects`.
    pub(super) async fn turn_soon(&self) -> Result<OwnedSemaphorePermit, Error> {
        let _waiting = Waiting::of(self);
        let turn = timeout(self.patience, self.permit()).await;
        turn.map_err(|_| self.late())
    }

    /// Returns the longest wait of a caller that has read nothing yet.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Logs that a wait took too long; returns the error.
    pub(super) fn late(&self) -> Error {
        let patience = self.patience;
        self.rejected(format!(
            "no turn was free within {patience:?} (store.objects_timeout)"
        ))
    }

    /// Notes that a request which had a turn was answered.
    pub(super) fn note_success(&self) {
        let mut outcomes = self.outcomes.lock();
        outcomes.failed_before_success = outcomes.failed;
    }

    /// Notes that a request which had a turn failed.
    pub(super) fn note_failure(&self) {
        self.outcomes.lock().failed += 1;
        self.failed.notify_waiters();
    }

    async fn permit(&self) -> OwnedSemaphorePermit {
        let permit = self.permits.clone().acquire_owned().await;
        permit.expect("the semaphore is never closed")
    }

    async fn turn_unless_away(&self) -> Result<OwnedSemaphorePermit, Error> {
        tokio::select! {
            biased;
            turn = self.permit() => Ok(turn),
            () = self.outage() => Err(self.late()),
        }
    }

    /// Waits until the object store counts as away for one who waits from now on.
    async fn outage(&self) {
        let before = self.outcomes.lock().failed;
        sleep(self.patience).await;
        loop {
            // Made before the look, so that no failure is missed between the two.
            let failed = self.failed.notified();
            let in_a_row = self.outcomes.lock().failed_in_a_row(before);
            if in_a_row >= self.at_once as u64 {
                return;
            }
            failed.await;
        }
    }

    fn rejected(&self, reason: String) -> Error {
        let request = self.request;
        tracing::warn!(request, reason, "no turn for a request to the object store");
        Error::Objects(format!(
            "the object store is busy: no {request} was begun, {reason}; store.objects_at_once of them run at a time"
        ))
    }
}

/// One that waits for a turn, among those that are counted.
struct Waiting<'a> {
    waiting: &'a AtomicUsize,
    /// Those that waited before.
    others: usize,
}

impl<'a> Waiting<'a> {
    fn of(turns: &'a Turns) -> Self {
        let waiting = &turns.waiting;
        Self {
            waiting,
            others: waiting.fetch_add(1, Relaxed),
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::{FutureExt as _, future::join_all};

    use super::*;

    /// Longer than the waits of [`turns`].
    const LONG: Duration = Duration::from_millis(300);
    const AT_ONCE: usize = 2;

    fn turns() -> Turns {
        let settings = StoreSettings {
            objects_at_once: AT_ONCE,
            objects_timeout: Duration::from_millis(50),
            ..StoreSettings::default()
        };
        Turns::new("download", &settings)
    }

    async fn all_of(turns: &Turns) -> Vec<OwnedSemaphorePermit> {
        let all = join_all([(); AT_ONCE].map(|()| turns.turn())).await;
        all.into_iter().map(Result::unwrap).collect()
    }

    #[track_caller]
    fn assert_away(turn: Result<OwnedSemaphorePermit, Error>) {
        let error = turn.map(drop).unwrap_err();
        assert!(
            matches!(error, Error::Objects(_)) && error.is_retryable(),
            "{error:?}"
        );
    }

    #[tokio::test]
    async fn a_wait_ends_when_the_object_store_is_away_and_not_while_it_is_slow() {
        let turns = turns();
        turns.note_failure();
        turns.note_failure();
        let held = all_of(&turns).await;
        let mut waiting = pin!(turns.turn());
        assert!(timeout(LONG, &mut waiting).await.is_err(), "a slow line");
        turns.note_failure();
        assert!(timeout(LONG, &mut waiting).await.is_err(), "one of two");
        turns.note_success();
        turns.note_failure();
        assert!(timeout(LONG, &mut waiting).await.is_err(), "others succeed");
        turns.note_failure();
        assert_away(timeout(LONG, waiting).await.unwrap());

        let waiting = turns.turn();
        drop(held);
        drop(waiting.await.unwrap());
    }

    #[tokio::test]
    async fn a_caller_that_has_read_nothing_waits_for_a_bounded_time() {
        let turns = turns();
        let held = all_of(&turns).await;
        assert_away(timeout(LONG * 30, turns.turn_soon()).await.unwrap());
        drop(held);
        drop(turns.turn_soon().await.unwrap());
    }

    #[tokio::test]
    async fn a_bounded_number_waits() {
        let turns = turns();
        let held = all_of(&turns).await;
        let most = AT_ONCE * WAITING_PER_TURN;
        let mut waiting: Vec<_> = (0..most).map(|_| Box::pin(turns.first_turn())).collect();
        for one in &mut waiting {
            assert!(one.now_or_never().is_none());
        }
        assert_away(turns.first_turn().now_or_never().unwrap());
        // What has begun continues.
        assert!(turns.turn().now_or_never().is_none());
        waiting.truncate(most - 1);
        assert!(turns.first_turn().now_or_never().is_none());
        drop(held);
        for one in waiting {
            drop(one.await.unwrap());
        }
    }
}
