//! Recovery from failed worker processes: one more attempt after a death without a known cause, none after a limit, pauses
//! after a failed start.

use std::{
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use sluice_media::task::{Failure, FailureCode};
use sluice_worker::{
    process::{JobError, StartError},
    protocol::Layers,
};
use tracing::{debug, warn};

use super::{
    assignment::{Error, Finished},
    pool_state::PoolState,
    settings::Sandbox,
};
use crate::component::park_for;

/// Most attempts at a task whose worker dies without a known cause.
pub(super) const ATTEMPTS: u32 = 2;

/// Consequence of an error.
pub(super) enum AfterFailure {
    TryAgain,
    Give(Error),
}

/// Judges an error and notes it. `ring`: the ring of the process, for the log; `overtime`: the message for a task that
/// took too long.
pub(super) fn judge(
    error: JobError,
    state: &PoolState,
    ring: &'static str,
    overtime: impl FnOnce() -> String,
) -> AfterFailure {
    match error {
        JobError::Failed(failure) => {
            if failure.code == FailureCode::Internal {
                warn!(ring, %failure, "a worker failed, and is replaced");
            } else {
                state.finished();
            }
            AfterFailure::Give(failure.into())
        }
        JobError::Limit(failure) => {
            debug!(ring, %failure, "a limit ended a worker");
            state.finished();
            AfterFailure::Give(failure.into())
        }
        JobError::Died(reason) => {
            warn!(ring, reason, "a worker died at its task");
            state.died(&reason);
            AfterFailure::TryAgain
        }
        JobError::Deadline => {
            state.killed.fetch_add(1, Relaxed);
            AfterFailure::Give(Failure::new(FailureCode::TimedOut, overtime()).into())
        }
        JobError::Cancelled => {
            state.killed.fetch_add(1, Relaxed);
            AfterFailure::Give(abandoned())
        }
    }
}

/// Tries a task as often as it may be; `None` of an attempt is a death without a known cause.
pub(super) fn attempts(
    most: u32,
    mut attempt: impl FnMut(u32) -> Result<Option<Finished>, Error>,
) -> Result<Finished, Error> {
    for number in 1..=most {
        if let Some(finished) = attempt(number)? {
            return Ok(finished);
        }
    }
    Err(Failure::new(
        FailureCode::DecodeFailed,
        "the file makes its decoder crash: it is damaged, or made to do so",
    )
    .into())
}

/// Makes the error for a caller that has left.
pub(super) fn abandoned() -> Error {
    Error::Unavailable("no caller waits any more".into())
}

/// Returns the reason why nothing may be decoded, if there is one.
pub(super) fn rejection(sandbox: Sandbox, layers: &Layers) -> Option<String> {
    match sandbox {
        Sandbox::Required => layers.rejection(),
        Sandbox::BestEffort => None,
    }
}

/// No process is there, and none may be started yet, or ever.
#[derive(Clone, Debug)]
pub(super) struct ProcessUnavailable {
    pub(super) reason: String,
    failures: u32,
    /// `None`: never, the kernel lacks what is required.
    until: Option<Instant>,
}

impl ProcessUnavailable {
    /// Makes one without an end: the kernel will not change while the service runs.
    pub(super) fn for_good(reason: String) -> Self {
        Self {
            reason,
            failures: 0,
            until: None,
        }
    }

    /// Makes one of a failed start, after `last`: the pause doubles.
    pub(super) fn after(last: Option<&Self>, error: &StartError, ring: &'static str) -> Self {
        let failures = last.map_or(0, |it| it.failures) + 1;
        let again_in = park_for(failures);
        warn!(ring, %error, ?again_in, "a worker does not start");
        Self {
            reason: error.to_string(),
            failures,
            until: Some(Instant::now() + again_in),
        }
    }

    /// Returns the time until the next start may be tried; `None`: never.
    pub(super) fn left(&self) -> Option<Duration> {
        self.until
            .map(|until| until.saturating_duration_since(Instant::now()))
    }

    pub(super) fn error(&self) -> Error {
        Error::Unavailable(self.reason.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_required_sandbox_refuses() {
        let whole = Layers {
            rlimits: true,
            no_new_privileges: true,
            landlock: Some(1),
            seccomp: true,
        };
        let lacking = Layers {
            landlock: None,
            seccomp: false,
            ..whole.clone()
        };
        assert_eq!(rejection(Sandbox::Required, &whole), None);
        assert_eq!(rejection(Sandbox::BestEffort, &lacking), None);
        let rejection = rejection(Sandbox::Required, &lacking).unwrap();
        assert!(rejection.contains("landlock and seccomp"), "{rejection}");
        assert!(rejection.contains("image_workers.sandbox"), "{rejection}");
    }

    #[test]
    fn a_pause_grows_with_each_failed_start() {
        let error = StartError::NotReady("no such plug-in".into());
        let first = ProcessUnavailable::after(None, &error, "test");
        let second = ProcessUnavailable::after(Some(&first), &error, "test");
        assert!(second.left() > first.left());
        assert_eq!(ProcessUnavailable::for_good(String::new()).left(), None);
    }
}
