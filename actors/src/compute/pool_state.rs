//! State that the threads of the worker pools publish: processes, kills, failed starts, unexplained deaths (the last one, and
//! those in a row), reason why nothing works.

use std::{
    collections::BTreeSet,
    fs,
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::Instant,
};

use parking_lot::{Mutex, RwLock};
use sluice_worker::protocol::Layers;

use super::status::WorkerDeath;

/// Unexplained deaths without a finished task between them from which on the cause is the pool, not its files.
const SUSPICIOUS_DEATHS: u32 = 6;

#[derive(Debug, Default)]
pub(super) struct PoolState {
    /// Processes that are up.
    pub(super) workers: AtomicUsize,
    pub(super) replaced: AtomicU64,
    pub(super) killed: AtomicU64,
    /// Processes that ended without an explanation.
    died: AtomicU64,
    deaths_in_a_row: AtomicU32,
    /// Process ids of the workers that are up, to notice one that ends without a task.
    up: Mutex<BTreeSet<u32>>,
    words: RwLock<FailureReasons>,
}

#[derive(Clone, Debug, Default)]
struct FailureReasons {
    layers: Layers,
    /// Reason why no work is accepted, for good: the kernel will not change while the service runs.
    refused: Option<String>,
    /// Reason why the last start failed, until one succeeds.
    start_failure: Option<String>,
    last_death: Option<WorkerDeath>,
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
        self.note_death(reason);
    }

    /// Notes that a process ended while it had no task, which says nothing about files.
    pub(super) fn died_idle(&self) {
        self.note_death("it ended while it had no task");
    }

    fn note_death(&self, reason: &str) {
        self.died.fetch_add(1, Relaxed);
        let death = WorkerDeath {
            at: Instant::now(),
            reason: reason.to_owned(),
        };
        self.change(|words| words.last_death = Some(death));
    }

    pub(super) fn deaths(&self) -> u64 {
        self.died.load(Relaxed)
    }

    pub(super) fn last_death(&self) -> Option<WorkerDeath> {
        self.words.read().last_death.clone()
    }

    /// Notes that a process is ready for tasks.
    pub(super) fn note_up(&self, process: u32) {
        self.up.lock().insert(process);
    }

    /// Notes that a process is not waited for any more.
    pub(super) fn note_gone(&self, process: u32) {
        self.up.lock().remove(&process);
    }

    /// Returns whether a process has ended; a thread without a task notices that at its next message only.
    pub(super) fn has_dead(&self) -> bool {
        self.up.lock().iter().any(|process| has_ended(*process))
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
                    words
                        .last_death
                        .map_or_else(String::new, |death| death.reason)
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

/// Returns whether a child of this process has ended: it is there as a zombie until it is waited for (proc_pid_stat(5)).
fn has_ended(process: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else {
        return true;
    };
    // The name before the state may hold parentheses and blanks.
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, Some('Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_killed_is_noticed_before_it_is_waited_for() {
        let state = PoolState::default();
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        state.note_up(child.id());
        assert!(!state.has_dead());
        child.kill().unwrap();
        // The kernel makes the zombie on its own time.
        while !state.has_dead() {
            std::thread::yield_now();
        }
        state.note_gone(child.id());
        assert!(!state.has_dead());
        child.wait().unwrap();
        state.died_idle();
        assert_eq!(state.deaths(), 1);
        assert!(state.last_death().is_some());
        assert_eq!(state.failure_reason(), None, "no file is to blame");
    }

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
