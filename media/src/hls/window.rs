//! Window of segments that a live playlist lists: retirement, blocking reloads (`_HLS_msn`), bandwidth, recovery.
//!
//! A `Window` is a value: the owner applies outputs to its own copy and publishes clones of it. Closed segments are
//! shared, so a clone costs a few reference counts.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    Continuation, FIRST_MSN, Output, SegmentStart, StreamInfo,
    journal::SavedPart,
    names::MediaName,
    playlist::{HOLD_BACK_PARTS, SKIP_UNTIL_TARGETS},
};

/// An audio frame starts before its part's end and may reach over it; none lasts longer than this.
const AUDIO_OVERHANG_90K: i64 = 20_000;
/// Target durations that a low-latency list is longer than its skip boundary, so that a delta update leaves at least
/// one segment out.
const SKIPPABLE_TARGETS: u32 = 2;
/// Shortest segment whose bit rate is measured: that of a segment below half a second is not representative.
const SHORTEST_MEASURED_90K: u32 = 45_000;

/// Segments that may be listed beyond one each second and the least number.
const MOST_EXTRA_SEGMENTS: usize = 64;

/// Properties of a whole broadcast.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// Lower-case hexadecimal, part of every name.
    pub broadcast: String,
    /// Unix milliseconds.
    pub started_ms: i64,
    pub target_duration_s: u32,
    pub low_latency: bool,
    /// Fencing number of the owner that writes.
    pub fence: u64,
    /// Names the boot of the machine: another one means that unsynced data may be lost.
    pub boot_id: String,
}

impl Header {
    /// Returns how much of the broadcast stays listed: `at_least`, and at low latency more than the skip boundary that
    /// its playlist advertises (RFC 8216bis §4.4.3.8).
    pub fn list_for(&self, at_least: Duration) -> Duration {
        if !self.low_latency {
            return at_least;
        }
        let targets = SKIP_UNTIL_TARGETS + SKIPPABLE_TARGETS;
        at_least.max(Duration::from_secs(
            (self.target_duration_s * targets).into(),
        ))
    }
}

/// An init section in the window; its bytes are in the file `init{number}.mp4`.
#[derive(Clone, Debug, PartialEq)]
pub struct InitInfo {
    pub number: u32,
    pub len: u64,
    /// CRC-32 of its bytes; `None` from a journal that did not keep it.
    pub crc32: Option<u32>,
    pub info: Arc<StreamInfo>,
}

impl InitInfo {
    fn is_held_by(&self, file: &[u8]) -> bool {
        let len = usize::try_from(self.len).unwrap_or(usize::MAX);
        file.get(..len)
            .is_some_and(|bytes| matches_crc(bytes, self.crc32))
    }
}

/// Compares the CRC-32; without a kept checksum the length suffices.
fn matches_crc(bytes: &[u8], crc32: Option<u32>) -> bool {
    crc32.is_none_or(|crc32| crc32fast::hash(bytes) == crc32)
}

/// Place of a part in its segment's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartInfo {
    pub offset: u64,
    pub len: u32,
    pub duration_90k: u32,
    pub independent: bool,
    /// CRC-32 of its bytes; `None` from a journal that did not keep it.
    pub crc32: Option<u32>,
}

/// A listed segment, open or closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub msn: u64,
    pub init: u32,
    pub discontinuity: bool,
    pub program_date_time_ms: i64,
    pub start_90k: i64,
    pub duration_90k: u32,
    /// Parts, never empty.
    pub parts: Vec<PartInfo>,
    pub closed: bool,
    /// Bytes of its file so far.
    pub len: u64,
}

impl Segment {
    fn is_held_by(&self, file: &[u8]) -> bool {
        self.parts.iter().all(|part| {
            let start = usize::try_from(part.offset).unwrap_or(usize::MAX);
            let end = start.saturating_add(part.len as usize);
            file.get(start..end)
                .is_some_and(|bytes| matches_crc(bytes, part.crc32))
        })
    }

    /// Returns the segment with only those parts that are within its file's first `len` bytes; `None` without any.
    fn cut_to(&self, len: u64) -> Option<Self> {
        let whole = |part: &&PartInfo| part.offset + u64::from(part.len) <= len;
        let parts: Vec<PartInfo> = self.parts.iter().take_while(whole).copied().collect();
        let last = parts.last()?;
        Some(Self {
            len: last.offset + u64::from(last.len),
            duration_90k: parts.iter().map(|part| part.duration_90k).sum(),
            parts,
            ..self.clone()
        })
    }
}

/// Bounds of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimits {
    pub list_for: Duration,
    pub min_segments: usize,
}

/// Bits per second over the listed segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// Bit rate of the largest segment.
    pub peak_bps: u64,
    pub average_bps: u64,
}

