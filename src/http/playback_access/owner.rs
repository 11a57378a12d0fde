//! Owners of streams at playback: users signed in to the dashboard, at pages of the service itself (`Sec-Fetch-Site`, `Origin`,
//! `Referer`).
//!
//! The cookie admits only where the browser's headers name such a page: another site's page could have the owner's browser ask,
//! too, and a page on another port of the same host has its cookies sent. Browsers name it by `Sec-Fetch-Site` over HTTPS and on
//! the machine itself, and by `Origin` or `Referer` over plain HTTP.

use actix_web::{
    HttpRequest,
    http::header::{self, HeaderName},
};
use url::Url;
use uuid::Uuid;

use crate::{
    application::{context::PlaybackTokens, error::ApiError, reached::Reached},
    http::{context, session::cookie_name},
};

/// Seconds for which an owner's browser may keep what it got; nothing between it and the service may.
pub(super) const KEPT_S: i64 = 60;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Returns whether the request comes from a page of the service, with a session of that account.
pub(super) async fn is_owner(request: &HttpRequest, account_id: Uuid) -> Result<bool, ApiError> {
    let reached = Reached::of(request);
    let Some(cookie) = request.cookie(cookie_name(&reached)) else {
        return Ok(false);
    };
    let read = |name: HeaderName| {
        let value = request.headers().get(name)?;
        // A value that is not text is no address of the service.
        Some(value.to_str().unwrap_or_default())
    };
    let asking = Asking {
        site: read(SEC_FETCH_SITE),
        origin: read(header::ORIGIN),
        referer: read(header::REFERER),
    };
    if !asking.is_page_of(&reached.address.origin()) {
        return Ok(false);
    }
    let tokens = context::of::<PlaybackTokens>(request);
    let sessions = &tokens.owner_sessions;
    Ok(sessions.account_of(&tokens.store, cookie.value()).await? == Some(account_id))
}

/// Headers in which a browser names the page that asks.
struct Asking<'a> {
    site: Option<&'a str>,
    origin: Option<&'a str>,
    referer: Option<&'a str>,
}

impl Asking<'_> {
    /// Returns whether the page is of this origin: every header that is there has to agree, and one has to be there.
    fn is_page_of(&self, own_origin: &str) -> bool {
        let is_own_origin = self.origin.map(|origin| origin == own_origin);
        if is_own_origin == Some(false) {
            return false;
        }
        match self.site {
            Some(site) => site == "same-origin",
            None => is_own_origin.unwrap_or_else(|| self.has_referer_of(own_origin)),
        }
    }

    fn has_referer_of(&self, own_origin: &str) -> bool {
        let referer = self.referer.and_then(|address| Url::parse(address).ok());
        referer.is_some_and(|address| address.origin().ascii_serialization() == own_origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_service_count() {
        let own = "http://192.168.1.5:8080";
        let cases = [
            (Some("same-origin"), None, None, true),
            (Some("same-origin"), Some(own), None, true),
            (
                Some("same-origin"),
                Some("http://evil.example"),
                None,
                false,
            ),
            (Some("same-site"), Some(own), None, false),
            (
                Some("cross-site"),
                None,
                Some("http://192.168.1.5:8080/app"),
                false,
            ),
            (Some("none"), None, None, false),
            (Some(""), None, None, false),
            (None, Some(own), None, true),
            (
                None,
                Some("null"),
                Some("http://192.168.1.5:8080/app"),
                false,
            ),
            (None, Some("http://192.168.1.5:9000"), None, false),
            (None, None, Some("http://192.168.1.5:8080/app/live"), true),
            (None, None, Some("http://192.168.1.5:9000/"), false),
            (None, None, Some("https://192.168.1.5:8080/"), false),
            (
                None,
                None,
                Some("http://192.168.1.5:8080.evil.example/"),
                false,
            ),
            (
                None,
                None,
                Some("http://192.168.1.5:8080@evil.example/"),
                false,
            ),
            (None, None, Some(""), false),
            (None, None, None, false),
        ];
        for (site, origin, referer, expected) in cases {
            let asking = Asking {
                site,
                origin,
                referer,
            };
            assert_eq!(
                asking.is_page_of(own),
                expected,
                "{site:?} {origin:?} {referer:?}"
            );
        }
        let by_name = Asking {
            site: None,
            origin: None,
            referer: Some("https://media.example.org/app"),
        };
        assert!(by_name.is_page_of("https://media.example.org"));
    }
}
