//! Fast start of MP4: moves the movie box (`moov`) in front of the media in place; writes the rotation of copied
//! frames, which the multiplexer does not.
//!
//! ```text
//! ftyp │ mdat ············· │ moov │ uuid        as multiplexers write it
//! ftyp │ moov │ mdat ············· │ uuid        media moved towards the end, from its end, in pieces
//! ```
//!
//! Chunk offsets (`stco`, `co64`; ISO/IEC 14496-12 §8.7.5) grow by what was put in front of them. The box tree is walked
//! along one path of fixed depth; sizes are checked against what is there, so a file that is something else is rejected
//! and left as it was.

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt};

use crate::av::boxes::{HEADER_BYTES, Header};

/// Media that is moved at a time, in bytes.
const PIECE_BYTES: usize = 1 << 20;
/// A movie box that describes days of media has a few dozen megabytes.
const MAX_MOVIE_BYTES: u64 = 512 << 20;
/// Boxes at the top of a file that has one movie and one run of media.
const MAX_BOXES: usize = 64;
/// From the movie down to the tables of chunk offsets.
const PATH: [&[u8; 4]; 4] = [b"trak", b"mdia", b"minf", b"stbl"];

/// Reason why a file cannot be rearranged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the file cannot be rearranged: {0}")]
    Io(#[from] io::Error),
    /// The file is not laid out as our multiplexer writes it.
    #[error("the file has no {0} where one belongs")]
    Malformed(&'static str),
}

/// Moves the movie box of the file to its front. Its frames are to be turned by `turn` degrees clockwise. A file that
/// has the box there already is left alone.
pub fn apply(file: &File, turn: u16) -> Result<(), Error> {
    let length = file.metadata()?.len();
    let boxes = top(file, length)?;
    let movie = find(&boxes, b"moov").ok_or(Error::Malformed("movie box"))?;
    let media = find(&boxes, b"mdat").ok_or(Error::Malformed("media box"))?;
    if movie.range.start < media.range.start {
        return Ok(());
    }
    let movie = movie.range.clone();
    // What the multiplexer wrote between its header and the media, a `free` box, goes with the media.
    let insert_at = find(&boxes, b"ftyp")
        .filter(|header| header.range.end <= media.range.start)
        .map_or(0, |header| header.range.end);
    let mut bytes = vec![0; usize::try_from(movie.end - movie.start).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, movie.start)?;
    let bytes = moved(&bytes, insert_at..movie.start, turn)?;
    let grown = bytes.len() as u64 - (movie.end - movie.start);
    move_up(file, movie.end..length, grown)?;
    move_up(file, insert_at..movie.start, bytes.len() as u64)?;
    file.write_all_at(&bytes, insert_at)?;
    Ok(())
}

struct Top {
    kind: [u8; 4],
    range: Range<u64>,
}

/// The boxes at the top of the file.
fn top(file: &File, length: u64) -> Result<Vec<Top>, Error> {
    let mut boxes = Vec::new();
    let mut at = 0;
    while at < length {
        if boxes.len() == MAX_BOXES {
            return Err(Error::Malformed("end of its boxes"));
        }
        let mut head = [0; HEADER_BYTES];
        let there = usize::try_from(length - at).map_or(HEADER_BYTES, |it| it.min(HEADER_BYTES));
        file.read_exact_at(&mut head[..there], at)?;
        let (kind, size) = header(&head[..there], length - at)?;
        if &kind == b"moov" && size > MAX_MOVIE_BYTES {
            return Err(Error::Malformed("movie box of a sensible size"));
        }
        boxes.push(Top {
            kind,
            range: at..at + size,
        });
        at += size;
    }
    Ok(boxes)
}

fn find<'a>(boxes: &'a [Top], kind: &[u8; 4]) -> Option<&'a Top> {
    boxes.iter().find(|one| &one.kind == kind)
}

/// Kind and whole size of the box that begins there and has `room` bytes at most.
fn header(bytes: &[u8], room: u64) -> Result<([u8; 4], u64), Error> {
    let fitting = Header::read(bytes).map(|header| (header.kind, header.size.unwrap_or(room)));
    fitting
        .filter(|(_, size)| *size <= room)
        .ok_or(Error::Malformed("box header"))
}

