//! Reports and the first failure that the threads of a ladder share.

use std::sync::{
    Arc,
    mpsc::{Receiver, SyncSender, sync_channel},
};

use parking_lot::Mutex;
use sluice_media::{
    av::Report,
    task::{Failure, FailureCode},
};

/// Messages that wait to be passed on.
const WAITING: usize = 64;

/// Handle of a task, shared by its threads.
#[derive(Clone, Debug)]
pub(super) struct LadderTask {
    messages: SyncSender<Message>,
    failure: Arc<Mutex<Option<Failure>>>,
}

#[derive(Debug)]
enum Message {
    Report(Report),
    /// A part of the work began, or ended.
    Began,
    Ended,
}

/// Messages to the task's own thread.
#[derive(Debug)]
pub(super) struct TaskReports(Receiver<Message>);

impl LadderTask {
    pub(super) fn new() -> (Self, TaskReports) {
        let (messages, waiting) = sync_channel(WAITING);
        let work = Self {
            messages,
            failure: Arc::default(),
        };
        (work, TaskReports(waiting))
    }

    /// Sends a report; it is lost when the task is over.
    pub(super) fn send(&self, report: Report) {
        let _ = self.messages.send(Message::Report(report));
    }

    /// Keeps the first failure.
    pub(super) fn fail(&self, failure: Failure) {
        self.failure.lock().get_or_insert(failure);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failure.lock().is_some()
    }

    pub(super) fn failure(&self) -> Option<Failure> {
        self.failure.lock().clone()
    }

    /// Announces a thread of its own, until it ends.
    pub(super) fn part(&self) -> ThreadShare {
        let _ = self.messages.send(Message::Began);
        ThreadShare(self.clone())
    }
}

/// A thread's share of the work. It ends when this is dropped, also by a panic.
#[derive(Debug)]
pub(super) struct ThreadShare(LadderTask);

impl ThreadShare {
    pub(super) fn end(self, result: Result<(), Failure>) {
        if let Err(failure) = result {
            self.0.fail(failure);
        }
    }
}

impl Drop for ThreadShare {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Failure::new(
                FailureCode::DecodeFailed,
                "the file makes its decoder crash: it is damaged, or made to do so",
            ));
        }
        let _ = self.0.messages.send(Message::Ended);
    }
}

impl TaskReports {
    /// Passes reports on until every part that was announced has ended.
    pub(super) fn pass_on(self, on_report: &mut (dyn FnMut(Report) + Send)) {
        let mut parts = 0_u32;
        while let Ok(message) = self.0.recv() {
            match message {
                Message::Report(report) => on_report(report),
                Message::Began => parts += 1,
                Message::Ended => parts -= 1,
            }
            if parts == 0 {
                return;
            }
        }
    }
}
