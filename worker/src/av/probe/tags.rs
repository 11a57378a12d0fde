//! Tags of a clip (title, artist …): bounded in number and length, without places such as GPS positions.

use std::collections::BTreeMap;

use gst::{glib, prelude::*};
use gst_pbutils::{DiscovererContainerInfo, prelude::*};
use gstreamer as gst;
use gstreamer_pbutils as gst_pbutils;

/// Tags of a clip that are kept.
const MOST_TAGS: usize = 64;
/// Characters of one value.
const LONGEST: usize = 200;

/// Tags that say what the tracks' facts say better.
const TECHNICAL: &[&str] = &[
    "application-data",
    "attachment",
    "audio-codec",
    "bitrate",
    "codec",
    "container-format",
    "container-specific-track-id",
    "has-crc",
    "image",
    "image-orientation",
    "language-code",
    "language-name",
    "maximum-bitrate",
    "minimum-bitrate",
    "nominal-bitrate",
    "preview-image",
    "private-data",
    "private-id3v2-frame",
    "private-qt-tag",
    "subtitle-codec",
    "video-codec",
];

/// Words in names, or before the `=` of a free comment, that reveal a place.
const PLACES: &[&str] = &["geo", "location", "gps", "latitude", "longitude", "xyz"];

/// The tag lists of a clip, those of the whole before those of its tracks.
pub(super) fn lists(info: &gst_pbutils::DiscovererInfo) -> Vec<gst::TagList> {
    let whole = info
        .stream_info()
        .and_then(|stream| stream.downcast::<DiscovererContainerInfo>().ok())
        .and_then(|container| container.tags());
    let tracks = info.stream_list().into_iter();
    whole
        .into_iter()
        .chain(tracks.filter_map(|track| track.tags()))
        .collect()
}

/// Title, artist, encoder … by GStreamer's names. Of equal names the first counts.
pub(super) fn words(lists: &[gst::TagList]) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    for (name, value) in lists.iter().flat_map(|tags| tags.iter()) {
        if words.len() == MOST_TAGS {
            break;
        }
        if words.contains_key(name.as_str()) {
            continue;
        }
        if TECHNICAL.contains(&name.as_str()) || is_place(name) {
            continue;
        }
        if let Some(text) = text(&value).filter(|text| !comments_on_place(name, text)) {
            words.insert(name.to_string(), bounded(&text));
        }
    }
    words
}

fn is_place(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PLACES.iter().any(|place| name.contains(place))
}

/// `extended-comment` holds `name=value`.
fn comments_on_place(name: &str, text: &str) -> bool {
    name == "extended-comment" && text.split_once('=').is_none_or(|(name, _)| is_place(name))
}

fn text(value: &glib::Value) -> Option<String> {
    if let Ok(text) = value.get::<String>() {
        return Some(text);
    }
    if let Ok(time) = value.get::<gst::DateTime>() {
        return time.to_iso8601_string().ok().map(String::from);
    }
    let number = value.transform::<String>().ok()?;
    let is_plain = value.type_().is_a(glib::Type::U32)
        || value.type_().is_a(glib::Type::U64)
        || value.type_().is_a(glib::Type::F64);
    is_plain.then(|| number.get::<String>().ok())?
}

fn bounded(text: &str) -> String {
    text.chars()
        .filter(|character| !character.is_control())
        .take(LONGEST)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_left_out() {
        for (name, text, is_left_out) in [
            ("geo-location-latitude", "48.1", true),
            ("extended-comment", "location=+48.1+011.5/", true),
            (
                "extended-comment",
                "com.apple.quicktime.location.ISO6709=+48",
                true,
            ),
            ("extended-comment", "no equals sign", true),
            ("extended-comment", "mood=calm", false),
            ("title", "my location=home", false),
        ] {
            let found = is_place(name) || comments_on_place(name, text);
            assert_eq!(found, is_left_out, "{name}: {text}");
        }
    }

    #[test]
    fn values_are_bounded() {
        assert_eq!(bounded(&"ö".repeat(500)).chars().count(), LONGEST);
        assert_eq!(bounded("a\0b\nc"), "abc");
    }
}
