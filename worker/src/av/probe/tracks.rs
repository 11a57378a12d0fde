//! Tracks of a clip as the probe shows them: codec, size, rotation, frame rate, colours, HDR, channels, languages,
//! covers.

use gst::prelude::*;
use gst_pbutils::{
    DiscovererAudioInfo, DiscovererContainerInfo, DiscovererInfo, DiscovererVideoInfo, prelude::*,
};
use gst_video::{VideoColorMatrix, VideoColorPrimaries, VideoColorRange, VideoTransferFunction};
use gstreamer as gst;
use gstreamer_audio as gst_audio;
use gstreamer_pbutils as gst_pbutils;
use gstreamer_video as gst_video;
use sluice_media::av::{AudioTrack, Colour, SubtitleTrack, VideoTrack};

use super::{names, tags};

/// Most tracks of a kind that are described.
const MOST_TRACKS: usize = 16;
/// Containers within containers (tags before a stream count as one) that are looked through for a name.
const MOST_WRAPPINGS: usize = 4;

/// The container in the words of the field.
pub(super) fn container(info: &DiscovererInfo) -> String {
    let mut stream = info.stream_info();
    for _ in 0..MOST_WRAPPINGS {
        let Some(inner) = stream else { break };
        let caps = inner.caps();
        if let Some(name) = caps.as_ref().and_then(names::container) {
            return name.into();
        }
        let codec = caps.as_ref().map(names::codec);
        let is_track = caps.as_ref().is_some_and(names::is_track);
        stream = match inner.downcast::<DiscovererContainerInfo>() {
            Ok(container) => container.streams().into_iter().next(),
            Err(_) if is_track => return names::stream(&codec.unwrap_or_default()),
            // Tags before a stream.
            Err(stream) => stream.next(),
        };
    }
    "unknown".into()
}

/// Returns the video tracks in the order of the file; cover images come last.
pub(super) fn video(info: &DiscovererInfo) -> Vec<VideoTrack> {
    let mut streams = info.video_streams();
    streams.sort_by_key(|stream| stream.stream_number());
    let tracks = streams.iter().map(video_frame);
    let covers = covers(info);
    tracks.chain(covers).take(MOST_TRACKS).collect()
}

fn video_frame(stream: &DiscovererVideoInfo) -> VideoTrack {
    let caps = stream.caps().unwrap_or_else(gst::Caps::new_empty);
    let field = |name: &str| text(&caps, name);
    let colour = colorimetry(&caps);
    // What no decoder takes has a size in its caps alone.
    let or_declared = |side: u32, name: &str| match side {
        0 => number(&caps, name).unwrap_or(0),
        side => side,
    };
    VideoTrack {
        codec: names::codec(&caps),
        profile: field("profile").or_else(|| field("variant")),
        level: field("level"),
        width: or_declared(stream.width(), "width"),
        height: or_declared(stream.height(), "height"),
        rotation: stream.tags().map_or(0, |tags| rotation(&tags)),
        pixel_aspect: fraction(stream.par(), (1, 1)),
        frame_rate: fraction(stream.framerate(), (0, 1)),
        interlaced: stream.is_interlaced(),
        bits_per_sample: number(&caps, "bit-depth-luma"),
        chroma: field("chroma-format"),
        hdr: colour.as_ref().and_then(|colour| hdr(&colour.transfer)),
        colour,
        bitrate: rate(stream.bitrate()),
        is_cover: stream.is_image(),
    }
}

pub(super) fn audio(info: &DiscovererInfo) -> Vec<AudioTrack> {
    let mut streams = info.audio_streams();
    streams.sort_by_key(|stream| stream.stream_number());
    streams.iter().take(MOST_TRACKS).map(audio_track).collect()
}

fn audio_track(stream: &DiscovererAudioInfo) -> AudioTrack {
    let caps = stream.caps().unwrap_or_else(gst::Caps::new_empty);
    let codec = names::codec(&caps);
    AudioTrack {
        profile: text(&caps, "profile"),
        channels: stream.channels(),
        sample_rate: stream.sample_rate(),
        // Of what is coded with loss, the depth is the decoder's choice.
        bits_per_sample: matches!(codec.as_str(), "pcm" | "flac" | "alac" | "wavpack")
            .then(|| depth(&caps).unwrap_or_else(|| stream.depth()))
            .filter(|depth| *depth > 0),
        bitrate: rate(stream.bitrate()),
        language: stream.language().map(String::from),
        codec,
    }
}

pub(super) fn subtitles(info: &DiscovererInfo) -> Vec<SubtitleTrack> {
    info.subtitle_streams()
        .iter()
        .take(MOST_TRACKS)
        .map(|stream| SubtitleTrack {
            codec: stream
                .caps()
                .map_or_else(String::new, |caps| names::codec(&caps)),
            language: stream.language().map(String::from),
        })
        .collect()
}

