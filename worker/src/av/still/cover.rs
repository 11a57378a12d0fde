//! Cover image of an audio file, from its tags or attachments, as it was put in.

use std::ops::ControlFlow;

use gst::prelude::*;
use gstreamer as gst;
use sluice_media::{av::MediaFacts, task::Failure};

use crate::av::{
    graph::{Graph, Want},
    source::Input,
};

/// The first image; `None`: there is none.
pub fn find(input: &Input, facts: &MediaFacts) -> Result<Option<Vec<u8>>, Failure> {
    let graph = Graph::parse(input, facts, Want::AUDIO, None)?;
    // Tags of the track and of the whole file came before its first buffer.
    let mut found = None;
    for branch in graph.branches() {
        branch.pad.sticky_events_foreach(|event| {
            if let gst::EventView::Tag(tag) = event.view() {
                found = found.take().or_else(|| image_in(tag.tag()));
            }
            ControlFlow::Continue(gst::EventForeachAction::Keep)
        });
    }
    Ok(found)
}

fn image_in(tags: &gst::TagListRef) -> Option<Vec<u8>> {
    let cover = tags.index::<gst::tags::Image>(0).map(|tag| tag.get());
    let preview = tags
        .index::<gst::tags::PreviewImage>(0)
        .map(|tag| tag.get());
    let attached = tags
        .index::<gst::tags::Attachment>(0)
        .map(|tag| tag.get())
        .filter(is_image);
    let sample = cover.or(preview).or(attached)?;
    let bytes = sample.buffer()?.map_readable().ok()?;
    (!bytes.is_empty()).then(|| bytes.to_vec())
}

fn is_image(sample: &gst::Sample) -> bool {
    let structure = sample.caps().and_then(|caps| caps.structure(0));
    structure.is_some_and(|structure| structure.name().starts_with("image/"))
}
