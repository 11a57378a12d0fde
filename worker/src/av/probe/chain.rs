//! Chained Ogg files, in which one recording follows another (RFC 3533 section 4), as recorded radio has them.

use std::collections::HashSet;

use sluice_media::{
    av::MediaFacts,
    task::{Failure, FailureCode},
};

use super::super::source::Input;

/// Capture pattern at the beginning of each page.
const CAPTURE: &[u8] = b"OggS";
/// A page's header without its table of segments, and with the largest.
const FIXED_BYTES: usize = 27;
const HEADER_BYTES: usize = FIXED_BYTES + 255;
/// In the flags: the first page of a stream.
const BEGINS: u8 = 2;
/// Distance in which the next page is looked for where none begins; no page is longer.
const LOST_BYTES: usize = 64 << 10;
/// Larger files are not looked through.
const LARGEST: u64 = 2 << 30;
/// Streams in one file: more than the songs of a week.
const MOST_STREAMS: usize = 4_096;

/// Recordings that follow one another.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chain {
    /// Length of the first of them.
    pub(super) first_bytes: u64,
    pub(super) parts: u32,
    /// True when a stream has the number of one before it, so that the end of that one is unknown.
    repeats: bool,
}

impl Chain {
    /// Adds the chain to the facts of its first part. Fails for one that cannot be read as one audio.
    pub(super) fn describe(&self, facts: &mut MediaFacts) -> Result<(), Failure> {
        if self.repeats {
            return Err(refused("parts have the same serial number"));
        }
        if facts.video_track().is_some() {
            return Err(refused("the first has frames"));
        }
        facts.parts = Some(self.parts);
        // That of the first says nothing of all.
        facts.duration_ms = None;
        Ok(())
    }
}

fn refused(why: &str) -> Failure {
    Failure::new(
        FailureCode::Impossible,
        format!(
            "the file is several Ogg recordings, one behind the other, which cannot be read as one: {why}; take them apart \
             and send them one by one"
        ),
    )
}

/// Finds the chain of a file; `None`: one recording, or no Ogg file at all.
pub(super) fn of(input: &Input, head: &[u8]) -> Result<Option<Chain>, Failure> {
    if !head.starts_with(CAPTURE) || input.len() > LARGEST {
        return Ok(None);
    }
    let mut serials = HashSet::new();
    let mut chain = Chain {
        first_bytes: 0,
        parts: 1,
        repeats: false,
    };
    let (mut at, mut was_beginning) = (0, true);
    while let Some((place, page)) = next_page(input, at) {
        if page.begins {
            if !was_beginning {
                if chain.parts == 1 {
                    chain.first_bytes = place;
                }
                chain.parts += 1;
            }
            chain.repeats |= !serials.insert(page.serial);
            if serials.len() > MOST_STREAMS {
                return Err(refused(&format!("they are more than {MOST_STREAMS}")));
            }
        }
        was_beginning = page.begins;
        at = place + page.bytes;
    }
    Ok((chain.parts > 1).then_some(chain))
}

/// Header of a page (RFC 3533 section 6).
#[derive(Debug, PartialEq, Eq)]
struct Page {
    begins: bool,
    serial: u32,
    bytes: u64,
}

impl Page {
    fn read(header: &[u8]) -> Option<Self> {
        let fixed: &[u8; FIXED_BYTES] = header.first_chunk()?;
        if !fixed.starts_with(CAPTURE) || fixed[4] != 0 {
            return None;
        }
        let segments = usize::from(fixed[26]);
        let table = header.get(FIXED_BYTES..FIXED_BYTES + segments)?;
        let body: u64 = table.iter().copied().map(u64::from).sum();
        Some(Self {
            begins: fixed[5] & BEGINS != 0,
            serial: u32::from_le_bytes([fixed[14], fixed[15], fixed[16], fixed[17]]),
            bytes: (FIXED_BYTES + segments) as u64 + body,
        })
    }
}

/// The first page at a place or a little behind it.
fn next_page(input: &Input, at: u64) -> Option<(u64, Page)> {
    let header = input.read_at(at, HEADER_BYTES).ok()?;
    if let Some(page) = Page::read(&header) {
        return Some((at, page));
    }
    let lost = input.read_at(at, LOST_BYTES).ok()?;
    let found = |offset: usize| Some((at + offset as u64, Page::read(lost.get(offset..)?)?));
    let places = lost.windows(CAPTURE.len()).enumerate();
    places
        .filter(|(_, window)| *window == CAPTURE)
        .find_map(|(offset, _)| found(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(flags: u8, serial: u8, body: &[u8]) -> Vec<u8> {
        let mut page = b"OggS\0".to_vec();
        page.push(flags);
        page.extend([0; 8]);
        page.extend([serial, 0, 0, 0]);
        page.extend([0; 8]);
        page.extend([1, body.len() as u8]);
        page.extend(body);
        page
    }

    fn chain(bytes: &[u8]) -> Option<Chain> {
        of(&Input::holding(bytes), bytes).expect("few streams")
    }

    #[test]
    fn a_stream_that_begins_behind_others_is_another_part() {
        let (begin, resume, end) = (
            |serial| page(BEGINS, serial, b"head"),
            |serial| page(0, serial, b"OggS is no page here"),
            |serial| page(4, serial, b""),
        );
        let one = [begin(1), resume(1), end(1)].concat();
        let two = [begin(2), begin(3), resume(2), resume(3)].concat();
        let is_chain = |parts, repeats| {
            Some(Chain {
                first_bytes: one.len() as u64,
                parts,
                repeats,
            })
        };
        assert_eq!(chain(b""), None);
        assert_eq!(chain(&one), None);
        assert_eq!(chain(&two), None);
        assert_eq!(chain(&[&one[..], &two].concat()), is_chain(2, false));
        assert_eq!(chain(&[&one[..], &two, &one].concat()), is_chain(3, true));
        assert_eq!(chain(&[&one[..], &one].concat()), is_chain(2, true));
        // Cut within its last page.
        assert_eq!(chain(&[&one[..], &two[..20]].concat()), None);
        // Something between the parts.
        let apart = chain(&[&one[..], b"TAG, and noise", &two].concat()).expect("a chain");
        assert_eq!((apart.parts, apart.first_bytes), (2, one.len() as u64 + 14));
    }
}
