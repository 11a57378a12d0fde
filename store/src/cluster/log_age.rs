//! Time since this process last read PostgreSQL's log of changes: a node that cannot read it misses what others change, even while
//! it renews its lease.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// Time of the last read, noted by the follower of the log. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogAge(Arc<Mutex<Option<Instant>>>);

impl LogAge {
    /// Notes a read that succeeded, by the time at which it began.
    pub(crate) fn note_read(&self, began_at: Instant) {
        *self.0.lock() = Some(began_at);
    }

    /// Returns the time since the last read began; `None` before the first one.
    pub(crate) fn get(&self) -> Option<Duration> {
        self.0.lock().map(|began_at| began_at.elapsed())
    }
}
