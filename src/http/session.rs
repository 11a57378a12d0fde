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

use super::{
    answer::Success,
    context::AppState,
    error::ApiError,
    extract::{Body, Reached, SessionCaller, SignedIn},
};

/// The session cookie's name.
pub const COOKIE: &str = "sluice_session";

/// What a user types in.
#[derive(Deserialize, ToSchema)]
pub struct SignIn {
    username: String,
    password: String,
}

/// Who is signed in.
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
/// Answers with the session cookie. After five wrong passwords for one user and address within 15 minutes: 429.
#[utoipa::path(post, path = "/api/session", tag = "session", request_body = SignIn, security(()), responses(
    (status = 201, description = "Signed in", body = SessionAnswer, headers(("Set-Cookie" = String, description = "The session"))),
    (status = 401, description = "Wrong user name or password", body = super::error::ErrorBody),
    (status = 403, description = "The account is suspended", body = super::error::ErrorBody),
))]
pub async fn create(
    state: web::Data<AppState>,
    reached: Reached,
    Body(SignIn { username, password }): Body<SignIn>,
) -> Result<HttpResponse, ApiError> {
    state
        .attempts
        .begin(&username, reached.client, Instant::now())
        .map_err(|retry_after_s| ApiError::TooMany {
            message: "too many wrong passwords",
            retry_after_s,
        })?;
    let user = users::by_username(&mut state.store.read().await?, &username).await?;
    let Some(user) = verified(&state, user, Secret::new(password)).await? else {
        tracing::info!(client = ?reached.client, "sign-in refused");
        return Err(ApiError::Unauthenticated("wrong user name or password"));
    };
    state.attempts.succeeded(&username, reached.client);
    let account = accounts::get(&mut state.store.read().await?, user.account_id).await?;
    if account.is_suspended() {
        return Err(ApiError::AccountSuspended);
    }

    let (user_id, lifetime_ms) = (user.id, lifetime_ms(&state));
    let (_, token) = state
        .store
        .write(move |tx| {
            Box::pin(async move { sessions::create(tx, user_id, lifetime_ms, now_ms()).await })
        })
        .await?;
    Ok(HttpResponse::Created()
        .cookie(cookie(&state, &reached, token.expose()))
        .json(answer(&user, &token)))
}

/// The user when the password is his. An unknown user costs the same work, so that time does not tell.
async fn verified(
    state: &AppState,
    user: Option<User>,
    password: Secret,
) -> Result<Option<User>, ApiError> {
    let _permit = state.password_permit().await?;
    tokio::task::spawn_blocking(move || match user {
        Some(user) => credentials::verify_password(&password, &user.password_hash).then_some(user),
        None => {
            credentials::verify_nobody(&password);
            None
        }
    })
    .await
    .map_err(ApiError::internal)
}

/// Show the session
///
/// Who is signed in; a session that is used goes on.
#[utoipa::path(get, path = "/api/session", tag = "session", security(("session" = [])), responses(
    (status = 200, description = "Signed in", body = SessionAnswer),
))]
pub async fn show(
    state: web::Data<AppState>,
    reached: Reached,
    caller: SessionCaller,
) -> Result<HttpResponse, ApiError> {
    let SignedIn {
        session,
        user,
        token,
    } = caller.signed_in();
    let lifetime_ms = lifetime_ms(&state);
    let mut response = HttpResponse::Ok();
    if session.is_due_to_slide(now_ms(), lifetime_ms) {
        let hash = session.token_hash.clone();
        state
            .store
            .write(move |tx| {
                Box::pin(async move { sessions::slide(tx, &hash, lifetime_ms, now_ms()).await })
            })
            .await?;
        response.cookie(cookie(&state, &reached, token.expose()));
    }
    Ok(response.json(answer(user, token)))
}

/// Sign out
#[utoipa::path(delete, path = "/api/session", tag = "session", security(("session" = [])), responses(
    (status = 200, description = "Signed out", body = Success),
))]
pub async fn end(
    state: web::Data<AppState>,
    reached: Reached,
    caller: SessionCaller,
) -> Result<HttpResponse, ApiError> {
    let hash = caller.signed_in().session.token_hash.clone();
    state
        .store
        .write(move |tx| Box::pin(async move { sessions::delete(tx, &hash).await }))
        .await?;
    let mut removal = cookie(&state, &reached, "");
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

fn cookie(state: &AppState, reached: &Reached, token: &str) -> Cookie<'static> {
    Cookie::build(COOKIE, token.to_owned())
        .path("/")
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(reached.address.is_https())
        .max_age(time::Duration::milliseconds(lifetime_ms(state)))
        .finish()
}

fn lifetime_ms(state: &AppState) -> i64 {
    i64::try_from(state.config.sign_in.session_lifetime.as_millis()).unwrap_or(i64::MAX / 4)
}
