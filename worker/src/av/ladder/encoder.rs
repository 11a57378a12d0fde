//! Encoders of renditions: x264 (preset, profile, key frames, threads, bit rate buffer) and AAC.

use std::{num::NonZeroUsize, thread};

use gst::prelude::*;
use gstreamer as gst;
use sluice_media::{
    av::{LadderVideo, ladder::Groups},
    task::Failure,
};

use super::super::sink::make;

/// Threads of one encoder: more cost memory, and renditions are encoded side by side.
const MOST_THREADS: usize = 6;
/// Seconds of the most bit rate that a player is expected to hold.
const BUFFER_S: f64 = 1.5;
/// Frames by which the encoder's order differs at most from the order of showing: its B-frames refer to one another.
pub(super) const REORDERED: u64 = 2;
/// Small frames go to old devices, which may only know Main.
const MAIN_UP_TO_LINES: u32 = 480;

/// x264 for a rendition: a closed group every so many frames and key frames nowhere else.
pub(super) fn h264(rung: &LadderVideo, groups: Groups) -> Result<gst::Element, Failure> {
    let encoder = make("x264enc")?;
    encoder.set_property_from_str("speed-preset", "veryfast");
    encoder.set_property("bitrate", (rung.bitrate / 1_000).max(1));
    encoder.set_property("key-int-max", groups.video_frames);
    encoder.set_property("threads", threads());
    encoder.set_property("aud", false);
    let most = (rung.max_bitrate / 1_000).max(1);
    let options = format!(
        "scenecut=0:open-gop=0:bframes=3:b-pyramid=normal:min-keyint={0}:keyint={0}:vbv-maxrate={most}:vbv-bufsize={1}",
        groups.video_frames,
        (f64::from(most) * BUFFER_S) as u32
    );
    encoder.set_property("option-string", options);
    Ok(encoder)
}

/// Returns the caps of the encoder's output.
pub(super) fn h264_caps(rung: &LadderVideo) -> gst::Caps {
    let profile = if rung.width.min(rung.height) <= MAIN_UP_TO_LINES {
        "main"
    } else {
        "high"
    };
    gst::Caps::builder("video/x-h264")
        .field("stream-format", "avc")
        .field("alignment", "au")
        .field("profile", profile)
        .build()
}

/// AAC-LC. Its rank is 0, so nothing but its name finds it.
pub(super) fn aac(bitrate: u32) -> Result<gst::Element, Failure> {
    let encoder = make("avenc_aac")?;
    encoder.set_property("bitrate", i32::try_from(bitrate).unwrap_or(i32::MAX));
    Ok(encoder)
}

/// Returns one more than cores, which suits the encoder.
fn threads() -> u32 {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    (cores + 1).min(MOST_THREADS) as u32
}
