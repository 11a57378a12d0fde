//! Enhanced RTMP v2: ModEx prefixes (nanosecond offsets) and multitrack bodies of video and audio.

use std::ops::Range;

use super::{Corruption, cursor::Cursor};

/// ModEx type: a nanosecond offset of 24 bits.
const TIMESTAMP_OFFSET_NANO: u8 = 0;
/// The packet types that are the same for both kinds.
pub(super) mod packet_type {
    pub(in super::super) const SEQUENCE_START: u8 = 0;
    pub(in super::super) const CODED_FRAMES: u8 = 1;
    pub(in super::super) const SEQUENCE_END: u8 = 2;
    pub(in super::super) const CODED_FRAMES_X: u8 = 3;
    pub(in super::super) const METADATA: u8 = 4;
    pub(in super::super) const MULTITRACK_AUDIO: u8 = 5;
    pub(in super::super) const MULTITRACK_VIDEO: u8 = 6;
    pub(in super::super) const MOD_EX: u8 = 7;
}

mod multitrack {
    pub(super) const ONE_TRACK: u8 = 0;
    pub(super) const MANY_TRACKS_MANY_CODECS: u8 = 2;
}

/// Reads ModEx prefixes until a packet type that is none; returns that and the nanosecond offset.
pub(super) fn skip_mod_ex(
    cursor: &mut Cursor<'_>,
    first_type: u8,
) -> Result<(u8, u32), Corruption> {
    let mut packet_type = first_type;
    let mut offset_ns = 0;
    while packet_type == packet_type::MOD_EX {
        let size = match cursor.u8()? {
            255 => usize::from(cursor.u16()?) + 1,
            size => usize::from(size) + 1,
        };
        let mut data = cursor.part(size)?;
        let next = cursor.u8()?;
        if next >> 4 == TIMESTAMP_OFFSET_NANO {
            offset_ns = data.u24()?.min(999_999);
        }
        packet_type = next & 0x0F;
    }
    Ok((packet_type, offset_ns))
}

/// The one track of a message that is carried.
pub(super) struct Track {
    pub(super) fourcc: [u8; 4],
    pub(super) id: u8,
    pub(super) packet_type: u8,
    pub(super) has_others: bool,
    pub(super) body: Range<usize>,
}

/// The track that a packet carries: of a packet of the type `multitrack` the wanted one, else the only one.
pub(super) fn track_of(
    cursor: &mut Cursor<'_>,
    packet_type: u8,
    multitrack: u8,
    wanted: Option<u8>,
    what: &'static str,
) -> Result<Track, Corruption> {
    let track = if packet_type == multitrack {
        choose_track(cursor, wanted, what)?
    } else {
        Track {
            fourcc: cursor.fourcc()?,
            id: 0,
            packet_type,
            has_others: false,
            body: cursor.rest(),
        }
    };
    match wanted {
        Some(wanted) if wanted != track.id => Err(Corruption::OtherTrack { what }),
        _ => Ok(track),
    }
}

/// Reads the body of a multitrack packet: the wanted track, or the first one when none is wanted yet.
fn choose_track(
    cursor: &mut Cursor<'_>,
    wanted: Option<u8>,
    what: &'static str,
) -> Result<Track, Corruption> {
    let head = cursor.u8()?;
    let (form, packet_type) = (head >> 4, head & 0x0F);
    if form > multitrack::MANY_TRACKS_MANY_CODECS {
        return Err(Corruption::PacketType { what, number: form });
    }
    let mut fourcc = [0; 4];
    if form != multitrack::MANY_TRACKS_MANY_CODECS {
        fourcc = cursor.fourcc()?;
    }
    let mut chosen: Option<Track> = None;
    let mut tracks = 0;
    loop {
        if form == multitrack::MANY_TRACKS_MANY_CODECS {
            fourcc = cursor.fourcc()?;
        }
        let id = cursor.u8()?;
        let body = match form {
            multitrack::ONE_TRACK => cursor.skip(cursor.rest().len())?,
            _ => {
                let size = cursor.u24()?;
                cursor.skip(size as usize)?
            }
        };
        tracks += 1;
        if chosen.is_none() && wanted.is_none_or(|wanted| wanted == id) {
            chosen = Some(Track {
                fourcc,
                id,
                packet_type,
                has_others: false,
                body,
            });
        }
        if cursor.is_at_end() {
            break;
        }
    }
    let mut track = chosen.ok_or(Corruption::OtherTrack { what })?;
    track.has_others = tracks > 1;
    Ok(track)
}
