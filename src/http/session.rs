//! `/api/session`: signing in to the dashboard, and out of it.

use std::time::Instant;

use actix_web::{
    HttpResponse,
    cookie::{Cookie, SameSite, time},
    web,
};
use serde::{Deserialize, Serialize};
use sluice_store::{
    Secret, accounts, credentials,
    credentials::csrf_token,
    now_ms, sessions,
    users::{self, User},
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::{Body, SessionCaller};
use crate::application::{
    answer::Success, caller::SignedIn, context::AccountContext, error::ApiError,
    password_checks::PasswordUse, reached::Reached,
};

/// The session cookie's name over plain HTTP.
pub const PLAIN_COOKIE: &str = "sluice_session";
/// The session cookie's name over HTTPS. Browsers take a name with this prefix from HTTPS only, with `Secure`, `Path=/` and no
/// `Domain` (RFC 6265bis §4.1.3.2), so that neither a neighbouring host name nor plain HTTP can set it.
pub const SECURE_COOKIE: &str = "__Host-sluice_session";

/// The name of the cookie that counts for a request. Over HTTPS the plain one does not: an attacker on plain HTTP could have set it.
pub fn cookie_name(reached: &Reached) -> &'static str {
    match reached.address.is_https() {
        true => SECURE_COOKIE,
        false => PLAIN_COOKIE,
    }
}

/// Credentials that a user types.
#[derive(Deserialize, ToSchema)]
pub struct SignIn {
    username: String,
    password: String,
}

/// The signed-in user.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionAnswer {
    user: SessionUser,
    /// To be sent as `X-CSRF-Token` with every change.
    csrf_token: String,
}

#[derive(Serialize, ToSchema)]
pub struct SessionUser {
    id: Uuid,
    username: String,
    /// `admin` or `member`.
    role: &'static str,
}

/// Sign in
///
/// Answers with the session cookie, `__Host-sluice_session` over HTTPS and `sluice_session` over plain HTTP. After five wrong
/// passwords for one user, or fifty for all, from one address (IPv6: /64) within 15 minutes: 429.
#[utoipa::path(post, path = "/api/session", tag = "session", request_body = SignIn, security(()), responses(
    (status = 201, description = "Signed in", body = SessionAnswer, headers(("Set-Cookie" = String, description = "The session"))),
    (status = 401, description = "Wrong user name or password", body = crate::application::error::ErrorBody),
    (status = 403, description = "The account is suspended", body = crate::application::error::ErrorBody),
))]
pub async fn create(
    context: web::Data<AccountContext>,
    reached: Reached,
    Body(SignIn { username, password }): Body<SignIn>,
) -> Result<HttpResponse, ApiError> {
    let (attempts, client) = (&context.attempts, reached.client);
    let too_many = |retry_after_s| ApiError::TooMany {
        message: "too many wrong passwords: wait until Retry-After is over",
        retry_after_s,
    };
    attempts
        .check(&username, client, Instant::now())
        .map_err(too_many)?;
    let user = users::by_username(&mut context.store.read().await?, &username).await?;
    // Before the try is counted: one that gets no turn is none.
    let turn = context
        .password_checks
        .turn(PasswordUse::Account, client)
        .await?;
    attempts
        .begin(&username, client, Instant::now())
        .map_err(too_many)?;
    let password = Secret::new(password);
    let Some(user) = turn.run(move || verified(user, &password)).await? else {
        tracing::info!(client = ?reached.client, "sign-in refused");
        return Err(ApiError::Unauthenticated("wrong user name or password"));
    };
    attempts.succeeded(&username, client);
    let account = accounts::get(&mut context.store.read().await?, user.account_id).await?;
    if account.is_suspended() {
        return Err(ApiError::AccountSuspended);
    }

    let (user_id, lifetime_ms) = (user.id, lifetime_ms(&context));
    let (_, token) = context
        .store
        .write(move |tx| {
            Box::pin(async move { sessions::create(tx, user_id, lifetime_ms, now_ms()).await })
        })
        .await?;
    Ok(HttpResponse::Created()
        .cookie(cookie(&context, &reached, token.expose()))
        .json(answer(&user, &token)))
}

/// Returns the user when the password matches. An unknown user costs the same work, so that the time reveals nothing.
fn verified(user: Option<User>, password: &Secret) -> Option<User> {
    let Some(user) = user else {
        credentials::verify_no_one(password);
        return None;
    };
    credentials::verify_password(password, &user.password_hash).then_some(user)
}

/// Show the session
///
/// Returns the signed-in user; using a session extends it.
#[utoipa::path(get, path = "/api/session", tag = "session", security(("session" = [])), responses(
    (status = 200, description = "Signed in", body = SessionAnswer),
))]
pub async fn show(
    context: web::Data<AccountContext>,
    reached: Reached,
    caller: SessionCaller,
) -> Result<HttpResponse, ApiError> {
    let SignedIn {
        session,
        user,
        token,
    } = caller.signed_in();
    let lifetime_ms = lifetime_ms(&context);
    let mut response = HttpResponse::Ok();
    if session.is_due_to_slide(now_ms(), lifetime_ms) {
        let hash = session.token_hash.clone();
        context
            .store
            .write(move |tx| {
                Box::pin(async move { sessions::slide(tx, &hash, lifetime_ms, now_ms()).await })
            })
            .await?;
        response.cookie(cookie(&context, &reached, token.expose()));
    }
    Ok(response.json(answer(user, token)))
}

/// Sign out
#[utoipa::path(delete, path = "/api/session", tag = "session", security(("session" = [])), responses(
    (status = 200, description = "Signed out", body = Success),
))]
pub async fn end(
    context: web::Data<AccountContext>,
    reached: Reached,
    caller: SessionCaller,
) -> Result<HttpResponse, ApiError> {
    let hash = caller.signed_in().session.token_hash.clone();
    context
        .store
        .write(move |tx| Box::pin(async move { sessions::delete(tx, &hash).await }))
        .await?;
    let mut removal = cookie(&context, &reached, "");
    removal.make_removal();
    Ok(HttpResponse::Ok().cookie(removal).json(Success::default()))
}

fn answer(user: &User, token: &Secret) -> SessionAnswer {
    SessionAnswer {
        user: SessionUser {
            id: user.id,
            username: user.username.clone(),
            role: user.role.as_str(),
        },
        csrf_token: csrf_token(token).expose().to_owned(),
    }
}

fn cookie(context: &AccountContext, reached: &Reached, token: &str) -> Cookie<'static> {
    Cookie::build(cookie_name(reached), token.to_owned())
        .path("/")
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(reached.address.is_https())
        .max_age(time::Duration::milliseconds(lifetime_ms(context)))
        .finish()
}

fn lifetime_ms(context: &AccountContext) -> i64 {
    i64::try_from(context.config.sign_in.session_lifetime.as_millis()).unwrap_or(i64::MAX / 4)
}
