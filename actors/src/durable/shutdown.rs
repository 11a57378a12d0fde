//! Shutdown of one kind of durable work: rows are claimed until it begins, and it is complete when every owner has ended its
//! row or given it back.

use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

/// Rows are claimed until [`Self::begin`].
#[derive(Debug, Default)]
pub(crate) struct ShutdownTracker {
    begun: CancellationToken,
    at_work: TaskTracker,
}

/// Held by the owner of a row until the row has ended or was given back; [`ShutdownTracker::all_left`] waits for it.
#[derive(Debug)]
pub(crate) struct WorkGuard {
    begun: CancellationToken,
    _token: TaskTrackerToken,
}

impl WorkGuard {
    /// True once the owner has to give its row back.
    pub(crate) fn is_draining(&self) -> bool {
        self.begun.is_cancelled()
    }

    /// Returns when the owner has to give its row back.
    pub(crate) async fn drained(&self) {
        self.begun.cancelled().await;
    }
}

impl ShutdownTracker {
    pub(crate) fn guard(&self) -> WorkGuard {
        WorkGuard {
            begun: self.begun.clone(),
            _token: self.at_work.token(),
        }
    }

    /// Ends the claiming of rows.
    pub(crate) fn begin(&self) {
        self.begun.cancel();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    /// Returns when [`Self::begin`] was called.
    pub(crate) async fn begun(&self) {
        self.begun.cancelled().await;
    }

    /// Returns when no owner works on a row any more, after [`Self::begin`].
    pub(crate) async fn all_left(&self) {
        self.at_work.close();
        self.at_work.wait().await;
    }
}
