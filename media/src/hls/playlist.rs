//! Playlists (RFC 8216bis), rendered from a window.

use super::Window;

/// What a client asked of a media playlist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaOptions {
    /// `_HLS_skip=YES`: older segments may be left out (a delta update).
    pub skip: bool,
}

/// The media playlist. URIs are relative to it: `{broadcast}/{name}`.
pub fn media_playlist(window: &Window, options: MediaOptions) -> String {
    let _ = (window, options);
    String::new()
}

/// The multivariant playlist: one rendition, `media.m3u8`.
pub fn multivariant_playlist(window: &Window) -> String {
    let _ = window;
    String::new()
}
