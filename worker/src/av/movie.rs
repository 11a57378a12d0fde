//! Edit lists of MP4 and QuickTime files that skip a beginning: a work-around for a GStreamer demultiplexer that ends
//! them early. What is skipped is what encoders of audio need ahead of it, or what a trim without encoding could not
//! remove.
//!
//! GStreamer 1.22's demultiplexer ends a track when its place in the media reaches the movie's duration, whatever of the
//! media is left out before (`gst_qtdemux_loop_state_movie`): as much is lost at the end as the edit list skips at the
//! beginning. It is therefore given a file whose movie is longer by that; where each track ends, its edit list still says.

use super::{
    boxes::{HEADER_BYTES, Header},
    source::{Input, Patch},
};

/// Boxes that are looked at within another.
const MAX_BOXES: usize = 1_024;
/// The header of one that holds numbers, with those in use here (ISO/IEC 14496-12 sections 8.2.2, 8.4.2 and 8.6.6).
const CONTENT_BYTES: usize = 4_096;

/// The file as the demultiplexer needs it, and how much its edit lists skip in seconds; `None`: as it is.
pub(super) fn lengthened(input: &Input) -> Option<(Input, f64)> {
    let movie = child(input, Span::whole(input), b"moov")?;
    let header = Duration::read(input, child(input, movie, b"mvhd")?)?;
    let tracks = children(input, movie).filter(|(kind, _)| kind == b"trak");
    let skipped_s = tracks
        .filter_map(|(_, track)| skipped_s(input, track))
        .fold(0.0, f64::max);
    if skipped_s <= 0.0 {
        return None;
    }
    let more = (skipped_s * f64::from(header.timescale)).ceil() as u64;
    Some((input.patched(header.longer_by(more)?), skipped_s))
}

/// Returns the time that a track's edit list leaves out before its first sample that is shown or heard, less its
/// initial delay.
fn skipped_s(input: &Input, track: Span) -> Option<f64> {
    let edits = child(input, child(input, track, b"edts")?, b"elst")?;
    let media = child(input, child(input, track, b"mdia")?, b"mdhd")?;
    let timescale = Duration::read(input, media)?.timescale;
    let bytes = edits.content(input)?;
    let (is_long, entries) = (*bytes.first()? == 1, bytes.get(8..)?);
    let size = if is_long { 20 } else { 12 };
    let starts = entries.chunks_exact(size).map(|entry| match is_long {
        true => entry[8..].first_chunk().map(|it| i64::from_be_bytes(*it)),
        false => entry[4..]
            .first_chunk()
            .map(|it| i64::from(i32::from_be_bytes(*it))),
    });
    // An edit without media is a pause.
    let start = starts.flatten().find(|start| *start >= 0)?;
    Some(start as f64 / f64::from(timescale))
}

/// Duration in a movie's or a medium's header.
struct Duration {
    timescale: u32,
    /// Offset in the file, and a size of 4 or 8 bytes.
    at: u64,
    value: u64,
    is_long: bool,
}

impl Duration {
    fn read(input: &Input, header: Span) -> Option<Self> {
        let bytes = header.content(input)?;
        let is_long = *bytes.first()? == 1;
        let at = if is_long { 20 } else { 12 };
        let timescale = u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?);
        let rest = bytes.get(at + 4..)?;
        let value = match is_long {
            true => u64::from_be_bytes(*rest.first_chunk()?),
            false => u64::from(u32::from_be_bytes(*rest.first_chunk()?)),
        };
        (timescale > 0).then_some(Self {
            timescale,
            at: header.from + at as u64 + 4,
            value,
            is_long,
        })
    }

    /// `None`: it says nothing (fragments follow), or the sum has no room.
    fn longer_by(&self, more: u64) -> Option<Patch> {
        let sum = self.value.checked_add(more).filter(|_| self.value > 0)?;
        let bytes = match self.is_long {
            true => sum.to_be_bytes().to_vec(),
            false => u32::try_from(sum)
                .ok()
                .filter(|sum| *sum < u32::MAX)?
                .to_be_bytes()
                .to_vec(),
        };
        Some(Patch { at: self.at, bytes })
    }
}

/// Content of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    from: u64,
    to: u64,
}

impl Span {
    fn whole(input: &Input) -> Self {
        Self {
            from: 0,
            to: input.len(),
        }
    }

