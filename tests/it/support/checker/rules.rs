//! Rules of a single media playlist, skipped segments put back.

use std::collections::BTreeMap;

use super::{MediaPlaylist, ROUNDING_S, Segment};

/// RFC 8216bis §8: EXT-X-SKIP needs 9, EXT-X-MAP 6.
const VERSION_OF_SKIP: u64 = 9;
const VERSION_OF_MAP: u64 = 6;
/// RFC 8216bis §4.4.3.8.
const SKIP_UNTIL_TARGETS: f64 = 6.0;
const PART_HOLD_BACK_TARGETS: f64 = 3.0;
/// RFC 8216bis §4.4.3.7: the shortest part that is neither a segment's last nor before a discontinuity.
const SHORTEST_PART: f64 = 0.85;
/// Parts are listed at least so far from the end (RFC 8216bis §6.2.2).
const PARTS_FOR_TARGETS: f64 = 3.0;
/// Allowed drift of the programme's time from the sum of durations inside a range.
const DATE_DRIFT_MS: f64 = 50.0;
/// The service numbers segments from here on; a gap may lead them.
const FIRST_MSN: u64 = 1;

pub fn check(list: &MediaPlaylist) -> Result<(), String> {
    check_head(list)?;
    check_names(list)?;
    let mut end_s = 0.0;
    let total_s = list.duration_s();
    for (at, segment) in list.segments.iter().enumerate() {
        let start_s = end_s;
        end_s += segment.duration_s();
        let is_near_end =
            start_s + ROUNDING_S >= total_s - PARTS_FOR_TARGETS * list.target_duration_s as f64;
        check_segment(list, at, is_near_end)
            .map_err(|reason| format!("segment {}: {reason}", segment.msn))?;
    }
    check_dates(list)?;
    check_skip(list, total_s)?;
    check_hint(list)
}

fn check_head(list: &MediaPlaylist) -> Result<(), String> {
    let target_s = list.target_duration_s as f64;
    let needed = if list.skipped > 0 {
        VERSION_OF_SKIP
    } else {
        VERSION_OF_MAP
    };
    if list.version < needed {
        return Err(format!("version {} where {needed} is needed", list.version));
    }
    if list.target_duration_s == 0 {
        return Err("TARGETDURATION is 0".into());
    }
    let Some(part_target_s) = list.part_target_s else {
        let has_parts = list
            .segments
            .iter()
            .any(|segment| !segment.parts.is_empty());
        return match has_parts || list.hint.is_some() {
            true => Err("parts or hints without EXT-X-PART-INF".into()),
            false => Ok(()),
        };
    };
    if part_target_s <= 0.0 || part_target_s > target_s {
        return Err(format!("PART-TARGET {part_target_s}"));
    }
    let control = list
        .control
        .as_ref()
        .ok_or("no EXT-X-SERVER-CONTROL beside parts")?;
    if !control.can_block_reload {
        return Err("no CAN-BLOCK-RELOAD".into());
    }
    let hold_back_s = control.part_hold_back_s.unwrap_or(0.0);
    if hold_back_s + 1e-9 < PART_HOLD_BACK_TARGETS * part_target_s {
        return Err(format!(
            "PART-HOLD-BACK {hold_back_s} of PART-TARGET {part_target_s}"
        ));
    }
    if control
        .hold_back_s
        .is_some_and(|hold_back_s| hold_back_s < 3.0 * target_s)
    {
        return Err("HOLD-BACK below three target durations".into());
    }
    let skip_until_s = control.can_skip_until_s.ok_or("no CAN-SKIP-UNTIL")?;
    if skip_until_s < SKIP_UNTIL_TARGETS * target_s {
        return Err(format!(
            "CAN-SKIP-UNTIL {skip_until_s} of TARGETDURATION {target_s}"
        ));
    }
    Ok(())
}

/// The first component of every URI.
pub fn broadcast(list: &MediaPlaylist) -> Option<&str> {
    let map = list
        .segments
        .iter()
        .find_map(|segment| segment.map.as_ref())?;
    map.split_once('/').map(|(broadcast, _)| broadcast)
}

