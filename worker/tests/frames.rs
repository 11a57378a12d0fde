//! Frames out of clips, and drawings of audio, asked for as the worker asks, on tiny clips that ffmpeg makes.
//!
//! Frame number n of a counted clip is of one grey that encodes n, so that a taken frame can be identified.
#![cfg(feature = "codecs")]

#[path = "frames/animations.rs"]
mod animations;
#[path = "av/clips.rs"]
#[expect(dead_code, reason = "other binaries use the rest")]
mod clips;
#[path = "frames/material.rs"]
mod material;
#[path = "frames/sheets.rs"]
mod sheets;
#[path = "frames/stills.rs"]
mod stills;
#[path = "frames/waveforms.rs"]
mod waveforms;
