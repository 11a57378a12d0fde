//! How far jobs are, published for those who wait or follow. Nothing here is the truth: the rows are.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sluice_store::jobs::{Job, JobState};
use tokio::sync::watch;
use uuid::Uuid;

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub state: JobState,
    pub total_files: u32,
    pub completed_files: u32,
    pub failed_files: u32,
}

impl Progress {
    pub fn of(job: &Job) -> Self {
        Self {
            state: job.state,
            total_files: job.total_files,
            completed_files: job.completed_files,
            failed_files: job.failed_files,
        }
    }

    /// 0 to 100: the share of files that are done; 100 once the job has ended well.
    pub fn percent(&self) -> u8 {
        let done = u64::from(self.completed_files + self.failed_files);
        match self.state {
            JobState::Completed => 100,
            _ => u8::try_from(100 * done / u64::from(self.total_files.max(1))).unwrap_or(100),
        }
    }

    /// Whether a job never comes to this after the other: an ended one stays, and files that are done do.
    fn is_before(&self, other: &Self) -> bool {
        let rank = |it: &Self| (it.state.has_ended(), it.completed_files + it.failed_files);
        rank(self) < rank(other)
    }
}

/// The jobs that somebody follows, with their followers' channels.
#[derive(Clone, Debug, Default)]
pub(super) struct Board(Arc<Mutex<HashMap<Uuid, watch::Sender<Option<Progress>>>>>);

impl Board {
    /// Progress from now on; `None` until some is published.
    pub(super) fn follow(&self, job_id: Uuid) -> Following {
        let published = self
            .jobs()
            .entry(job_id)
            .or_insert_with(|| watch::Sender::new(None))
            .subscribe();
        Following {
            board: self.clone(),
            job_id,
            published,
        }
    }

    /// Files of a job are recorded side by side, and told in any order: what is older than the last word is left out.
    pub(super) fn publish(&self, job: &Job) {
        self.tell(job.id, Progress::of(job));
    }

    fn tell(&self, job_id: Uuid, progress: Progress) {
        if let Some(followers) = self.jobs().get(&job_id) {
            followers.send_if_modified(|known| {
                let is_news = known.is_none_or(|known| !progress.is_before(&known));
                if is_news {
                    *known = Some(progress);
                }
                is_news
            });
        }
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<Uuid, watch::Sender<Option<Progress>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One follower of a job; the job leaves the board with its last one.
#[derive(Debug)]
pub(super) struct Following {
    board: Board,
    job_id: Uuid,
    published: watch::Receiver<Option<Progress>>,
}

impl Following {
    /// The next progress that was not seen yet.
    pub(super) async fn next(&mut self) -> Option<Progress> {
        let _ = self.published.changed().await;
        *self.published.borrow_and_update()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let mut jobs = self.board.jobs();
        if jobs
            .get(&self.job_id)
            .is_some_and(|followers| followers.receiver_count() <= 1)
        {
            jobs.remove(&self.job_id);
        }
    }
}

/// What conversions have come to since the start, for metrics.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally(Arc<Mutex<Counts>>);

/// Files by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub converted: u64,
    /// By error code.
    pub failed: BTreeMap<String, u64>,
}

impl Tally {
    pub(super) fn converted(&self) {
        self.counts().converted += 1;
    }

    pub(super) fn failed(&self, code: &str) {
        *self.counts().failed.entry(code.to_owned()).or_default() += 1;
    }

    pub(super) fn now(&self) -> Counts {
        self.counts().clone()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_job_leaves_the_board_with_its_last_follower() {
        let board = Board::default();
        let id = Uuid::now_v7();
        let (one, two) = (board.follow(id), board.follow(id));
        drop(one);
        assert_eq!(board.jobs().len(), 1);
        drop(two);
        assert!(board.jobs().is_empty());
    }

    #[tokio::test]
    async fn what_is_told_late_does_not_undo_the_end() {
        let board = Board::default();
        let id = Uuid::now_v7();
        let mut follower = board.follow(id);
        let all_done = progress(JobState::Completed, 3, 3, 0);
        board.tell(id, all_done);
        board.tell(id, progress(JobState::Processing, 3, 2, 0));
        assert_eq!(follower.next().await, Some(all_done));
        let cancelled = progress(JobState::Cancelled, 3, 1, 0);
        assert!(!cancelled.is_before(&progress(JobState::Processing, 3, 2, 0)));
    }

    fn progress(
        state: JobState,
        total_files: u32,
        completed_files: u32,
        failed_files: u32,
    ) -> Progress {
        Progress {
            state,
            total_files,
            completed_files,
            failed_files,
        }
    }

    #[test]
    fn progress_is_the_share_of_files_that_are_done() {
        let progress =
            |state, total, completed, failed| progress(state, total, completed, failed).percent();
        assert_eq!(progress(JobState::Pending, 0, 0, 0), 0);
        assert_eq!(progress(JobState::Processing, 3, 1, 1), 66);
        assert_eq!(progress(JobState::Processing, 3, 2, 1), 100);
        assert_eq!(progress(JobState::Completed, 0, 0, 0), 100);
        assert_eq!(progress(JobState::Cancelled, 4, 1, 0), 25);
    }
}
