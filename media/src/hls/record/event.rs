//! Writes the EVENT playlist of a broadcast since its beginning (RFC 8216 §4.3.3.5), for viewers who start over, and
//! the most segments in it. It only grows.

use bytes::Bytes;

use super::{
    super::{
        names,
        playlist::{Seconds, VERSION_STANDARD, put, put_date_time},
    },
    SegmentEntry,
};

/// Segments of one playlist: a day and a half of two seconds each.
pub const MOST_LISTED: usize = 65_536;

/// A growing playlist. The listed segments are written once; an answer is a head, these, and perhaps an end.
#[derive(Clone, Debug)]
pub struct EventPlaylist {
    broadcast: String,
    target_duration_s: u32,
    init: Option<u32>,
    segments: usize,
    text: String,
    rendered: Option<(bool, Bytes)>,
}

impl EventPlaylist {
    pub fn new(broadcast: String, target_duration_s: u32) -> Self {
        Self {
            broadcast,
            target_duration_s,
            init: None,
            segments: 0,
            text: String::new(),
            rendered: None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.segments == 0
    }

    /// Lists a closed segment; beyond [`MOST_LISTED`] the playlist grows no more.
    pub fn push(&mut self, segment: &SegmentEntry) {
        if self.segments >= MOST_LISTED {
            return;
        }
        if segment.discontinuity && self.segments > 0 {
            self.text.push_str("#EXT-X-DISCONTINUITY\n");
        }
        let broadcast = &self.broadcast;
        if self.init != Some(segment.init) {
            let name = names::init_name(segment.init);
            put!(&mut self.text, "#EXT-X-MAP:URI=\"{broadcast}/{name}\"\n");
            self.init = Some(segment.init);
        }
        self.text.push_str("#EXT-X-PROGRAM-DATE-TIME:");
        put_date_time(&mut self.text, segment.program_date_time_ms);
        let duration = Seconds(i64::from(segment.duration_90k));
        let name = names::segment_name(segment.msn);
        put!(
            &mut self.text,
            "\n#EXTINF:{duration},\n{broadcast}/{name}\n"
        );
        self.segments += 1;
        self.rendered = None;
    }

    /// Writes the playlist; `ended`: nothing follows.
    pub fn render(&mut self, ended: bool) -> Bytes {
        if let Some((was_ended, rendered)) = &self.rendered
            && *was_ended == ended
        {
            return rendered.clone();
        }
        let mut whole = String::with_capacity(self.text.len() + 160);
        put!(
            &mut whole,
            "#EXTM3U\n#EXT-X-VERSION:{VERSION_STANDARD}\n#EXT-X-TARGETDURATION:{}\n#EXT-X-MEDIA-SEQUENCE:0\n\
                 #EXT-X-PLAYLIST-TYPE:EVENT\n",
            self.target_duration_s
        );
        whole.push_str(&self.text);
        if ended {
            whole.push_str("#EXT-X-ENDLIST\n");
        }
        let rendered = Bytes::from(whole);
        self.rendered = Some((ended, rendered.clone()));
        rendered
    }
}
