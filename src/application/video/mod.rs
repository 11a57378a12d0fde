//! Video streams: changes, requests and records.

pub(crate) mod captions;
pub(crate) mod record;
pub(crate) mod request;
pub(crate) mod streams;