/// The listed part of a broadcast.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub(super) header: Arc<Header>,
    pub(super) closed: VecDeque<Arc<Segment>>,
    pub(super) open: Option<Segment>,
    /// Segments that had to leave at once because numbers were skipped; the next retirement hands them out.
    cut_off: Vec<Arc<Segment>>,
    pub(super) inits: Vec<InitInfo>,
    pub(super) position: Position,
}

/// The counters of a broadcast, which outlive what is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Position {
    /// Number of the next segment that opens, [`FIRST_MSN`] at first.
    pub(super) next_msn: u64,
    /// Number of the segment that opened when nothing was listed: the broadcast's first, or the one after a power loss.
    #[serde(default)]
    pub(super) led_msn: u64,
    pub(super) next_init: u32,
    /// Parts ever written.
    pub(super) fragments: u32,
    pub(super) end_90k: i64,
    pub(super) discontinuity_sequence: u64,
    pub(super) part_target_90k: Option<u32>,
    /// Unix milliseconds of the broadcast's end.
    #[serde(default)]
    pub(super) ended_ms: Option<i64>,
}

impl Window {
    /// An empty window of a broadcast that begins.
    pub fn new(header: Header) -> Self {
        Self {
            header: Arc::new(header),
            closed: VecDeque::new(),
            open: None,
            cut_off: Vec::new(),
            inits: Vec::new(),
            position: Position {
                next_msn: FIRST_MSN,
                ..Position::default()
            },
        }
    }

    /// Takes the packager's next output.
    pub fn apply(&mut self, output: &Output) {
        match output {
            Output::Init(init) => self.add_init(InitInfo {
                number: init.number,
                len: init.data.len() as u64,
                crc32: Some(crc32fast::hash(&init.data)),
                info: Arc::clone(&init.info),
            }),
            Output::Part(part) => self.add_part(&SavedPart::of(part, 0)),
            Output::SegmentEnd { msn } => {
                if self.open.as_ref().is_some_and(|open| open.msn == *msn) {
                    self.close_open();
                }
            }
        }
    }

    pub(super) fn add_init(&mut self, init: InitInfo) {
        self.position.next_init = self.position.next_init.max(init.number.saturating_add(1));
        self.inits.push(init);
    }

    /// Appends a part to the open segment, or opens one. A part that continues no open segment is passed over.
    pub(super) fn add_part(&mut self, part: &SavedPart) {
        if let Some(start) = &part.segment {
            self.begin_segment(part, start);
        }
        let Some(open) = self.open.as_mut().filter(|open| open.msn == part.msn) else {
            return;
        };
        open.parts.push(PartInfo {
            offset: open.len,
            len: part.len,
            duration_90k: part.duration_90k,
            independent: part.independent,
            crc32: part.crc32,
        });
        open.len += u64::from(part.len);
        open.duration_90k = open.duration_90k.saturating_add(part.duration_90k);
        let position = &mut self.position;
        position.fragments = position.fragments.wrapping_add(1);
        position.end_90k = part.start_90k.saturating_add(i64::from(part.duration_90k));
        position.part_target_90k = Some(part.part_target_90k);
    }

    fn begin_segment(&mut self, part: &SavedPart, start: &SegmentStart) {
        self.close_open();
        // Numbers in a playlist follow each other: segments before a gap cannot stay in it.
        if self
            .closed
            .back()
            .is_some_and(|last| last.msn + 1 != part.msn)
        {
            let cut_off: Vec<_> = self.closed.drain(..).collect();
            cut_off.iter().for_each(|segment| self.count_out(segment));
            self.cut_off.extend(cut_off);
        }
        if self.closed.is_empty() {
            self.position.led_msn = part.msn;
        }
        self.open = Some(Segment {
            msn: part.msn,
            init: start.init,
            discontinuity: start.discontinuity,
            program_date_time_ms: start.program_date_time_ms,
            start_90k: part.start_90k,
            duration_90k: 0,
            parts: Vec::new(),
            closed: false,
            len: 0,
        });
        self.position.next_msn = part.msn + 1;
    }

    /// Ends the open segment, as after a restart without a publisher; returns its number.
    pub fn close_open(&mut self) -> Option<u64> {
        let mut segment = self.open.take()?;
        segment.closed = true;
        segment.parts.shrink_to_fit();
        let msn = segment.msn;
        self.closed.push_back(Arc::new(segment));
        Some(msn)
    }