/// Names are unique and count: `{broadcast}/{msn}.m4s`, `{broadcast}/{msn}.{part}.m4s`, `{broadcast}/init{n}.mp4`.
fn check_names(list: &MediaPlaylist) -> Result<(), String> {
    let Some(broadcast) = broadcast(list) else {
        return match list.segments.is_empty() {
            true => Ok(()),
            false => Err("no EXT-X-MAP at all".into()),
        };
    };
    for segment in &list.segments {
        let msn = segment.msn;
        match &segment.map {
            Some(map) => check_map(broadcast, map)?,
            None if segment.gap => {}
            None => return Err(format!("segment {msn} has no EXT-X-MAP")),
        }
        let whole = segment
            .whole
            .iter()
            .map(|whole| (&whole.uri, format!("{broadcast}/{msn}.m4s")));
        let parts = segment.parts.iter().enumerate();
        let parts = parts.map(|(at, part)| (&part.uri, format!("{broadcast}/{msn}.{at}.m4s")));
        if let Some((uri, expected)) = whole.chain(parts).find(|(uri, expected)| *uri != expected) {
            return Err(format!("{uri} where {expected} should be"));
        }
    }
    Ok(())
}

fn check_map(broadcast: &str, map: &str) -> Result<(), String> {
    let number = map
        .strip_prefix(broadcast)
        .and_then(|rest| rest.strip_prefix("/init"))
        .and_then(|rest| rest.strip_suffix(".mp4"));
    match number.is_some_and(|number| number.parse::<u32>().is_ok()) {
        true => Ok(()),
        false => Err(format!("map {map} of broadcast {broadcast}")),
    }
}

fn check_segment(list: &MediaPlaylist, at: usize, is_near_end: bool) -> Result<(), String> {
    let segment = &list.segments[at];
    let is_last = at + 1 == list.segments.len();
    if !segment.is_closed() && !is_last {
        return Err("open, and not the last".into());
    }
    if segment.parts.iter().any(|part| part.gap != segment.gap) {
        return Err("a gap, and not all of it".into());
    }
    if segment.date_time_ms.is_none() && !segment.gap {
        return Err("no EXT-X-PROGRAM-DATE-TIME".into());
    }
    if let Some(whole) = &segment.whole
        && (whole.duration_s <= 0.0 || whole.duration_s.round() > list.target_duration_s as f64)
    {
        return Err(format!(
            "{} s of TARGETDURATION {}",
            whole.duration_s, list.target_duration_s
        ));
    }
    let previous = at
        .checked_sub(1)
        .and_then(|before| list.segments.get(before));
    let other_map = |previous: &Segment| {
        previous.map != segment.map && !(previous.gap && previous.map.is_none())
    };
    if previous.is_some_and(other_map) && !segment.discontinuity {
        return Err("another map without a discontinuity".into());
    }
    match list.part_target_s {
        Some(part_target_s) => check_parts(segment, part_target_s, is_near_end),
        None => Ok(()),
    }
}

fn check_parts(segment: &Segment, part_target_s: f64, is_near_end: bool) -> Result<(), String> {
    let Some(first) = segment.parts.first() else {
        return match is_near_end {
            true => Err("no parts, so near the end of the playlist".into()),
            false => Ok(()),
        };
    };
    let opens_range = (segment.discontinuity || segment.msn <= FIRST_MSN) && !segment.gap;
    if opens_range && !first.independent {
        return Err("its first part opens a range and is not INDEPENDENT".into());
    }
    let last = segment.parts.len() - 1;
    for (at, part) in segment.parts.iter().enumerate() {
        if part.duration_s <= 0.0 || part.duration_s > part_target_s {
            return Err(format!(
                "part {at} of {} s, target {part_target_s}",
                part.duration_s
            ));
        }
        if at < last && part.duration_s < SHORTEST_PART * part_target_s {
            return Err(format!(
                "part {at} of only {} s, target {part_target_s}",
                part.duration_s
            ));
        }
    }
    if let Some(whole) = &segment.whole
        && (whole.duration_s - segment.parts_s()).abs() > ROUNDING_S
    {
        return Err(format!(
            "EXTINF {} s, its parts {} s",
            whole.duration_s,
            segment.parts_s()
        ));
    }
    Ok(())
}

