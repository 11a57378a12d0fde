//! Media bytes as answers: from memory or in pieces from a segment's file, whole or a range.

use std::{fs::File, io, path::PathBuf, sync::Arc};

use actix_web::{HttpRequest, HttpResponse, body::SizedStream, http::header, web::Bytes};
use futures_util::stream;
use sluice_actors::live::Body;

use crate::http::{
    error::ApiError,
    range::{Asked, cut, pieces_of},
};

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
    let mut response = HttpResponse::Ok();
    let (start, len) = Asked::of(request, total).begin(&mut response, total)?;
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
    }
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
