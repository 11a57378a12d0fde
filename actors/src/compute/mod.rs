//! The compute pool: image workers behind an actix SyncArbiter, with lanes and permits in front.

mod settings;

pub use settings::{ComputeSettings, Sandbox};

/// The handle of the pool. Clones share it.
#[derive(Clone, Debug)]
pub struct Compute {}

impl Compute {
    /// Starts the arbiter threads; each spawns its worker process (`program worker`) at once and replaces it when it ends.
    pub fn start(_settings: &ComputeSettings, _program: std::path::PathBuf) -> Self {
        Self {}
    }
}
