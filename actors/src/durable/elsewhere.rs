//! Progress of rows that other nodes of a cluster work on: the shares of their tasks, which their nodes write down each moment.
//!
//! A node that is alone has none of this.

use std::{collections::HashMap, sync::Arc};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use sluice_store::{
    changes::Kind,
    work::{Held, TaskProgress},
};
use uuid::Uuid;

use super::{in_flight::TaskShares, progress_channels::Report};

/// Progress of rows of one kind between nodes, as their registry exchanges it.
pub(crate) trait SharedProgress: Send + Sync {
    /// Kind of the rows in changes.
    fn kind(&self) -> Kind;

    /// Returns the shares of the running tasks of a row; `None` for one that this node does not work on.
    fn shares(&self, id: Uuid) -> Option<TaskShares>;

    /// Notes the rows that other nodes hold, in place of those of before, and publishes what has changed.
    fn note_elsewhere(&self, held: Vec<Held>) -> BoxFuture<'_, ()>;

    /// Has the followers of a row read it again, unless this node works on it; without an id those of every row.
    fn look_again(&self, id: Option<Uuid>);
}

/// Rows that other nodes work on. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Elsewhere<R>(Arc<Mutex<HashMap<Uuid, Row<R>>>>);

#[derive(Debug)]
struct Row<R> {
    fence: i64,
    shares: TaskShares,
    /// Last report, below which progress does not fall.
    reported: Option<R>,
}

impl<R: Report> Elsewhere<R> {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    /// Replaces the rows; returns those whose shares have changed, with their accounts.
    pub(super) fn replace(&self, held: Vec<Held>) -> Vec<(Uuid, Uuid)> {
        let mut rows = self.0.lock();
        let mut known = std::mem::take(&mut *rows);
        let mut changed = Vec::new();
        for one in held {
            let Some(shares) = shares_of(&one) else {
                continue;
            };
            let before = known.remove(&one.id).filter(|row| row.fence == one.fence);
            if before.as_ref().is_none_or(|row| row.shares != shares) {
                changed.push((one.account_id, one.id));
            }
            let row = Row {
                fence: one.fence,
                shares,
                reported: before.and_then(|row| row.reported),
            };
            rows.insert(one.id, row);
        }
        changed
    }

    /// Returns the progress to report of a row that was just read.
    pub(super) fn seen(&self, id: Uuid, seen: R) -> R {
        match self.0.lock().get_mut(&id) {
            Some(row) => {
                let reported = seen.beside(row.shares, row.reported.as_ref());
                row.reported = Some(reported.clone());
                reported
            }
            None => seen,
        }
    }
}

fn shares_of(held: &Held) -> Option<TaskShares> {
    Some(TaskShares {
        thousandths: held.share?,
        queue_place: held.queue_place,
    })
}

/// Returns the progress of a row to write down when it differs from that in the row.
pub(crate) fn unwritten(held: &Held, shares: TaskShares) -> Option<TaskProgress> {
    (shares_of(held).unwrap_or_default() != shares).then_some(TaskProgress {
        id: held.id,
        fence: held.fence,
        share: shares.thousandths,
        queue_place: shares.queue_place,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::FakeProgress;

    fn held(id: u128, fence: i64, share: Option<u32>) -> Held {
        Held {
            id: Uuid::from_u128(id),
            account_id: Uuid::from_u128(100),
            fence,
            lease_owner: Uuid::from_u128(200),
            share,
            queue_place: None,
        }
    }

    #[test]
    fn what_other_nodes_write_is_seen_beside_the_row_while_they_hold_it() {
        let (elsewhere, id) = (Elsewhere::<FakeProgress>::new(), Uuid::from_u128(1));
        let changed = |rows: Vec<Held>| elsewhere.replace(rows).len();
        let seen = || {
            let seen = elsewhere.seen(id, FakeProgress::of_row(1));
            (seen.shares.thousandths, seen.before)
        };
        assert_eq!(changed(vec![held(1, 1, None)]), 0, "nothing is known yet");
        assert_eq!(seen(), (0, None));
        assert_eq!(changed(vec![held(1, 1, Some(500)), held(2, 1, Some(1))]), 2);
        assert_eq!(seen(), (500, None));
        assert_eq!(changed(vec![held(1, 1, Some(400)), held(2, 1, Some(1))]), 1);
        assert_eq!(seen(), (400, Some(500)), "below which it does not fall");
        assert_eq!(changed(vec![held(1, 2, Some(100))]), 1);
        assert_eq!(seen(), (100, None), "claimed again");
        assert_eq!(changed(Vec::new()), 0);
        assert_eq!(seen(), (0, None));
    }

    #[test]
    fn progress_is_written_when_it_differs_from_the_row() {
        let shares = TaskShares {
            thousandths: 7,
            queue_place: None,
        };
        assert_eq!(unwritten(&held(1, 1, Some(7)), shares), None);
        let written = unwritten(&held(1, 3, None), shares).unwrap();
        assert_eq!((written.fence, written.share), (3, 7));
    }
}
