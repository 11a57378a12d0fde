//! Answers with stored bytes: `Content-Disposition`, `nosniff`, sandbox, entity tags, `If-None-Match`, `If-Range`; types shown
//! inline.
//!
//! A browser must never take a user's file for a part of this site: nothing is sniffed, everything is sandboxed, and what
//! is not a raster image, audio, video or PDF is a download whatever the address is used for.

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    body::{BodySize, SizedStream},
    http::{
        Method,
        header::{self, HeaderName, HttpDate},
    },
};
use sluice_store::blob::BlobHash;

use super::{
    length_only::LengthOnly,
    range::{RangeRequest, pieces_of},
};
use crate::{
    application::{context::Platform, error::ApiError},
    http::content_disposition::content_disposition,
};

/// Stored bytes, and the facts for their headers.
#[derive(Clone, Debug)]
pub(super) struct StoredBytes {
    pub blob: BlobHash,
    pub size_bytes: u64,
    pub filename: String,
    pub mime_type: String,
    /// Milliseconds since 1970.
    pub modified_at: i64,
}

/// Answers 200, 206, 304 or 416 with the bytes, in pieces as the client reads them. `cache` is the `Cache-Control`.
pub(super) async fn respond(
    request: &HttpRequest,
    platform: &Platform,
    bytes: &StoredBytes,
    cache: &'static str,
) -> Result<HttpResponse, ApiError> {
    let shown_as = match is_shown(&bytes.mime_type) {
        true => ShownAs::Inline,
        false => ShownAs::Attachment,
    };
    respond_as(request, platform, bytes, cache, shown_as).await
}

/// Presentation of bytes that a browser follows a link to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShownAs {
    /// Only for types that [`is_shown`] allows.
    Inline,
    Attachment,
}

/// Answers as [`respond`], with the disposition chosen.
pub(super) async fn respond_as(
    request: &HttpRequest,
    platform: &Platform,
    bytes: &StoredBytes,
    cache: &'static str,
    shown_as: ShownAs,
) -> Result<HttpResponse, ApiError> {
    let disposition = match shown_as {
        ShownAs::Inline => "inline",
        ShownAs::Attachment => "attachment",
    };
    let (tag, modified) = (format!("\"{}\"", bytes.blob), http_date(bytes.modified_at));
    let modified_text = modified.to_string();
    if is_unchanged(request, &tag, modified) {
        return Ok(HttpResponse::NotModified()
            .insert_header((header::ETAG, tag))
            .insert_header((header::LAST_MODIFIED, modified_text))
            .insert_header((header::CACHE_CONTROL, cache))
            .finish());
    }
    let asked = match if_range_holds(request, &tag, &modified_text) {
        true => RangeRequest::of(request, bytes.size_bytes),
        false => RangeRequest::Whole,
    };
    let mut response = HttpResponse::Ok();
    let (start, len) = asked.begin(&mut response, bytes.size_bytes)?;
    response
        .insert_header((header::CONTENT_TYPE, bytes.mime_type.as_str()))
        .insert_header((header::ETAG, tag))
        .insert_header((header::LAST_MODIFIED, modified_text))
        .insert_header((header::CACHE_CONTROL, cache));
    sandbox(&mut response, disposition, &bytes.filename);
    if request.method() == Method::HEAD {
        // Nothing is opened or fetched for a length.
        return Ok(response.body(LengthOnly(BodySize::Sized(len))));
    }
    let mut source = platform.store.blobs().source(&bytes.blob).await?;
    if len > 0 {
        // What is lost or cannot be fetched now is answered with 503, not with a body that breaks off.
        source.read_until(start.saturating_add(len));
        source.look(start).await?;
    }
    Ok(response.body(SizedStream::new(len, pieces_of(source, start, len))))
}

/// Names the file, and keeps a browser from taking its bytes for a part of this site.
pub(super) fn sandbox(response: &mut HttpResponseBuilder, disposition: &str, filename: &str) {
    let disposition = content_disposition(disposition, filename);
    response
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CONTENT_SECURITY_POLICY, "sandbox"))
        .insert_header((header::CONTENT_DISPOSITION, disposition));
}

/// Answers 304 to a client that has the representation of the entity tag.
pub(super) fn unchanged(tag: &str, cache: &str) -> HttpResponse {
    HttpResponse::NotModified()
        .insert_header((header::ETAG, tag))
        .insert_header((header::CACHE_CONTROL, cache))
        .finish()
}

/// Returns whether it may be shown in place: SVG can carry script, and so can everything that is a document to a
/// browser.
pub(super) fn is_shown(mime_type: &str) -> bool {
    match mime_type.split_once('/') {
        Some(("image", kind)) => !kind.starts_with("svg"),
        Some(("audio" | "video", _)) => true,
        _ => mime_type == "application/pdf",
    }
}

