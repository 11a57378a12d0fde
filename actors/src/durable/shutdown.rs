//! The time in which rows are worked on: it ends when the service stops, and is over when the last of them has been put down.

use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

/// Rows are taken up until it ends.
#[derive(Debug, Default)]
pub(crate) struct ShutdownTracker {
    end: CancellationToken,
    at_work: TaskTracker,
}

/// An owner works on a row until this is dropped: the row has ended or was given back.
#[derive(Debug)]
pub(crate) struct WorkGuard {
    _token: TaskTrackerToken,
}

impl ShutdownTracker {
    pub(crate) fn begin_work(&self) -> WorkGuard {
        WorkGuard {
            _token: self.at_work.token(),
        }
    }

    /// No row is taken up any more.
    pub(crate) fn end(&self) {
        self.end.cancel();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_cancelled()
    }

    /// Returns when the shutdown ends.
    pub(crate) async fn ended(&self) {
        self.end.cancelled().await;
    }

    /// Returns when no one works on a row any more, after [`Self::end`].
    pub(crate) async fn all_left(&self) {
        self.at_work.close();
        self.at_work.wait().await;
    }
}
