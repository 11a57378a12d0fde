//! Media, I-frame and caption playlists of a video stream (RFC 8216 §4.3.3): EVENT while it is being made, VOD once it
//! is whole.
//!
//! URIs are relative to the rendition's folder. A playlist of an unfinished asset only ever grows at its end.

use super::{
    super::playlist::{Seconds, VERSION_STANDARD, put},
    VodSegment, VodTrack, names,
};
use crate::unit::CLOCK_90K;

/// Writes the media playlist of a rendition. `finished`: nothing follows.
pub fn media_playlist(track: &VodTrack, finished: bool) -> String {
    let mut text = head(track, finished, "");
    for segment in &track.segments {
        put_duration(&mut text, segment);
        text.push_str(&names::segment_name(segment.number));
        text.push('\n');
    }
    end(text, finished)
}

/// Returns the playlist of a rendition's key frames (RFC 8216 §4.3.3.6): the first of each segment, shown as long as
/// the segment lasts. `None` for audio.
pub fn iframe_playlist(track: &VodTrack, finished: bool) -> Option<String> {
    if !track.info.has_video {
        return None;
    }
    let mut text = head(track, finished, "#EXT-X-I-FRAMES-ONLY\n");
    for segment in &track.segments {
        put_duration(&mut text, segment);
        let name = names::segment_name(segment.number);
        let length = segment.key_length;
        put!(&mut text, "#EXT-X-BYTERANGE:{length}@0\n{name}\n");
    }
    Some(end(text, finished))
}

/// Returns the playlist of captions, which are one WebVTT file for the whole asset (RFC 8216 §3.5).
pub fn captions_playlist(uri: &str, duration_90k: i64) -> String {
    let duration_90k = duration_90k.max(1);
    let target = (duration_90k + CLOCK_90K - 1) / CLOCK_90K;
    let duration = Seconds(duration_90k);
    format!(
        "#EXTM3U\n#EXT-X-VERSION:{VERSION_STANDARD}\n#EXT-X-TARGETDURATION:{target}\n#EXT-X-MEDIA-SEQUENCE:0\n\
         #EXT-X-PLAYLIST-TYPE:VOD\n#EXTINF:{duration},\n{uri}\n#EXT-X-ENDLIST\n"
    )
}

fn head(track: &VodTrack, finished: bool, more: &str) -> String {
    let mut text = String::with_capacity(256 + track.segments.len() * 48);
    let kind = if finished { "VOD" } else { "EVENT" };
    put!(
        &mut text,
        "#EXTM3U\n#EXT-X-VERSION:{VERSION_STANDARD}\n#EXT-X-TARGETDURATION:{}\n#EXT-X-MEDIA-SEQUENCE:0\n\
             #EXT-X-PLAYLIST-TYPE:{kind}\n#EXT-X-INDEPENDENT-SEGMENTS\n{more}#EXT-X-MAP:URI=\"{}\"\n",
        track.target_duration_s,
        names::INIT
    );
    text
}

fn put_duration(text: &mut String, segment: &VodSegment) {
    let duration = Seconds(i64::from(segment.duration_90k));
    put!(text, "#EXTINF:{duration},\n");
}

fn end(mut text: String, finished: bool) -> String {
    if finished {
        text.push_str("#EXT-X-ENDLIST\n");
    }
    text
}