/// Evaluates the preconditions of RFC 9110 §13.1.2 and §13.1.3: the entity tag decides where there is one, else the
/// date.
pub(super) fn is_unchanged(request: &HttpRequest, tag: &str, modified: HttpDate) -> bool {
    is_known(request, tag).unwrap_or_else(|| {
        given(request, header::IF_MODIFIED_SINCE)
            .and_then(|date| date.parse::<HttpDate>().ok())
            .is_some_and(|since| modified <= since)
    })
}

/// Returns whether the client has the representation of the entity tag; `None` when it does not say what it has.
pub(super) fn is_known(request: &HttpRequest, tag: &str) -> Option<bool> {
    let mut lines = request.headers().get_all(header::IF_NONE_MATCH).peekable();
    lines.peek()?;
    Some(
        lines
            .filter_map(|line| line.to_str().ok())
            .any(|tags| tags.trim() == "*" || tags.split(',').any(|given| weakly_same(given, tag))),
    )
}

fn given(request: &HttpRequest, name: HeaderName) -> Option<&str> {
    request.headers().get(name)?.to_str().ok()
}

fn weakly_same(given: &str, tag: &str) -> bool {
    let given = given.trim();
    given.strip_prefix("W/").unwrap_or(given) == tag
}

/// Evaluates `If-Range` (RFC 9110 §13.1.5): a range counts only while the bytes are those of the tag or date, compared
/// exactly.
pub(super) fn if_range_holds(request: &HttpRequest, tag: &str, modified: &str) -> bool {
    request
        .headers()
        .get(header::IF_RANGE)
        .is_none_or(|given| given == tag || given == modified)
}

pub(super) fn http_date(at_ms: i64) -> HttpDate {
    let since_1970 = std::time::Duration::from_secs(at_ms.max(0).unsigned_abs() / 1000);
    HttpDate::from(std::time::UNIX_EPOCH + since_1970)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn only_what_cannot_act_is_shown() {
        let cases = [
            ("image/png", true),
            ("image/svg+xml", false),
            ("video/mp4", true),
            ("audio/mpeg", true),
            ("application/pdf", true),
            ("text/html", false),
            ("text/plain", false),
            ("application/octet-stream", false),
            ("", false),
        ];
        for (mime_type, expected) in cases {
            assert_eq!(is_shown(mime_type), expected, "{mime_type}");
        }
    }

    #[test]
    fn all_lines_of_if_none_match_are_read() {
        let request = |lines: &[&str]| {
            let request = TestRequest::default();
            let append = |request: TestRequest, line: &&str| {
                request.append_header((header::IF_NONE_MATCH, *line))
            };
            lines.iter().fold(request, append).to_http_request()
        };
        let known = |lines: &[&str]| is_known(&request(lines), "\"abc\"");
        assert_eq!(known(&[]), None);
        assert_eq!(known(&["\"x\"", "\"y\", \"abc\""]), Some(true));
        assert_eq!(known(&["\"x\"", "\"y\""]), Some(false));
    }

    #[test]
    fn what_the_client_has_is_not_sent_again() {
        let tag = "\"abc\"";
        let modified = http_date(1_795_219_200_500);
        let cases = [
            (header::IF_NONE_MATCH, "\"abc\"", true),
            (header::IF_NONE_MATCH, "W/\"abc\"", true),
            (header::IF_NONE_MATCH, "\"x\", \"abc\"", true),
            (header::IF_NONE_MATCH, "*", true),
            (header::IF_NONE_MATCH, "\"x\"", false),
            (header::IF_NONE_MATCH, "abc", false),
            (
                header::IF_MODIFIED_SINCE,
                "Sat, 21 Nov 2026 00:00:00 GMT",
                true,
            ),
            (
                header::IF_MODIFIED_SINCE,
                "Sat, 21 Nov 2026 00:00:01 GMT",
                true,
            ),
            (
                header::IF_MODIFIED_SINCE,
                "Fri, 20 Nov 2026 23:59:59 GMT",
                false,
            ),
            (header::IF_MODIFIED_SINCE, "yesterday", false),
        ];
        for (name, value, expected) in cases {
            let request = TestRequest::default()
                .insert_header((name.clone(), value))
                .to_http_request();
            assert_eq!(
                is_unchanged(&request, tag, modified),
                expected,
                "{name}: {value}"
            );
        }
        for (value, expected) in [("\"abc\"", true), ("W/\"abc\"", false), ("\"x\"", false)] {
            let request = TestRequest::default()
                .insert_header((header::IF_RANGE, value))
                .to_http_request();
            assert_eq!(if_range_holds(&request, tag, "date"), expected, "{value}");
        }
    }
}
