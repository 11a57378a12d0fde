//! Body of an answer to HEAD: it has the length of the other one, and no bytes.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use actix_web::{
    body::{BodySize, MessageBody},
    web::Bytes,
};

/// Body without bytes, with the length of another one.
pub(super) struct LengthOnly(pub(super) BodySize);

impl MessageBody for LengthOnly {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        self.0
    }

    fn poll_next(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Infallible>>> {
        Poll::Ready(None)
    }
}
