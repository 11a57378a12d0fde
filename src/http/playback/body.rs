//! Media bytes as answers: from memory or in pieces from a segment's file, whole or a range (RFC 9110 §14).

use std::{fs::File, io, os::unix::fs::FileExt, path::PathBuf, sync::Arc};

use actix_web::{
    HttpRequest, HttpResponse,
    body::SizedStream,
    http::{
        StatusCode,
        header::{self, HeaderValue},
    },
    web::Bytes,
};
use futures_util::stream;
use sluice_actors::live::Body;

use crate::http::error::ApiError;

/// Bytes read from a file at a time.
const PIECE: u64 = 256 * 1024;

/// A resource in one piece.
pub(super) fn memory(bytes: Bytes) -> Body {
    Body::Memory(vec![bytes])
}

/// 200 or 206 with the bytes, 416 when the range asked for is not there.
pub(super) async fn respond(
    request: &HttpRequest,
    body: Body,
    content_type: &'static str,
    cache: &'static str,
) -> Result<HttpResponse, ApiError> {
    let total = body.len();
    let asked = request
        .headers()
        .get(header::RANGE)
        .and_then(|value| value.to_str().ok());
    let mut response = HttpResponse::Ok();
    let (start, len) = match asked.map_or(Asked::Whole, |range| parse(range, total)) {
        Asked::Whole => (0, total),
        Asked::Range { start, len } => {
            let range = format!("bytes {start}-{}/{total}", start + len - 1);
            response
                .status(StatusCode::PARTIAL_CONTENT)
                .insert_header((header::CONTENT_RANGE, range));
            (start, len)
        }
        Asked::Unsatisfiable => return Ok(unsatisfiable(total)),
    };
    response
        .insert_header((header::CONTENT_TYPE, content_type))
        .insert_header((header::CACHE_CONTROL, cache))
        .insert_header((header::ACCEPT_RANGES, "bytes"));
    match body {
        Body::Memory(pieces) => {
            let pieces = cut(pieces, start, len).into_iter().map(Ok::<_, io::Error>);
            Ok(response.body(SizedStream::new(len, stream::iter(pieces))))
        }
        Body::File { path, offset, .. } => {
            let file = open(path).await?;
            Ok(response.body(SizedStream::new(len, pieces_of(file, offset + start, len))))
        }
    }
}

enum Asked {
    Whole,
    Range { start: u64, len: u64 },
    Unsatisfiable,
}

/// One byte range; several, or a malformed one, mean the whole (RFC 9110 §14.2).
fn parse(range: &str, total: u64) -> Asked {
    let Some((first, last)) = range
        .strip_prefix("bytes=")
        .and_then(|range| range.split_once('-'))
    else {
        return Asked::Whole;
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (start, end) = match (number(first), number(last)) {
        (Some(start), Some(end)) if start <= end => (start, end.min(total.saturating_sub(1))),
        (Some(start), None) if last.trim().is_empty() => (start, total.saturating_sub(1)),
        (None, Some(suffix)) if first.trim().is_empty() => {
            if suffix == 0 {
                return Asked::Unsatisfiable;
            }
            (total.saturating_sub(suffix), total.saturating_sub(1))
        }
        _ => return Asked::Whole,
    };
    if start >= total {
        return Asked::Unsatisfiable;
    }
    Asked::Range {
        start,
        len: end - start + 1,
    }
}

fn unsatisfiable(total: u64) -> HttpResponse {
    let error = format!("the range is outside of the {total} bytes of this resource");
    HttpResponse::RangeNotSatisfiable()
        .insert_header((header::CONTENT_RANGE, format!("bytes */{total}")))
        .insert_header((header::CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .json(serde_json::json!({ "error": error }))
}

/// The pieces of the range, without a copy: a segment is sent to many viewers at once.
fn cut(pieces: Vec<Bytes>, start: u64, len: u64) -> Vec<Bytes> {
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

async fn open(path: PathBuf) -> Result<Arc<File>, ApiError> {
    match tokio::task::spawn_blocking(move || File::open(path)).await {
        Ok(Ok(file)) => Ok(Arc::new(file)),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            Err(ApiError::NotFound("segment"))
        }
        Ok(Err(error)) => Err(ApiError::internal(error)),
        Err(error) => Err(ApiError::internal(error)),
    }
}

/// Reads on the blocking pool, one bounded piece at a time, as the viewer takes them.
fn pieces_of(
    file: Arc<File>,
    offset: u64,
    len: u64,
) -> impl stream::Stream<Item = io::Result<Bytes>> {
    stream::try_unfold((file, offset, len), |(file, offset, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let count = left.min(PIECE);
        let reading = file.clone();
        let piece = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; count as usize];
            reading.read_exact_at(&mut piece, offset)?;
            Ok::<_, io::Error>(Bytes::from(piece))
        });
        let piece = piece.await.map_err(io::Error::other)??;
        Ok(Some((piece, (file, offset + count, left - count))))
    })
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
            ("bytes=5-4", None),
            ("bytes=0-1,3-4", None),
            ("lines=0-1", None),
            ("bytes=x-y", None),
        ];
        for (text, expected) in cases {
            let range = match parse(text, 100) {
                Asked::Range { start, len } => Some((start, len)),
                Asked::Whole => None,
                Asked::Unsatisfiable => panic!("{text} is satisfiable"),
            };
            assert_eq!(range, expected, "{text}");
        }
        for text in ["bytes=100-", "bytes=500-600", "bytes=-0"] {
            assert!(matches!(parse(text, 100), Asked::Unsatisfiable), "{text}");
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
