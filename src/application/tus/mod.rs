//! Resumable uploads (tus 1.0): checksums, and which request may write.

pub(crate) mod checksum;
pub(crate) mod turns;
