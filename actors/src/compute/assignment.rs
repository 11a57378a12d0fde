//! What the pool is asked, and what it answers.

use std::{fs::File, sync::Arc};

use bytes::Bytes;
use sluice_media::task::{Done, Failure, Limits, Task};

/// Who waits for the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Somebody looks at a spinner: delivery misses, requests with one file. May use every worker and goes first.
    Interactive,
    /// Jobs and requests with several files. Leaves one worker free, where there are two or more.
    Batch,
}

/// One task with the files it reads and writes.
#[derive(Debug)]
pub struct Assignment {
    pub task: Task,
    /// Read from their beginning, whatever their position; in the order that the task counts them.
    pub inputs: Vec<Arc<File>>,
    pub output: Output,
    pub limits: Limits,
}

/// Where results go.
#[derive(Debug)]
pub enum Output {
    /// Into [`Finished::bytes`].
    Memory,
    /// Into these files, from their beginning; what they held is cut off. There are as many as the task has outputs.
    /// After an error they hold anything.
    Files(Vec<File>),
}

/// A task that was done.
#[derive(Clone, Debug)]
pub struct Finished {
    pub done: Done,
    /// One for each output of [`Output::Memory`]; empty with [`Output::Files`].
    pub bytes: Vec<Bytes>,
}

/// Why a task was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The task itself; trying again gives the same.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// `worker.queue` tasks wait already; come again in a moment.
    #[error("all image workers are busy")]
    Busy,
    /// No worker may or can run; the text is for the operator and names what to change.
    #[error("images cannot be processed: {0}")]
    Unavailable(String),
}
