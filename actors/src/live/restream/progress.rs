//! State of an output (`idle`, `connecting`, `live`, `waiting`), last error, retries, sent bytes, dropped units, lag.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use parking_lot::Mutex;
use sluice_store::changes::{ChangeLog, Kind};
use uuid::Uuid;

use crate::live::unix_ms;

/// Status of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputStatus {
    /// It is turned off, or nothing is on air.
    #[default]
    Idle,
    Connecting,
    /// The target takes the stream.
    Live,
    /// It failed and is tried again, or waits for the encoder.
    Waiting,
}

impl OutputStatus {
    pub const ALL: [Self; 4] = [Self::Idle, Self::Connecting, Self::Live, Self::Waiting];

    /// Returns the lower-case name used in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Connecting => "connecting",
            Self::Live => "live",
            Self::Waiting => "waiting",
        }
    }
}

/// State of an output at one moment. Counters begin with the service, and again when address or `enabled` change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputReport {
    pub status: OutputStatus,
    /// Unix milliseconds.
    pub since_ms: Option<i64>,
    /// Reason why the last attempt failed, until one succeeds.
    pub last_error: Option<String>,
    /// Tries after the first.
    pub retries: u64,
    pub sent_bytes: u64,
    /// Units left out because the target was too slow.
    pub dropped_units: u64,
    /// Age of the newest sent unit when it was sent.
    pub lag_ms: u64,
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct OutputProgress {
    state: Mutex<State>,
    retries: AtomicU64,
    sent_bytes: AtomicU64,
    dropped_units: AtomicU64,
    lag_ms: AtomicU64,
    notice: Option<Notice>,
}

/// Place of an output's status in its account's changes.
#[derive(Debug)]
pub(super) struct Notice {
    pub(super) changes: ChangeLog,
    pub(super) account_id: Uuid,
    pub(super) output_id: Uuid,
}

#[derive(Debug)]
struct State {
    status: OutputStatus,
    since_ms: i64,
    last_error: Option<String>,
}

impl OutputProgress {
    /// `notice`: `None` when the account is not known.
    pub(super) fn new(notice: Option<Notice>) -> Self {
        Self {
            state: Mutex::new(State {
                status: OutputStatus::Idle,
                since_ms: unix_ms(),
                last_error: None,
            }),
            retries: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            dropped_units: AtomicU64::new(0),
            lag_ms: AtomicU64::new(0),
            notice,
        }
    }

    pub(super) fn enter(&self, status: OutputStatus) {
        let mut state = self.state.lock();
        let has_moved = state.status != status;
        if has_moved {
            state.status = status;
            state.since_ms = unix_ms();
        }
        if status == OutputStatus::Live {
            state.last_error = None;
        } else {
            self.lag_ms.store(0, Relaxed);
        }
        drop(state);
        if has_moved && let Some(notice) = &self.notice {
            notice
                .changes
                .moved(notice.account_id, Kind::Output, notice.output_id);
        }
    }

    pub(super) fn fail(&self, reason: String) {
        self.state.lock().last_error = Some(reason);
        self.retries.fetch_add(1, Relaxed);
        self.enter(OutputStatus::Waiting);
    }

    pub(super) fn sent(&self, bytes: u64) {
        self.sent_bytes.fetch_add(bytes, Relaxed);
    }

    pub(super) fn lags(&self, lag: Duration) {
        self.lag_ms.store(lag.as_millis() as u64, Relaxed);
    }

    pub(super) fn dropped(&self, units: u64) {
        self.dropped_units.fetch_add(units, Relaxed);
    }

    pub(super) fn report(&self) -> OutputReport {
        let state = self.state.lock();
        OutputReport {
            status: state.status,
            since_ms: Some(state.since_ms),
            last_error: state.last_error.clone(),
            retries: self.retries.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            dropped_units: self.dropped_units.load(Relaxed),
            lag_ms: self.lag_ms.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_is_reported_until_it_works() {
        let changes = ChangeLog::default();
        let account_id = Uuid::now_v7();
        let mut follower = changes.follow(account_id);
        let progress = OutputProgress::new(Some(Notice {
            changes,
            account_id,
            output_id: Uuid::now_v7(),
        }));
        progress.enter(OutputStatus::Connecting);
        progress.fail("no one is there".to_owned());
        progress.lags(Duration::from_millis(7));
        progress.enter(OutputStatus::Connecting);
        let report = progress.report();
        assert_eq!(report.last_error.as_deref(), Some("no one is there"));
        assert_eq!(
            (report.status, report.lag_ms),
            (OutputStatus::Connecting, 0)
        );
        progress.enter(OutputStatus::Live);
        let report = progress.report();
        assert_eq!((report.last_error, report.retries), (None, 1));
        assert_eq!(follower.take().changes.len(), 1);
        progress.enter(OutputStatus::Live);
        assert!(follower.take().is_empty());
    }
}
