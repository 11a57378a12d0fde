//! Closes connections after an answer that is sent before the end of a chunked request body. A client that stops sending would else
//! keep its connection for ever.
//!
//! After an answer actix-http continues to read an unread chunked body, without a deadline. While a reference to the payload exists it closes the connection instead, so the
//! answer holds one.

use std::{
    cell::RefCell,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use actix_web::{
    Error, HttpMessage as _,
    body::{BodySize, BoxBody, MessageBody},
    dev::{Payload, ServiceRequest, ServiceResponse},
    error::PayloadError,
    middleware::Next,
    web::Bytes,
};
use futures_util::Stream;

/// Closes the connection after an answer that is sent before the end of a chunked body.
pub async fn end_unread(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if !request.chunked().unwrap_or(false) {
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    let payload = Rc::new(RefCell::new(request.take_payload()));
    request.set_payload(Payload::Stream {
        payload: Box::pin(Shared(payload.clone())),
    });
    let response = next.call(request).await?.map_into_boxed_body();
    Ok(response.map_body(|_, body| {
        BoxBody::new(Holding {
            body,
            _payload: payload,
        })
    }))
}

/// Payload as its reader uses it.
struct Shared(Rc<RefCell<Payload>>);

impl Stream for Shared {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(context)
    }
}

/// An answer's body, with the payload of its request.
struct Holding {
    body: BoxBody,
    _payload: Rc<RefCell<Payload>>,
}

impl MessageBody for Holding {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}
