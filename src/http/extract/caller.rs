//! `Caller`, session and operator extractors of handlers: 401, 403, forged requests (`X-CSRF-Token`, `Origin`, `Sec-Fetch-Site`).
//!
//! The admission middleware authenticates and leaves an [`Authentication`] with the request; the extractors only read it,
//! so that 401 and 403 come before anything is said about the body.

use std::{future::Ready, sync::Arc};

use actix_web::{
    FromRequest, HttpMessage as _, HttpRequest, dev::Payload, http::Method, http::header,
};
use sluice_store::{api_keys::Scope, sessions::SignInSession};

use crate::application::{
    caller::{Authentication, Caller, Identity, Needs, Read, SignedIn},
    error::ApiError,
    reached::Reached,
};

const CSRF_TOKEN: &str = "x-csrf-token";
const FETCH_SITE: &str = "sec-fetch-site";

impl<S: Needs> FromRequest for Caller<S> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(admit(request, S::SCOPE).and_then(|identity| Self::of(&identity)))
    }
}

/// A caller with a dashboard session, for operations on the session itself.
#[derive(Debug)]
pub struct SessionCaller(Arc<Identity>);

impl SessionCaller {
    pub fn signed_in(&self) -> &SignedIn {
        self.0.session().expect("made from a session only")
    }
}

impl FromRequest for SessionCaller {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let result = admit(request, Scope::Read).and_then(|identity| match identity.session() {
            Some(_) => Ok(Self(identity)),
            None => Err(ApiError::Forbidden(
                "this needs a dashboard session, not an API key",
            )),
        });
        std::future::ready(result)
    }
}

/// A caller who may see the whole installation: a session of an operator, or a key with scope `admin`.
#[derive(Debug)]
pub struct Operator;

impl FromRequest for Operator {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let admitted = genuine(request).and_then(|identity| identity.operate());
        std::future::ready(admitted.map(|()| Self))
    }
}

/// A signed-in operator; to all others, and to every key, the routes are not there (404). Each account's admins make keys with scope
/// `admin`, so that none of them may show or change another account.
#[derive(Debug)]
pub struct InstallationCaller(Caller<Read>);

impl InstallationCaller {
    pub fn caller(&self) -> &Caller<Read> {
        &self.0
    }
}

impl FromRequest for InstallationCaller {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let admitted = genuine(request).and_then(|identity| match identity.session() {
            Some(signed_in) if signed_in.user.is_operator => Caller::of(&identity).map(Self),
            _ => Err(ApiError::NotFound("this address was")),
        });
        std::future::ready(admitted)
    }
}

/// A request that no other site made a browser send, for requests that open a session without one.
#[derive(Debug)]
pub struct OwnOrigin;

impl FromRequest for OwnOrigin {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(reject_other_origins(request).map(|()| Self))
    }
}

/// Returns the identity of a request that is not forged, when its scope suffices.
fn admit(request: &HttpRequest, needed: Scope) -> Result<Arc<Identity>, ApiError> {
    let identity = genuine(request)?;
    identity.reach(needed)?;
    Ok(identity)
}

/// Returns the identity of the request when, for a cookie, the call is not forged by another site.
fn genuine(request: &HttpRequest) -> Result<Arc<Identity>, ApiError> {
    let identity = identity(request)?;
    if let Some(signed_in) = identity.session() {
        reject_forgery(request, &signed_in.session)?;
    }
    Ok(identity)
}

/// Returns the identity of the request, whatever its scope; 403 when its account is suspended.
pub(crate) fn identity(request: &HttpRequest) -> Result<Arc<Identity>, ApiError> {
    let authentication = request.extensions().get::<Authentication>().cloned();
    match authentication {
        Some(Authentication::Known(identity)) if identity.is_suspended => {
            Err(ApiError::AccountSuspended)
        }
        Some(Authentication::Known(identity)) => Ok(identity),
        Some(Authentication::Wrong) => Err(ApiError::Unauthenticated(
            "the API key or session is unknown, revoked or expired",
        )),
        Some(Authentication::Missing) | None => Err(ApiError::Unauthenticated(
            "an API key is needed: send `Authorization: Bearer svc_…` or `x-api-key`",
        )),
    }
}

/// Rejects a forged call: a browser sends the cookie with requests that other sites provoke, which have neither our
/// origin nor the token.
fn reject_forgery(request: &HttpRequest, session: &SignInSession) -> Result<(), ApiError> {
    if matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    ) {
        return Ok(());
    }
    reject_other_origins(request)?;
    let token = request.headers().get(CSRF_TOKEN);
    let token = token.and_then(|value| value.to_str().ok());
    if !token.is_some_and(|token| session.accepts_csrf(token)) {
        return Err(ApiError::Forbidden(
            "a change by session needs the session's csrfToken in X-CSRF-Token",
        ));
    }
    Ok(())
}

/// Rejects what a browser sent for a page of another origin. Programs send neither header. `Sec-Fetch-Site` is also there where a
/// page can keep `Origin` away; another port of the same host is `same-site` and another origin.
fn reject_other_origins(request: &HttpRequest) -> Result<(), ApiError> {
    let headers = request.headers();
    let own_origin = Reached::of(request).address.origin();
    let is_foreign_origin = headers
        .get(header::ORIGIN)
        .is_some_and(|origin| origin.as_bytes() != own_origin.as_bytes());
    let is_foreign_site = headers
        .get(FETCH_SITE)
        .is_some_and(|site| ![&b"same-origin"[..], b"none"].contains(&site.as_bytes()));
    match is_foreign_origin || is_foreign_site {
        false => Ok(()),
        true => Err(ApiError::Forbidden(
            "a change by session must come from the service's own origin; behind a proxy, set http.base_url to the \
             address that browsers use",
        )),
    }
}
