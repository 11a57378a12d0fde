//! Reads the tracks of an init section, as far as a recording's MP4 file repeats them.

use bytes::Bytes;

use super::boxes::{Boxes, u32_at};
use crate::Error;

const WHAT: &str = "init section";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackKind {
    Video,
    Audio,
}

/// Description of a track of an init section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    pub track: u32,
    pub kind: TrackKind,
    /// Ticks per second, at least 1.
    pub timescale: u32,
    /// 16.16 pixels as shown.
    pub size: (u32, u32),
    /// The sample entry as a whole box, byte for byte.
    pub entry: Bytes,
}

/// The tracks of an init section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    pub tracks: Vec<Description>,
}

impl Described {
    /// Reads an init section as [`super::super::Packager`] writes it.
    ///
    /// # Errors
    /// `Invalid` when a box is missing or cut short.
    pub fn parse(init: &[u8]) -> Result<Self, Error> {
        let moov = Boxes::new(WHAT, init).find(b"moov")?;
        let mut tracks = Vec::new();
        for found in Boxes::new(WHAT, moov) {
            let (kind, _, body) = found?;
            if &kind == b"trak" {
                tracks.push(description(body)?);
            }
        }
        match tracks.len() {
            0 => Err(Error::invalid(WHAT, "it has no track")),
            _ => Ok(Self { tracks }),
        }
    }
}

fn description(trak: &[u8]) -> Result<Description, Error> {
    let short = || Error::invalid(WHAT, "a box is cut short");
    let boxes = Boxes::new(WHAT, trak);
    let tkhd = boxes.clone().find(b"tkhd")?;
    let (track_at, size_at) = match tkhd.first() {
        Some(0) => (12, 76),
        _ => (20, 88),
    };
    let mdia = Boxes::new(WHAT, boxes.find(b"mdia")?);
    let mdhd = mdia.clone().find(b"mdhd")?;
    let timescale_at = match mdhd.first() {
        Some(0) => 12,
        _ => 20,
    };
    let hdlr = mdia.clone().find(b"hdlr")?;
    let kind = match hdlr.get(8..12).ok_or_else(short)? {
        b"vide" => TrackKind::Video,
        b"soun" => TrackKind::Audio,
        _ => return Err(Error::invalid(WHAT, "a track is neither video nor audio")),
    };
    let stbl = Boxes::new(WHAT, Boxes::new(WHAT, mdia.find(b"minf")?).find(b"stbl")?);
    let stsd = stbl.find(b"stsd")?;
    let mut entries = Boxes::new(WHAT, stsd.get(8..).ok_or_else(short)?);
    let (_, entry, _) = entries.next().ok_or_else(short)??;
    Ok(Description {
        track: u32_at(tkhd, track_at).ok_or_else(short)?,
        kind,
        timescale: u32_at(mdhd, timescale_at).ok_or_else(short)?.max(1),
        size: u32_at(tkhd, size_at)
            .zip(u32_at(tkhd, size_at + 4))
            .ok_or_else(short)?,
        entry: Bytes::copy_from_slice(entry),
    })
}
