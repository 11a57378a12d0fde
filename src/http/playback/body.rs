//! Segments, parts and posters as answers: from memory or from the segment's file, ranges, 304.

use std::{fs::File, io, path::PathBuf, sync::Arc};

use actix_web::{
    HttpRequest, HttpResponse,
    body::{BodySize, SizedStream},
    http::{Method, header},
    web::Bytes,
};
use futures_util::stream;
use sluice_actors::{cdn::Entry, live::Body};

use crate::{
    application::error::ApiError,
    http::{
        bytes::is_known,
        length_only::LengthOnly,
        range::{RangeRequest, cut, pieces_of},
    },
};

/// Makes a resource of one piece.
pub(super) fn memory(bytes: Bytes) -> Body {
    Body::Memory(vec![bytes])
}

/// Answers 200 or 206 with the bytes, 416 when the requested range does not exist.
pub(super) async fn respond(
    request: &HttpRequest,
    body: Body,
    content_type: &'static str,
    cache: String,
) -> Result<HttpResponse, ApiError> {
    let total = body.len();
    let mut response = HttpResponse::Ok();
    let (start, len) = RangeRequest::of(request, total).begin(&mut response, total)?;
    response
        .insert_header((header::CONTENT_TYPE, content_type))
        .insert_header((header::CACHE_CONTROL, cache));
    match body {
        // Without a copy: a segment is sent to many viewers at once.
        Body::Memory(pieces) => {
            let pieces = cut(pieces, start, len).into_iter().map(Ok::<_, io::Error>);
            Ok(response.body(SizedStream::new(len, stream::iter(pieces))))
        }
        Body::File { path, offset, .. } => {
            let file = open(path).await?;
            Ok(response.body(SizedStream::new(len, pieces_of(file, offset + start, len))))
        }
        // Nothing is fetched for a length.
        Body::Recorded(_) if request.method() == Method::HEAD => {
            Ok(response.body(LengthOnly(BodySize::Sized(len))))
        }
        Body::Recorded(media) => {
            let source = media.open().await?;
            Ok(response.body(SizedStream::new(len, pieces_of(source, start, len))))
        }
    }
}

/// Answers 200 with the image, or 304 to a client that has it.
pub(super) fn image(request: &HttpRequest, entry: &Entry, cache: String) -> HttpResponse {
    let tag = String::from_utf8_lossy(&entry.etag).into_owned();
    let is_unchanged = is_known(request, &tag) == Some(true);
    let mut response = match is_unchanged {
        true => HttpResponse::NotModified(),
        false => HttpResponse::Ok(),
    };
    response
        .insert_header((header::CACHE_CONTROL, cache))
        .insert_header((header::ETAG, tag));
    match is_unchanged {
        true => response.finish(),
        false => response.content_type("image/jpeg").body(entry.body.clone()),
    }
}

async fn open(path: PathBuf) -> Result<Arc<File>, ApiError> {
    match tokio::task::spawn_blocking(move || File::open(path)).await {
        Ok(Ok(file)) => Ok(Arc::new(file)),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            Err(ApiError::NotFound("segment"))
        }
        Ok(Err(error)) => Err(ApiError::of_disk(error)),
        Err(error) => Err(ApiError::internal(error)),
    }
}
