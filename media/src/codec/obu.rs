//! Reads and writes AV1's open bitstream units (OBU; AV1 specification §5.3, low-overhead format of §5.2).

use bytes::{BufMut, BytesMut};

use crate::Error;

pub(super) const SEQUENCE_HEADER: u8 = 1;
pub(super) const FRAME_HEADER: u8 = 3;
pub(super) const TILE_GROUP: u8 = 4;
pub(super) const FRAME: u8 = 6;

const WHAT: &str = "AV1 bitstream";

/// A unit, without its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Obu<'a> {
    pub(super) kind: u8,
    pub(super) body: &'a [u8],
}

/// Iterates over the units in `data`, in order; ends after the first error.
pub(super) fn units(data: &[u8]) -> ObuIter<'_> {
    ObuIter { rest: data }
}

#[derive(Clone, Debug)]
pub(super) struct ObuIter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for ObuIter<'a> {
    type Item = Result<Obu<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let item = split_first(self.rest);
        self.rest = match item {
            Ok((_, rest)) => rest,
            Err(_) => &[],
        };
        Some(item.map(|(obu, _)| obu))
    }
}

fn split_first(data: &[u8]) -> Result<(Obu<'_>, &[u8]), Error> {
    let header = data[0];
    if header & 0x80 != 0 {
        return Err(Error::invalid(WHAT, "the forbidden bit of a unit is set"));
    }
    let has_extension = header & 4 != 0;
    let has_size = header & 2 != 0;
    let body = data
        .get(1 + usize::from(has_extension)..)
        .ok_or_else(ends_early)?;
    let (length, body) = if has_size {
        read_leb128(body)?
    } else {
        (body.len(), body)
    };
    if length > body.len() {
        return Err(Error::invalid(
            WHAT,
            format!(
                "a unit of {length} bytes is declared where {} are left",
                body.len()
            ),
        ));
    }
    let (body, rest) = body.split_at(length);
    Ok((
        Obu {
            kind: header >> 3 & 15,
            body,
        },
        rest,
    ))
}

/// Reads `leb128()` (§4.10.5): at most 8 bytes, the value below 2^32.
fn read_leb128(data: &[u8]) -> Result<(usize, &[u8]), Error> {
    let mut value = 0u64;
    for (index, &byte) in data.iter().take(8).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let value = u32::try_from(value)
                .map_err(|_| Error::invalid(WHAT, "a unit's length is over 2^32"))?;
            return Ok((value as usize, &data[index + 1..]));
        }
    }
    Err(ends_early())
}

/// Appends a unit with its size.
pub(super) fn write_sized(out: &mut BytesMut, kind: u8, body: &[u8]) {
    out.put_u8(kind << 3 | 2);
    let mut length = body.len();
    while length >= 0x80 {
        out.put_u8(length as u8 | 0x80);
        length >>= 7;
    }
    out.put_u8(length as u8);
    out.put_slice(body);
}

fn ends_early() -> Error {
    Error::invalid(WHAT, "it ends inside a unit's header")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_that_leave_the_data_are_refused() {
        for data in [
            &[0x0a][..],         // size announced, none there
            &[0x0a, 2, 0],       // one byte short
            &[0x0e],             // extension announced, none there
            &[0x8a, 0],          // forbidden bit
            &[0x0a, 0x80, 0x80], // length without end
            &[
                0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
            ], // longer than eight bytes
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f], // over 2^32
        ] {
            let units: Vec<_> = units(data).collect();
            assert_eq!(units.len(), 1, "{data:02x?}");
            assert!(units[0].is_err(), "{data:02x?}");
        }
    }

    #[test]
    fn the_last_unit_may_leave_its_size_out() {
        let units: Vec<_> = units(&[0x12, 0, 0x30, 1, 2]).map(Result::unwrap).collect();
        assert_eq!(
            units,
            [
                Obu { kind: 2, body: &[] },
                Obu {
                    kind: FRAME,
                    body: &[1, 2]
                }
            ]
        );
    }

    #[test]
    fn what_is_written_is_read_back() {
        for length in [0, 1, 127, 128, 300, 20_000] {
            let body = vec![7; length];
            let mut out = BytesMut::new();
            write_sized(&mut out, SEQUENCE_HEADER, &body);
            let units: Vec<_> = units(&out).map(Result::unwrap).collect();
            assert_eq!(
                units,
                [Obu {
                    kind: SEQUENCE_HEADER,
                    body: &body
                }]
            );
        }
    }
}
