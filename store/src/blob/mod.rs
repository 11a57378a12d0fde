//! Blobs: immutable files named by their content, on the local disk.
