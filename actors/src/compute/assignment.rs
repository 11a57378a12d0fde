//! Tasks for the workers with their files, lane (interactive, delivery, batch) and progress; their results and errors (`all
//! workers are busy`).

use std::{fmt, fs::File, sync::Arc};

use bytes::Bytes;
use sluice_media::{
    av::Report,
    task::{Done, Failure, Limits, Task},
};
use uuid::Uuid;

/// Lane of the work, in the order of priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Requests with one file, whose caller waits. May use every worker and goes first.
    Interactive,
    /// Delivery misses: a page waits for an image, and its viewers are anonymous. With the image workers the same as
    /// interactive; on clips behind it.
    Delivery,
    /// Jobs and requests with several files. Leaves one worker free, where there are two or more.
    Batch,
}

/// A task with the files it reads and writes. Clones are tries of the same task.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The account that the work is for; accounts take turns at the image workers.
    pub account_id: Uuid,
    pub task: Task,
    /// Read from their beginning, whatever their position; in the order that the task counts them.
    pub inputs: Vec<Arc<File>>,
    pub output: Output,
    pub limits: Limits,
    /// Receiver of progress; only work on video and audio reports it.
    pub follow: Follow,
    /// Pixels of one frame of input 0, where they are known: by them the memory is estimated that work on video takes.
    pub pixels: Option<u64>,
}

/// Receiver of the reports of a task, one after the other, each on a thread that may wait; [`Default`]: none.
#[derive(Clone, Default)]
pub struct Follow {
    hear: Option<Arc<dyn Fn(Report) + Send + Sync>>,
    begin: Option<Arc<dyn Fn() -> Result<(), String> + Send + Sync>>,
}

impl Follow {
    pub const fn none() -> Self {
        Self {
            hear: None,
            begin: None,
        }
    }

    pub fn new(hear: impl Fn(Report) + Send + Sync + 'static) -> Self {
        Self {
            hear: Some(Arc::new(hear)),
            begin: None,
        }
    }

    /// Adds a call on the worker's thread when the task has its worker, before it runs; an error is a reason why it must not.
    pub fn beginning(
        mut self,
        begin: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.begin = Some(Arc::new(begin));
        self
    }

    /// Makes that call; [`Error::Unavailable`] when the task must not run.
    pub(super) fn begin(&self) -> Result<(), Error> {
        match &self.begin {
            Some(begin) => begin().map_err(Error::Unavailable),
            None => Ok(()),
        }
    }

    pub(super) fn report(&self, report: Report) {
        if let Some(hear) = &self.hear {
            hear(report);
        }
    }

    /// Passes a report on from a thread that must not wait.
    pub(crate) async fn report_from_async(&self, report: Report) {
        if self.hear.is_some() {
            let follow = self.clone();
            // A panic is its own.
            let _ = tokio::task::spawn_blocking(move || follow.report(report)).await;
        }
    }
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Follow").field(&self.hear.is_some()).finish()
    }
}

/// Target of results.
#[derive(Clone, Debug)]
pub enum Output {
    /// Into [`Finished::bytes`].
    Memory,
    /// Into these files, from their beginning; what they held is cut off. There are as many as the task has outputs.
    /// After an error they hold anything.
    Files(Arc<[File]>),
}

/// A task that was done.
#[derive(Clone, Debug)]
pub struct Finished {
    pub done: Done,
    /// Bytes of each output of [`Output::Memory`]; empty with [`Output::Files`].
    pub bytes: Vec<Bytes>,
}

/// Reason why a task was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The task itself; trying again gives the same.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The queue is full (`image_workers.queue`, `av_workers.queue`); try again in a moment.
    #[error("all workers are busy")]
    Busy,
    /// No worker may or can run; the text is for the operator and names what to change.
    #[error("files cannot be processed: {0}")]
    Unavailable(String),
}
