//! File names of a video stream: `master.m3u8`, `{height}p/`, `media.m3u8`, `iframes.m3u8`, segments.
//!
//! A segment's bytes never change once the asset is whole, so from then on responses to segment and init section names
//! may be cached without end.

use super::super::names::decimal;

/// The multivariant playlist, beside the renditions' folders.
pub const MULTIVARIANT: &str = "master.m3u8";
/// The media playlist in a rendition's folder.
pub const MEDIA: &str = "media.m3u8";
pub const IFRAMES: &str = "iframes.m3u8";
pub const INIT: &str = "init.mp4";
/// The rendition of the audio.
pub const AUDIO: &str = "audio";

/// Kind of a name in a rendition's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VodName {
    Media,
    IFrames,
    Init,
    /// A segment by its number, from 0.
    Segment(u32),
}

/// Writes `{number}.m4s`.
pub fn segment_name(number: u32) -> String {
    super::super::names::segment_name(u64::from(number))
}

/// Writes `{height}p`, by the short edge of the upright frame.
pub fn rendition_name(width: u32, height: u32) -> String {
    format!("{}p", width.min(height))
}

/// Returns whether this is the name of a rendition: `audio`, or pixels and `p`, in the one form in which they are
/// written.
pub fn is_rendition(name: &str) -> bool {
    let pixels = name.strip_suffix('p').and_then(decimal::<u16>);
    name == AUDIO || pixels.is_some_and(|pixels| pixels > 0)
}

/// Parses a name in a rendition's folder. Only the exact form is valid, so that each file has one address.
pub fn parse(name: &str) -> Option<VodName> {
    match name {
        MEDIA => Some(VodName::Media),
        IFRAMES => Some(VodName::IFrames),
        INIT => Some(VodName::Init),
        _ => decimal(name.strip_suffix(".m4s")?).map(VodName::Segment),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_form_is_a_name() {
        let cases = [
            ("", None),
            (".m4s", None),
            ("-1.m4s", None),
            ("+1.m4s", None),
            ("01.m4s", None),
            ("1.2.m4s", None),
            ("../1.m4s", None),
            ("4294967296.m4s", None),
            ("init0.mp4", None),
            ("MEDIA.m3u8", None),
            ("0.m4s", Some(VodName::Segment(0))),
            ("4294967295.m4s", Some(VodName::Segment(u32::MAX))),
            ("init.mp4", Some(VodName::Init)),
            ("media.m3u8", Some(VodName::Media)),
            ("iframes.m3u8", Some(VodName::IFrames)),
        ];
        for (name, expected) in cases {
            assert_eq!(parse(name), expected, "{name:?}");
        }
        assert_eq!(parse(&segment_name(12)), Some(VodName::Segment(12)));
    }

    #[test]
    fn renditions_are_named_by_the_short_edge() {
        assert_eq!(rendition_name(1280, 720), "720p");
        assert_eq!(rendition_name(720, 1280), "720p");
        for (name, expected) in [
            ("audio", true),
            ("720p", true),
            ("1p", true),
            ("", false),
            ("p", false),
            ("0p", false),
            ("0720p", false),
            ("+720p", false),
            ("720", false),
            ("65536p", false),
            ("Audio", false),
            ("../audio", false),
        ] {
            assert_eq!(is_rendition(name), expected, "{name:?}");
        }
    }
}