/// Returns the movie box for a file in which it comes before `media` instead of behind.
fn moved(movie: &[u8], media: Range<u64>, turn: u16) -> Result<Vec<u8>, Error> {
    // With wide tables the box is larger, and then everything moves further.
    for wide in [false, true] {
        let mut by = movie.len() as u64;
        loop {
            let shift = OffsetShift {
                media: media.clone(),
                by,
                wide,
                turn,
            };
            match shift.rebuilt(movie, 0)? {
                None => break,
                Some(bytes) if bytes.len() as u64 == by => return Ok(bytes),
                Some(bytes) if bytes.len() as u64 > by => by = bytes.len() as u64,
                Some(_) => return Err(Error::Malformed("table of chunk offsets")),
            }
        }
    }
    Err(Error::Malformed("chunk offset below 2^64"))
}

/// Change of chunk offsets, and of the headers of tracks.
struct OffsetShift {
    /// Offsets into this part grow.
    media: Range<u64>,
    by: u64,
    /// Tables of 32 bits become tables of 64.
    wide: bool,
    /// Degrees clockwise.
    turn: u16,
}

impl OffsetShift {
    /// The box, written again, with everything of [`PATH`] from `depth` on looked into; `None`: an offset needs more than
    /// 32 bits. It calls itself for each step of that path and no deeper.
    fn rebuilt(&self, whole: &[u8], depth: usize) -> Result<Option<Vec<u8>>, Error> {
        let mut out = whole
            .get(..8)
            .ok_or(Error::Malformed("box header"))?
            .to_vec();
        if out[..4] == 1_u32.to_be_bytes() {
            return Err(Error::Malformed("movie box of a sensible size"));
        }
        let mut rest = &whole[8..];
        while !rest.is_empty() {
            let (kind, size) = header(rest, rest.len() as u64)?;
            let (child, after) = rest.split_at(size as usize);
            rest = after;
            if PATH.get(depth).is_some_and(|wanted| **wanted == kind) {
                match self.rebuilt(child, depth + 1)? {
                    Some(child) => out.extend_from_slice(&child),
                    None => return Ok(None),
                }
            } else if depth == 1 && &kind == b"tkhd" {
                let from = out.len();
                out.extend_from_slice(child);
                turn_track(&mut out[from..], self.turn);
            } else if depth == PATH.len() && matches!(&kind, b"stco" | b"co64") {
                match self.table(child, &kind == b"co64")? {
                    Some(table) => out.extend_from_slice(&table),
                    None => return Ok(None),
                }
            } else {
                out.extend_from_slice(child);
            }
        }
        let size = u32::try_from(out.len())
            .map_err(|_| Error::Malformed("movie box of a sensible size"))?;
        out[..4].copy_from_slice(&size.to_be_bytes());
        Ok(Some(out))
    }

    /// A table of chunk offsets: version and flags, how many, and they themselves.
    fn table(&self, table: &[u8], is_wide: bool) -> Result<Option<Vec<u8>>, Error> {
        const MALFORMED: Error = Error::Malformed("table of chunk offsets");
        let (head, entries) = table.split_at_checked(16).ok_or(MALFORMED)?;
        let count = u32::from_be_bytes(*head[12..].first_chunk().ok_or(MALFORMED)?) as usize;
        let entry = if is_wide { 8 } else { 4 };
        if count.checked_mul(entry) != Some(entries.len()) {
            return Err(MALFORMED);
        }
        let writes_wide = is_wide || self.wide;
        let mut out = head.to_vec();
        if writes_wide {
            out[4..8].copy_from_slice(b"co64");
        }
        for offset in entries.chunks_exact(entry) {
            let offset = offset
                .iter()
                .fold(0_u64, |offset, byte| offset << 8 | u64::from(*byte));
            let offset = if self.media.contains(&offset) {
                offset.checked_add(self.by).ok_or(MALFORMED)?
            } else {
                offset
            };
            match (writes_wide, u32::try_from(offset)) {
                (true, _) => out.extend_from_slice(&offset.to_be_bytes()),
                (false, Ok(offset)) => out.extend_from_slice(&offset.to_be_bytes()),
                (false, Err(_)) => return Ok(None),
            }
        }
        let size = u32::try_from(out.len()).map_err(|_| MALFORMED)?;
        out[..4].copy_from_slice(&size.to_be_bytes());
        Ok(Some(out))
    }
}

