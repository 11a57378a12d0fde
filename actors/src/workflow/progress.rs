//! Progress of a workflow run (steps, current node, per cent of a step, place in the queue), for callers that wait or
//! follow; counts of runs, for metrics.

use std::{collections::BTreeMap, sync::Arc};

use sluice_store::{
    Error, Store,
    changes::Kind,
    workflows::{self, Run, RunStatus},
};
use uuid::Uuid;

use super::{
    definition,
    path::{Path, count},
};
use crate::durable::{
    in_flight::{TaskShares, WHOLE},
    outcome_counters::{OutcomeCounters, count_failure},
    progress_channels::Report,
};

/// Progress of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunProgress {
    pub status: RunStatus,
    /// Nodes of its path that are done.
    pub steps_done: u32,
    /// Nodes of its path as far as it is known: up to its end or the next branch.
    pub steps_total: u32,
    /// The title of the node that it is at.
    pub current: Option<Arc<str>>,
    /// The id of that node.
    pub current_node: Option<Arc<str>>,
    /// Per cent of that node that are done, once it has reported.
    pub step_percent: Option<u8>,
    /// Its place in the queue of the workers, while it waits there; 1 is next.
    pub queue_place: Option<u32>,
}

impl RunProgress {
    /// Returns the progress of a running run.
    pub(super) fn in_flight(definition: &sluice_media::workflow::Definition, path: &Path) -> Self {
        let next = path.next(definition);
        Self {
            status: RunStatus::Processing,
            steps_done: count(path.len()),
            steps_total: count(path.known_len(definition)),
            current: next.map(|node| node.title.as_str().into()),
            current_node: next.map(|node| node.id.as_str().into()),
            step_percent: None,
            queue_place: None,
        }
    }

    /// Returns the progress of a run that waits or has ended, after that many nodes.
    pub(super) fn at_rest(run: &Run, steps_done: usize) -> Self {
        Self {
            status: run.status,
            steps_done: count(steps_done),
            steps_total: count(steps_done),
            current: None,
            current_node: None,
            step_percent: None,
            queue_place: None,
        }
    }
}

impl Report for RunProgress {
    const KIND: Kind = Kind::Run;

    async fn look(store: &Store, id: Uuid) -> Result<Self, Error> {
        let mut reader = store.read().await?;
        let run = workflows::by_id(&mut reader, id).await?;
        let steps = definition::done(workflows::steps(&mut reader, id).await?);
        if run.status != RunStatus::Processing {
            return Ok(Self::at_rest(&run, steps.len()));
        }
        // Neither is known of a definition that this version does not read, or of a journal that a retry has just begun
        // again.
        let loaded = match definition::load(&mut reader, &run).await {
            Ok(definition) => definition::journalled(&definition, &steps)
                .map(|path| Self::in_flight(&definition, &path)),
            Err(error) => Err(error),
        };
        match loaded {
            Err(Error::Internal(_)) => Ok(Self::at_rest(&run, steps.len())),
            loaded => loaded,
        }
    }

    fn has_ended(&self) -> bool {
        self.status.has_ended()
    }

    /// Returns the mean over the nodes of its path as far as that is known.
    fn percent_done(&self) -> Option<u8> {
        match self.status {
            RunStatus::Completed => return Some(100),
            RunStatus::Failed | RunStatus::Cancelled => return None,
            RunStatus::Queued | RunStatus::Processing => {}
        }
        let steps = u64::from(self.steps_total.max(self.steps_done + 1));
        let done = 100 * u64::from(self.steps_done) + u64::from(self.step_percent.unwrap_or(0));
        u8::try_from((done / steps).min(99)).ok()
    }

    fn queue_place(&self) -> Option<u32> {
        self.queue_place
    }

    /// Compares by end, steps and share: an ended run stays ended until it is tried again, and so do finished steps.
    fn is_before(&self, other: &Self) -> bool {
        let rank = |it: &Self| (it.has_ended(), it.steps_done, it.step_percent);
        rank(self) < rank(other)
    }

    /// Adds the share of the running step, which never falls.
    fn beside(self, shares: TaskShares, before: Option<&Self>) -> Self {
        if self.status != RunStatus::Processing {
            return self;
        }
        let percent = u8::try_from(100 * shares.thousandths / WHOLE).unwrap_or(100);
        let before = before.filter(|before| before.steps_done == self.steps_done);
        let floor = before.and_then(|before| before.step_percent);
        Self {
            step_percent: Some(percent).filter(|percent| *percent > 0).max(floor),
            queue_place: shares.queue_place,
            ..self
        }
    }
}

/// Counts of runs since the start, by outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunTotals {
    /// Worked on at this moment.
    pub active: usize,
    pub completed: u64,
    /// Those of them whose upload did not meet the gate.
    pub turned_away: u64,
    pub cancelled: u64,
    /// By error code.
    pub failed: BTreeMap<String, u64>,
}

impl RunTotals {
    /// Counts a run that has ended.
    pub(super) fn ended(&mut self, run: &Run) {
        match run.status {
            RunStatus::Completed => {
                self.completed += 1;
                self.turned_away += u64::from(run.gate == Some(false));
            }
            RunStatus::Cancelled => self.cancelled += 1,
            _ => count_failure(
                &mut self.failed,
                run.error_code.as_deref().unwrap_or_default(),
            ),
        }
    }
}

/// An owner works on a run until this is dropped.
pub(super) struct Active(OutcomeCounters<RunTotals>);

impl Active {
    pub(super) fn begin(counters: &OutcomeCounters<RunTotals>) -> Self {
        counters.note(|counts| counts.active += 1);
        Self(counters.clone())
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.note(|counts| counts.active -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_comes_nearer_to_its_end_and_the_next_begins_again() {
        let at = |steps_done| RunProgress {
            status: RunStatus::Processing,
            steps_done,
            steps_total: 3,
            current: None,
            current_node: None,
            step_percent: None,
            queue_place: None,
        };
        let shares = |thousandths, queue_place| TaskShares {
            thousandths,
            queue_place,
        };
        let waiting = at(1).beside(shares(0, Some(2)), None);
        assert_eq!((waiting.step_percent, waiting.queue_place), (None, Some(2)));
        let half = at(1).beside(shares(500, None), Some(&waiting));
        assert_eq!((half.step_percent, half.queue_place), (Some(50), None));
        assert!(waiting.is_before(&half) && !half.is_before(&waiting));
        let again = at(1).beside(shares(100, None), Some(&half));
        assert_eq!(again.step_percent, Some(50));
        let next = at(2).beside(TaskShares::default(), Some(&half));
        assert_eq!(next.step_percent, None);
        assert!(half.is_before(&next));
        assert_eq!(
            [&at(0), &half, &next, &at(3)].map(Report::percent_done),
            [Some(0), Some(50), Some(66), Some(75)]
        );
        let ended = RunProgress {
            status: RunStatus::Completed,
            ..at(3)
        };
        assert_eq!(ended.percent_done(), Some(100));
        let reported = ended.clone().beside(shares(300, None), Some(&half));
        assert_eq!(reported, ended);
    }
}
