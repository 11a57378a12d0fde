//! Parts that the kinds of durable work share: conversions, workflow runs, video streams and recordings.
//!
//! - [`owner`]: the actor that holds one row's task, and gives the row back when the task stops before its end;
//! - [`progress_channels`]: progress for those who wait or follow, with [what running tasks tell](in_flight);
//! - [`workers`]: a task in a worker, which waits for its turn while all are busy;
//! - [`registry_handle`]: the way to their registry; [`shutdown`]: until when rows are taken up; [`outcome_counters`]: what has come of them;
//! - [`input`], [`stored`]: files that come in and that are kept;
//! - [`step_error`]: why work stops, and what becomes of its row then.

pub(crate) mod in_flight;
pub(crate) mod input;
pub(crate) mod outcome_counters;
pub(crate) mod owner;
pub(crate) mod progress_channels;
pub(crate) mod registry_handle;
pub(crate) mod shutdown;
pub(crate) mod step_error;
pub(crate) mod stored;
pub(crate) mod workers;
