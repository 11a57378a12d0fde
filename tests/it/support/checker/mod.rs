//! A strict checker of low-latency media playlists, over all the reloads of one broadcast (RFC 8216bis).
//!
//! It is a state machine without clock or network, and shares no code with the service. Rules of one text are in
//! `rules.rs`, rules from one text to the next here.

mod multivariant;
mod rules;
#[cfg(test)]
mod tests;
pub mod vod;

use std::collections::BTreeMap;

use tokio::time::Instant;

pub use sluice_testkit::playlist::{MediaPlaylist, Part, Segment, ServerControl, Whole};

pub use self::multivariant::{Multivariant, check_multivariant};

/// RFC 8216bis §6.2.1: without ENDLIST, what is left after a removal lasts three target durations.
const KEPT_TARGETS: f64 = 3.0;
/// Five decimals, added up.
const ROUNDING_S: f64 = 0.001;

/// Follows one broadcast. Any error is final: what comes after it says nothing.
#[derive(Debug, Default)]
pub struct Checker {
    /// The newest playlist, with skipped segments put back.
    last: Option<MediaPlaylist>,
    /// Every segment ever seen, with every part ever seen of it.
    seen: BTreeMap<u64, Segment>,
    gaps_allowed: bool,
    deltas: usize,
    observed: usize,
}

/// Result of a reload.
#[derive(Clone, Debug)]
pub struct Update {
    pub at: Instant,
    /// Playlist of the text, with skipped segments put back.
    pub playlist: MediaPlaylist,
    /// Segments that were not listed as whole before, oldest first; gaps are not among them.
    pub segments: Vec<Segment>,
    /// Parts that were not listed before, in order. Those of segments that were never seen open are among them as far
    /// as they are listed.
    pub parts: Vec<NewPart>,
    pub was_delta: bool,
}

/// A part with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPart {
    pub msn: u64,
    pub index: usize,
    pub part: Part,
    /// Map of its segment.
    pub map: String,
    pub range: u64,
}

impl Update {
    pub fn is_ended(&self) -> bool {
        self.playlist.ended
    }
}

impl Checker {
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows segments to appear and leave between two reloads: the viewer was away, or numbers were skipped after a
    /// power loss.
    pub fn allow_gaps(&mut self) {
        self.gaps_allowed = true;
    }

    /// Delta updates among the texts.
    pub fn deltas(&self) -> usize {
        self.deltas
    }

    pub fn observed(&self) -> usize {
        self.observed
    }

    pub fn last(&self) -> Option<&MediaPlaylist> {
        self.last.as_ref()
    }

    /// Every segment ever seen, oldest first, with every part ever seen of it.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.seen.values()
    }

    /// Takes the next text that the server answered, full or delta.
    pub fn observe(&mut self, text: &str, at: Instant) -> Result<Update, String> {
        let checked = self.check(text);
        let list = checked.map_err(|reason| format!("{reason}\n--- playlist:\n{text}---"))?;
        let was_delta = list.skipped > 0;
        self.observed += 1;
        self.deltas += usize::from(was_delta);
        let mut update = Update {
            at,
            playlist: list.clone(),
            segments: Vec::new(),
            parts: Vec::new(),
            was_delta,
        };
        for segment in &list.segments {
            self.remember(segment, &mut update);
        }
        self.last = Some(list);
        Ok(update)
    }

    /// Expands a delta update, without taking it.
    pub fn expand(&self, text: &str) -> Result<MediaPlaylist, String> {
        self.put_back_skipped(MediaPlaylist::parse(text)?)
    }

    fn check(&self, text: &str) -> Result<MediaPlaylist, String> {
        let parsed = MediaPlaylist::parse(text)?;
        if parsed.skipped == 0 {
            rules::check_by_m3u8_rs(text, &parsed)?;
        }
        let list = self.put_back_skipped(parsed)?;
        rules::check(&list)?;
        if let Some(last) = &self.last {
            check_head(last, &list)?;
            self.check_removal(last, &list)?;
            check_end(last, &list)?;
        }
        for segment in &list.segments {
            if let Some(known) = self.seen.get(&segment.msn) {
                check_same(known, segment)
                    .map_err(|reason| format!("segment {}: {reason}", segment.msn))?;
            }
        }
        Ok(list)
    }

    fn put_back_skipped(&self, mut list: MediaPlaylist) -> Result<MediaPlaylist, String> {
        if list.skipped == 0 {
            return Ok(list);
        }
        let left_out = list.media_sequence..list.media_sequence + list.skipped;
        let mut range = list.discontinuity_sequence;
        let mut whole = Vec::new();
        for msn in left_out {
            let known = self.seen.get(&msn).filter(|known| known.is_closed());
            let known =
                known.ok_or_else(|| format!("the delta skips segment {msn}, never seen"))?;
            range += u64::from(known.discontinuity);
            whole.push(Segment {
                parts: Vec::new(),
                range,
                ..known.clone()
            });
        }
        let map = whole.last().and_then(|segment| segment.map.clone());
        for segment in &mut list.segments {
            segment.range += range - list.discontinuity_sequence;
            segment.map = segment.map.take().or_else(|| map.clone());
        }
        whole.append(&mut list.segments);
        list.segments = whole;
        Ok(list)
    }

    /// Sequence numbers never fall, and say how many segments and discontinuities left. (That the discontinuity
    /// sequence moves with them is checked by each segment's own number.)
    fn check_removal(&self, last: &MediaPlaylist, list: &MediaPlaylist) -> Result<(), String> {
        let (before, now) = (last.media_sequence, list.media_sequence);
        if now < before {
            return Err(format!("the media sequence falls from {before} to {now}"));
        }
        if list.discontinuity_sequence < last.discontinuity_sequence {
            return Err(format!(
                "the discontinuity sequence falls from {} to {}",
                last.discontinuity_sequence, list.discontinuity_sequence
            ));
        }
        let (last_next, next) = (last.next(), list.next());
        if next < last_next {
            return Err(format!(
                "the playlist shrinks: {next:?} comes next, before {last_next:?}"
            ));
        }
        if now > last_next.0 && !self.gaps_allowed {
            return Err(format!(
                "segments {}..{now} left before they were seen",
                last_next.0
            ));
        }
        let kept_s = KEPT_TARGETS * list.target_duration_s as f64;
        if now > before && !list.ended && list.duration_s() < kept_s {
            return Err(format!(
                "segments left, and {:.3} s stay",
                list.duration_s()
            ));
        }
        Ok(())
    }

    fn remember(&mut self, segment: &Segment, update: &mut Update) {
        let known = self.seen.entry(segment.msn).or_default();
        let new_parts = segment.parts.iter().enumerate().skip(known.parts.len());
        for (index, part) in new_parts.filter(|(_, part)| !part.gap) {
            update.parts.push(NewPart {
                msn: segment.msn,
                index,
                part: part.clone(),
                map: segment.map.clone().expect("the rules ask for a map"),
                range: segment.range,
            });
        }
        if segment.is_closed() && !known.is_closed() && !segment.gap {
            update.segments.push(segment.clone());
        }
        let mut parts = std::mem::take(&mut known.parts);
        parts.extend(segment.parts.iter().skip(parts.len()).cloned());
        *known = Segment {
            parts,
            ..segment.clone()
        };
    }
}

