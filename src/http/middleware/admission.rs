//! Authentication (API key, session cookie) and rate limit of `/api`, `/mcp`, `/metrics`; `X-RateLimit-*` headers.
//!
//! The extractors of [`crate::http::extract`] turn the result into 401 and 403.

use std::{sync::Arc, time::Instant};

use actix_web::{
    Error, HttpMessage as _, ResponseError as _,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::header::{self, HeaderMap, HeaderName, HeaderValue},
    middleware::Next,
    web,
};
use sluice_store::{
    Reader, Secret, accounts,
    api_keys::{self, Scope},
    now_ms, sessions, write_tx,
};

use crate::{
    application::{
        caller::{Authentication, Credential, Identity, SignedIn},
        context::AccountContext,
        error::ApiError,
        rate_limit::{Budget, RateLimitState},
        reached::Reached,
    },
    http::{context, session::cookie_name},
};

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Authenticates the callers of `/api`, `/mcp` and `/metrics`, and counts those of the first two: keys against the plan of their
/// account, sessions each against a bound of its own, and a session's resumable uploads against another.
pub async fn admit(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let is_mcp = crate::http::mcp::is_below(request.path());
    let is_api = request.path().starts_with("/api/") && !is_share(request.path());
    let is_counted = is_mcp || is_api;
    if !is_counted && request.path() != "/metrics" {
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    let accounts = context::of::<AccountContext>(request.request()).clone();
    let authentication = match authenticate(&accounts, &request, !is_mcp).await {
        Ok(authentication) => authentication,
        Err(error) => return Ok(request.into_response(error.error_response())),
    };
    let counted = match &authentication {
        Authentication::Known(caller) if is_counted => {
            let budget = budget(caller, request.path());
            Some((budget, count(&accounts, caller, budget)))
        }
        _ => None,
    };
    let is_session =
        matches!(&authentication, Authentication::Known(caller) if caller.session().is_some());
    // Failures are stored, too: only handlers that take a caller answer them with 401.
    request.extensions_mut().insert(authentication);

    let mut response = match counted {
        Some((budget, rate)) if !rate.allowed => {
            let rejection = ApiError::TooMany {
                message: match budget {
                    Budget::Keys(_) => "the plan's requests per minute are used up",
                    Budget::Session(_) => {
                        "this session's requests per minute are used up (sign_in.requests_per_minute)"
                    }
                    Budget::Uploads(_) => {
                        "this session's requests of uploads per minute are used up (sign_in.upload_requests_per_minute)"
                    }
                },
                retry_after_s: rate.resets_in_s,
            };
            request.into_response(rejection.error_response())
        }
        _ => next.call(request).await?.map_into_boxed_body(),
    };
    if let Some((_, rate)) = counted {
        show(rate, response.headers_mut());
    }
    if is_session && !response.headers().contains_key(header::CACHE_CONTROL) {
        // Answers to a person must not stay in the browser of a shared machine.
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    Ok(response)
}

/// An upload of many small files takes two requests a file, and must not take those of the pages beside it.
fn budget(caller: &Identity, path: &str) -> Budget {
    match caller.session() {
        None => Budget::Keys(caller.account_id),
        Some(signed_in) if is_resumable_upload(path) => Budget::Uploads(signed_in.session.id),
        Some(signed_in) => Budget::Session(signed_in.session.id),
    }
}

fn count(accounts: &AccountContext, caller: &Identity, budget: Budget) -> RateLimitState {
    let sign_in = &accounts.config.sign_in;
    let limit = match budget {
        Budget::Keys(_) => accounts.config.plan(&caller.plan).requests_per_minute,
        Budget::Session(_) => sign_in.requests_per_minute,
        Budget::Uploads(_) => sign_in.upload_requests_per_minute,
    };
    accounts.rate_limit.count(budget, limit, Instant::now())
}

fn is_resumable_upload(path: &str) -> bool {
    let below = path.strip_prefix("/api/uploads/tus");
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns whether a path is of readers of a link. They are anonymous, also those who are signed in: nothing of theirs is counted.
fn is_share(path: &str) -> bool {
    path.starts_with("/api/share/")
}

/// Authenticates by the first credential present: Bearer, then `x-api-key`, then the session cookie where one is
/// accepted.
async fn authenticate(
    context: &web::Data<AccountContext>,
    request: &ServiceRequest,
    takes_cookie: bool,
) -> Result<Authentication, ApiError> {
    if let Some(key) = api_key(request.headers()) {
        return match key {
            Some(key) => by_api_key(context, key).await,
            None => Ok(Authentication::Wrong),
        };
    }
    if !takes_cookie {
        return Ok(Authentication::Missing);
    }
    match request.cookie(cookie_name(&Reached::of(request.request()))) {
        Some(cookie) => by_session(context, Secret::new(cookie.value())).await,
        None => Ok(Authentication::Missing),
    }
}

/// Returns `None` without a credential in the headers, `Some(None)` with one that is not text. Another scheme of
/// `Authorization` than Bearer is ignored.
fn api_key(headers: &HeaderMap) -> Option<Option<&str>> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.as_bytes().split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then_some(key)
    });
    let key = bearer.or_else(|| headers.get("x-api-key").map(HeaderValue::as_bytes))?;
    Some(std::str::from_utf8(key.trim_ascii()).ok())
}

