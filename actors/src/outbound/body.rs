//! Request bodies of known length (`Content-Length`): bytes in memory, or pieces that are made as the connection takes them.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::Stream;
use hyper::body::{Frame, SizeHint};

type Pieces = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// The body of a request. Its length is known beforehand and goes out as `Content-Length`.
pub struct Body {
    source: BodySource,
    /// Bytes still to be sent.
    left: u64,
}

enum BodySource {
    /// Empty once it was handed over.
    Whole(Bytes),
    Pieces(Pieces),
}

impl Body {
    /// Makes a body of exactly `length` bytes; pieces after them are not read. A stream that fails or ends early breaks the
    /// request off, so that its receiver does not take it for whole.
    pub fn pieces(
        stream: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
        length: u64,
    ) -> Self {
        Self {
            source: BodySource::Pieces(Box::pin(stream)),
            left: length,
        }
    }

    /// Counts a piece.
    fn sent(&mut self, piece: Bytes) -> io::Result<Frame<Bytes>> {
        match self.left.checked_sub(piece.len() as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other("there is more to send")),
        }
        Ok(Frame::data(piece))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self {
            left: bytes.len() as u64,
            source: BodySource::Whole(bytes),
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = match &mut self.source {
            BodySource::Whole(bytes) => Some(Ok(std::mem::take(bytes))),
            BodySource::Pieces(stream) => ready!(stream.as_mut().poll_next(context)),
        };
        let is_short = || io::Error::new(io::ErrorKind::UnexpectedEof, "there is less to send");
        let piece = piece.unwrap_or_else(|| Err(is_short()));
        Poll::Ready(Some(piece.and_then(|piece| self.sent(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Body")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use hyper::body::Body as _;

    use super::*;

    #[tokio::test]
    async fn a_body_is_exactly_as_long_as_it_says() {
        for (pieces, length, sent) in [
            (&[][..], 0, Some("")),
            (&["ab", "", "c"], 3, Some("abc")),
            (&["ab"], 3, None),
            (&["ab", "cd"], 3, None),
            (&["abc", "d"], 3, Some("abc")),
            (&[], 1, None),
        ] {
            let stream = pieces
                .iter()
                .map(|piece| Ok(Bytes::from_static(piece.as_bytes())));
            let stream: Vec<io::Result<Bytes>> = stream.collect();
            let body = Body::pieces(futures_util::stream::iter(stream), length);
            assert_eq!(body.size_hint().exact(), Some(length));
            let collected = body.collect().await.map(|body| body.to_bytes());
            assert_eq!(
                collected.ok().as_deref(),
                sent.map(str::as_bytes),
                "{pieces:?}"
            );
        }
        for bytes in ["", "abc"] {
            let body = Body::from(Bytes::from_static(bytes.as_bytes()));
            assert_eq!(body.size_hint().exact(), Some(bytes.len() as u64));
            assert_eq!(body.collect().await.unwrap().to_bytes(), bytes);
        }
    }
}
