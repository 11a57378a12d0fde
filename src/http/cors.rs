//! CORS of the API: pages of `http.cors_origins` may read answers on routes that take bytes.

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{self, HeaderValue},
};

use crate::application::context::Platform;

/// Returns whether the page is of `http.cors_origins`, and adds the CORS headers for its browser.
pub(super) fn allow_origin(
    request: &HttpRequest,
    platform: &Platform,
    response: &mut HttpResponse,
) -> bool {
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    let Some(origin) = request.headers().get(header::ORIGIN) else {
        return false;
    };
    let is_listed = |listed: &String| listed.trim_end_matches('/').as_bytes() == origin.as_bytes();
    let is_allowed = platform.config.http.cors_origins.iter().any(is_listed);
    if is_allowed {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    }
    is_allowed
}