    fn content(self, input: &Input) -> Option<Vec<u8>> {
        let length = usize::try_from(self.to.saturating_sub(self.from)).ok()?;
        input.read_at(self.from, length.min(CONTENT_BYTES)).ok()
    }
}

fn child(input: &Input, of: Span, wanted: &[u8; 4]) -> Option<Span> {
    let mut found = children(input, of).filter(|(kind, _)| kind == wanted);
    found.next().map(|(_, span)| span)
}

fn children(input: &Input, of: Span) -> impl Iterator<Item = ([u8; 4], Span)> {
    let mut at = of.from;
    let next = move || {
        let head = input.read_at(at, HEADER_BYTES).ok()?;
        let header = Header::read(&head).filter(|_| at < of.to)?;
        let size = header.size.unwrap_or(of.to - at);
        let to = at.checked_add(size)?.min(of.to);
        let span = Span {
            from: (at + header.bytes).min(to),
            to,
        };
        at += size;
        Some((header.kind, span))
    };
    std::iter::from_fn(next).take(MAX_BOXES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atom(kind: &[u8; 4], content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        [
            &(content.len() as u32 + 8).to_be_bytes()[..],
            kind,
            &content,
        ]
        .concat()
    }

    /// Version 0: flags, two times, a time scale, a duration.
    fn header(kind: &[u8; 4], timescale: u32, duration: u32) -> Vec<u8> {
        atom(
            kind,
            &[&[0; 12], &timescale.to_be_bytes(), &duration.to_be_bytes()],
        )
    }

    fn track(timescale: u32, starts: &[i32]) -> Vec<u8> {
        let entries: Vec<u8> = starts
            .iter()
            .flat_map(|start| [&[0; 4][..], &start.to_be_bytes(), &[0, 1, 0, 0]].concat())
            .collect();
        let edits = atom(b"elst", &[&[0; 8], &entries]);
        let media = atom(b"mdia", &[&header(b"mdhd", timescale, 0)]);
        atom(b"trak", &[&atom(b"edts", &[&edits]), &media])
    }

    #[test]
    fn a_movie_lasts_longer_by_what_its_edit_lists_skip() {
        let file = |duration: u32, tracks: &[Vec<u8>]| {
            let movie = [header(b"mvhd", 1_000, duration), tracks.concat()].concat();
            [atom(b"ftyp", &[b"isom"]), atom(b"moov", &[&movie])].concat()
        };
        for (name, bytes, expected) in [
            ("nothing", vec![], None),
            ("no movie", atom(b"mdat", &[b"media"]), None),
            ("no track", file(2_000, &[]), None),
            ("nothing skipped", file(2_000, &[track(48_000, &[0])]), None),
            (
                "priming",
                file(2_000, &[track(48_000, &[1_024])]),
                Some(2_022),
            ),
            (
                "the most",
                file(2_000, &[track(90_000, &[9_000]), track(48_000, &[1_024])]),
                Some(2_100),
            ),
            (
                "a pause first",
                file(2_000, &[track(1_000, &[-1, 500])]),
                Some(2_500),
            ),
            ("only a pause", file(2_000, &[track(1_000, &[-1])]), None),
            ("no time scale", file(2_000, &[track(0, &[500])]), None),
            ("in fragments", file(0, &[track(1_000, &[500])]), None),
            ("no room", file(u32::MAX - 1, &[track(1_000, &[500])]), None),
            (
                "cut",
                file(2_000, &[track(1_000, &[500])])[..30].to_vec(),
                None,
            ),
        ] {
            let found = lengthened(&Input::holding(&bytes)).map(|(input, _)| {
                let read = input.read_at(0, bytes.len() + 9).expect("bytes");
                assert_eq!(read.len(), bytes.len());
                let at = 12 + 8 + 8 + 16;
                assert_eq!(
                    input.read_at(at, 4).expect("bytes"),
                    read[at as usize..][..4]
                );
                let changed: Vec<usize> = (0..read.len())
                    .filter(|it| read[*it] != bytes[*it])
                    .collect();
                assert!(
                    changed
                        .iter()
                        .all(|it| (at as usize..at as usize + 4).contains(it)),
                    "{name}"
                );
                u32::from_be_bytes(*read[at as usize..].first_chunk().expect("a duration"))
            });
            assert_eq!(found, expected, "{name}");
        }
    }
}
