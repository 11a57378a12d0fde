//! Resumption of a video stream after a crash: the last segment boundary that all video renditions share.
//!
//! Audio is encoded apart and always begins again. Rows are written after the bytes they name were flushed; files are
//! checked all the same, since a disk may lose flushed bytes.

use std::ops::Range;

use sluice_media::av::Resume;
use sluice_store::video::{Group, RenditionKind, Segment};

use super::playback::Track;

/// Counts the segments from the beginning that every video rendition has, as a row and in its file. `lengths`: of the files,
/// in the order of the tracks.
pub(super) fn kept(tracks: &[Track], lengths: &[u64]) -> u32 {
    let video_frames = tracks
        .iter()
        .zip(lengths)
        .filter(|(track, _)| is_video(track));
    let whole = video_frames.map(|(track, length)| whole(track, *length));
    whole.min().unwrap_or(0)
}

fn is_video(track: &Track) -> bool {
    track.rendition.kind == RenditionKind::Video
}

/// Counts the segments without a gap that are within a file of that length.
fn whole(track: &Track, length: u64) -> u32 {
    let Some(init_length) = track.rendition.init_length else {
        return 0;
    };
    let (mut number, mut end) = (0, init_length.unsigned_abs());
    for segment in &track.segments {
        if segment.number != number || segment.offset != end || segment.end() > length {
            break;
        }
        (number, end) = (number + 1, segment.end());
    }
    number
}

/// Returns one less when nothing would be left to make: a task cannot continue at the end of the source.
pub(super) fn with_rest(tracks: &[Track], kept: u32, duration_ms: Option<i64>) -> u32 {
    let Some(last) = last(tracks, kept) else {
        return kept;
    };
    let end_90k = duration_ms.map_or(i64::MAX, |duration| duration.saturating_mul(90));
    // A frame or two may be missing at the end.
    let is_all = last.end_90k() >= end_90k.saturating_sub(i64::from(last.duration_90k) / 2);
    kept - u32::from(is_all)
}

/// Returns the position at which a ladder continues behind `kept` segments of video; `None` at the beginning.
pub(super) fn resume(tracks: &[Track], kept: u32) -> Option<Resume> {
    last(tracks, kept).map(|last| Resume {
        number: kept,
        at_90k: last.end_90k(),
    })
}

/// Returns the last segment that is kept.
fn last(tracks: &[Track], kept: u32) -> Option<&Segment> {
    let index = usize::try_from(kept.checked_sub(1)?).ok()?;
    let first = tracks.iter().find(|track| is_video(track))?;
    first.segments.get(index)
}

/// Returns the bytes of a rendition's file with `kept` segments of video.
pub(super) fn length(track: &Track, kept: u32) -> u64 {
    if !is_video(track) {
        return 0;
    }
    let index = usize::try_from(kept).unwrap_or(usize::MAX).checked_sub(1);
    let last = index.and_then(|index| track.segments.get(index));
    last.map_or(0, Segment::end)
}

/// Returns the parts of a rendition's file from `from` on, with what a group adds: init section and segments, each by itself.
pub(super) fn parts(track: &Track, group: &Group, from: u64) -> Vec<Range<u64>> {
    let number = track.rendition.number;
    let known = track.rendition.init_length.map(i64::unsigned_abs);
    let mut inits = group.inits.iter().filter(|init| init.rendition == number);
    let init = known.or_else(|| inits.next().map(|init| init.length));
    let recorded = track.segments.partition_point(|it| it.end() <= from);
    let added = group.segments.iter().filter(|it| it.rendition == number);
    let segments = track.segments[recorded..].iter().chain(added);
    let (mut start, mut parts) = (from, Vec::new());
    for end in init.into_iter().chain(segments.map(Segment::end)) {
        if end > start {
            parts.push(start..end);
            start = end;
        }
    }
    parts
}

/// Returns whether rows describe more than is kept.
pub(super) fn has_more(tracks: &[Track], kept: u32) -> bool {
    tracks.iter().any(|track| {
        let count = u32::try_from(track.segments.len()).unwrap_or(u32::MAX);
        match is_video(track) {
            true => count > kept || kept == 0 && track.rendition.init_length.is_some(),
            false => count > 0 || track.rendition.init_length.is_some(),
        }
    })
}

#[cfg(test)]
mod tests {
    use sluice_store::video::Init;

    use super::super::tests::track;
    use super::*;

