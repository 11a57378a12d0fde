//! The HLS packager: access units in, CMAF parts, segments and playlists out.
