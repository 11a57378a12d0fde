//! Counts of outcomes of jobs, runs and streams since the start of the process, failures by error code, for metrics.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

/// Counts that owners write and metrics read. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutcomeCounters<C>(Arc<Mutex<C>>);

impl<C: Clone> OutcomeCounters<C> {
    pub(crate) fn now(&self) -> C {
        self.0.lock().clone()
    }

    pub(crate) fn note(&self, change: impl FnOnce(&mut C)) {
        change(&mut self.0.lock());
    }
}

/// Counts a failure under its error code.
pub(crate) fn count_failure(failed: &mut BTreeMap<String, u64>, code: &str) {
    *failed.entry(code.to_owned()).or_default() += 1;
}
