//! Rows of workflows: versioned definitions, and their runs with steps, inputs and outputs.
//!
//! - A save makes a version, which never changes; a run names the one it executes, so that it has a copy.
//! - A run's owner writes through a lease of the kind [`KIND`]. Each finished step is a row ([`record_steps`]), so
//!   that the next owner continues after it.
//! - Of one workflow, a bounded number of runs is admitted, which means in [`crate::work`]. The others wait as rows;
//!   the transaction that ends a run admits the one that has waited longest ([`admission`]).
//! - A run's input and last buffer are blobs, until its expiry. Buffers between them are scratch files
//!   ([`crate::blob::Scratch`]).

mod addresses;
mod admission;
mod definitions;
mod ending;
mod rerun;
mod retention;
mod retry;
pub mod run_list;
pub mod run_statistics;
mod runs;
mod steps;
mod submission;
#[cfg(test)]
mod tests;

pub use addresses::{ensure_addresses, rotate_secret};
pub use admission::RunLimits;
pub use definitions::{
    NewWorkflow, Replaced, Version, Workflow, create, definition_of, delete, get, list, replace,
    set_active, versions,
};
pub use ending::{
    Completion, EndingTerms, Failure, NewOutput, begin, cancel, cancel_deleted, complete, fail,
    give_up,
};
pub use rerun::{Rerun, rerun};
pub use retention::Retention;
pub(crate) use retention::{sweep, sweep_scratch};
pub use retry::{Retried, Retry, retry};
pub use runs::{
    Output, Run, RunCounts, RunInput, RunStatus, Trigger, by_id, count_by_status, get_run,
    list_runs, output, stored_files,
};
pub use steps::{
    BufferLocation, SkipReason, Step, StepOutput, StepStatus, logs, record_skipped, record_steps,
    steps,
};
pub use submission::{NewRun, Submitted, TriggerLimits, submit, triggered};

/// Kind of a run's row in [`crate::work`].
pub const KIND: &str = "run";
