//! Work that blocks a thread and is done once at a time: callers that come meanwhile wait for the same result.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{sync::watch, time::timeout};

/// The work and its last result.
pub(crate) struct SingleFlight<T> {
    flight: Mutex<Option<Flight<T>>>,
    /// The last result, also while the work is done again.
    latest: Arc<Mutex<Option<T>>>,
}

/// Work that was begun, and may have ended.
struct Flight<T> {
    begun: Instant,
    result: watch::Receiver<Option<T>>,
}

impl<T> Default for SingleFlight<T> {
    fn default() -> Self {
        Self {
            flight: Mutex::new(None),
            latest: Arc::default(),
        }
    }
}

impl<T: Clone + Send + Sync + 'static> SingleFlight<T> {
    /// Returns a result of work that was begun at most `keep` ago, or is still being done; else begins it. `None` when there is
    /// none after `patience`, or the work panicked: it continues, and a later call may find its result.
    pub(crate) async fn get(
        &self,
        keep: Duration,
        patience: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let mut result = self.join(keep, work);
        let found = timeout(patience, result.wait_for(Option::is_some)).await;
        found.ok()?.ok()?.clone()
    }

    /// Returns the last result, whatever its age.
    pub(crate) fn latest(&self) -> Option<T> {
        self.latest.lock().clone()
    }

    fn join(
        &self,
        keep: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> watch::Receiver<Option<T>> {
        let mut flight = self.flight.lock();
        if let Some(known) = &*flight {
            let is_done = known.result.borrow().is_some();
            // Work that panicked has dropped its end without a result.
            let is_lost = !is_done && known.result.has_changed().is_err();
            if !is_lost && (!is_done || known.begun.elapsed() < keep) {
                return known.result.clone();
            }
        }
        let (ended, result) = watch::channel(None);
        let latest = self.latest.clone();
        *flight = Some(Flight {
            begun: Instant::now(),
            result: result.clone(),
        });
        tokio::task::spawn_blocking(move || {
            let found = work();
            *latest.lock() = Some(found.clone());
            // All who waited may have left.
            let _ = ended.send(Some(found));
        });
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        atomic::{AtomicU32, Ordering::SeqCst},
        mpsc,
    };

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn callers_at_the_same_time_share_one_run() {
        let flight = SingleFlight::default();
        let runs = Arc::new(AtomicU32::new(0));
        let (release, released) = mpsc::channel::<()>();
        let count = |runs: &Arc<AtomicU32>| {
            let runs = runs.clone();
            move || runs.fetch_add(1, SeqCst) + 1
        };
        let counted = count(&runs);
        let slow = move || {
            let _ = released.recv();
            counted()
        };
        assert_eq!(
            flight.get(LONG, Duration::ZERO, slow).await,
            None,
            "it is not done yet"
        );
        assert_eq!(flight.latest(), None);
        let second = flight.get(Duration::ZERO, LONG, count(&runs));
        let let_go = async { release.send(()).unwrap() };
        assert_eq!(tokio::join!(second, let_go).0, Some(1));
        assert_eq!(flight.get(LONG, LONG, count(&runs)).await, Some(1), "kept");
        assert_eq!(
            flight.get(Duration::ZERO, LONG, count(&runs)).await,
            Some(2)
        );
        assert_eq!((flight.latest(), runs.load(SeqCst)), (Some(2), 2));
    }

    #[tokio::test]
    async fn a_run_that_panicked_is_begun_again() {
        let flight = SingleFlight::<u8>::default();
        assert_eq!(flight.get(LONG, LONG, || panic!("asked for")).await, None);
        assert_eq!(flight.get(LONG, LONG, || 7).await, Some(7));
    }
}
