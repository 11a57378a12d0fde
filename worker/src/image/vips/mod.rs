//! libvips behind a small safe module of our own.
