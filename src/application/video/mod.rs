//! Video streams: requests and records.

pub(crate) mod record;
pub(crate) mod request;
