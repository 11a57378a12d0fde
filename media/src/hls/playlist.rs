//! Writes live playlists (RFC 8216bis): PART-HOLD-BACK, CAN-SKIP-UNTIL, delta updates, EXT-X-GAP, preload hint.
//!
//! Durations are printed with five decimals, so that sums do not drift. A part's never exceeds PART-TARGET, and a
//! segment's, rounded to whole seconds, never TARGETDURATION: the packager cuts accordingly, and where a single frame
//! outlasts a part the attribute is capped.

use super::{Segment, Window, names};
use crate::calendar::civil_date;

/// PART-HOLD-BACK in part targets (RFC 8216bis §4.4.3.8: at least two, three recommended).
pub(super) const HOLD_BACK_PARTS: u32 = 3;
/// CAN-SKIP-UNTIL in target durations (RFC 8216bis §4.4.3.8: at least six).
/// [`Header::list_for`](super::Header::list_for) keeps lists longer.
pub(super) const SKIP_UNTIL_TARGETS: u32 = 6;
/// Length before the live edge for which parts are listed, in target durations (RFC 8216bis §6.2.2).
const PARTS_FOR_TARGETS: i64 = 3;
/// EXT-X-SKIP needs version 9, EXT-X-MAP without I-frames 6, fragmented MP4 7.
const VERSION_LOW_LATENCY: u32 = 9;
pub(super) const VERSION_STANDARD: u32 = 7;

/// Appends formatted text to a playlist.
macro_rules! put {
    ($text:expr, $($argument:tt)+) => {
        std::fmt::Write::write_fmt($text, format_args!($($argument)+)).expect("a String takes everything")
    };
}
pub(super) use put;

/// Request for a media playlist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaOptions {
    /// `_HLS_skip=YES`: older segments may be left out (a delta update).
    pub skip: bool,
}

/// Writes the media playlist. URIs are relative to it: `{broadcast}/{name}`. Renderable at any time; before the first
/// part it lists nothing, and at low latency a gap leads the list as long as the segment that began it.
pub fn media_playlist(window: &Window, options: MediaOptions) -> String {
    MediaPlaylist::new(window).render(options)
}

/// Writes the multivariant playlist: one rendition, `media.m3u8`, to be asked with `query`: nothing, or a text that
/// begins with `?`. Before the first part it has none.
pub fn multivariant_playlist(window: &Window, query: &str) -> String {
    let mut text = format!("#EXTM3U\n#EXT-X-VERSION:{}\n", version(window));
    let (Some(info), Some(bandwidth)) = (window.stream_info(), window.bandwidth()) else {
        return text;
    };
    put!(
        &mut text,
        "#EXT-X-STREAM-INF:BANDWIDTH={},AVERAGE-BANDWIDTH={},CODECS=\"{}\"",
        bandwidth.peak_bps,
        bandwidth.average_bps,
        info.codecs
    );
    if let Some((width, height)) = info.resolution {
        put!(&mut text, ",RESOLUTION={width}x{height}");
    }
    if let Some(rate) = info.frame_rate {
        put!(&mut text, ",FRAME-RATE={rate:.3}");
    }
    put!(&mut text, "\nmedia.m3u8{query}\n");
    text
}

fn version(window: &Window) -> u32 {
    if window.header().low_latency {
        VERSION_LOW_LATENCY
    } else {
        VERSION_STANDARD
    }
}

struct MediaPlaylist<'a> {
    window: &'a Window,
    broadcast: &'a str,
    low_latency: bool,
    target_90k: i64,
    part_target_90k: u32,
    /// Duration of everything listed.
    total_90k: i64,
    /// Number of the gap that leads the list: hls.js and Apple's players do not accept a list of parts alone. It is
    /// removed together with the segment behind it, since no removal may leave less than three target durations (RFC
    /// 8216 §6.2.2).
    gap: Option<u64>,
    text: String,
}

impl<'a> MediaPlaylist<'a> {
    fn new(window: &'a Window) -> Self {
        let header = window.header();
        let low_latency = header.low_latency;
        let listed = window
            .segments()
            .filter(|segment| low_latency || segment.closed);
        Self {
            window,
            broadcast: &header.broadcast,
            low_latency,
            target_90k: i64::from(header.target_duration_s) * 90_000,
            part_target_90k: window.part_target_90k().unwrap_or(0),
            total_90k: listed.map(|segment| i64::from(segment.duration_90k)).sum(),
            gap: window.gap(),
            text: String::with_capacity(4_096),
        }
    }

    fn render(mut self, options: MediaOptions) -> String {
        self.head();
        let skipped = if options.skip && self.low_latency {
            self.skippable()
        } else {
            0
        };
        if skipped > 0 {
            let with_gap = skipped + usize::from(self.gap.is_some());
            put!(&mut self.text, "#EXT-X-SKIP:SKIPPED-SEGMENTS={with_gap}\n");
        }
        self.segments(skipped);
        self.tail();
        self.text
    }