/// Sets the matrix in the header of a track of frames (ISO/IEC 14496-12 §8.3.2, §6.2.2).
fn turn_track(header: &mut [u8], turn: u16) {
    /// In 16.16, but for the last column, in 2.30.
    const ONE: i32 = 1 << 16;
    const LAST: i32 = 1 << 30;
    let matrix_at = if header.get(8) == Some(&1) { 60 } else { 48 };
    let Some((matrix, size)) = header
        .get_mut(matrix_at..)
        .and_then(|rest| rest.split_at_mut_checked(36))
    else {
        return;
    };
    let side = |bytes: Option<&[u8]>| {
        let bytes = bytes.and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| i32::from_be_bytes(*bytes))
    };
    let (width, height) = (side(size.get(..4)), side(size.get(4..)));
    if width == 0 || height == 0 {
        return;
    }
    let turned = match turn {
        90 => [0, ONE, 0, -ONE, 0, 0, height, 0, LAST],
        180 => [-ONE, 0, 0, 0, -ONE, 0, width, height, LAST],
        270 => [0, -ONE, 0, ONE, 0, 0, 0, width, LAST],
        _ => return,
    };
    for (place, value) in matrix.as_chunks_mut::<4>().0.iter_mut().zip(turned) {
        *place = value.to_be_bytes();
    }
}

