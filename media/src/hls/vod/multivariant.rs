//! Multivariant playlist `master.m3u8` of a video stream (RFC 8216 §4.3.4): order of renditions, BANDWIDTH, captions.

use super::{
    super::playlist::{VERSION_STANDARD, put},
    VodSegment, VodTrack,
    names::{AUDIO, IFRAMES, MEDIA},
};

/// Largest bandwidth of the first variant, with which players begin: what a usual connection carries.
const FIRST_AT_MOST_BPS: u64 = 3_000_000;
/// GROUP-ID of the captions.
const CAPTIONS: &str = "captions";

/// Text tracks of an asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caption {
    /// Name for viewers; no two of an asset have the same.
    pub name: String,
    /// BCP 47.
    pub language: Option<String>,
    /// Address of its playlist, relative to the multivariant playlist.
    pub uri: String,
    pub default: bool,
}

/// Bits per second, with the boxes around the media.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bandwidth {
    /// Peak segment bit rate (RFC 8216 §4.1): the highest of any run of segments that lasts 0.5 to 1.5 target
    /// durations.
    pub peak_bps: u64,
    pub average_bps: u64,
}

/// Returns the bandwidth of a rendition; `None` without a segment.
pub fn bandwidth(track: &VodTrack) -> Option<Bandwidth> {
    measured(track, |segment| segment.length)
}

/// Measures the bytes that `length` counts of each segment.
fn measured(track: &VodTrack, length: impl Fn(&VodSegment) -> u64) -> Option<Bandwidth> {
    let segments = &track.segments;
    let total: u64 = segments.iter().map(&length).sum();
    let lasted: u64 = segments.iter().map(duration).sum();
    if lasted == 0 {
        return None;
    }
    let average_bps = rate(total, lasted);
    let target_90k = u64::from(track.target_duration_s) * 90_000;
    let mut peak_bps = average_bps;
    for first in 0..segments.len() {
        let (mut bytes, mut ticks) = (0, 0);
        for segment in &segments[first..] {
            bytes += length(segment);
            ticks += duration(segment);
            if ticks * 2 > target_90k * 3 {
                break;
            }
            if ticks * 2 >= target_90k {
                peak_bps = peak_bps.max(rate(bytes, ticks));
            }
        }
    }
    Some(Bandwidth {
        peak_bps,
        average_bps,
    })
}

fn duration(segment: &VodSegment) -> u64 {
    u64::from(segment.duration_90k)
}

/// Bits per second, rounded up.
fn rate(bytes: u64, ticks_90k: u64) -> u64 {
    (bytes * 8 * 90_000).div_ceil(ticks_90k.max(1)).max(1)
}

/// Writes the multivariant playlist. Tracks without a segment are left out; with frames, the audio is a group of its
/// own.
pub fn multivariant(tracks: &[VodTrack], captions: &[Caption]) -> String {
    let mut text =
        format!("#EXTM3U\n#EXT-X-VERSION:{VERSION_STANDARD}\n#EXT-X-INDEPENDENT-SEGMENTS\n");
    let audio = tracks.iter().find_map(|track| Measured::new(track, false));
    let renditions = in_order(tracks);
    if let Some(audio) = &audio
        && !renditions.is_empty()
    {
        put_audio(&mut text, audio);
    }
    for caption in captions {
        put_caption(&mut text, caption);
    }
    let variants = if renditions.is_empty() {
        audio.iter().collect()
    } else {
        renditions.iter().collect::<Vec<_>>()
    };
    for variant in variants {
        let beside = audio.as_ref().filter(|_| variant.track.info.has_video);
        put_variant(&mut text, variant, beside, !captions.is_empty());
    }
    for rendition in &renditions {
        put_iframes(&mut text, rendition.track);
    }
    text
}

struct Measured<'a> {
    track: &'a VodTrack,
    bandwidth: Bandwidth,
}

