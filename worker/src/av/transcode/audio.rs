//! Decoded audio as the encoder takes it: rate, channels, sample format, and gain where volume or fades are asked for.

use std::sync::atomic::{AtomicU64, Ordering};

use gst::prelude::*;
use gstreamer as gst;
use sluice_media::{
    av::plan::{AudioCodec, AudioEncoding},
    task::Failure,
};

use super::{encoder::caps, envelope::Envelope};
use crate::av::sink::make;

/// Interleaved samples that our own code reads and writes.
pub const FLOATS: &str = "F32LE";

/// The elements, the first of which takes any audio.
pub fn chain(
    audio: &AudioEncoding,
    envelope: Option<Envelope>,
) -> Result<Vec<gst::Element>, Failure> {
    let mut elements = entry()?;
    if let Some(envelope) = envelope {
        let floats = caps(&samples(audio, FLOATS))?;
        multiply(&floats, envelope, audio);
        elements.push(floats);
        elements.push(make("audioconvert")?);
    }
    elements.push(caps(&match exact_form(audio) {
        Some(form) => samples(audio, form),
        None => any_samples(audio),
    })?);
    Ok(elements)
}

/// The elements up to samples of that form, for our own code.
pub fn to_samples(audio: &AudioEncoding, format: &str) -> Result<Vec<gst::Element>, Failure> {
    let mut elements = entry()?;
    elements.push(caps(&samples(audio, format))?);
    Ok(elements)
}

/// The form of samples in which a codec that loses nothing takes them; `None`: any will do.
pub fn exact_form(audio: &AudioEncoding) -> Option<&'static str> {
    match (audio.codec, audio.bits) {
        (AudioCodec::Flac | AudioCodec::Pcm, 24) => Some("S24LE"),
        (AudioCodec::Flac | AudioCodec::Pcm, _) => Some("S16LE"),
        _ => None,
    }
}

/// Returns the elements that bring any audio to any rate and channels. Audio that was never coded is not cut by a
/// demultiplexer before.
fn entry() -> Result<Vec<gst::Element>, Failure> {
    ["audiosegmentclip", "audioconvert", "audioresample"]
        .into_iter()
        .map(make)
        .collect()
}

/// The caps of interleaved samples.
pub fn samples(audio: &AudioEncoding, format: &str) -> String {
    format!("{},format={format},layout=interleaved", any_samples(audio))
}

fn any_samples(audio: &AudioEncoding) -> String {
    format!(
        "audio/x-raw,rate={},channels={}",
        audio.rate, audio.channels
    )
}

/// Multiplies what passes an element of float samples.
fn multiply(floats: &gst::Element, envelope: Envelope, audio: &AudioEncoding) {
    let pad = floats.static_pad("src").expect("a filter has two pads");
    let (rate, channels) = (f64::from(audio.rate), audio.channels as usize);
    let passed = AtomicU64::new(0);
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let Some(gst::PadProbeData::Buffer(buffer)) = &mut info.data else {
            return gst::PadProbeReturn::Ok;
        };
        if let Ok(mut bytes) = buffer.make_mut().map_writable() {
            let mut frame_number = passed.load(Ordering::Relaxed);
            for frame in bytes.chunks_exact_mut(4 * channels) {
                let gain = envelope.at(frame_number as f64 / rate);
                for sample in frame.as_chunks_mut::<4>().0 {
                    *sample = (f32::from_le_bytes(*sample) * gain).to_le_bytes();
                }
                frame_number += 1;
            }
            passed.store(frame_number, Ordering::Relaxed);
        }
        gst::PadProbeReturn::Ok
    });
}