    /// Removes the oldest segments from the list, as long as the remaining ones last `list_for` and number at least
    /// `min_segments` closed ones. Returns the removed ones, oldest first; their bytes stay fetchable for a while (RFC
    /// 8216 §6.2.2).
    pub fn retire(&mut self, keep: WindowLimits) -> Vec<Arc<Segment>> {
        let list_for_90k = i64::try_from(keep.list_for.as_millis() * 90).unwrap_or(i64::MAX);
        let most = keep.most_segments();
        let mut listed_90k: i64 = self
            .segments()
            .map(|segment| i64::from(segment.duration_90k))
            .sum();
        let mut retired = std::mem::take(&mut self.cut_off);
        while let Some(oldest) = self.closed.front() {
            let left_90k = listed_90k - i64::from(oldest.duration_90k);
            let dispensable = left_90k >= list_for_90k && self.closed.len() > keep.min_segments;
            if !dispensable && self.closed.len() <= most {
                break;
            }
            listed_90k = left_90k;
            let segment = self.closed.pop_front().expect("there is a front");
            self.count_out(&segment);
            retired.push(segment);
        }
        if !retired.is_empty() {
            self.forget_unused_inits();
        }
        retired
    }

    /// Counts a removed segment's discontinuity for EXT-X-DISCONTINUITY-SEQUENCE.
    fn count_out(&mut self, segment: &Segment) {
        self.position.discontinuity_sequence += u64::from(segment.discontinuity);
    }

    fn forget_unused_inits(&mut self) {
        let oldest = self.segments().map(|segment| segment.init).min();
        let newest = self.inits.last().map(|init| init.number);
        let needed_from = oldest.or(newest).unwrap_or(0);
        self.inits.retain(|init| init.number >= needed_from);
    }

    /// Closes the broadcast: no segment follows, ENDLIST. `ended_ms` is the time of its end in Unix milliseconds.
    pub fn end(&mut self, ended_ms: i64) {
        self.close_open();
        self.position.ended_ms = Some(ended_ms);
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Listed segments, oldest first; the last may be open.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.closed
            .iter()
            .map(Arc::as_ref)
            .chain(self.open.as_ref())
    }

    /// The listed segment with this number.
    pub fn segment(&self, msn: u64) -> Option<&Segment> {
        self.segments().find(|segment| segment.msn == msn)
    }

    /// Media sequence number of the list's first entry, be it a gap. The gap's number counts before it is listed, so
    /// that the media sequence never falls.
    pub(super) fn media_sequence(&self) -> u64 {
        let first = self.segments().next();
        let first_msn = first.map_or(self.position.next_msn, |segment| segment.msn);
        first_msn.saturating_sub(u64::from(self.has_place_for_gap()))
    }

    /// Number of the gap that leads the list: at low latency, since the first part, as long as the segment behind it.
    pub(super) fn gap(&self) -> Option<u64> {
        let begun = self.position.part_target_90k.is_some();
        (begun && self.has_place_for_gap()).then(|| self.media_sequence())
    }

    fn has_place_for_gap(&self) -> bool {
        let mut segments = self.segments();
        let first = segments.next();
        self.header.low_latency && first.is_none_or(|segment| segment.msn == self.position.led_msn)
    }

    /// Init sections that listed segments need, and the newest.
    pub fn inits(&self) -> &[InitInfo] {
        &self.inits
    }

    /// Returns the tracks of the newest segment, or before the first one those of the newest init section.
    pub fn stream_info(&self) -> Option<&StreamInfo> {
        let newest = self.segments().next_back().map(|segment| segment.init);
        let describes = |init: &&InitInfo| newest.is_none_or(|number| init.number == number);
        self.inits
            .iter()
            .rev()
            .find(describes)
            .map(|init| init.info.as_ref())
    }

    /// Returns the next media sequence number and part index. The preload hint; a blocking reload compares with it.
    pub fn next(&self) -> (u64, u32) {
        match &self.open {
            Some(open) => (open.msn, open.parts.len() as u32),
            None => (self.position.next_msn, 0),
        }
    }

    /// Returns whether the playlist holds, or is past, the `_HLS_msn` and `_HLS_part` asked for (RFC 8216bis §6.2.5.2).
    /// A part index past a closed segment's end means the next segment's first part. After the end there is no wait.
    pub fn has(&self, msn: u64, part: Option<u32>) -> bool {
        if self.is_ended() {
            return true;
        }
        let last_closed = self.closed.back().map(|segment| segment.msn);
        let last_whole = last_closed.or_else(|| self.gap());
        let Some(part) = part else {
            return last_whole.is_some_and(|last| msn <= last);
        };
        let Some(segment) = self.segment(msn) else {
            let last = self.open.as_ref().map(|open| open.msn).or(last_whole);
            return last.is_some_and(|last| msn < last);
        };
        if (part as usize) < segment.parts.len() {
            return true;
        }
        // Past the end of a closed segment: a following segment is listed only once it has its first part.
        segment.closed
            && self
                .segments()
                .next_back()
                .is_some_and(|last| last.msn > msn)
    }

