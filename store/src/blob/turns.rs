//! Turns of uploads to the object store, and of downloads (`store.objects_at_once`), and how long they are waited for.
//!
//! A turn lasts for a whole request. While the object store is away that is `store.objects_timeout`, so that without an end to
//! the waits the last of many would come to nothing after minutes. On a slow line it is minutes too, and nothing is wrong. So
//! all wait while requests of others succeed or are under way, and none while the object store is away
//! ([`Turns::turn`]). The error is that of a request: a client is answered 503 with `Retry-After`, and jobs, video streams and
//! recordings try again without a failure that counts.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::sleep,
};

use crate::{Error, StoreSettings};

/// Turns of requests in one direction, in the order in which they were asked for.
#[derive(Debug)]
pub(super) struct Turns {
    /// Name of a request, for messages.
    request: &'static str,
    permits: Arc<Semaphore>,
    at_once: usize,
    patience: Duration,
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
        tokio::select! {
            biased;
            turn = self.permit() => Ok(turn),
            () = self.outage() => Err(self.late()),
        }
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

    /// Logs that the object store is away for one who waits; returns the error.
    fn late(&self) -> Error {
        let (request, patience) = (self.request, self.patience);
        tracing::debug!(request, "no turn for a request to the object store");
        Error::Objects(format!(
            "the object store does not answer: no {request} was begun within {patience:?} (store.objects_timeout), and those under way failed"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::future::join_all;
    use tokio::time::timeout;

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
}
