//! Answer with an image: `ETag`, `Cache-Tag`, `X-Cache`, `Vary`, ranges, quota headers `X-Service-CDN-*-Month`.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        Method,
        header::{self, HeaderMap, HeaderName, HeaderValue},
    },
    web::Bytes,
};
use sluice_actors::{
    cdn::Fetched,
    meter::{CountDelivery, Delivered, Quota, Spent},
};

use super::parsed::Parsed;
use crate::{
    application::error::ApiError,
    http::{
        bytes::{http_date, if_range_holds, is_unchanged},
        range::RangeRequest,
    },
};

const CACHE_TAG: HeaderName = HeaderName::from_static("cache-tag");
const X_CACHE: HeaderName = HeaderName::from_static("x-cache");
const LIMIT: HeaderName = HeaderName::from_static("x-service-cdn-limit-month");
const USED: HeaderName = HeaderName::from_static("x-service-cdn-used-month");
const REMAINING: HeaderName = HeaderName::from_static("x-service-cdn-remaining-month");
const RESET: HeaderName = HeaderName::from_static("x-service-cdn-reset-month");

/// A delivery, and how its address may be cached.
pub(super) struct Delivery<'a> {
    fetched: &'a Fetched,
    cache: HeaderValue,
    /// True when another client may get another format here.
    is_negotiated: bool,
    /// True when any site may read the image and the state of the month's quota.
    is_public: bool,
}

impl<'a> Delivery<'a> {
    pub fn of(fetched: &'a Fetched, parsed: &Parsed, cache: HeaderValue, is_public: bool) -> Self {
        Self {
            fetched,
            cache,
            is_negotiated: parsed.request.is_negotiated(),
            is_public,
        }
    }

    /// Counts the delivery for the key or the account that it was admitted by, unless nothing comes of it (416).
    pub fn answer(
        self,
        request: &HttpRequest,
        counter: &impl CountDelivery,
        spent: Spent,
    ) -> Result<HttpResponse, ApiError> {
        let (mut response, sent) = self.respond(request)?;
        let how = match self.fetched.rendered {
            true => Delivered::Miss,
            false => Delivered::Hit,
        };
        counter.delivered(how, sent);
        let quota = spent.keep();
        if self.is_public {
            let headers = response.headers_mut();
            headers.insert(CACHE_TAG, value(&self.fetched.entry.cache_tag));
            headers.insert(
                header::ACCESS_CONTROL_ALLOW_ORIGIN,
                HeaderValue::from_static("*"),
            );
            show_quota(&quota, headers);
        }
        Ok(response)
    }

    /// Answers without counting a delivery, for the image's owner.
    pub fn answer_uncounted(self, request: &HttpRequest) -> Result<HttpResponse, ApiError> {
        let (response, _) = self.respond(request)?;
        Ok(response)
    }

    /// The answer, and how many bytes it sends.
    fn respond(&self, request: &HttpRequest) -> Result<(HttpResponse, u64), ApiError> {
        let entry = &self.fetched.entry;
        let (etag, modified) = (text(&entry.etag), text(&entry.last_modified));
        if is_unchanged(request, etag, http_date(entry.modified_ms())) {
            let mut response = HttpResponse::NotModified().finish();
            self.complete(response.headers_mut());
            return Ok((response, 0));
        }
        let total = entry.body.len() as u64;
        let asked = match if_range_holds(request, etag, modified) {
            true => RangeRequest::of(request, total),
            false => RangeRequest::Whole,
        };
        let mut response = HttpResponse::Ok();
        let (start, len) = asked.begin(&mut response, total)?;
        let body = entry.body.slice(start as usize..(start + len) as usize);
        let sent = match *request.method() {
            Method::HEAD => 0,
            _ => len,
        };
        let mut response = response.body(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, value(&entry.content_type));
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        headers.insert(
            header::CONTENT_DISPOSITION,
            HeaderValue::from_static("inline"),
        );
        self.complete(headers);
        Ok((response, sent))
    }

    /// Adds the headers that a 304 has too (RFC 9110 §15.4.5).
    fn complete(&self, headers: &mut HeaderMap) {
        let x_cache = match self.fetched.rendered {
            true => "miss",
            false => "hit",
        };
        let entry = &self.fetched.entry;
        headers.insert(header::ETAG, value(&entry.etag));
        headers.insert(header::LAST_MODIFIED, value(&entry.last_modified));
        headers.insert(header::CACHE_CONTROL, self.cache.clone());
        headers.insert(X_CACHE, HeaderValue::from_static(x_cache));
        if self.is_negotiated {
            headers.insert(header::VARY, HeaderValue::from_static("Accept"));
        }
    }
}

/// The month's quota, on every answer under a valid key.
pub(super) fn show_quota(quota: &Quota, headers: &mut HeaderMap) {
    let bound = |count: Option<u64>| match count {
        Some(count) => HeaderValue::from(count),
        None => HeaderValue::from_static("unlimited"),
    };
    headers.insert(LIMIT, bound(quota.limit));
    headers.insert(USED, HeaderValue::from(quota.used));
    headers.insert(REMAINING, bound(quota.remaining()));
    headers.insert(RESET, HeaderValue::from(quota.resets_at_s));
}

/// Shares the bytes of the entry.
fn value(bytes: &Bytes) -> HeaderValue {
    HeaderValue::from_maybe_shared(bytes.clone()).unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn text(bytes: &Bytes) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
