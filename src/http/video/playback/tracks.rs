//! Tracks, captions and duration for the playlists of a video stream, from its rows.

use sluice_actors::video::{Playback, Track};
use sluice_media::hls::{
    StreamInfo,
    vod::{Caption, VodSegment, VodTrack},
};
use sluice_store::video::RenditionKind;

/// Returns every rendition that has an init section.
pub(super) fn all(playback: &Playback) -> Vec<VodTrack> {
    let target_s = playback.stream.segment_duration_s;
    let tracks = playback.tracks.iter();
    tracks.filter_map(|track| one(track, target_s)).collect()
}

/// Returns one rendition; `None` until its init section is stored. `target_duration_s`: of all segments of the stream.
pub(super) fn one(track: &Track, target_duration_s: u32) -> Option<VodTrack> {
    let rendition = &track.rendition;
    let has_video = rendition.kind == RenditionKind::Video;
    let side = |pixels: Option<u32>| pixels.and_then(|pixels| u16::try_from(pixels).ok());
    let info = StreamInfo {
        codecs: rendition.codecs.clone()?,
        resolution: side(rendition.width).zip(side(rendition.height)),
        frame_rate: rendition.frame_rate,
        has_video,
        has_audio: !has_video,
    };
    let segments = track.segments.iter().map(|segment| VodSegment {
        number: segment.number,
        start_90k: segment.start_90k,
        duration_90k: segment.duration_90k,
        length: segment.length,
        key_length: segment.key_length,
    });
    Some(VodTrack {
        name: rendition.name.clone(),
        info,
        target_duration_s,
        segments: segments.collect(),
    })
}

/// Returns the captions: a label that occurs twice gets its language beside it.
pub(super) fn captions(playback: &Playback) -> Vec<Caption> {
    let captions = &playback.captions;
    captions
        .iter()
        .map(|caption| {
            let label = &caption.label;
            let same = captions.iter().filter(|other| other.label == *label);
            Caption {
                name: match same.count() {
                    1 => label.clone(),
                    _ => format!("{label} ({})", caption.language),
                },
                language: Some(caption.language.clone()),
                uri: format!("captions/{}.m3u8", caption.language),
                default: caption.is_default,
            }
        })
        .collect()
}

/// Returns the duration of the stream, or of the part that is known.
pub(super) fn duration_90k(playback: &Playback) -> i64 {
    let ends = playback
        .tracks
        .iter()
        .filter_map(|track| track.segments.last());
    let end = ends.map(|segment| segment.end_90k()).max().unwrap_or(0);
    let declared = playback.stream.duration_ms.unwrap_or(0).saturating_mul(90);
    end.max(declared)
}