/// Inside a range dates follow durations; over a discontinuity they do not go back.
fn check_dates(list: &MediaPlaylist) -> Result<(), String> {
    // By range: where its first listed segment began, and how much was listed since.
    let mut ranges: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    let mut end_ms = f64::MIN;
    for segment in list.segments.iter().filter(|segment| !segment.gap) {
        let date_ms = segment.date_time_ms.unwrap_or_default() as f64;
        let (began_ms, elapsed_ms) = ranges.entry(segment.range).or_insert((date_ms, 0.0));
        let expected_ms = *began_ms + *elapsed_ms;
        if (date_ms - expected_ms).abs() > DATE_DRIFT_MS {
            let drift_ms = date_ms - expected_ms;
            return Err(format!(
                "segment {}: its date is {drift_ms} ms off",
                segment.msn
            ));
        }
        if date_ms < end_ms - DATE_DRIFT_MS {
            return Err(format!("segment {}: its date goes back", segment.msn));
        }
        *elapsed_ms += segment.duration_s() * 1000.0;
        end_ms = date_ms + segment.duration_s() * 1000.0;
    }
    Ok(())
}

/// Only segments wholly before the skip boundary may be left out (RFC 8216bis §6.2.5.1).
fn check_skip(list: &MediaPlaylist, total_s: f64) -> Result<(), String> {
    if list.skipped == 0 {
        return Ok(());
    }
    let control = list.control.as_ref();
    let boundary_s = control
        .and_then(|control| control.can_skip_until_s)
        .unwrap_or(f64::MAX);
    let skipped = list
        .segments
        .iter()
        .take(usize::try_from(list.skipped).unwrap_or(usize::MAX));
    let left_s = total_s - skipped.map(Segment::duration_s).sum::<f64>();
    if left_s + ROUNDING_S < boundary_s {
        return Err(format!(
            "the delta leaves {left_s:.3} s, the skip boundary is {boundary_s} s"
        ));
    }
    Ok(())
}

/// The hint names what comes next; there is one as long as something can come.
fn check_hint(list: &MediaPlaylist) -> Result<(), String> {
    let hint = list.hint.as_deref();
    if list.ended || list.part_target_s.is_none() {
        return match hint {
            Some(_) => Err("a hint where nothing comes".into()),
            None => Ok(()),
        };
    }
    let (msn, part) = list.next();
    let expected = format!("{}/{msn}.{part}.m4s", broadcast(list).unwrap_or_default());
    match hint {
        Some(hint) if hint == expected => Ok(()),
        _ => Err(format!("hint {hint:?} where {expected} comes next")),
    }
}

/// A second opinion on a full playlist. m3u8-rs knows no low-latency tags, so it sees closed segments only.
pub fn check_by_m3u8_rs(text: &str, list: &MediaPlaylist) -> Result<(), String> {
    let other = m3u8_rs::parse_media_playlist_res(text.as_bytes())
        .map_err(|error| format!("m3u8-rs does not read it: {error:?}"))?;
    let closed = || list.segments.iter().filter(|segment| segment.is_closed());
    let theirs = || {
        other
            .segments
            .iter()
            .filter(|segment| !segment.uri.is_empty())
    };
    let same_head = other.media_sequence == list.media_sequence
        && other.discontinuity_sequence == list.discontinuity_sequence
        && other.target_duration == list.target_duration_s
        && other.end_list == list.ended;
    if !same_head || closed().count() != theirs().count() {
        return Err(format!("m3u8-rs reads it differently: {other:?}"));
    }
    for (ours, theirs) in closed().zip(theirs()) {
        let whole = ours.whole.as_ref().expect("filtered above");
        let date_ms = theirs.program_date_time.map(|date| date.timestamp_millis());
        let same = whole.uri == theirs.uri
            && (whole.duration_s - f64::from(theirs.duration)).abs() < ROUNDING_S
            && ours.discontinuity == theirs.discontinuity
            && ours.date_time_ms == date_ms;
        if !same {
            return Err(format!("m3u8-rs reads segment {} as {theirs:?}", ours.msn));
        }
    }
    Ok(())
}
