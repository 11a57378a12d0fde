//! Links a track to its chain: parsers by codec for a copied track, a decoder of its own for one that is re-encoded.

use gst::prelude::*;
use gstreamer as gst;
use sluice_media::task::Failure;

use crate::av::{
    graph::{BranchKind, Graph},
    internal,
    open::decoded_queue,
    sink::make,
};

/// Returns the elements that bring a coded track into the form that multiplexers take.
pub fn parsers(codec: &str) -> Result<Vec<gst::Element>, Failure> {
    // Matroska has times of presentation only, MP4 needs those of decoding too: the last of each pair makes them.
    let names: &[&str] = match codec {
        "h264" => &["h264parse", "h264timestamper"],
        "hevc" => &["h265parse", "h265timestamper"],
        "av1" => &["av1parse"],
        "vp9" => &["vp9parse"],
        "mpeg4" => &["mpeg4videoparse"],
        "mpeg1" | "mpeg2" => &["mpegvideoparse"],
        "aac" => &["aacparse"],
        "mp2" | "mp3" => &["mpegaudioparse"],
        "opus" => &["opusparse"],
        "vorbis" => &["vorbisparse"],
        "flac" => &["flacparse"],
        "ac3" | "eac3" => &["ac3parse"],
        "dts" => &["dcaparse"],
        _ => &["identity"],
    };
    names.iter().map(|name| make(name)).collect()
}

/// Links a branch to a chain of new elements; through a decoder where the branch is coded and the chain wants it decoded.
pub fn link(
    graph: &Graph,
    kind: BranchKind,
    chain: &[gst::Element],
    decodes: bool,
) -> Result<(), Failure> {
    let first = chain
        .first()
        .ok_or_else(|| internal("a track goes through no element"))?;
    graph.add_chain(&chain.iter().collect::<Vec<_>>())?;
    if !decodes {
        return graph.link(kind, first);
    }
    let decoder = make("decodebin")?;
    let queue = decoded_queue(kind)
        .map_err(|error| internal(format!("a decoder cannot be queued: {error}")))?;
    graph.add_chain(&[&decoder])?;
    graph.add_chain(&[&queue])?;
    queue
        .link(first)
        .map_err(|error| internal(format!("a decoder cannot be linked: {error}")))?;
    decoder.connect_pad_added(move |_, pad| {
        let Some(sink) = queue.static_pad("sink").filter(|sink| !sink.is_linked()) else {
            return;
        };
        if let Err(error) = pad.link(&sink) {
            gst::element_error!(queue, gst::CoreError::Pad, ["{error}"]);
        }
    });
    graph.link(kind, &decoder)
}
