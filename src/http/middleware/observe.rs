//! Outermost middleware: `X-Request-Id`, access log, request metrics, security headers, JSON bodies for errors of the framework.
//!
//! The log names the route's pattern, never the path or the query: both may hold a token.

use std::{borrow::Cow, cell::Cell, net::IpAddr, panic::AssertUnwindSafe, time::Instant};

use actix_web::{
    Error, HttpRequest, ResponseError as _,
    body::{BoxBody, MessageBody},
    dev::{ResponseHead, ServiceRequest, ServiceResponse},
    error::InternalError,
    http::{
        ConnectionType, Method,
        header::{self, HeaderMap, HeaderName, HeaderValue},
    },
    middleware::Next,
};
use futures_util::FutureExt as _;
use tracing::Instrument as _;
use uuid::Uuid;

use crate::{
    application::{
        context::{ServiceContext, Stage},
        error::ApiError,
        reached::Reached,
    },
    http::{context, error::body_for},
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id of a client, in characters.
const MAX_REQUEST_ID: usize = 64;

/// Routes that are not logged for each request: they are answered at a high rate.
const QUIET_ROUTES: &[&str] = &[
    "/cdn/v1/",
    "/live/v1/",
    "/video/v1/",
    "/healthz",
    "/readyz",
    "/metrics",
    "/assets/",
];

/// Beginning of the paths of which the router knows no patterns.
const DELIVERY: &str = "/cdn/v1/";
const DELIVERY_BY_QUERY: &str = "/cdn/v1/{deliveryKey}/{fileId}";
const DELIVERY_BY_PRESET: &str = "/cdn/v1/{deliveryKey}/{fileId}/p/{preset}";

/// Wraps all middleware and handlers; every answer passes through it.
pub async fn observe(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let began = Instant::now();
    let method = request.method().clone();
    let service = context::of::<ServiceContext>(request.request()).clone();
    let is_quiet = is_quiet(request.path());
    let is_logged = !is_quiet || tracing::enabled!(tracing::Level::DEBUG);
    let client = is_logged
        .then(|| Reached::client_of(request.request()))
        .flatten();
    let id = request_id(request.headers());
    // Opening a span costs as much as looking up a published variant.
    let span = match is_logged {
        true => tracing::info_span!("request", id = %id.to_str().unwrap_or_default()),
        false => tracing::Span::none(),
    };

    let outcome = AssertUnwindSafe(next.call(request))
        .catch_unwind()
        .instrument(span.clone())
        .await;
    let _entered = span.enter();
    let (route, mut result) = match outcome {
        Ok(Ok(response)) => {
            let route = route_of(response.request());
            (route, Ok(in_json(response.map_into_boxed_body())))
        }
        // Without its request, the answer can only be returned as an error that carries it.
        Ok(Err(error)) => (None, Err(error.error_response())),
        Err(_panic) => (
            None,
            Err(ApiError::internal("a handler panicked").error_response()),
        ),
    };
    let head = match &mut result {
        Ok(response) => response.response_mut().head_mut(),
        Err(response) => response.head_mut(),
    };
    decorate(head, id.clone());
    if service.stage() == Stage::Draining {
        // Players send their next request at once; on a keep-alive connection they would delay the shutdown.
        head.set_connection_type(ConnectionType::Close);
    }
    let (status, seconds) = (head.status.as_u16(), began.elapsed().as_secs_f64());
    let route = route.unwrap_or(Cow::Borrowed("unmatched"));
    if is_logged || status >= 500 {
        log(&method, &route, status, seconds, client, &id);
    }
    service
        .metrics
        .answered(route, method_label(&method), status, seconds);
    result.map_err(|response| InternalError::from_response("request failed", response).into())
}

/// Returns the client's own id when it is short and plain, else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    headers
        .get(&REQUEST_ID)
        .filter(|id| (1..=MAX_REQUEST_ID).contains(&id.len()) && id.as_bytes().iter().all(is_plain))
        .cloned()
        .unwrap_or_else(|| {
            let mut text = Uuid::encode_buffer();
            let text = fresh_id().simple().encode_lower(&mut text);
            HeaderValue::from_str(text).expect("hexadecimal is a header value")
        })
}

/// Makes an id: unique, not secret, counted from a random number for each thread, without a system call for each request.
fn fresh_id() -> Uuid {
    thread_local! {
        static NEXT: Cell<u128> = Cell::new(Uuid::new_v4().as_u128());
    }
    NEXT.with(|next| {
        let number = next.get();
        next.set(number.wrapping_add(1));
        Uuid::from_u128(number)
    })
}

/// Returns whether the path is of a route that is not logged per request.
fn is_quiet(path: &str) -> bool {
    QUIET_ROUTES.iter().any(|quiet| path.starts_with(quiet))
}

/// The pattern of the route that answered.
fn route_of(request: &HttpRequest) -> Option<Cow<'static, str>> {
    let under_delivery = request.path().strip_prefix(DELIVERY);
    match under_delivery.map(|rest| rest.bytes().filter(|byte| *byte == b'/').count()) {
        Some(1) => Some(Cow::Borrowed(DELIVERY_BY_QUERY)),
        Some(3) => Some(Cow::Borrowed(DELIVERY_BY_PRESET)),
        _ => request.match_pattern().map(Cow::Owned),
    }
}

/// Gives an error made by the framework the JSON body of all errors; its headers stay.
fn in_json(response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    let status = response.status();
    let is_ours = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| {
            // The framework's own errors are plain text.
            let kinds = [&b"application/json"[..], b"text/html"];
            kinds.iter().any(|kind| value.as_bytes().starts_with(kind))
        });
    if is_ours || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    response.map_body(|head, _| {
        let json = HeaderValue::from_static("application/json");
        head.headers_mut().insert(header::CONTENT_TYPE, json);
        head.headers_mut().remove(header::CONTENT_LENGTH);
        BoxBody::new(serde_json::to_vec(&body_for(status)).expect("the body is plain strings"))
    })
}

/// Sets the headers of every answer; a handler's own value wins.
fn decorate(head: &mut ResponseHead, id: HeaderValue) {
    let headers = head.headers_mut();
    headers.insert(REQUEST_ID, id);
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "strict-origin-when-cross-origin"),
    ] {
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
}

/// Returns a label for known methods only: it must not hold text that a client makes up.
fn method_label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

fn log(
    method: &Method,
    route: &str,
    status: u16,
    seconds: f64,
    client: Option<IpAddr>,
    id: &HeaderValue,
) {
    let milliseconds = (seconds * 1e6).round() / 1e3;
    let client = client.map(tracing::field::display);
    if !is_quiet(route) {
        tracing::info!(%method, route, status, milliseconds, client, "answered");
    } else if status < 500 {
        tracing::debug!(%method, route, status, milliseconds, client, "answered");
    } else {
        let id = id.to_str().unwrap_or_default();
        tracing::warn!(%method, route, status, milliseconds, client, id, "answered");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_request_id_is_taken_only_when_it_is_plain() {
        let id = |value: &'static [u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_bytes(value).unwrap());
            request_id(&headers)
        };
        assert_eq!(id(b"job-7.a_B"), "job-7.a_B");
        for odd in [b"".as_slice(), b"a b", b"a\"b", "ä".as_bytes(), &[b'x'; 65]] {
            let made = id(odd.to_vec().leak());
            assert_eq!(made.len(), 32, "{made:?}");
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }
}
