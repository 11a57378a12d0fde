//! `Range` requests (206, 416) and files sent in bounded pieces, for all answers with bytes (RFC 9110 §14).

use std::{io, os::unix::fs::FileExt};

use actix_web::{
    HttpRequest, HttpResponseBuilder,
    http::{StatusCode, header},
    web::Bytes,
};
use futures_util::stream;
use sluice_store::blob::Source;

use crate::application::error::ApiError;

/// Bytes read from a file at a time.
const PIECE_BYTES: u64 = 256 * 1024;

/// The requested part of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RangeRequest {
    Whole,
    Range { start: u64, len: u64 },
    Unsatisfiable,
}

impl RangeRequest {
    /// Reads the request's `Range`, for a resource with `total` bytes.
    pub(super) fn of(request: &HttpRequest, total: u64) -> Self {
        request
            .headers()
            .get(header::RANGE)
            .and_then(|value| value.to_str().ok())
            .map_or(Self::Whole, |range| parse(range, total))
    }

    /// Sets status and headers of a 200 or 206, and returns the first byte and the number of bytes to send; else 416.
    pub(super) fn begin(
        self,
        response: &mut HttpResponseBuilder,
        total: u64,
    ) -> Result<(u64, u64), ApiError> {
        response.insert_header((header::ACCEPT_RANGES, "bytes"));
        match self {
            Self::Whole => Ok((0, total)),
            Self::Range { start, len } => {
                let range = format!("bytes {start}-{}/{total}", start + len - 1);
                response
                    .status(StatusCode::PARTIAL_CONTENT)
                    .insert_header((header::CONTENT_RANGE, range));
                Ok((start, len))
            }
            Self::Unsatisfiable => Err(ApiError::NoSuchRange { total_bytes: total }),
        }
    }
}

/// Parses one byte range; several, or a malformed one, mean the whole (RFC 9110 §14.2).
pub(super) fn parse(range: &str, total: u64) -> RangeRequest {
    let Some((first, last)) = range
        .split_once('=')
        .filter(|(unit, _)| unit.eq_ignore_ascii_case("bytes"))
        .and_then(|(_, range)| range.split_once('-'))
    else {
        return RangeRequest::Whole;
    };
    let number = |text: &str| {
        let digits = text.trim();
        let is_number = digits.bytes().all(|it| it.is_ascii_digit());
        digits.parse::<u64>().ok().filter(|_| is_number)
    };
    let (start, end) = match (number(first), number(last)) {
        (Some(start), Some(end)) if start <= end => (start, end.min(total.saturating_sub(1))),
        (Some(start), None) if last.trim().is_empty() => (start, total.saturating_sub(1)),
        (None, Some(suffix)) if first.trim().is_empty() => {
            if suffix == 0 {
                return RangeRequest::Unsatisfiable;
            }
            (total.saturating_sub(suffix), total.saturating_sub(1))
        }
        _ => return RangeRequest::Whole,
    };
    if start >= total {
        return RangeRequest::Unsatisfiable;
    }
    RangeRequest::Range {
        start,
        len: end - start + 1,
    }
}

/// Returns the pieces of the range, without a copy.
pub(super) fn cut(pieces: Vec<Bytes>, start: u64, len: u64) -> Vec<Bytes> {
    let (mut skip, mut left) = (start as usize, len as usize);
    let mut taken = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let from = skip.min(piece.len());
        let to = (from + left).min(piece.len());
        skip -= from;
        left -= to - from;
        if to > from {
            taken.push(piece.slice(from..to));
        }
    }
    taken
}

/// Reads on the blocking pool, one bounded piece at a time, as the client reads them.
pub(super) fn pieces_of(
    source: impl Into<Source>,
    offset: u64,
    len: u64,
) -> impl stream::Stream<Item = io::Result<Bytes>> {
    let mut source = source.into();
    source.read_until(offset.saturating_add(len));
    stream::try_unfold(
        (source, offset, len),
        |(mut source, offset, left)| async move {
            if left == 0 {
                return Ok(None);
            }
            // Bounded pieces, read only when the client has taken the one before: a slow client holds one piece in memory.
            let count = left.min(PIECE_BYTES) as usize;
            let piece = match &mut source {
                Source::File(file) => {
                    let reading = file.clone();
                    let piece = tokio::task::spawn_blocking(move || {
                        let mut piece = vec![0; count];
                        reading.read_exact_at(&mut piece, offset)?;
                        Ok::<_, io::Error>(Bytes::from(piece))
                    });
                    piece.await.map_err(io::Error::other)??
                }
                Source::Pieces(pieces) => {
                    let piece = pieces.read(offset, count).await;
                    piece.map_err(io::Error::other)?
                }
            };
            let read = piece.len() as u64;
            Ok(Some((piece, (source, offset + read, left - read))))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_the_rfc() {
        let cases = [
            ("bytes=0-9", Some((0, 10))),
            ("bytes=90-200", Some((90, 10))),
            ("bytes=95-", Some((95, 5))),
            ("bytes=-5", Some((95, 5))),
            ("bytes=-500", Some((0, 100))),
            ("Bytes=0-9", Some((0, 10))),
            ("bytes=0-99999999999999999999999", None),
            ("bytes=+0-+5", None),
            ("bytes=5-4", None),
            ("bytes=0-1,3-4", None),
            ("lines=0-1", None),
            ("bytes=x-y", None),
        ];
        for (text, expected) in cases {
            let range = match parse(text, 100) {
                RangeRequest::Range { start, len } => Some((start, len)),
                RangeRequest::Whole => None,
                RangeRequest::Unsatisfiable => panic!("{text} is satisfiable"),
            };
            assert_eq!(range, expected, "{text}");
        }
        for text in ["bytes=100-", "bytes=500-600", "bytes=-0"] {
            assert_eq!(parse(text, 100), RangeRequest::Unsatisfiable, "{text}");
        }
        for text in ["bytes=0-", "bytes=-1"] {
            assert_eq!(
                parse(text, 0),
                RangeRequest::Unsatisfiable,
                "{text} of nothing"
            );
        }
    }

    #[test]
    fn a_range_over_several_pieces_is_cut_exactly() {
        let pieces = || {
            ["abc", "de", "", "fgh"]
                .map(|text| Bytes::from_static(text.as_bytes()))
                .to_vec()
        };
        for (start, len, expected) in [
            (0, 8, "abcdefgh"),
            (2, 3, "cde"),
            (3, 2, "de"),
            (7, 1, "h"),
            (1, 1, "b"),
        ] {
            assert_eq!(
                cut(pieces(), start, len).concat(),
                expected.as_bytes(),
                "{start}+{len}"
            );
        }
    }
}