    /// Returns the state by which a packager continues this broadcast. The timeline continues a little after the last
    /// part, because audio may reach over a part's end.
    pub fn continuation(&self) -> Continuation {
        let position = &self.position;
        let slack_90k = if position.fragments == 0 {
            0
        } else {
            AUDIO_OVERHANG_90K
        };
        Continuation {
            next_msn: position.next_msn,
            next_init: position.next_init,
            end_90k: position.end_90k.saturating_add(slack_90k),
            next_fragment: position.fragments,
            part_target_90k: position.part_target_90k,
        }
    }

    /// Measures the listed segments; an open one counts for the peak only when nothing is closed. `None` before the
    /// first part.
    pub fn bandwidth(&self) -> Option<Bandwidth> {
        let rate = |len: u64, duration_90k: u64| len * 8 * 90_000 / duration_90k.max(1);
        let closed = self.closed.iter().map(Arc::as_ref);
        let peak = closed
            .filter(|segment| segment.duration_90k >= SHORTEST_MEASURED_90K)
            .map(|segment| rate(segment.len, u64::from(segment.duration_90k)))
            .max();
        let (len, duration_90k) = self.segments().fold((0, 0), |(len, duration), segment| {
            (
                len + segment.len,
                duration + u64::from(segment.duration_90k),
            )
        });
        if duration_90k == 0 {
            return None;
        }
        let average_bps = rate(len, duration_90k).max(1);
        Some(Bandwidth {
            peak_bps: peak.unwrap_or(average_bps).max(average_bps),
            average_bps,
        })
    }

    /// Implements [`Recovered::truncate_to`](super::journal::Recovered::truncate_to).
    pub(super) fn truncate_to(
        &mut self,
        file_len: impl Fn(u64) -> Option<u64>,
    ) -> Vec<Arc<Segment>> {
        self.close_open();
        let whole = self
            .closed
            .iter()
            .position(|segment| file_len(segment.msn) < Some(segment.len));
        let Some(first_corrupt) = whole else {
            return Vec::new();
        };
        let mut left: Vec<_> = self.closed.drain(first_corrupt..).collect();
        let kept = left[0].cut_to(file_len(left[0].msn).unwrap_or(0));
        if let Some(kept) = kept {
            self.closed.push_back(Arc::new(kept));
            left.remove(0);
        }
        left
    }

    /// Implements [`Recovered::after_power_loss`](super::journal::Recovered::after_power_loss).
    pub(super) fn keep_intact(&mut self, file: impl Fn(MediaName) -> Option<Vec<u8>>) -> u64 {
        let open = self.open.take().map(|segment| segment.msn);
        self.inits.retain(|init| {
            file(MediaName::Init(init.number)).is_some_and(|bytes| init.is_held_by(&bytes))
        });
        let is_intact = |segment: &Segment| {
            let has_init = self.inits.iter().any(|init| init.number == segment.init);
            has_init
                && file(MediaName::Segment(segment.msn))
                    .is_some_and(|bytes| segment.is_held_by(&bytes))
        };
        let corrupt = self.closed.iter().position(|segment| !is_intact(segment));
        let lost = corrupt.map(|at| self.closed.drain(at..).next().map(|segment| segment.msn));
        lost.flatten().or(open).unwrap_or(self.position.next_msn)
    }

    pub fn is_ended(&self) -> bool {
        self.position.ended_ms.is_some()
    }

    /// Returns whether a player can start: with anything of a closed playlist, a whole segment, or at low latency as
    /// many parts of one as players hold back.
    pub fn is_playable(&self) -> bool {
        let enough = |parts: usize| self.header.low_latency && parts >= HOLD_BACK_PARTS as usize;
        self.segments()
            .any(|segment| self.is_ended() || segment.closed || enough(segment.parts.len()))
    }

    /// Unix milliseconds of the broadcast's end; `None` before it.
    pub fn ended_ms(&self) -> Option<i64> {
        self.position.ended_ms
    }

    /// PART-TARGET; `None` before the first part.
    pub fn part_target_90k(&self) -> Option<u32> {
        self.position.part_target_90k
    }

    pub fn discontinuity_sequence(&self) -> u64 {
        self.position.discontinuity_sequence
    }
}

impl WindowLimits {
    /// Returns the most segments to list, however short they are: a publisher whose clock jumps all the time makes
    /// many.
    fn most_segments(&self) -> usize {
        let seconds = usize::try_from(self.list_for.as_secs()).unwrap_or(usize::MAX);
        seconds
            .saturating_add(self.min_segments)
            .saturating_add(MOST_EXTRA_SEGMENTS)
    }
}