/// Moves a part of the file towards its end, the last piece first, so that nothing is overwritten before it was read.
fn move_up(file: &File, part: Range<u64>, by: u64) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut end = part.end;
    while end > part.start {
        let length = (end - part.start).min(PIECE_BYTES as u64);
        end -= length;
        let piece = &mut piece[..length as usize];
        file.read_exact_at(piece, end)?;
        file.write_all_at(piece, end + by)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let mut whole = (body.len() as u32 + 8).to_be_bytes().to_vec();
        whole.extend_from_slice(kind);
        whole.extend_from_slice(body);
        whole
    }

    fn nested(kinds: &[&[u8; 4]], inner: &[u8]) -> Vec<u8> {
        kinds
            .iter()
            .rev()
            .fold(inner.to_vec(), |inner, kind| boxed(kind, &inner))
    }

    fn stco(offsets: &[u32]) -> Vec<u8> {
        let mut body = vec![0; 4];
        body.extend_from_slice(&(offsets.len() as u32).to_be_bytes());
        offsets
            .iter()
            .for_each(|offset| body.extend_from_slice(&offset.to_be_bytes()));
        boxed(b"stco", &body)
    }

    fn movie(table: &[u8]) -> Vec<u8> {
        let mut body = boxed(b"mvhd", &[0; 12]);
        body.extend(nested(&[b"trak", b"mdia", b"minf", b"stbl"], table));
        body.extend(boxed(b"udta", b"meta"));
        boxed(b"moov", &body)
    }

    fn applied(bytes: &[u8]) -> (Result<(), Error>, Vec<u8>) {
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(bytes, 0).expect("written");
        let result = apply(&file, 0);
        let mut after = vec![0; file.metadata().expect("a length").len() as usize];
        file.read_exact_at(&mut after, 0).expect("read");
        (result, after)
    }

    #[test]
    fn the_movie_comes_first_and_offsets_follow_their_media() {
        let media: Vec<u8> = (0..3 * PIECE_BYTES + 5)
            .map(|index| (index % 251) as u8)
            .collect();
        let head = [boxed(b"ftyp", b"isom"), boxed(b"free", &[])].concat();
        let chunk = head.len() as u32 + 8;
        let table = stco(&[chunk, chunk + PIECE_BYTES as u32 * 2]);
        let file = [
            head,
            boxed(b"mdat", &media),
            movie(&table),
            boxed(b"uuid", b"behind"),
        ]
        .concat();
        let (result, after) = applied(&file);
        result.expect("rearranged");

        assert_eq!(after.len(), file.len());
        let moved = movie(&table).len() as u32;
        let expected = [
            boxed(b"ftyp", b"isom"),
            movie(&stco(&[
                chunk + moved,
                chunk + moved + PIECE_BYTES as u32 * 2,
            ])),
            boxed(b"free", &[]),
            boxed(b"mdat", &media),
            boxed(b"uuid", b"behind"),
        ]
        .concat();
        assert!(after == expected);
        let (result, again) = applied(&after);
        result.expect("nothing to do");
        assert!(again == after);
    }

    #[test]
    fn offsets_beyond_four_gigabytes_widen_their_table() {
        let near_the_end = u32::MAX - 50;
        let small = movie(&stco(&[100, near_the_end]));
        let large = moved(&small, 50..u64::from(u32::MAX), 0).expect("rebuilt");
        assert_eq!(large.len(), small.len() + 8);
        let at = large
            .windows(4)
            .position(|kind| kind == b"co64")
            .expect("a wide table");
        let entry = |index: usize| {
            let from = at + 12 + 8 * index;
            u64::from_be_bytes(*large[from..].first_chunk().expect("an entry"))
        };
        assert_eq!(entry(0), 100 + large.len() as u64);
        assert_eq!(entry(1), u64::from(near_the_end) + large.len() as u64);
        // Every box around it says its new size.
        let (_, size) = header(&large, large.len() as u64).expect("a header");
        assert_eq!(size, large.len() as u64);
        // What points outside of the media is left.
        let outside = moved(&movie(&stco(&[10])), 50..100, 0).expect("rebuilt");
        assert_eq!(outside, movie(&stco(&[10])));
    }

    #[test]
    fn only_tracks_with_a_size_are_turned() {
        let header = |width: u16, height: u16, version: usize| {
            let mut header = vec![0_u8; if version == 1 { 104 } else { 92 }];
            header[8] = version as u8;
            let at = header.len() - 8;
            header[at..at + 2].copy_from_slice(&width.to_be_bytes());
            header[at + 4..at + 6].copy_from_slice(&height.to_be_bytes());
            header
        };
        for version in [0, 1] {
            for (width, height, turn, expected) in [
                (160, 90, 0, [0, 0, 0, 0]),
                (0, 0, 90, [0, 0, 0, 0]),
                (160, 90, 90, [0, 0x1_0000, 90 << 16, 0]),
                (160, 90, 180, [-0x1_0000, 0, 160 << 16, 90 << 16]),
                (160, 90, 270, [0, -0x1_0000, 0, 160 << 16]),
            ] {
                let mut bytes = header(width, height, version);
                turn_track(&mut bytes, turn);
                let from = bytes.len() - 44;
                let value = |index: usize| {
                    let at = from + 4 * index;
                    i32::from_be_bytes(*bytes[at..].first_chunk().expect("a value"))
                };
                assert_eq!([value(0), value(1), value(6), value(7)], expected, "{turn}");
            }
        }
        turn_track(&mut [1; 50], 90);
        turn_track(&mut [], 90);
    }

    #[test]
    fn what_is_something_else_is_rejected_and_left_alone() {
        let good = movie(&stco(&[16]));
        let mut lying = stco(&[16]);
        lying[12..16].copy_from_slice(&u32::MAX.to_be_bytes());
        let mut overlong = good.clone();
        overlong[..4].copy_from_slice(&(good.len() as u32 + 1).to_be_bytes());
        let mdat = boxed(b"mdat", &[7; 32]);
        let cases = [
            vec![],
            b"\0\0\0".to_vec(),
            b"\0\0\0\x07mdat".to_vec(),
            b"\0\0\0\x01mdat\0\0\0\0".to_vec(),
            b"\0\0\0\x01mdat\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(),
            mdat.clone(),
            good.clone(),
            [mdat.clone(), movie(&lying)].concat(),
            [mdat.clone(), movie(&boxed(b"stco", &[0; 3]))].concat(),
            [mdat.clone(), boxed(b"moov", b"\0\0\0\x03trak")].concat(),
            [mdat, overlong].concat(),
            boxed(b"free", &[]).repeat(MAX_BOXES + 1),
        ];
        for bytes in cases {
            let (result, after) = applied(&bytes);
            let error = result.expect_err("rejected");
            assert!(matches!(error, Error::Malformed(_)), "{error}");
            assert!(after == bytes);
        }
    }
}
