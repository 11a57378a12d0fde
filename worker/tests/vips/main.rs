//! The libvips path on real and made files: every source to every target, each step, colour, limits, hostile bytes.
#![cfg(feature = "codecs")]

mod colour;
mod corpus;
mod hostile;
mod material;
mod matrix;
mod steps;
