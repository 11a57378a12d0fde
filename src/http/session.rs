//! `/api/session`: sign-in, welcome links, change of password, sign-out; the session cookie (`__Host-sluice_session`).

use actix_web::{
    HttpRequest, HttpResponse,
    cookie::{Cookie, SameSite, time},
    http::header::{self, HeaderName},
    web,
};
use serde::{Deserialize, Serialize};
use sluice_store::{
    Secret,
    accounts::{self, Account},
    credentials::csrf_token,
    now_ms, sessions as stored,
    users::User,
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::{Body, OwnOrigin, SessionCaller};
use crate::application::{
    answer::Success,
    caller::SignedIn,
    context::AccountContext,
    error::ApiError,
    reached::Reached,
    sessions::{self, Client, Opened, lifetime_ms},
};

/// The session cookie's name over plain HTTP.
pub const PLAIN_COOKIE: &str = "sluice_session";
/// The session cookie's name over HTTPS. Browsers take a name with this prefix from HTTPS only, with `Secure`, `Path=/` and no
/// `Domain` (RFC 6265bis §4.1.3.2), so that neither a neighbouring host name nor plain HTTP can set it.
pub const SECURE_COOKIE: &str = "__Host-sluice_session";

/// Header with which the browser forgets what it kept of the session, previews among it.
const CLEAR_SITE_DATA: (HeaderName, &str) = (header::CLEAR_SITE_DATA, "\"cache\"");
/// `Cache-Control` of answers with a CSRF token or the code of a link.
pub(super) const NO_STORE: (HeaderName, &str) = (header::CACHE_CONTROL, "no-store");

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

/// The code of a welcome link, and the password to be set.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// The part after `#` in the link; dashes, blanks and case do not matter.
    code: String,
    /// At least 8 characters, at most 1024 bytes.
    new_password: String,
}

/// The present password, and the one to be set.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PasswordChange {
    current_password: String,
    /// At least 8 characters, at most 1024 bytes.
    new_password: String,
}

/// The signed-in user.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionAnswer {
    user: SessionUser,
    account: SessionAccount,
    /// To be sent as `X-CSRF-Token` with every change.
    csrf_token: String,
}

#[derive(Serialize, ToSchema)]
pub struct SessionUser {
    id: Uuid,
    username: String,
    /// `viewer`, `member` or `admin`: what sessions of the user may do, as a key's scope `read`, `write` or `admin`.
    role: &'static str,
    /// True for one who may see the whole installation.
    operator: bool,
}

/// The account that the user belongs to.
#[derive(Serialize, ToSchema)]
pub struct SessionAccount {
    id: Uuid,
    name: String,
    /// Names a plan of the settings.
    plan: String,
}

/// Sign in
///
/// Answers with the session cookie, `__Host-sluice_session` over HTTPS and `sluice_session` over plain HTTP. After five wrong
/// passwords for one user, or fifty for all, from one address (IPv6: /64) within 15 minutes: 429.
#[utoipa::path(post, path = "/api/session", tag = "session", request_body = SignIn, security(()), responses(
    (status = 201, description = "Signed in", body = SessionAnswer, headers(("Set-Cookie" = String, description = "The session"))),
    (status = 401, description = "Wrong user name or password", body = crate::application::error::ErrorBody),
    (status = 403, description = "The account is suspended, or a page of another origin asks", body = crate::application::error::ErrorBody),
))]
pub async fn create(
    context: web::Data<AccountContext>,
    reached: Reached,
    request: HttpRequest,
    _: OwnOrigin,
    Body(SignIn { username, password }): Body<SignIn>,
) -> Result<HttpResponse, ApiError> {
    let client = client(&reached, &request);
    let opened = sessions::sign_in(&context, &client, &username, Secret::new(password)).await?;
    Ok(signed_in(&context, &reached, &opened))
}

