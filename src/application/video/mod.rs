//! Video streams: creation, captions, fields of requests and answers.

pub(crate) mod captions;
pub(crate) mod record;
pub(crate) mod request;
pub(crate) mod streams;
