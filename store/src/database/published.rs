//! State that a writer publishes: counters, why changes fail, the newest event.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use tokio::sync::watch;
use tracing::{error, info};

use crate::{Error, WriteFailure, unit::Queued};

/// Counters of a writer.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) units: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) wal_bytes: AtomicU64,
    /// Units that wait behind the queue.
    pub(crate) waiting: AtomicU64,
    /// Bytes of a database that is no file.
    pub(crate) database_bytes: AtomicU64,
    /// The longest wait of a unit of the last commit.
    pub(crate) wait_ms: AtomicU64,
}

/// The writer's side. Receivers close when it is dropped.
pub(crate) struct Published {
    pub(crate) counters: Arc<Counters>,
    write_failure: watch::Sender<Option<WriteFailure>>,
    newest_event: watch::Sender<i64>,
}

/// The store's side.
pub(crate) struct View {
    pub(crate) counters: Arc<Counters>,
    pub(crate) write_failure: watch::Receiver<Option<WriteFailure>>,
    pub(crate) newest_event: watch::Receiver<i64>,
}

impl Published {
    pub(crate) fn new() -> (Self, View) {
        let counters = Arc::new(Counters::default());
        let (write_failure, published_write_failure) = watch::channel(None);
        let (newest_event, published_event) = watch::channel(0);
        let view = View {
            counters: counters.clone(),
            write_failure: published_write_failure,
            newest_event: published_event,
        };
        let published = Self {
            counters,
            write_failure,
            newest_event,
        };
        (published, view)
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.write_failure.borrow().is_some()
    }

    /// Returns why changes fail; `None` when they do not.
    pub(crate) fn reason(&self) -> Option<String> {
        let failure = self.write_failure.borrow();
        failure.as_ref().map(|failure| failure.reason.clone())
    }

    /// Publishes that changes fail since a time.
    pub(crate) fn fail(&self, reason: &str, since_ms: i64) {
        self.write_failure
            .send_if_modified(|write_failure| match write_failure {
                // Logged once for each reason, not with every attempt.
                Some(known) if known.reason == reason => false,
                _ => {
                    error!(reason, "the database takes no changes");
                    let since_ms = write_failure
                        .as_ref()
                        .map_or(since_ms, |known| known.since_ms);
                    *write_failure = Some(WriteFailure {
                        since_ms,
                        reason: reason.to_owned(),
                    });
                    true
                }
            });
    }

    pub(crate) fn recover(&self) {
        self.write_failure
            .send_if_modified(|write_failure| match write_failure.take() {
                Some(past) => {
                    info!(reason = past.reason, "the database takes changes again");
                    true
                }
                None => false,
            });
    }

    /// Publishes an event that was committed. Followers are woken by a lower number too: on PostgreSQL an event of one account
    /// may be committed after a later one of another.
    pub(crate) fn event(&self, committed: Option<i64>) {
        if let Some(seq) = committed {
            self.newest_event
                .send_modify(|newest| *newest = seq.max(*newest));
        }
    }

    /// Counts a commit of a group, of which so many units were done.
    pub(crate) fn commit(&self, group: &[Queued], done: u64) {
        let counters = &self.counters;
        counters.commits.fetch_add(1, Relaxed);
        counters.units.fetch_add(done, Relaxed);
        counters
            .failures
            .fetch_add(group.len() as u64 - done, Relaxed);
        let longest = group.iter().map(|queued| queued.since.elapsed()).max();
        let wait_ms = longest.unwrap_or_default().as_millis() as u64;
        counters.wait_ms.store(wait_ms, Relaxed);
    }

    /// Answers units of which nothing was changed.
    pub(crate) fn reject(&self, group: Vec<Queued>, error: &Error) {
        self.counters
            .failures
            .fetch_add(group.len() as u64, Relaxed);
        for queued in group {
            queued.unit.answer(Some(match error {
                Error::Full => Error::Full,
                Error::Unknown => Error::Unknown,
                other => Error::Busy(reason_of(other)),
            }));
        }
    }
}

/// Returns why the database takes no changes, in words for people.
pub(crate) fn reason_of(error: &Error) -> String {
    match error {
        Error::Busy(reason) => reason.clone(),
        Error::Failing(cause) | Error::Database(cause) => cause.to_string(),
        other => other.to_string(),
    }
}