/// Follow a welcome link
///
/// Sets the password of the user for whom the code was made, signs them in as `POST /api/session` does, and ends their other sessions.
/// A code can be used once, within 24 hours. It is in the link's fragment, which browsers send nowhere.
#[utoipa::path(post, path = "/api/session/welcome", tag = "session", request_body = Welcome, security(()), responses(
    (status = 201, description = "Signed in", body = SessionAnswer, headers(("Set-Cookie" = String, description = "The session"))),
    (status = 403, description = "The account is suspended, or a page of another origin asks", body = crate::application::error::ErrorBody),
    (status = 410, description = "The code is unknown, used or expired (`gone`)", body = crate::application::error::ErrorBody),
))]
pub async fn welcome(
    context: web::Data<AccountContext>,
    reached: Reached,
    request: HttpRequest,
    _: OwnOrigin,
    Body(Welcome { code, new_password }): Body<Welcome>,
) -> Result<HttpResponse, ApiError> {
    let client = client(&reached, &request);
    let (code, new_password) = (Secret::new(code), Secret::new(new_password));
    let opened = sessions::welcome(&context, &client, code, new_password).await?;
    Ok(signed_in(&context, &reached, &opened))
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
    let account = accounts::get(&mut context.store.read().await?, user.account_id).await?;
    let lifetime_ms = lifetime_ms(&context);
    let mut response = HttpResponse::Ok();
    if session.is_due_to_slide(now_ms(), lifetime_ms) {
        let hash = session.token_hash.clone();
        let slid = context.store.write_beside(move |tx| {
            Box::pin(async move { stored::slide(tx, &hash, lifetime_ms, now_ms()).await })
        });
        slid.await?;
        response.cookie(cookie(&context, &reached, token.expose()));
    }
    Ok(response.json(answer(user, &account, token)))
}

/// Change the password
///
/// Every session of the user ends; the answer has the cookie and the CSRF token of a new one. Wrong passwords count as those of a sign-in.
#[utoipa::path(patch, path = "/api/session/password", tag = "session", request_body = PasswordChange, security(("session" = [])), responses(
    (status = 200, description = "Changed", body = SessionAnswer, headers(("Set-Cookie" = String, description = "The new session"))),
    (status = 403, description = "The current password is wrong (`wrong_password`)", body = crate::application::error::ErrorBody),
))]
pub async fn change_password(
    context: web::Data<AccountContext>,
    reached: Reached,
    request: HttpRequest,
    caller: SessionCaller,
    Body(change): Body<PasswordChange>,
) -> Result<HttpResponse, ApiError> {
    let client = client(&reached, &request);
    let (current, new) = (
        Secret::new(change.current_password),
        Secret::new(change.new_password),
    );
    let opened =
        sessions::change_password(&context, &client, caller.signed_in(), current, new).await?;
    Ok(HttpResponse::Ok()
        .cookie(cookie(&context, &reached, opened.token.expose()))
        .json(answer_opened(&opened)))
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
    let ended = context
        .store
        .write_beside(move |tx| Box::pin(async move { stored::delete(tx, &hash).await }));
    ended.await?;
    Ok(signed_out(&context, &reached))
}

/// The answer to whatever proved who a person is: the session and its cookie.
pub(super) fn signed_in(
    context: &AccountContext,
    reached: &Reached,
    opened: &Opened,
) -> HttpResponse {
    let mut response = HttpResponse::Created();
    response.cookie(cookie(context, reached, opened.token.expose()));
    response.insert_header(NO_STORE).json(answer_opened(opened))
}

/// The answer that removes the cookie and what the browser kept.
pub(super) fn signed_out(context: &AccountContext, reached: &Reached) -> HttpResponse {
    let mut removal = cookie(context, reached, "");
    removal.make_removal();
    HttpResponse::Ok()
        .cookie(removal)
        .insert_header(CLEAR_SITE_DATA)
        .json(Success::default())
}

pub(super) fn client<'a>(reached: &Reached, request: &'a HttpRequest) -> Client<'a> {
    let user_agent = request.headers().get(header::USER_AGENT);
    Client {
        address: reached.client,
        user_agent: user_agent.and_then(|value| value.to_str().ok()),
    }
}

fn answer_opened(opened: &Opened) -> SessionAnswer {
    answer(&opened.user, &opened.account, &opened.token)
}

fn answer(user: &User, account: &Account, token: &Secret) -> SessionAnswer {
    SessionAnswer {
        user: SessionUser {
            id: user.id,
            username: user.username.clone(),
            role: user.role.as_str(),
            operator: user.is_operator,
        },
        account: SessionAccount {
            id: account.id,
            name: account.name.clone(),
            plan: account.plan.clone(),
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
