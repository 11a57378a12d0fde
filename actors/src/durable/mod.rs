//! Parts that all durable work shares: conversion jobs, workflow runs, video streams and recordings.
//!
//! - [`owner`]: the actor that holds one row's task, and gives the row back when the task stops before its end;
//! - [`progress_channels`]: progress for callers that wait or follow, with [that of running tasks](in_flight), also of
//!   [other nodes](elsewhere);
//! - [`workers`]: tasks in the workers, waiting while all are busy;
//! - [`registry_handle`]: reference to their registry; [`shutdown`]: end of the claims at a stop;
//! - [`outcome_counters`]: counts of outcomes, for metrics;
//! - [`input`], [`stored`]: files that come in and that are kept;
//! - [`step_error`]: reasons why work stops, and what happens to its row.

pub(crate) mod elsewhere;
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
