//! Workflows and their runs: use cases, definitions and their review, fields of requests and answers.

pub(crate) mod dry_run_record;
pub(crate) mod operations;
pub(crate) mod record;
pub(crate) mod request;
pub(crate) mod review;
pub(crate) mod run_record;
pub(crate) mod trigger;
