//! Names of codecs and containers (`h264`, `aac`, `MP4`, `Matroska`) for the media types of GStreamer.

use gstreamer as gst;

/// Kinds that are named by their media type alone.
const CODECS: &[(&str, &str)] = &[
    ("video/x-h264", "h264"),
    ("video/x-h265", "hevc"),
    ("video/x-av1", "av1"),
    ("video/x-vp8", "vp8"),
    ("video/x-vp9", "vp9"),
    ("video/x-vp6", "vp6"),
    ("video/x-vp6-flash", "vp6"),
    ("video/x-vp6-alpha", "vp6"),
    ("video/x-divx", "mpeg4"),
    ("video/x-xvid", "mpeg4"),
    ("video/x-msmpeg", "msmpeg4"),
    ("video/x-flash-video", "flv1"),
    ("video/x-dv", "dv"),
    ("video/x-raw", "raw"),
    ("image/jpeg", "mjpeg"),
    ("image/png", "png"),
    ("audio/x-raw", "pcm"),
    // The content is not declared; nearly always it is this.
    ("audio/x-wav", "pcm"),
    ("audio/x-aiff", "pcm"),
    ("audio/x-au", "pcm"),
    ("audio/x-eac3", "eac3"),
    ("audio/x-dts", "dts"),
    ("audio/AMR", "amr"),
    ("audio/AMR-WB", "amr-wb"),
];

/// Containers by their media type.
const CONTAINERS: &[(&str, &str)] = &[
    ("video/x-matroska", "Matroska"),
    ("audio/x-matroska", "Matroska"),
    ("video/x-matroska-3d", "Matroska"),
    ("video/webm", "WebM"),
    ("audio/webm", "WebM"),
    ("video/x-msvideo", "AVI"),
    ("video/mpegts", "MPEG-TS"),
    ("video/mpeg", "MPEG-PS"),
    ("video/x-cdxa", "MPEG-PS"),
    ("video/x-ms-asf", "ASF"),
    ("video/x-flv", "FLV"),
    ("application/ogg", "Ogg"),
    ("audio/ogg", "Ogg"),
    ("video/ogg", "Ogg"),
    ("application/mxf", "MXF"),
    ("audio/x-wav", "WAV"),
    ("audio/x-aiff", "AIFF"),
    ("audio/x-au", "AU"),
    ("video/quicktime", "MP4"),
    ("application/x-3gp", "MP4"),
    ("audio/x-m4a", "MP4"),
];

/// Returns the name of a codec: `h264`, `aac` …
pub(super) fn codec(caps: &gst::Caps) -> String {
    let Some(structure) = caps.structure(0) else {
        return "unknown".into();
    };
    let name = structure.name().as_str();
    let number = |field: &str| structure.get::<i32>(field).unwrap_or(0);
    let numbered = match name {
        "video/mpeg" => match number("mpegversion") {
            1 => "mpeg1",
            4 => "mpeg4",
            _ => "mpeg2",
        },
        "audio/mpeg" => match (number("mpegversion"), number("layer")) {
            (1, 1) => "mp1",
            (1, 2) => "mp2",
            (1, _) => "mp3",
            _ => "aac",
        },
        "video/x-wmv" => match number("wmvversion") {
            1 => "wmv1",
            2 => "wmv2",
            _ if is_format(structure, "WVC1") => "vc1",
            _ => "wmv3",
        },
        "audio/x-wma" => match number("wmaversion") {
            1 | 2 => "wma",
            3 => "wmapro",
            _ => "wmalossless",
        },
        _ => "",
    };
    if !numbered.is_empty() {
        return numbered.into();
    }
    let known = CODECS.iter().find(|(media_type, _)| *media_type == name);
    known.map_or_else(|| bare(name), |(_, codec)| (*codec).to_owned())
}

fn is_format(structure: &gst::StructureRef, format: &str) -> bool {
    structure
        .get::<&str>("format")
        .is_ok_and(|found| found == format)
}

/// Shortens a media type: `video/x-theora` → `theora`.
fn bare(media_type: &str) -> String {
    let kind = media_type.rsplit('/').next().unwrap_or(media_type);
    kind.strip_prefix("x-").unwrap_or(kind).to_ascii_lowercase()
}

/// Returns the name of a container: `MP4`, `Matroska` …; `None`: no container that is known by a name.
pub(super) fn container(caps: &gst::Caps) -> Option<&'static str> {
    let name = caps.structure(0)?.name().as_str();
    let known = CONTAINERS
        .iter()
        .find(|(media_type, _)| *media_type == name);
    known.map(|(_, container)| *container)
}

/// Returns whether these are video or audio, and no wrapping of them.
pub(super) fn is_track(caps: &gst::Caps) -> bool {
    let is_of = |kind: &str| {
        caps.structure(0)
            .is_some_and(|structure| structure.name().starts_with(kind))
    };
    is_of("video/") || is_of("audio/") || is_of("image/")
}

/// A stream without a container, by its codec.
pub(super) fn stream(codec: &str) -> String {
    match codec {
        "aac" => "ADTS".into(),
        other => other.to_ascii_uppercase(),
    }
}