/// Images among the tags.
fn covers(info: &DiscovererInfo) -> Vec<VideoTrack> {
    let mut covers = Vec::new();
    for tags in tags::lists(info) {
        let image = tags.index::<gst::tags::Image>(0).map(|image| image.get());
        if let Some(caps) = image.and_then(|image| image.caps_owned()) {
            let track = VideoTrack {
                codec: names::codec(&caps),
                width: number(&caps, "width").unwrap_or(0),
                height: number(&caps, "height").unwrap_or(0),
                pixel_aspect: (1, 1),
                frame_rate: (0, 1),
                is_cover: true,
                ..VideoTrack::default()
            };
            if !covers.contains(&track) {
                covers.push(track);
            }
        }
    }
    covers
}

fn rate(bits_per_second: u32) -> Option<u64> {
    (bits_per_second > 0).then(|| bits_per_second.into())
}

fn text(caps: &gst::Caps, field: &str) -> Option<String> {
    caps.structure(0)?.get::<String>(field).ok()
}

/// Numbers in caps are signed or not, as the element likes.
fn number(caps: &gst::Caps, field: &str) -> Option<u32> {
    let structure = caps.structure(0)?;
    let signed = structure.get::<i32>(field).ok();
    signed
        .and_then(|number| u32::try_from(number).ok())
        .or_else(|| structure.get::<u32>(field).ok())
}

/// Returns the depth of plain samples, by their format's name: `S24LE`.
fn depth(caps: &gst::Caps) -> Option<u32> {
    let format: gst_audio::AudioFormat = text(caps, "format")?.parse().ok()?;
    Some(gst_audio::AudioFormatInfo::from_format(format).depth())
}

fn fraction(fraction: gst::Fraction, otherwise: (u32, u32)) -> (u32, u32) {
    match (
        u32::try_from(fraction.numer()),
        u32::try_from(fraction.denom()),
    ) {
        (Ok(numerator @ 1..), Ok(denominator @ 1..)) => (numerator, denominator),
        _ => otherwise,
    }
}

/// Returns the degrees by which a player turns the frames clockwise; what is mirrored too counts by its turn.
fn rotation(tags: &gst::TagList) -> u16 {
    let tag = tags.index::<gst::tags::ImageOrientation>(0);
    let turn = tag.and_then(|tag| tag.get().rsplit('-').next()?.parse().ok());
    turn.filter(|turn| matches!(turn, 90 | 180 | 270))
        .unwrap_or(0)
}

/// Names the colours of a track (ITU-T H.273).
fn colorimetry(caps: &gst::Caps) -> Option<Colour> {
    let colorimetry: gst_video::VideoColorimetry = text(caps, "colorimetry")?.parse().ok()?;
    let primaries = match colorimetry.primaries() {
        VideoColorPrimaries::Bt709 => "bt709",
        VideoColorPrimaries::Bt470m => "bt470m",
        VideoColorPrimaries::Bt470bg => "bt470bg",
        VideoColorPrimaries::Smpte170m => "smpte170m",
        VideoColorPrimaries::Smpte240m => "smpte240m",
        VideoColorPrimaries::Film => "film",
        VideoColorPrimaries::Bt2020 => "bt2020",
        VideoColorPrimaries::Smpterp431 => "smpte431",
        VideoColorPrimaries::Smpteeg432 => "smpte432",
        _ => "unknown",
    };
    let transfer = match colorimetry.transfer() {
        VideoTransferFunction::Bt709 => "bt709",
        VideoTransferFunction::Bt601 => "smpte170m",
        VideoTransferFunction::Gamma22 => "bt470m",
        VideoTransferFunction::Gamma28 => "bt470bg",
        VideoTransferFunction::Gamma10 => "linear",
        VideoTransferFunction::Smpte240m => "smpte240m",
        VideoTransferFunction::Srgb => "srgb",
        VideoTransferFunction::Bt202010 => "bt2020-10",
        VideoTransferFunction::Bt202012 => "bt2020-12",
        VideoTransferFunction::Smpte2084 => PQ,
        VideoTransferFunction::AribStdB67 => HLG,
        _ => "unknown",
    };
    let matrix = match colorimetry.matrix() {
        VideoColorMatrix::Rgb => "rgb",
        VideoColorMatrix::Fcc => "fcc",
        VideoColorMatrix::Bt709 => "bt709",
        VideoColorMatrix::Bt601 => "smpte170m",
        VideoColorMatrix::Smpte240m => "smpte240m",
        VideoColorMatrix::Bt2020 => "bt2020nc",
        _ => "unknown",
    };
    let range = match colorimetry.range() {
        VideoColorRange::Range0_255 => "full",
        VideoColorRange::Range16_235 => "limited",
        _ => "unknown",
    };
    Some(Colour {
        primaries: primaries.into(),
        transfer: transfer.into(),
        matrix: matrix.into(),
        range: range.into(),
    })
}

/// SMPTE ST 2084.
const PQ: &str = "smpte2084";
/// ARIB STD-B67.
const HLG: &str = "arib-std-b67";

fn hdr(transfer: &str) -> Option<String> {
    match transfer {
        PQ => Some("HDR10".into()),
        HLG => Some("HLG".into()),
        _ => None,
    }
}