/// Checks the rules of a whole broadcast.
fn check_head(last: &MediaPlaylist, list: &MediaPlaylist) -> Result<(), String> {
    if list.target_duration_s != last.target_duration_s {
        return Err(format!(
            "TARGETDURATION changes from {} to {}",
            last.target_duration_s, list.target_duration_s
        ));
    }
    if list.version != last.version {
        return Err(format!(
            "VERSION changes from {} to {}",
            last.version, list.version
        ));
    }
    if (list.part_target_s, &list.control) != (last.part_target_s, &last.control) {
        return Err(format!(
            "PART-TARGET or SERVER-CONTROL change from {:?}, {:?} to {:?}, {:?}",
            last.part_target_s, last.control, list.part_target_s, list.control
        ));
    }
    let broadcasts = (rules::broadcast(last), rules::broadcast(list));
    match broadcasts {
        (Some(before), Some(now)) if before != now => {
            Err(format!("the broadcast changes from {before} to {now}"))
        }
        _ => Ok(()),
    }
}

fn check_end(last: &MediaPlaylist, list: &MediaPlaylist) -> Result<(), String> {
    if last.ended && !list.ended {
        return Err("EXT-X-ENDLIST is gone".into());
    }
    if last.ended && list.next() != last.next() {
        return Err("segments after EXT-X-ENDLIST".into());
    }
    Ok(())
}

/// A segment says the same at every reload; open ones may grow and close, closed ones may lose all their parts.
fn check_same(known: &Segment, now: &Segment) -> Result<(), String> {
    if known.is_closed() && known.whole != now.whole {
        return Err(format!("{:?} becomes {:?}", known.whole, now.whole));
    }
    let facts = |segment: &Segment| {
        (
            segment.gap,
            segment.map.clone(),
            segment.date_time_ms,
            segment.discontinuity,
            segment.range,
        )
    };
    if facts(known) != facts(now) {
        return Err(format!(
            "gap, map, date, discontinuity or discontinuity sequence number change from {:?} to {:?}",
            facts(known),
            facts(now)
        ));
    }
    let both = known.parts.len().min(now.parts.len());
    if known.parts[..both] != now.parts[..both] {
        return Err(format!(
            "its parts change from {:?} to {:?}",
            known.parts, now.parts
        ));
    }
    let all_left = now.parts.is_empty() && now.is_closed();
    if now.parts.len() < known.parts.len() && !all_left {
        return Err("some of its parts are gone".into());
    }
    if known.is_closed() && !known.parts.is_empty() && now.parts.len() > known.parts.len() {
        return Err("parts are appended to a closed segment".into());
    }
    Ok(())
}
