//! Unit of work in the writer: its time limit (10 s), its panic, and its answer after the commit of its group.

use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    time::Duration,
};

use tokio::{sync::oneshot, time::Instant};

use crate::{Error, Tx, serial::Serial, store::Work};

/// Time limit of a unit: one that takes longer waits for something that has no place in a transaction, and delays
/// every other.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(10);

/// A unit in the queue.
pub(crate) struct Queued {
    /// When it was queued.
    pub(crate) since: Instant,
    /// Time from which the unit is rejected rather than begun.
    pub(crate) expires: Instant,
    /// Units that it must not run beside.
    pub(crate) serial: Serial,
    pub(crate) unit: Box<dyn Unit>,
}

pub(crate) trait Unit: Send {
    /// Runs in the open transaction and keeps the result; false when the unit's changes must be undone.
    fn run<'t>(&'t mut self, tx: &'t mut Tx<'_>)
    -> Pin<Box<dyn Future<Output = bool> + Send + 't>>;

    /// Returns why `run` failed.
    fn failure(&self) -> Option<&Error>;

    /// Answers the caller with the result of `run`, or with `failure` instead.
    fn answer(self: Box<Self>, failure: Option<Error>);
}

/// Caller's work with the channel back to the caller.
pub(crate) struct Submitted<T, F> {
    work: Option<F>,
    result: Option<Result<T, Error>>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<T, F> Submitted<T, F>
where
    F: for<'t> FnOnce(&'t mut Tx<'_>) -> Work<'t, T>,
{
    pub(crate) fn new(work: F) -> (Self, oneshot::Receiver<Result<T, Error>>) {
        let (reply, answer) = oneshot::channel();
        let submitted = Self {
            work: Some(work),
            result: None,
            reply,
        };
        (submitted, answer)
    }
}

impl<T, F> Unit for Submitted<T, F>
where
    T: Send,
    F: for<'t> FnOnce(&'t mut Tx<'_>) -> Work<'t, T> + Send,
{
    fn run<'t>(
        &'t mut self,
        tx: &'t mut Tx<'_>,
    ) -> Pin<Box<dyn Future<Output = bool> + Send + 't>> {
        Box::pin(async move {
            let Some(work) = self.work.take() else {
                return false;
            };
            let guarded = without_panic(async move { work(tx).await });
            let result = match tokio::time::timeout(TIME_LIMIT, guarded).await {
                Ok(Ok(result)) => result,
                Ok(Err(panic)) => Err(Error::Internal(format!(
                    "a unit of work panicked: {}",
                    panic_text(&*panic)
                ))),
                Err(_) => Err(Error::Internal(format!(
                    "a unit of work took more than {TIME_LIMIT:?}"
                ))),
            };
            let is_done = result.is_ok();
            self.result = Some(result);
            is_done
        })
    }

    fn failure(&self) -> Option<&Error> {
        self.result.as_ref()?.as_ref().err()
    }

    fn answer(self: Box<Self>, failure: Option<Error>) {
        let never_ran = || Err(Error::Internal("a unit of work never ran".into()));
        let answer = match failure {
            Some(failure) => Err(failure),
            None => self.result.unwrap_or_else(never_ran),
        };
        // The caller may have been dropped; the commit is kept.
        let _ = self.reply.send(answer);
    }
}

/// Turns a panic of the future into an error.
async fn without_panic<T>(work: impl Future<Output = T>) -> Result<T, Box<dyn Any + Send>> {
    let mut work = std::pin::pin!(work);
    // The work is never polled again after a panic, so that its broken state is never seen.
    poll_fn(
        |context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panic)),
        },
    )
    .await
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
