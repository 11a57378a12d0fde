//! 415 for request bodies with `Content-Encoding`, before anything reads them: a few kilobytes can unpack to gigabytes.

use actix_web::{
    Error, ResponseError as _,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::header,
    middleware::Next,
};

use crate::application::error::ApiError;

/// Answers 415 to every request `Content-Encoding` other than identity.
pub async fn reject_encoded(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let is_plain = request
        .headers()
        .get_all(header::CONTENT_ENCODING)
        .all(|encoding| {
            encoding
                .as_bytes()
                .trim_ascii()
                .eq_ignore_ascii_case(b"identity")
        });
    if is_plain {
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    let rejection = ApiError::UnsupportedType("send the body without Content-Encoding".to_owned());
    Ok(request.into_response(rejection.error_response()))
}
