//! Who asks, as a type: a handler that takes `Caller<Write>` cannot be reached without a credential of that scope.
//!
//! The admission middleware authenticates and leaves an [`Authentication`] with the request; the extractors only read it,
//! so that 401 and 403 come before anything is said about the body.

use std::{future::Ready, marker::PhantomData, sync::Arc};

use actix_web::{
    FromRequest, HttpMessage as _, HttpRequest, dev::Payload, http::Method, http::header,
};
use sluice_store::{
    Connection, Secret, accounts,
    api_keys::{self, Scope},
    now_ms,
    sessions::{self, SignInSession},
    users::User,
};
use uuid::Uuid;

use super::reached::Reached;
use crate::{
    config::Plan,
    http::{context::AppState, error::ApiError},
};

/// A dashboard session, as found by its cookie.
#[derive(Debug)]
pub struct SignedIn {
    pub session: SignInSession,
    pub user: User,
    /// The cookie's value.
    pub token: Secret,
}

/// An authenticated caller.
#[derive(Debug)]
pub struct Identity {
    pub account_id: Uuid,
    /// Names a plan of the configuration.
    pub plan: String,
    pub is_suspended: bool,
    pub scope: Scope,
    pub credential: Credential,
}

/// What the caller showed.
#[derive(Debug)]
pub enum Credential {
    /// The id of an API key.
    Key(Uuid),
    Session(Box<SignedIn>),
}

impl Identity {
    fn session(&self) -> Option<&SignedIn> {
        match &self.credential {
            Credential::Key(_) => None,
            Credential::Session(signed_in) => Some(signed_in),
        }
    }

    /// 403 when its scope does not reach `needed`.
    fn reach(&self, needed: Scope) -> Result<(), ApiError> {
        if self.scope >= needed {
            return Ok(());
        }
        Err(ApiError::Forbidden(match needed {
            Scope::Admin => "this needs a key with scope admin",
            Scope::Write | Scope::Read => {
                "this key may only read: a key with scope write is needed"
            }
        }))
    }
}

/// What the admission middleware found out.
#[derive(Clone, Debug)]
pub enum Authentication {
    Known(Arc<Identity>),
    /// No credential came with the request.
    Missing,
    /// One came that is unknown, revoked, expired or of another kind.
    Wrong,
}

/// Needs a credential that may read.
#[derive(Debug)]
pub struct Read;
/// Needs a credential that may change things.
#[derive(Debug)]
pub struct Write;
/// Needs scope `admin`, which every dashboard session has for its own account.
#[derive(Debug)]
pub struct Admin;

/// The scope that a marker type stands for.
pub trait Needs {
    const SCOPE: Scope;
}

impl Needs for Read {
    const SCOPE: Scope = Scope::Read;
}

impl Needs for Write {
    const SCOPE: Scope = Scope::Write;
}

impl Needs for Admin {
    const SCOPE: Scope = Scope::Admin;
}

/// A caller whose credential reaches the scope `S`.
#[derive(Debug)]
pub struct Caller<S> {
    identity: Arc<Identity>,
    scope: PhantomData<S>,
}

impl<S: Needs> Caller<S> {
    /// For those who reach handlers otherwise than by a route; 403 when the scope does not suffice.
    pub(crate) fn of(identity: &Arc<Identity>) -> Result<Self, ApiError> {
        identity.reach(S::SCOPE)?;
        Ok(Self {
            identity: identity.clone(),
            scope: PhantomData,
        })
    }
}

impl<S> Caller<S> {
    pub fn account_id(&self) -> Uuid {
        self.identity.account_id
    }

    /// What the account's plan allows.
    pub fn plan(&self, state: &AppState) -> Plan {
        state.config.plan(&self.identity.plan)
    }

    /// Whether it is a person at the dashboard rather than a program with an API key.
    pub fn is_session(&self) -> bool {
        self.identity.session().is_some()
    }

    /// Whether the credential still is what it was when the request came: for answers that go on for long.
    pub async fn is_still_admitted(&self, db: &mut impl Connection) -> Result<bool, ApiError> {
        if accounts::get(db, self.account_id()).await?.is_suspended() {
            return Ok(false);
        }
        Ok(match &self.identity.credential {
            Credential::Key(id) => api_keys::is_in_force(db, *id).await?,
            Credential::Session(signed_in) => {
                let token = signed_in.token.expose();
                let found = sessions::authenticate(db, token, now_ms()).await?;
                found.is_some()
            }
        })
    }

    /// The name of the account's plan.
    pub fn plan_name(&self) -> &str {
        &self.identity.plan
    }
}

impl<S: Needs> FromRequest for Caller<S> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(admit(request, S::SCOPE).map(|identity| Self {
            identity,
            scope: PhantomData,
        }))
    }
}

/// A caller with a dashboard session, for what concerns the session itself.
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

/// The identity behind the request when its scope suffices and, for a cookie, the call is not forged by another site.
fn admit(request: &HttpRequest, needed: Scope) -> Result<Arc<Identity>, ApiError> {
    let identity = identity(request)?;
    if let Some(signed_in) = identity.session() {
        refuse_forgery(request, &signed_in.session)?;
    }
    identity.reach(needed)?;
    Ok(identity)
}

/// The identity behind the request, whatever it may do; 403 when its account is suspended.
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

/// A browser sends the cookie with requests that other sites provoke; those know neither our origin nor the token.
fn refuse_forgery(request: &HttpRequest, session: &SignInSession) -> Result<(), ApiError> {
    if matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    ) {
        return Ok(());
    }
    let header = |name: &str| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    let own_origin = Reached::of(request).address.origin();
    if header(header::ORIGIN.as_str()).is_some_and(|origin| origin != own_origin) {
        return Err(ApiError::Forbidden(
            "a change by session must come from the service's own origin",
        ));
    }
    if !header("x-csrf-token").is_some_and(|token| session.accepts_csrf(token)) {
        return Err(ApiError::Forbidden(
            "a change by session needs the session's csrfToken in X-CSRF-Token",
        ));
    }
    Ok(())
}
