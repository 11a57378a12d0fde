//! Answers to HEAD without the bytes of their bodies: over HTTP/1.1 actix-http reads a body to its end, and drops what it reads.

use actix_web::{
    Error,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::Method,
    middleware::Next,
};

use crate::http::length_only::LengthOnly;

/// Drops the body of an answer to HEAD, before anything of a file, an archive or an object store is read for it. Its length
/// stays.
pub async fn answer_head(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let is_head = request.method() == Method::HEAD;
    let response = next.call(request).await?.map_into_boxed_body();
    Ok(match is_head {
        true => response.map_body(|_, body| BoxBody::new(LengthOnly(body.size()))),
        false => response,
    })
}

#[cfg(test)]
mod tests {
    use std::{io, task::Poll};

    use actix_web::{
        App, HttpResponse,
        body::{BodySize, SizedStream},
        middleware::from_fn,
        test::{TestRequest, call_service, init_service, read_body},
        web::{self, Bytes},
    };
    use futures_util::stream;

    use super::*;

    #[actix_web::test]
    async fn a_body_is_not_read_for_its_length() {
        let handler = || async {
            let unread =
                stream::poll_fn(|_| -> Poll<Option<io::Result<Bytes>>> { panic!("it is read") });
            HttpResponse::Ok().body(SizedStream::new(5, unread))
        };
        let app = App::new()
            .wrap(from_fn(answer_head))
            .default_service(web::to(handler));
        let app = init_service(app).await;
        let request = TestRequest::default().method(Method::HEAD).to_request();
        let response = call_service(&app, request).await;
        assert_eq!(response.response().body().size(), BodySize::Sized(5));
        assert_eq!(read_body(response).await, "");
    }
}
