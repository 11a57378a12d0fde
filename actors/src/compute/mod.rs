//! The compute pool: image workers behind an actix SyncArbiter, with lanes and permits in front.

mod assignment;
mod settings;
mod status;

use std::path::PathBuf;

use sluice_media::task::Limits;

pub use assignment::{Assignment, Error, Finished, Lane, Output};
pub use settings::{ComputeSettings, Sandbox};
pub use status::PoolStatus;

/// The handle of the pool. Clones share it.
#[derive(Clone, Debug)]
pub struct Compute {
    limits: Limits,
}

impl Compute {
    /// Starts the arbiter threads; each spawns its worker process (`program worker`) at once and replaces it when it ends.
    pub fn start(settings: &ComputeSettings, _program: PathBuf) -> Self {
        Self {
            limits: settings.limits(),
        }
    }

    /// Performs a task in a worker. Dropping the future cancels it: what waits is skipped, what runs is killed.
    ///
    /// A task whose worker dies without an explanation is tried once more; after a second death it fails with
    /// [`DecodeFailed`](sluice_media::task::FailureCode::DecodeFailed).
    pub async fn run(&self, _lane: Lane, _assignment: Assignment) -> Result<Finished, Error> {
        Err(Error::Unavailable("the pool is not built yet".into()))
    }

    /// What a task may take, by the settings.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The pool at this moment; costs no message.
    pub fn status(&self) -> PoolStatus {
        PoolStatus::default()
    }
}