    fn head(&mut self) {
        let window = self.window;
        put!(
            &mut self.text,
            "#EXTM3U\n#EXT-X-VERSION:{}\n#EXT-X-TARGETDURATION:{}\n",
            version(window),
            window.header().target_duration_s
        );
        if self.low_latency && self.part_target_90k > 0 {
            let part_target = Seconds(i64::from(self.part_target_90k));
            let hold_back = Seconds(i64::from(self.part_target_90k * HOLD_BACK_PARTS));
            let skip_until = Seconds(self.target_90k * i64::from(SKIP_UNTIL_TARGETS));
            put!(
                &mut self.text,
                "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK={hold_back},\
                     CAN-SKIP-UNTIL={skip_until}\n#EXT-X-PART-INF:PART-TARGET={part_target}\n"
            );
        }
        put!(
            &mut self.text,
            "#EXT-X-MEDIA-SEQUENCE:{}\n",
            window.media_sequence()
        );
        let discontinuity_sequence = window.discontinuity_sequence();
        if discontinuity_sequence > 0 {
            put!(
                &mut self.text,
                "#EXT-X-DISCONTINUITY-SEQUENCE:{discontinuity_sequence}\n"
            );
        }
    }

    /// Writes a segment of one part that clients must not fetch (RFC 8216bis §4.4.4.7). Without media it needs neither
    /// map nor date. Its part is listed while the first segment's are.
    fn gap(&mut self, msn: u64, parts_from_90k: i64) {
        let first = self.window.segments().next();
        let first_end_90k = first.map_or(0, |segment| i64::from(segment.duration_90k));
        let duration = Seconds(i64::from(self.part_target_90k));
        let broadcast = self.broadcast;
        self.text.push_str("#EXT-X-GAP\n");
        if first_end_90k > parts_from_90k {
            let part = names::part_name(msn, 0);
            put!(
                &mut self.text,
                "#EXT-X-PART:DURATION={duration},URI=\"{broadcast}/{part}\",GAP=YES\n"
            );
        }
        let segment = names::segment_name(msn);
        put!(
            &mut self.text,
            "#EXTINF:{duration},\n{broadcast}/{segment}\n"
        );
    }

    /// Counts the oldest segments that are wholly before the skip boundary (RFC 8216bis §6.2.5.1).
    fn skippable(&self) -> usize {
        let boundary_90k = self.total_90k - self.target_90k * i64::from(SKIP_UNTIL_TARGETS);
        let mut end_90k = 0;
        self.window
            .segments()
            .take_while(|segment| {
                end_90k += i64::from(segment.duration_90k);
                segment.closed && end_90k <= boundary_90k
            })
            .count()
    }

    fn segments(&mut self, skipped: usize) {
        let parts_from_90k = self.total_90k - self.target_90k * PARTS_FOR_TARGETS;
        if let Some(msn) = self.gap.filter(|_| skipped == 0) {
            self.gap(msn, parts_from_90k);
        }
        let mut end_90k = 0;
        let mut init = None;
        for (index, segment) in self.window.segments().enumerate() {
            end_90k += i64::from(segment.duration_90k);
            if !segment.closed && !self.low_latency {
                break;
            }
            if index < skipped {
                init = Some(segment.init);
                continue;
            }
            self.segment_tags(segment, init);
            init = Some(segment.init);
            if self.low_latency && end_90k > parts_from_90k {
                self.parts(segment);
            }
            if segment.closed {
                self.segment_uri(segment);
            }
        }
    }

    fn segment_tags(&mut self, segment: &Segment, previous_init: Option<u32>) {
        if segment.discontinuity {
            self.text.push_str("#EXT-X-DISCONTINUITY\n");
        }
        if previous_init != Some(segment.init) {
            let name = names::init_name(segment.init);
            put!(
                &mut self.text,
                "#EXT-X-MAP:URI=\"{}/{name}\"\n",
                self.broadcast
            );
        }
        self.text.push_str("#EXT-X-PROGRAM-DATE-TIME:");
        put_date_time(&mut self.text, segment.program_date_time_ms);
        self.text.push('\n');
    }

    fn parts(&mut self, segment: &Segment) {
        for (index, part) in (0..).zip(&segment.parts) {
            let duration = Seconds(i64::from(part.duration_90k.min(self.part_target_90k)));
            let name = names::part_name(segment.msn, index);
            let independent = if part.independent {
                ",INDEPENDENT=YES"
            } else {
                ""
            };
            put!(
                &mut self.text,
                "#EXT-X-PART:DURATION={duration},URI=\"{}/{name}\"{independent}\n",
                self.broadcast
            );
        }
    }

    fn segment_uri(&mut self, segment: &Segment) {
        let duration = Seconds(i64::from(segment.duration_90k));
        let name = names::segment_name(segment.msn);
        put!(
            &mut self.text,
            "#EXTINF:{duration},\n{}/{name}\n",
            self.broadcast
        );
    }

    fn tail(&mut self) {
        if self.window.is_ended() {
            self.text.push_str("#EXT-X-ENDLIST\n");
        } else if self.low_latency && self.part_target_90k > 0 {
            let (msn, part) = self.window.next();
            let name = names::part_name(msn, part);
            put!(
                &mut self.text,
                "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"{}/{name}\"\n",
                self.broadcast
            );
        }
    }
}

/// Ticks of the 90 kHz clock, shown as seconds with five decimals, rounded to the nearest.
pub(super) struct Seconds(pub(super) i64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hundred_thousandths = (self.0 * 10 + 4) / 9;
        let (whole, rest) = (hundred_thousandths / 100_000, hundred_thousandths % 100_000);
        write!(formatter, "{whole}.{rest:05}")
    }
}

/// Writes ISO 8601 in UTC with milliseconds.
pub(super) fn put_date_time(text: &mut String, unix_ms: i64) {
    let (days, ms) = (
        unix_ms.div_euclid(86_400_000),
        unix_ms.rem_euclid(86_400_000),
    );
    let (year, month, day) = civil_date(days);
    let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
    let (second, ms) = (ms / 1_000 % 60, ms % 1_000);
    put!(
        text,
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"
    );
}
