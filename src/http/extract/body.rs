//! JSON bodies of requests: `http.max_json` (413), `http.body_timeout` (408), `Content-Type` (415). Both spellings of a field are
//! accepted, and errors name the field.

use actix_web::{
    FromRequest, HttpMessage as _, HttpRequest, dev::Payload, http::header, web::BytesMut,
};
use futures_util::{StreamExt as _, future::LocalBoxFuture};
use serde::de::DeserializeOwned;

use crate::{
    application::{context::Platform, error::ApiError, object::parse},
    http::context,
};

/// A request body. An empty one is an empty object; unknown fields are ignored, so that a record may be sent back whole.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned + 'static> FromRequest for Body<T> {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let is_json = is_json(request);
        let bytes = bytes(request, payload.take());
        Box::pin(async move {
            let bytes = bytes.await?;
            if !bytes.is_empty() && !is_json {
                return Err(ApiError::UnsupportedType(
                    "send JSON with `Content-Type: application/json`".to_owned(),
                ));
            }
            parse(&bytes).map(Self)
        })
    }
}

/// The bytes of a body of JSON: at most `http.max_json` (413), within `http.body_timeout` (408).
pub(crate) fn bytes(
    request: &HttpRequest,
    payload: Payload,
) -> impl Future<Output = Result<BytesMut, ApiError>> + use<> {
    let limit = context::of::<Platform>(request)
        .config
        .http
        .max_json
        .as_u64();
    bounded(request, payload, limit, move || too_large(limit))
}

/// The bytes of a body: at most `limit`, or `too_large`; within `http.body_timeout` (408).
pub(crate) fn bounded<F: Fn() -> ApiError>(
    request: &HttpRequest,
    payload: Payload,
    limit: u64,
    too_large: F,
) -> impl Future<Output = Result<BytesMut, ApiError>> + use<F> {
    let timeout = context::of::<Platform>(request).config.http.body_timeout;
    let declared = declared_length(request);
    async move {
        if declared.is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        tokio::time::timeout(timeout, read(payload, limit, too_large))
            .await
            .map_err(|_| {
                ApiError::Timeout(format!(
                    "the body did not arrive within {} s",
                    timeout.as_secs()
                ))
            })?
    }
}

fn declared_length(request: &HttpRequest) -> Option<u64> {
    request
        .headers()
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// Returns whether the body is declared as JSON.
pub(crate) fn is_json(request: &HttpRequest) -> bool {
    let essence = request.content_type().trim().to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

fn too_large(limit: u64) -> ApiError {
    ApiError::TooLarge(format!(
        "the body is larger than {limit} bytes (http.max_json)"
    ))
}

async fn read(
    mut payload: Payload,
    limit: u64,
    too_large: impl Fn() -> ApiError,
) -> Result<BytesMut, ApiError> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| invalid!("the body could not be read: {error}"))?;
        if (bytes.len() + chunk.len()) as u64 > limit {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