    #[test]
    fn what_all_renditions_of_frames_have_is_kept() {
        // Segments of 100 bytes and a second each, after an init section of 10 bytes.
        /// Kind, segments in rows, and bytes of the file.
        type Given = (RenditionKind, u32, u64);
        let cases: &[(&[Given], u32)] = &[
            (&[], 0),
            (&[(RenditionKind::Audio, 9, 910)], 0),
            (&[(RenditionKind::Video, 0, 0)], 0),
            (&[(RenditionKind::Video, 4, 410)], 4),
            // More than the rows say.
            (&[(RenditionKind::Video, 4, 999)], 4),
            // Less than they say.
            (&[(RenditionKind::Video, 4, 409)], 3),
            (&[(RenditionKind::Video, 4, 9)], 0),
            (
                &[
                    (RenditionKind::Video, 4, 410),
                    (RenditionKind::Video, 3, 310),
                    (RenditionKind::Audio, 0, 0),
                ],
                3,
            ),
        ];
        for (given, expected) in cases {
            let tracks: Vec<Track> = given
                .iter()
                .zip(0..)
                .map(|((kind, count, _), number)| track(number, *kind, *count))
                .collect();
            let lengths: Vec<u64> = given.iter().map(|(_, _, length)| *length).collect();
            assert_eq!(kept(&tracks, &lengths), *expected, "{given:?}");
        }
    }

    #[test]
    fn a_hole_ends_what_is_kept() {
        let mut holed = track(0, RenditionKind::Video, 4);
        holed.segments.remove(1);
        assert_eq!(kept(&[holed], &[410]), 1);
        let mut without_init = track(0, RenditionKind::Video, 4);
        without_init.rendition.init_length = None;
        assert_eq!(kept(&[without_init], &[410]), 0);
    }

    #[test]
    fn something_is_left_to_make() {
        let tracks = [track(0, RenditionKind::Video, 4)];
        for (duration_ms, expected) in [
            (None, 4),
            (Some(10_000), 4),
            (Some(4_600), 4),
            (Some(4_400), 3),
            (Some(4_000), 3),
            (Some(0), 3),
        ] {
            assert_eq!(
                with_rest(&tracks, 4, duration_ms),
                expected,
                "{duration_ms:?}"
            );
        }
        assert_eq!(with_rest(&tracks, 0, Some(0)), 0);
    }

    #[test]
    fn a_ladder_continues_behind_the_last_segment_that_is_kept() {
        let tracks = [
            track(0, RenditionKind::Video, 4),
            track(1, RenditionKind::Audio, 4),
        ];
        assert_eq!(resume(&tracks, 0), None);
        let resume = resume(&tracks, 3).unwrap();
        assert_eq!((resume.number, resume.at_90k), (3, 270_000));
        assert_eq!(length(&tracks[0], 3), 310);
        assert_eq!((length(&tracks[0], 0), length(&tracks[1], 3)), (0, 0));
    }

    #[test]
    fn parts_end_where_segments_do() {
        let recorded = track(0, RenditionKind::Video, 4);
        let mut begun = track(0, RenditionKind::Video, 0);
        begun.rendition.init_length = None;
        let init = Init {
            rendition: 0,
            length: 10,
            codecs: String::new(),
            frame_rate: None,
            is_copy: false,
        };
        // Segments of the rendition, and of another one.
        let added = |numbers: Range<u32>| Group {
            inits: vec![init.clone()],
            segments: [0, 1]
                .into_iter()
                .flat_map(|rendition| {
                    numbers.clone().map(move |number| Segment {
                        rendition,
                        number,
                        offset: 10 + 100 * u64::from(number),
                        length: 100,
                        start_90k: 0,
                        duration_90k: 1,
                        key_length: 0,
                    })
                })
                .collect(),
            progress: 0,
        };
        let cases: [(&Track, Range<u32>, u64, &[u64]); 6] = [
            (&begun, 0..0, 0, &[10]),
            (&begun, 0..2, 0, &[10, 110, 210]),
            (&recorded, 4..5, 410, &[510]),
            (&recorded, 4..4, 410, &[]),
            // What was recorded before there was an object store.
            (&recorded, 4..5, 0, &[10, 110, 210, 310, 410, 510]),
            (&recorded, 4..5, 210, &[310, 410, 510]),
        ];
        for (track, numbers, from, ends) in cases {
            let found = parts(track, &added(numbers.clone()), from);
            let starts = [from].into_iter().chain(ends.iter().copied());
            let expected: Vec<Range<u64>> =
                starts.zip(ends).map(|(start, end)| start..*end).collect();
            assert_eq!(found, expected, "{numbers:?} {from}");
        }
    }

    #[test]
    fn rows_are_touched_only_when_they_say_too_much() {
        let video = track(0, RenditionKind::Video, 4);
        let audio = track(1, RenditionKind::Audio, 1);
        assert!(!has_more(std::slice::from_ref(&video), 4));
        assert!(has_more(std::slice::from_ref(&video), 3));
        assert!(has_more(&[video, audio], 4));
        assert!(!has_more(&[], 0));
    }
}
