//! CORS of playback and `allowedDomains`: hosts whose pages may play, `Access-Control-*`, `Vary`, preflights
//! (`docs/guide/cors.md`).

use actix_web::{
    HttpRequest, HttpResponse, ResponseError,
    http::header::{self, HeaderMap, HeaderName, HeaderValue},
};
use url::Url;

use crate::application::error::ApiError;

/// Seconds for which a browser may keep the answer to a preflight.
const MAX_AGE_S: &str = "86400";

/// The CORS headers of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cors {
    Everyone,
    /// This origin alone, by name.
    Origin(String),
    NoOrigin,
}

impl Cors {
    pub fn apply(&self, headers: &mut HeaderMap) {
        let origin = match self {
            Self::Everyone => HeaderValue::from_static("*"),
            Self::Origin(origin) => match HeaderValue::from_str(origin) {
                Ok(origin) => origin,
                Err(_) => return,
            },
            Self::NoOrigin => return vary(headers),
        };
        if matches!(self, Self::Origin(_)) {
            vary(headers);
        }
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let exposed = HeaderValue::from_static("Content-Length, Content-Range, Date");
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

/// Sets `Vary`: the answer depends on the requesting origin, and an upstream cache must not give it to another site.
fn vary(headers: &mut HeaderMap) {
    headers.insert(header::VARY, HeaderValue::from_static("Origin, Referer"));
}

/// Checks that the viewer's site is one of `allowed_domains`, and sets what its browser may read of the answer. An
/// empty list allows all; otherwise the host of `Origin` decides, without one that of `Referer`, and without both the
/// answer is a rejection.
pub(super) fn check(
    request: &HttpRequest,
    allowed_domains: &[String],
) -> (Cors, Result<(), ApiError>) {
    let read = |name: HeaderName| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    decide(allowed_domains, read(header::ORIGIN), read(header::REFERER))
}

fn decide(
    allowed: &[String],
    origin: Option<&str>,
    referer: Option<&str>,
) -> (Cors, Result<(), ApiError>) {
    if allowed.is_empty() {
        return (Cors::Everyone, Ok(()));
    }
    let host = origin
        .or(referer)
        .and_then(|address| Url::parse(address).ok()?.host_str().map(str::to_owned));
    if !host.is_some_and(|host| allowed.iter().any(|domain| matches(domain, &host))) {
        return (
            Cors::NoOrigin,
            Err(ApiError::NoPlayback {
                code: "site_not_allowed",
                message: "this stream may not be shown on this site: its owner can add the site's host to allowedDomains",
            }),
        );
    }
    (
        origin.map_or(Cors::NoOrigin, |origin| Cors::Origin(origin.to_owned())),
        Ok(()),
    )
}

/// Compares a host: exact, or any sub-domain of `*.domain`; without case.
fn matches(domain: &str, host: &str) -> bool {
    let (domain, host) = (domain.to_ascii_lowercase(), host.to_ascii_lowercase());
    match domain.strip_prefix("*.") {
        Some(parent) => host
            .strip_suffix(parent)
            .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        None => domain == host,
    }
}

/// Adds the CORS headers to an answer or an error's.
pub(super) fn answer(answered: Result<HttpResponse, ApiError>, cors: &Cors) -> HttpResponse {
    let mut response = answered.unwrap_or_else(|error| error.error_response());
    cors.apply(response.headers_mut());
    response
}

/// Answers an error about no stream in particular.
pub(super) fn open_to_all(error: ApiError) -> HttpResponse {
    answer(Err(error), &Cors::Everyone)
}

/// Answers a preflight: players send `Range` across sites. It names the origins that the answer itself would name.
pub(super) fn preflight(cors: &Cors) -> HttpResponse {
    let mut response = HttpResponse::NoContent()
        .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, OPTIONS"))
        .insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, "Range, If-None-Match"))
        .insert_header((header::ACCESS_CONTROL_MAX_AGE, MAX_AGE_S))
        .finish();
    cors.apply(response.headers_mut());
    response
}

/// Answers 405 to anything but GET, HEAD and OPTIONS.
pub(super) async fn wrong_method(request: HttpRequest) -> HttpResponse {
    let method = request.method().to_string();
    open_to_all(ApiError::MethodNotAllowed {
        method,
        allow: "GET, HEAD, OPTIONS".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_allowed_by_origin_else_referer() {
        let allowed = ["example.org".to_owned(), "*.example.com".to_owned()];
        let cases = [
            (Some("https://example.org"), None, true),
            (Some("https://EXAMPLE.org:8443"), None, true),
            (Some("https://a.b.example.com"), None, true),
            (Some("https://example.com"), None, false),
            (Some("https://evilexample.com"), None, false),
            (Some("https://example.org.evil.net"), None, false),
            (Some("null"), Some("https://example.org/"), false),
            (None, Some("https://www.example.com/page?x=1"), true),
            (None, Some("not a url"), false),
            (None, None, false),
        ];
        for (origin, referer, expected) in cases {
            let (_, allowed) = decide(&allowed, origin, referer);
            let code = allowed.err().and_then(|error| error.code());
            let expected = (!expected).then_some("site_not_allowed");
            assert_eq!(code, expected, "{origin:?} {referer:?}");
        }
    }

    #[test]
    fn the_answer_names_the_allowed_origin_only() {
        let allowed = ["example.org".to_owned()];
        assert_eq!(decide(&[], Some("https://any.net"), None).0, Cors::Everyone);
        let named = Cors::Origin("https://example.org".into());
        assert_eq!(decide(&allowed, Some("https://example.org"), None).0, named);
        assert_eq!(
            decide(&allowed, Some("https://any.net"), None).0,
            Cors::NoOrigin
        );
        let mut headers = HeaderMap::new();
        named.apply(&mut headers);
        assert_eq!(headers.get("vary").unwrap(), "Origin, Referer");
        assert_eq!(
            headers.get("access-control-allow-origin").unwrap(),
            "https://example.org"
        );
    }
}
