//! Reasons why work on a row stops, and what happens to the row: failed (`storage_used_up`), given back, tried later; tries
//! of a write while the database is busy.

use std::time::Duration;

use rustix::io::Errno;
use sluice_media::task::{Failure, FailureCode};
use sluice_store::Error as StoreError;
/// Code and message with which a row fails.
pub(crate) use sluice_store::video::Failure as CodedFailure;
use tokio::time::Instant;

/// Most tries of a change while the database is busy, before the row is given back.
const WRITE_TRIES: u32 = 5;
/// Pause between two of them.
const WRITE_PAUSE: Duration = Duration::from_millis(200);

/// Reason why an owner ends before its row does.
#[derive(Debug)]
pub(crate) enum OwnerError {
    /// The row is another's, or has ended.
    Lost,
    /// The service stops, and the work was stopped in order.
    Drained,
    /// Nothing can be done at present; the text is for the log.
    Later(String),
    /// Stored bytes are lost, unless they are brought back soon: many tries, and the row is given up.
    Missing(String),
    /// Waiting does not help, as with an input that is gone: a few tries, and the row is given up.
    Broken(String),
}

impl From<StoreError> for OwnerError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict(_) => Self::Lost,
            // After an unknown outcome the row is read again at its next claim, and fences reject what is late.
            StoreError::Busy(_)
            | StoreError::Full
            | StoreError::Failing(_)
            | StoreError::Objects(_)
            | StoreError::Unknown => Self::Later(error.to_string()),
            StoreError::Lost(what) => Self::Missing(what),
            StoreError::File { ref source, .. } if passes(source) => {
                Self::Later(format!("{error}: {source}"))
            }
            other => Self::Broken(other.to_string()),
        }
    }
}

/// Returns whether the state of the machine is the cause: descriptors or memory have run out, or the disk is read-only.
pub(crate) fn passes(error: &std::io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::ROFS)
    )
}

/// Reason why a piece of the work was not done.
pub(crate) enum StepError {
    /// It cannot be done; another attempt gives the same.
    Failed(Failure),
    /// The work cannot continue now.
    Stop(OwnerError),
}

impl From<Failure> for StepError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<StoreError> for StepError {
    /// Missing bytes stay missing, and fail their own piece only.
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(what) => Self::Failed(Failure::internal(format!(
                "the {what} of this file is gone"
            ))),
            other => Self::Stop(other.into()),
        }
    }
}

/// Reason why the work on a row ends early.
#[derive(Debug)]
pub(crate) enum RowError {
    /// The row cannot be completed, now or later.
    Failed(CodedFailure),
    /// The work cannot continue now.
    Stop(OwnerError),
}

impl From<StepError> for RowError {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Failed(failure) => failure.into(),
            StepError::Stop(stop) => Self::Stop(stop),
        }
    }
}

impl From<OwnerError> for RowError {
    fn from(stop: OwnerError) -> Self {
        Self::Stop(stop)
    }
}

impl From<Failure> for RowError {
    fn from(failure: Failure) -> Self {
        Self::Failed(CodedFailure {
            code: code_of(failure.code),
            message: failure.message,
        })
    }
}

impl From<StoreError> for RowError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::OverQuota { .. } => Self::Failed(CodedFailure {
                code: "storage_used_up".to_owned(),
                message: error.to_string(),
            }),
            other => StepError::from(other).into(),
        }
    }
}

/// Returns the code of a failure as it is serialised.
pub(crate) fn code_of(code: FailureCode) -> String {
    match serde_json::to_value(code) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "internal".to_owned(),
    }
}

/// Makes a change, again a few times while the database is busy. `Error::Unknown` is passed on: the change may have been made,
/// and most are not the same when they are made twice.
pub(crate) async fn with_patience<T, F>(change: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    with_patience_for(Duration::MAX, change).await
}

/// Makes a change as [`with_patience`] does, but no further try once so much time has passed.
pub(crate) async fn with_patience_for<T, F>(
    longest: Duration,
    mut change: impl FnMut() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let began_at = Instant::now();
    let mut tries = 1;
    loop {
        match change().await {
            Err(StoreError::Busy(_)) if tries < WRITE_TRIES && began_at.elapsed() < longest => {
                tries += 1;
                tokio::time::sleep(WRITE_PAUSE).await;
            }
            made => return made,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_change_of_unknown_outcome_is_not_made_again() {
        let mut made = 0;
        let unknown = with_patience(|| {
            made += 1;
            let outcome = match made {
                1 => StoreError::Busy("locked".into()),
                _ => StoreError::Unknown,
            };
            async move { Err::<(), _>(outcome) }
        });
        let unknown = unknown.await.unwrap_err();
        assert!(matches!(unknown, StoreError::Unknown), "{unknown:?}");
        assert_eq!(made, 2);
        assert!(matches!(OwnerError::from(unknown), OwnerError::Later(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_not_tried_again_after_its_time() {
        for (longest, expected) in [(Duration::ZERO, 1), (2 * WRITE_PAUSE, 3)] {
            let mut made = 0;
            let busy = with_patience_for(longest, || {
                made += 1;
                async { Err::<(), _>(StoreError::Busy("locked".into())) }
            });
            assert!(matches!(busy.await, Err(StoreError::Busy(_))));
            assert_eq!(made, expected);
        }
    }

    #[test]
    fn what_passes_is_waited_for_and_does_not_count() {
        for (errno, passes) in [
            (Errno::MFILE, true),
            (Errno::NFILE, true),
            (Errno::NOMEM, true),
            (Errno::IO, false),
            (Errno::ACCESS, false),
        ] {
            let stop = OwnerError::from(StoreError::File {
                action: "cannot open",
                path: "blob".into(),
                source: errno.into(),
            });
            assert_eq!(matches!(stop, OwnerError::Later(_)), passes, "{stop:?}");
        }
        let away = StepError::from(StoreError::Objects("the object store is away".into()));
        assert!(matches!(away, StepError::Stop(OwnerError::Later(_))));
        let lost = StepError::from(StoreError::Lost("an object is missing".into()));
        assert!(matches!(lost, StepError::Stop(OwnerError::Missing(_))));
    }
}
