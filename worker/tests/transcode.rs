//! Conversions of tiny clips: what comes out, read by ffprobe and ffmpeg.
#![cfg(feature = "codecs")]

#[path = "transcode/audio_files.rs"]
mod audio_files;
#[path = "av/clips.rs"]
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod clips;
#[path = "transcode/cuts.rs"]
mod cuts;
#[path = "transcode/frames.rs"]
mod frames;
#[path = "transcode/made.rs"]
mod made;
#[path = "transcode/matrix.rs"]
mod matrix;
