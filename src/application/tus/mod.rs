//! Resumable uploads (tus 1.0): checksums, and the one request that may write an upload.

pub(crate) mod checksum;
pub(crate) mod turns;
