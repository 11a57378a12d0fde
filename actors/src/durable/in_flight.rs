//! Progress of running tasks of jobs, runs and streams beside their rows: shares in thousandths, places in the queue, at
//! most four reports a second.
//!
//! In memory only, for the rows that are worked on, and lost with the process.
//!
//! Workers report the share of a task some four times a second; rows only change when a task is done. The reported
//! progress of a row is its last known state [with](Report::beside) the shares of its tasks.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sluice_media::av;
use uuid::Uuid;

use super::progress_channels::Report;

/// Share of a whole task.
pub(crate) const WHOLE: u32 = 1_000;
/// Shortest time between two reports of one row, unless a task comes to another place in the queue.
const REPORT_EVERY: Duration = Duration::from_millis(250);

/// Shares of the running tasks of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskShares {
    /// In thousandths of a task, all of them together.
    pub thousandths: u32,
    /// The first place that one of them has in the queue, while all of them wait; 1 is next.
    pub queue_place: Option<u32>,
}

/// The rows that are worked on. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct InFlight<R>(Arc<Mutex<HashMap<Uuid, Row<R>>>>);

#[derive(Debug)]
struct Row<R> {
    /// Owners that work on it: one, or for a moment the next one too.
    owners: u32,
    /// State in the row, and the row's account.
    known: Option<(Uuid, R)>,
    reported: Option<R>,
    published_at: Option<Instant>,
    tasks: HashMap<Uuid, TaskState>,
}

/// State of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskState {
    Waiting { place: u32 },
    Working { thousandths: u32 },
}

/// An owner works on a row until this is dropped.
#[derive(Debug)]
pub(crate) struct InFlightGuard<R> {
    in_flight: InFlight<R>,
    id: Uuid,
}

/// A task of a row runs or waits, until this is dropped.
#[derive(Debug)]
pub(crate) struct RunningTask<R> {
    in_flight: InFlight<R>,
    row: Uuid,
    task: Uuid,
}

impl<R: Report> InFlight<R> {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    pub(super) fn attend(&self, id: Uuid) -> InFlightGuard<R> {
        let mut rows = self.0.lock();
        let row = rows.entry(id).or_insert_with(|| Row {
            owners: 0,
            known: None,
            reported: None,
            published_at: None,
            tasks: HashMap::new(),
        });
        row.owners += 1;
        InFlightGuard {
            in_flight: self.clone(),
            id,
        }
    }

    /// Makes a task of a row, which is counted from its first report on.
    pub(super) fn task(&self, row: Uuid, task: Uuid) -> RunningTask<R> {
        RunningTask {
            in_flight: self.clone(),
            row,
            task,
        }
    }

    /// Notes the state of the row; returns the progress to report.
    pub(super) fn know(&self, account_id: Uuid, id: Uuid, known: R) -> R {
        match self.0.lock().get_mut(&id) {
            Some(row) => {
                row.known = Some((account_id, known.clone()));
                row.report(known)
            }
            None => known,
        }
    }

    /// Returns the shares of the running tasks of a row; `None` for one that no owner works on here.
    pub(super) fn shares(&self, id: Uuid) -> Option<TaskShares> {
        self.0.lock().get(&id).map(Row::shares)
    }

    /// Returns the progress to report of a row that was just read.
    pub(super) fn seen(&self, id: Uuid, seen: R) -> R {
        match self.0.lock().get_mut(&id) {
            Some(row) => row.report(seen),
            None => seen,
        }
    }

    /// Notes the report of a task; returns the progress to report of its row with the row's account, if it is time for it.
    pub(super) fn hear(&self, id: Uuid, task: Uuid, report: &av::Report) -> Option<(Uuid, R)> {
        let state = TaskState::of(report)?;
        let mut rows = self.0.lock();
        let row = rows.get_mut(&id)?;
        let before = row.tasks.insert(task, state);
        let (account_id, known) = row.known.clone()?;
        let reported = row.report(known);
        let has_moved = match (before, state) {
            (Some(TaskState::Working { .. }), TaskState::Working { .. }) => false,
            (before, state) => before != Some(state),
        };
        let is_due = row
            .published_at
            .is_none_or(|at| at.elapsed() >= REPORT_EVERY);
        (has_moved || is_due).then(|| {
            row.published_at = Some(Instant::now());
            (account_id, reported)
        })
    }
}

