//! Tags of a clip that are kept in the result of a conversion (title, artist, date …); all others are removed.

use gst::prelude::*;
use gstreamer as gst;

use crate::av::graph::{BranchKind, Graph};

/// Tags that people wrote. Everything else is about the source's coding, or reveals where and with what it was
/// recorded.
const KEPT: &[&str] = &[
    "title",
    "artist",
    "album",
    "album-artist",
    "composer",
    "genre",
    "comment",
    "description",
    "copyright",
    "date",
    "datetime",
    "track-number",
    "track-count",
    "album-disc-number",
    "language-code",
];

/// Lets those tags of a branch through that belong into the result: none, unless `keep`.
pub fn filter(graph: &Graph, kind: BranchKind, keep: bool) {
    let Some(branch) = graph.branch(kind) else {
        return;
    };
    branch
        .pad
        .add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, move |_, info| {
            let Some(gst::EventView::Tag(event)) = info.event().map(|event| event.view()) else {
                return gst::PadProbeReturn::Ok;
            };
            let tags = kept(event.tag(), keep);
            info.data = Some(gst::PadProbeData::Event(gst::event::Tag::new(tags)));
            gst::PadProbeReturn::Ok
        });
}

fn kept(tags: &gst::TagListRef, keep: bool) -> gst::TagList {
    let mut left = gst::TagList::new();
    let list = left.make_mut();
    list.set_scope(tags.scope());
    for (name, value) in tags.iter() {
        if keep && KEPT.contains(&name.as_str()) {
            // A value that its own list had is of the type that its tag has.
            let _ = list.add_value(name, &value, gst::TagMergeMode::Append);
        }
    }
    left
}