async fn by_api_key(
    context: &web::Data<AccountContext>,
    token: &str,
) -> Result<Authentication, ApiError> {
    let mut db = context.store.read().await?;
    let Some(key) = api_keys::authenticate(&mut db, token).await? else {
        return Ok(Authentication::Wrong);
    };
    if key.is_due_to_touch(now_ms()) {
        note_use(context.clone(), key.account_id, key.id, false);
    }
    identity(&mut db, key.account_id, key.scope, Credential::Key(key.id)).await
}

/// Authenticates by session, whose scope is its user's role.
async fn by_session(
    context: &web::Data<AccountContext>,
    token: Secret,
) -> Result<Authentication, ApiError> {
    let mut db = context.store.read().await?;
    match sessions::authenticate(&mut db, token.expose(), now_ms()).await? {
        Some((session, user)) => {
            if session.is_due_to_touch(now_ms()) {
                note_use(context.clone(), user.account_id, session.id, true);
            }
            let (account_id, scope) = (user.account_id, user.role.scope());
            let signed_in = SignedIn {
                session,
                user,
                token,
            };
            let credential = Credential::Session(Box::new(signed_in));
            identity(&mut db, account_id, scope, credential).await
        }
        None => Ok(Authentication::Wrong),
    }
}

async fn identity(
    db: &mut Reader,
    account_id: uuid::Uuid,
    scope: Scope,
    credential: Credential,
) -> Result<Authentication, ApiError> {
    let account = accounts::get(db, account_id).await?;
    Ok(Authentication::Known(Arc::new(Identity {
        account_id,
        is_suspended: account.is_suspended(),
        plan: account.plan,
        scope,
        credential,
    })))
}

/// Records the use of a key or a session in a task of its own: the answer does not wait for it, and losing one record does no harm.
fn note_use(
    context: web::Data<AccountContext>,
    account_id: uuid::Uuid,
    id: uuid::Uuid,
    is_session: bool,
) {
    actix_web::rt::spawn(async move {
        let store = &context.store;
        let noted = match is_session {
            // Not beside others: it changes the session and then its user, which a new password does in the other order.
            true => write_tx!(store, account_id, |tx| {
                sessions::touch(tx, id, now_ms()).await
            }),
            false => {
                let noting = store.write_beside(move |tx| {
                    Box::pin(async move { api_keys::touch(tx, id, now_ms()).await })
                });
                noting.await
            }
        };
        if let Err(error) = noted {
            tracing::debug!(%error, is_session, "the use of a credential was not noted");
        }
    });
}

/// Adds `X-RateLimit-*`: `unlimited` where the plan has no bound; the reset is in Unix seconds.
fn show(rate: RateLimitState, headers: &mut HeaderMap) {
    let bound = |count: u32| match rate.limit {
        0 => HeaderValue::from_static("unlimited"),
        _ => HeaderValue::from(count),
    };
    headers.insert(LIMIT, bound(rate.limit));
    headers.insert(REMAINING, bound(rate.remaining));
    headers.insert(
        RESET,
        HeaderValue::from(now_ms() / 1000 + rate.resets_in_s as i64),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_wins_over_the_other_header() {
        type Given = &'static [(&'static str, &'static str)];
        let cases: &[(Given, Option<Option<&str>>)] = &[
            (&[], None),
            (&[("authorization", "Bearer a")], Some(Some("a"))),
            (&[("authorization", "bearer  a ")], Some(Some("a"))),
            (
                &[("authorization", "Bearer a"), ("x-api-key", "b")],
                Some(Some("a")),
            ),
            (
                &[("authorization", "Bearer "), ("x-api-key", "b")],
                Some(Some("")),
            ),
            (
                &[("authorization", "Basic a"), ("x-api-key", "b")],
                Some(Some("b")),
            ),
            (&[("authorization", "Basic a")], None),
            (&[("authorization", "x")], None),
            (&[("x-api-key", "b")], Some(Some("b"))),
            (&[("x-api-key", "\u{e9}")], Some(Some("\u{e9}"))),
        ];
        for (given, expected) in cases {
            let mut headers = HeaderMap::new();
            for (name, value) in *given {
                let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
                headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            assert_eq!(api_key(&headers), *expected, "{given:?}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(
            header::AUTHORIZATION,
            HeaderValue::from_bytes(b"Bearer \xff").unwrap(),
        );
        assert_eq!(api_key(&headers), Some(None));
    }
}
