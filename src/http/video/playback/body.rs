//! Bodies at `/video/v1`: playlists as text with entity tags, ranges of stream files in pieces, 304.

use std::sync::Arc;

use actix_web::{
    HttpRequest, HttpResponse,
    body::{BodySize, SizedStream},
    http::{Method, header},
};
use sha2::{Digest as _, Sha256};
use sluice_actors::video::Playback;
use sluice_store::{
    blob::{BlobHash, Source},
    video::{self, MediaFile},
};

use crate::{
    application::{context::VideoContext, error::ApiError},
    http::{
        bytes::{if_range_holds, is_known, unchanged},
        length_only::LengthOnly,
        playback_access::CacheLifetime,
        range::{RangeRequest, pieces_of},
    },
};

/// Stored bytes, and their headers.
pub(super) struct Piece {
    pub content: Content,
    /// Offset and number of bytes in the file; `None`: the whole file.
    pub range: Option<(u64, u64)>,
    pub content_type: &'static str,
    /// The entity tag.
    pub tag: String,
    pub keeping: CacheLifetime,
}

pub(super) enum Content {
    /// A file of the stream.
    File(Arc<Playback>, MediaFile),
    Blob(BlobHash),
}

/// Answers 200 with the text, or 304 to a client that has it.
pub(super) fn text(
    request: &HttpRequest,
    cache: String,
    content_type: &'static str,
    text: String,
) -> HttpResponse {
    let digest = Sha256::digest(text.as_bytes());
    let number = u128::from_be_bytes(digest[..16].try_into().expect("a SHA-256 has 32 bytes"));
    let tag = format!("\"{number:032x}\"");
    if is_known(request, &tag) == Some(true) {
        return unchanged(&tag, &cache);
    }
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, content_type))
        .insert_header((header::CACHE_CONTROL, cache))
        .insert_header((header::ETAG, tag))
        .body(text)
}

/// Answers 200, 206, 304 or 416 with the bytes.
pub(super) async fn send(
    request: &HttpRequest,
    context: &VideoContext,
    piece: Piece,
    cache: String,
) -> Result<HttpResponse, ApiError> {
    if is_known(request, &piece.tag) == Some(true) {
        return Ok(unchanged(&piece.tag, &cache));
    }
    let (source, offset, total) = match piece.range {
        // Nothing is fetched for a length.
        Some((offset, total)) if request.method() == Method::HEAD => (None, offset, total),
        Some((offset, total)) => {
            let source = open(context, piece.content, piece.range).await?;
            (Some(source), offset, total)
        }
        None => {
            let source = open(context, piece.content, None).await?;
            let total = source.size().map_err(ApiError::of_disk)?;
            (Some(source), 0, total)
        }
    };
    let asked = match if_range_holds(request, &piece.tag, &piece.tag) {
        true => RangeRequest::of(request, total),
        false => RangeRequest::Whole,
    };
    let mut response = HttpResponse::Ok();
    let (start, length) = asked.begin(&mut response, total)?;
    response
        .insert_header((header::CONTENT_TYPE, piece.content_type))
        .insert_header((header::CACHE_CONTROL, cache))
        .insert_header((header::ETAG, piece.tag));
    Ok(match source {
        Some(source) => {
            let pieces = pieces_of(source, offset + start, length);
            response.body(SizedStream::new(length, pieces))
        }
        None => response.body(LengthOnly(BodySize::Sized(length))),
    })
}

/// Opens the content, for reads of a range if there is one; 404 when it was deleted after the look-up.
async fn open(
    context: &VideoContext,
    content: Content,
    range: Option<(u64, u64)>,
) -> Result<Source, ApiError> {
    let store = &context.store;
    match content {
        Content::Blob(blob) => Ok(store.blobs().source(&blob).await?),
        Content::File(playback, file) => {
            let (id, objects) = (playback.stream.id, &playback.objects);
            let range = range.map(|(offset, length)| offset..offset.saturating_add(length));
            Ok(video::source(store, id, &file, objects, range).await?)
        }
    }
}
