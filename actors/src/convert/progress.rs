//! Progress of a conversion job in per cent and its place in the queue, for callers that wait or follow; counts of files,
//! for metrics.

use std::collections::BTreeMap;

use sluice_store::{
    Error, Store,
    changes::Kind,
    jobs::{self, Job, JobState},
};
use uuid::Uuid;

use crate::durable::{
    in_flight::{TaskShares, WHOLE},
    progress_channels::Report,
};

/// Largest percentage of a job that has not ended.
const NEARLY_ALL: u8 = 99;

/// Progress of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobProgress {
    pub state: JobState,
    pub total_files: u32,
    pub completed_files: u32,
    pub failed_files: u32,
    /// The place in the queue of the workers, while all its files wait there; 1 is next.
    pub queue_place: Option<u32>,
    percent: u8,
}

impl JobProgress {
    /// Returns the progress in the row.
    pub fn of(job: &Job) -> Self {
        let progress = Self {
            state: job.state,
            total_files: job.total_files,
            completed_files: job.completed_files,
            failed_files: job.failed_files,
            queue_place: None,
            percent: 0,
        };
        Self {
            percent: progress.mean(0),
            ..progress
        }
    }

    /// Returns the progress from 0 to 100: the mean over its files, the finished shares of running ones included; 100 only
    /// at the end, and once the job has ended well.
    pub fn percent(&self) -> u8 {
        self.percent
    }

    /// Returns the mean over all files; `thousandths`: those of files that are being worked on.
    fn mean(&self, thousandths: u32) -> u8 {
        let done = u64::from(self.completed_files + self.failed_files) * u64::from(WHOLE);
        let all = u64::from(self.total_files.max(1)) * u64::from(WHOLE);
        let percent = 100 * (done + u64::from(thousandths)) / all;
        let percent = u8::try_from(percent).unwrap_or(100).min(100);
        match self.state {
            JobState::Completed => 100,
            state if state.has_ended() => percent,
            _ => percent.min(NEARLY_ALL),
        }
    }
}

impl Report for JobProgress {
    const KIND: Kind = Kind::Job;

    async fn look(store: &Store, id: Uuid) -> Result<Self, Error> {
        Ok(Self::of(&jobs::by_id(&mut store.read().await?, id).await?))
    }

    fn has_ended(&self) -> bool {
        self.state.has_ended()
    }

    fn percent_done(&self) -> Option<u8> {
        Some(self.percent)
    }

    fn queue_place(&self) -> Option<u32> {
        self.queue_place
    }

    /// An ended job stays ended, and so do finished files: files are recorded side by side, and reported in any order.
    fn is_before(&self, other: &Self) -> bool {
        let rank = |it: &Self| {
            let files = it.completed_files + it.failed_files;
            (it.state.has_ended(), files, it.percent)
        };
        rank(self) < rank(other)
    }

    /// Adds the shares of running tasks. The sum never falls, although a file that is tried again starts at zero.
    fn beside(self, shares: TaskShares, before: Option<&Self>) -> Self {
        if self.state.has_ended() {
            return self;
        }
        let floor = before.map_or(0, |before| before.percent.min(NEARLY_ALL));
        Self {
            percent: self.mean(shares.thousandths).max(floor),
            queue_place: shares.queue_place,
            ..self
        }
    }
}

/// Counts of files since the start, by outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobTotals {
    pub converted: u64,
    /// By error code.
    pub failed: BTreeMap<String, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_never_before_what_was_reported_late() {
        let all_done = progress(JobState::Completed, 3, 3, 0);
        let late = progress(JobState::Processing, 3, 2, 0);
        let cancelled = progress(JobState::Cancelled, 3, 1, 0);
        assert!(late.is_before(&all_done) && !all_done.is_before(&late));
        assert!(!cancelled.is_before(&late));
    }

    fn progress(
        state: JobState,
        total_files: u32,
        completed_files: u32,
        failed_files: u32,
    ) -> JobProgress {
        let progress = JobProgress {
            state,
            total_files,
            completed_files,
            failed_files,
            queue_place: None,
            percent: 0,
        };
        JobProgress {
            percent: progress.mean(0),
            ..progress
        }
    }

    #[test]
    fn progress_is_the_share_of_files_that_are_done() {
        for (state, total, completed, failed, percent) in [
            (JobState::Pending, 0, 0, 0, 0),
            (JobState::Processing, 3, 1, 1, 66),
            (JobState::Processing, 3, 2, 1, 99),
            (JobState::Completed, 0, 0, 0, 100),
            (JobState::Failed, 2, 0, 2, 100),
            (JobState::Cancelled, 4, 1, 0, 25),
        ] {
            let progress = progress(state, total, completed, failed);
            assert_eq!(progress.percent(), percent, "{progress:?}");
        }
    }

    #[test]
    fn running_files_count_with_their_share_and_never_backwards() {
        let shares = |thousandths, queue_place| TaskShares {
            thousandths,
            queue_place,
        };
        let one_of_four = progress(JobState::Processing, 4, 1, 0);
        let reported = one_of_four.beside(shares(1_500, None), None);
        assert_eq!((reported.percent(), reported.queue_place), (62, None));
        let again = one_of_four.beside(shares(0, Some(3)), Some(&reported));
        assert_eq!((again.percent(), again.queue_place), (62, Some(3)));
        let nearly = one_of_four.beside(shares(3_000, None), Some(&reported));
        assert_eq!(nearly.percent(), 99);
        let ended = progress(JobState::Cancelled, 4, 1, 0);
        assert_eq!(ended.beside(shares(900, None), Some(&reported)), ended);
    }
}