impl<'a> Measured<'a> {
    fn new(track: &'a VodTrack, is_video: bool) -> Option<Self> {
        let bandwidth = bandwidth(track).filter(|_| track.info.has_video == is_video)?;
        Some(Self { track, bandwidth })
    }
}

/// Video renditions from the smallest to the largest, but the one to begin with first.
fn in_order(tracks: &[VodTrack]) -> Vec<Measured<'_>> {
    let mut renditions: Vec<_> = tracks
        .iter()
        .filter_map(|track| Measured::new(track, true))
        .collect();
    renditions.sort_by_key(|rendition| rendition.bandwidth.average_bps);
    let first = renditions
        .iter()
        .rposition(|rendition| rendition.bandwidth.average_bps <= FIRST_AT_MOST_BPS)
        .unwrap_or(0);
    if first < renditions.len() {
        renditions[..=first].rotate_right(1);
    }
    renditions
}

fn put_audio(text: &mut String, audio: &Measured<'_>) {
    put!(
        text,
        "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"{AUDIO}\",NAME=\"Audio\",DEFAULT=YES,AUTOSELECT=YES,\
             CHANNELS=\"2\",URI=\"{}/{MEDIA}\"\n",
        audio.track.name
    );
}

fn put_caption(text: &mut String, caption: &Caption) {
    let default = if caption.default { "YES" } else { "NO" };
    put!(
        text,
        "#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"{CAPTIONS}\",NAME=\"{}\",DEFAULT={default},\
             AUTOSELECT=YES,FORCED=NO",
        quotable(&caption.name)
    );
    if let Some(language) = &caption.language {
        put!(text, ",LANGUAGE=\"{}\"", quotable(language));
    }
    put!(text, ",URI=\"{}\"\n", quotable(&caption.uri));
}

fn put_variant(
    text: &mut String,
    variant: &Measured<'_>,
    audio: Option<&Measured<'_>>,
    captions: bool,
) {
    let info = &variant.track.info;
    let own = variant.bandwidth;
    let beside = audio.map(|audio| audio.bandwidth).unwrap_or_default();
    put!(
        text,
        "#EXT-X-STREAM-INF:BANDWIDTH={},AVERAGE-BANDWIDTH={},CODECS=\"{}",
        own.peak_bps + beside.peak_bps,
        own.average_bps + beside.average_bps,
        info.codecs
    );
    if let Some(audio) = audio {
        put!(text, ",{}", audio.track.info.codecs);
    }
    text.push('"');
    if let Some((width, height)) = info.resolution {
        put!(text, ",RESOLUTION={width}x{height}");
    }
    if let Some(rate) = info.frame_rate {
        put!(text, ",FRAME-RATE={rate:.3}");
    }
    if audio.is_some() {
        put!(text, ",AUDIO=\"{AUDIO}\"");
    }
    if captions {
        put!(text, ",SUBTITLES=\"{CAPTIONS}\"");
    }
    if info.has_video {
        text.push_str(",CLOSED-CAPTIONS=NONE");
    }
    put!(text, "\n{}/{MEDIA}\n", variant.track.name);
}

fn put_iframes(text: &mut String, track: &VodTrack) {
    let Some(bandwidth) = measured(track, |segment| segment.key_length) else {
        return;
    };
    put!(
        text,
        "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH={},AVERAGE-BANDWIDTH={},CODECS=\"{}\"",
        bandwidth.peak_bps,
        bandwidth.average_bps,
        track.info.codecs
    );
    if let Some((width, height)) = track.info.resolution {
        put!(text, ",RESOLUTION={width}x{height}");
    }
    put!(text, ",URI=\"{}/{IFRAMES}\"\n", track.name);
}

/// Replaces quotes and line ends, which a quoted string cannot hold (RFC 8216 §4.2).
fn quotable(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '"' => '\'',
            character if character.is_control() => ' ',
            character => character,
        })
        .collect()
}