impl<R: Report> Row<R> {
    fn report(&mut self, known: R) -> R {
        let reported = known.beside(self.shares(), self.reported.as_ref());
        self.reported = Some(reported.clone());
        reported
    }
}

impl<R> Row<R> {
    fn shares(&self) -> TaskShares {
        let (mut shares, mut first, mut is_working) = (TaskShares::default(), None::<u32>, false);
        for state in self.tasks.values() {
            match *state {
                TaskState::Working { thousandths } => {
                    shares.thousandths += thousandths;
                    is_working = true;
                }
                TaskState::Waiting { place } => {
                    first = Some(first.map_or(place, |first| first.min(place)));
                }
            }
        }
        shares.queue_place = first.filter(|_| !is_working);
        shares
    }
}

impl TaskState {
    fn of(report: &av::Report) -> Option<Self> {
        match *report {
            av::Report::Waiting { place } => Some(Self::Waiting { place }),
            av::Report::Working { share } => Some(Self::Working {
                thousandths: (share.clamp(0.0, 1.0) * WHOLE as f32) as u32,
            }),
            av::Report::Init { .. } | av::Report::Segment { .. } => None,
        }
    }
}

impl<R> Drop for InFlightGuard<R> {
    fn drop(&mut self) {
        let mut rows = self.in_flight.0.lock();
        if let Some(row) = rows.get_mut(&self.id) {
            row.owners -= 1;
            if row.owners == 0 {
                rows.remove(&self.id);
            }
        }
    }
}

impl<R> Drop for RunningTask<R> {
    fn drop(&mut self) {
        if let Some(row) = self.in_flight.0.lock().get_mut(&self.row) {
            row.tasks.remove(&self.task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::FakeProgress;

    fn working(share: f32) -> av::Report {
        av::Report::Working { share }
    }

    #[test]
    fn tasks_add_up_and_a_place_counts_while_nothing_works() {
        let (in_flight, id) = (InFlight::<FakeProgress>::new(), Uuid::now_v7());
        let attended = in_flight.attend(id);
        in_flight.know(Uuid::now_v7(), id, FakeProgress::of_row(1));
        let (one, two) = (Uuid::now_v7(), Uuid::now_v7());
        let tasks = [in_flight.task(id, one), in_flight.task(id, two)];
        let shares = |thousandths, queue_place| TaskShares {
            thousandths,
            queue_place,
        };
        let steps = [
            (one, av::Report::Waiting { place: 4 }, shares(0, Some(4))),
            (two, av::Report::Waiting { place: 2 }, shares(0, Some(2))),
            (one, working(0.25), shares(250, None)),
            (two, working(f32::NAN), shares(250, None)),
            (two, working(7.0), shares(1_250, None)),
        ];
        let seen = || in_flight.seen(id, FakeProgress::of_row(2));
        for (task, report, expected) in steps {
            in_flight.hear(id, task, &report);
            assert_eq!(seen().shares, expected, "{report:?}");
        }
        drop(tasks);
        assert_eq!((seen().number, seen().shares), (2, TaskShares::default()));
        drop(attended);
        assert!(in_flight.0.lock().is_empty());
    }

    #[test]
    fn places_are_reported_at_once_and_shares_at_their_time() {
        let (in_flight, id) = (InFlight::<FakeProgress>::new(), Uuid::now_v7());
        let task = Uuid::now_v7();
        assert_eq!(in_flight.hear(id, task, &working(0.1)), None, "unattended");
        let _attended = in_flight.attend(id);
        assert_eq!(in_flight.hear(id, task, &working(0.1)), None, "unknown");
        in_flight.know(Uuid::now_v7(), id, FakeProgress::of_row(1));
        let tells = |report| in_flight.hear(id, task, &report).is_some();
        assert!(tells(av::Report::Waiting { place: 2 }));
        assert!(tells(av::Report::Waiting { place: 1 }));
        assert!(tells(working(0.2)), "it began");
        assert!(!tells(working(0.3)), "so soon");
    }

    #[test]
    fn a_row_that_changes_hands_stays() {
        let (in_flight, id) = (InFlight::<FakeProgress>::new(), Uuid::now_v7());
        let (before, after) = (in_flight.attend(id), in_flight.attend(id));
        drop(before);
        assert_eq!(in_flight.0.lock().len(), 1);
        drop(after);
        assert!(in_flight.0.lock().is_empty());
    }
}
