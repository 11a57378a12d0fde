//! Encoders of conversions and their settings: x264, VP9, AAC, MP3, Opus, FLAC, WAV; key frame interval, speed,
//! threads.

use std::thread;

use gst::prelude::*;
use gstreamer as gst;
use sluice_media::{
    av::plan::{AudioCodec, AudioEncoding, VideoCodec},
    task::Failure,
};

use super::tail;
use crate::av::{
    refused,
    sink::{filter, make},
};

/// Frames from one key frame to the next at most: what ffmpeg takes for x264, and libvpx's usual.
const H264_GROUP: u32 = 250;
const VP9_GROUP: i32 = 240;
/// libvpx: 4 or 5 is what is meant for files that a user waits for.
const VP9_SPEED: i32 = 5;
/// Microseconds for a frame that mean "good quality" to libvpx.
const VP9_GOOD: i64 = 1_000_000;
/// Threads of a VP9 encoder.
const VP9_MOST_THREADS: usize = 16;
const VP9_LOOKAHEAD: i32 = 25;

/// From I420 frames to a coded track.
pub fn video(codec: VideoCodec) -> Result<Vec<gst::Element>, Failure> {
    match codec {
        VideoCodec::H264 { rate_factor } => Ok(vec![
            x264(rate_factor)?,
            caps("video/x-h264,stream-format=avc,alignment=au,profile=high")?,
            make("h264parse")?,
        ]),
        VideoCodec::Vp9 { level, bitrate } => Ok(vec![vp9(level, bitrate)?, make("vp9parse")?]),
    }
}

fn x264(rate_factor: u8) -> Result<gst::Element, Failure> {
    let encoder = make("x264enc")?;
    encoder.set_property_from_str("speed-preset", "veryfast");
    encoder.set_property_from_str("pass", "qual");
    encoder.set_property("quantizer", u32::from(rate_factor.min(50)));
    encoder.set_property("key-int-max", H264_GROUP);
    // Constant quality is bounded by no buffer, else its default bitrate would be a ceiling.
    encoder.set_property("vbv-buf-capacity", 0_u32);
    Ok(encoder)
}

fn vp9(level: u8, bitrate: u32) -> Result<gst::Element, Failure> {
    let threads = thread::available_parallelism().map_or(2, usize::from);
    let encoder = make("vp9enc")?;
    encoder.set_property("deadline", VP9_GOOD);
    encoder.set_property("cpu-used", VP9_SPEED);
    encoder.set_property("row-mt", true);
    encoder.set_property("threads", threads.min(VP9_MOST_THREADS) as i32);
    encoder.set_property("tile-columns", 6_i32);
    encoder.set_property_from_str("end-usage", "cq");
    encoder.set_property("cq-level", i32::from(level.min(63)));
    encoder.set_property("target-bitrate", bitrate as i32);
    encoder.set_property("max-quantizer", 63_i32);
    encoder.set_property("min-quantizer", 0_i32);
    encoder.set_property("keyframe-max-dist", VP9_GROUP);
    encoder.set_property("lag-in-frames", VP9_LOOKAHEAD);
    encoder.set_property("auto-alt-ref", true);
    encoder.set_property("timebase", gst::Fraction::new(1, 90_000));
    tail::repeat_last(&encoder, VP9_LOOKAHEAD as u32 + 1);
    Ok(encoder)
}

/// From samples of the codec's rate and channels to a coded track.
pub fn audio(audio: &AudioEncoding) -> Result<Vec<gst::Element>, Failure> {
    let bitrate = audio.bitrate.unwrap_or_default();
    match audio.codec {
        AudioCodec::Aac => {
            let encoder = make("avenc_aac")?;
            encoder.set_property_from_str("bitrate", &bitrate.to_string());
            Ok(vec![encoder, make("aacparse")?])
        }
        AudioCodec::Mp3 => {
            let encoder = make("lamemp3enc")?;
            encoder.set_property_from_str("target", "bitrate");
            encoder.set_property("bitrate", (bitrate / 1_000) as i32);
            // Readers take the length of a file from its size.
            encoder.set_property("cbr", true);
            Ok(vec![encoder, make("mpegaudioparse")?])
        }
        AudioCodec::Opus => {
            let encoder = make("opusenc")?;
            encoder.set_property("bitrate", bitrate as i32);
            Ok(vec![encoder, make("opusparse")?])
        }
        AudioCodec::Flac => Ok(vec![make("flacenc")?]),
        AudioCodec::Pcm => Ok(vec![make("wavenc")?]),
    }
}

/// An element that lets only such a stream through.
pub fn caps(caps: &str) -> Result<gst::Element, Failure> {
    let caps: gst::Caps = caps
        .parse()
        .map_err(|_| refused("its video or its audio are of no usual form"))?;
    filter(&caps)
}
