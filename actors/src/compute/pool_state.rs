//! State that the threads of the worker pools publish: processes, kills, failed starts, unexplained deaths in a row, reason
//! why nothing works.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use parking_lot::RwLock;
use sluice_worker::protocol::Layers;

/// Unexplained deaths without a finished task between them from which on the cause is the pool, not its files.
const SUSPICIOUS_DEATHS: u32 = 6;

#[derive(Debug, Default)]
pub(super) struct PoolState {
    /// Processes that are up.
    pub(super) workers: AtomicUsize,
    pub(super) replaced: AtomicU64,
    pub(super) killed: AtomicU64,
    deaths_in_a_row: AtomicU32,
    words: RwLock<FailureReasons>,
}

#[derive(Clone, Debug, Default)]
struct FailureReasons {
    layers: Layers,
    /// Reason why no work is accepted, for good: the kernel will not change while the service runs.
    refused: Option<String>,
    /// Reason why the last start failed, until one succeeds.
    start_failure: Option<String>,
    last_death: String,
}

impl PoolState {
    pub(super) fn started(&self, layers: Layers) {
        self.workers.fetch_add(1, Relaxed);
        self.change(|words| {
            words.layers = layers;
            words.start_failure = None;
        });
    }

    pub(super) fn ended(&self) {
        self.workers.fetch_sub(1, Relaxed);
    }

    pub(super) fn refused(&self, layers: Layers, reason: String) {
        self.change(|words| {
            words.layers = layers;
            words.refused = Some(reason);
        });
    }

    pub(super) fn not_started(&self, reason: String) {
        self.change(|words| words.start_failure = Some(reason));
    }

    pub(super) fn died(&self, reason: &str) {
        self.deaths_in_a_row.fetch_add(1, Relaxed);
        self.change(|words| words.last_death = reason.to_owned());
    }

    pub(super) fn finished(&self) {
        if self.deaths_in_a_row.load(Relaxed) > 0 {
            self.deaths_in_a_row.store(0, Relaxed);
        }
    }

    pub(super) fn layers(&self) -> Layers {
        self.words().layers
    }

    /// Returns why no work is done, or why it keeps failing.
    pub(super) fn failure_reason(&self) -> Option<String> {
        let words = self.words();
        let deaths = self.deaths_in_a_row.load(Relaxed);
        words.refused.or(words.start_failure).or_else(|| {
            (deaths >= SUSPICIOUS_DEATHS).then(|| {
                format!(
                    "the last {deaths} tasks killed their worker: {}",
                    words.last_death
                )
            })
        })
    }

    fn words(&self) -> FailureReasons {
        self.words.read().clone()
    }

    fn change(&self, change: impl FnOnce(&mut FailureReasons)) {
        change(&mut self.words.write());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_deaths_in_a_row_are_a_failure_and_one_success_ends_it() {
        let state = PoolState::default();
        for _ in 1..SUSPICIOUS_DEATHS {
            state.died("signal: 11");
            assert_eq!(state.failure_reason(), None);
        }
        state.died("signal: 6");
        let failure_reason = state.failure_reason().unwrap();
        assert!(failure_reason.ends_with("signal: 6"), "{failure_reason}");
        state.finished();
        assert_eq!(state.failure_reason(), None);
    }

    #[test]
    fn a_failed_start_is_forgotten_with_the_next_and_a_rejection_stays() {
        let state = PoolState::default();
        state.not_started("no such file".into());
        assert_eq!(state.failure_reason().as_deref(), Some("no such file"));
        state.started(Layers::default());
        assert_eq!(state.failure_reason(), None);
        state.refused(Layers::default(), "no landlock".into());
        state.started(Layers::default());
        assert_eq!(state.failure_reason().as_deref(), Some("no landlock"));
    }
}
