//! Workflows and their runs: definitions, their review, and what can be done with them.

pub(crate) mod operations;
pub(crate) mod record;
pub(crate) mod request;
pub(crate) mod review;
pub(crate) mod run_record;
pub(crate) mod trigger;
