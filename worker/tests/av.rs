//! Video and audio work, asked for as the worker asks, on tiny clips that ffmpeg makes.
#![cfg(feature = "codecs")]

#[path = "av/clips.rs"]
mod clips;
#[path = "av/graphs.rs"]
mod graphs;
#[path = "av/hostile.rs"]
mod hostile;
#[path = "av/probes.rs"]
mod probes;
