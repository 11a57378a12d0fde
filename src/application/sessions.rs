//! Sign-in by password or welcome code, change of password, sessions of a user (`sign_in.max_sessions`, `session_lifetime`).
//!
//! Whatever proves who a person is makes a session with an id of its own; another password ends every session before it.

use std::{net::IpAddr, time::Instant};

use sluice_store::{
    Secret, Tx,
    accounts::{self, Account},
    audit::{self, Actor, NewEntry},
    credentials::{self, PasswordHash},
    now_ms,
    sessions::{self, NewSession, SignInSession},
    users::{self, User},
    welcome_codes, write_tx,
};
use uuid::Uuid;

use crate::application::{
    audit::network_text, caller::SignedIn, context::AccountContext, error::ApiError, members,
    password_checks::PasswordUse, sign_in::Attempts,
};

/// Longest `User-Agent` that a session remembers, in characters.
const MAX_USER_AGENT: usize = 200;
/// Counts guessed codes as wrong passwords of one user; no name of a user has blanks.
const CODES: &str = "a welcome code";

/// The browser or program that opens a session.
#[derive(Debug)]
pub(crate) struct Client<'a> {
    pub address: Option<IpAddr>,
    pub user_agent: Option<&'a str>,
}

/// A session that was opened just now.
#[derive(Debug)]
pub(crate) struct Opened {
    pub user: User,
    pub account: Account,
    /// The cookie's value.
    pub token: Secret,
}

/// Opens a session for a user name and password.
pub(crate) async fn sign_in(
    context: &AccountContext,
    client: &Client<'_>,
    username: &str,
    password: Secret,
) -> Result<Opened, ApiError> {
    let (attempts, address) = (&context.attempts, client.address);
    attempts
        .check(username, address, Instant::now())
        .map_err(too_many_passwords)?;
    let user = users::by_username(&mut context.store.read().await?, username).await?;
    // Before the try is counted: one that gets no turn is none.
    let turn = context
        .password_checks
        .turn(PasswordUse::Account, address)
        .await?;
    attempts
        .begin(username, address, Instant::now())
        .await
        .map_err(too_many_passwords)?;
    let Some(user) = turn.run(move || verified(user, &password)).await? else {
        tracing::info!(client = ?address, "sign-in rejected");
        return Err(ApiError::Unauthenticated("wrong user name or password"));
    };
    attempts.succeeded(username, address).await;
    let account = account_in_force(context, &user).await?;
    let new = new_session(context, client, user.id);
    let most = context.config.sign_in.max_sessions;
    // The password may have been replaced while this one was checked.
    let checked = user.password_hash.clone();
    let token = write_tx!(context.store, user.account_id, |tx| {
        match users::has_password(tx, new.user_id, &checked).await? {
            true => open(tx, new, most).await.map(Ok),
            false => Ok(Err(ApiError::Unauthenticated(
                "wrong user name or password",
            ))),
        }
    })??;
    Ok(Opened {
        user,
        account,
        token,
    })
}

/// Counts a try of a one-time code before it is looked for, as [`Attempts::begin`] does a password; 429 beyond the limit.
pub(crate) async fn begin_code(
    attempts: &Attempts,
    codes: &str,
    address: Option<IpAddr>,
) -> Result<(), ApiError> {
    attempts
        .begin(codes, address, Instant::now())
        .await
        .map_err(|retry_after_s| ApiError::TooMany {
            message: "too many links that are not valid: wait until Retry-After is over",
            retry_after_s,
        })
}

/// Sets the password of the user of a welcome code, and opens a session. The code and the user's other sessions end with it.
pub(crate) async fn welcome(
    context: &AccountContext,
    client: &Client<'_>,
    code: Secret,
    new_password: Secret,
) -> Result<Opened, ApiError> {
    credentials::check_chosen_password(&new_password)?;
    let (attempts, address) = (&context.attempts, client.address);
    begin_code(attempts, CODES, address).await?;
    let mut db = context.store.read().await?;
    let Some(user_id) = welcome_codes::user_of(&mut db, &code, now_ms()).await? else {
        tracing::info!(client = ?address, "welcome code rejected");
        return Err(used_up());
    };
    attempts.succeeded(CODES, address).await;
    let user = users::get(&mut db, user_id).await?;
    drop(db);
    let account = account_in_force(context, &user).await?;
    let turn = context.password_checks.turn(PasswordUse::Account, address);
    let hash = turn
        .await?
        .run(move || credentials::hash_password(&new_password));
    let hash = hash.await??;
    let new = new_session(context, client, user_id);
    let most = context.config.sign_in.max_sessions;
    let noted = NewEntry {
        account_id: user.account_id,
        actor: Actor::User(user_id),
        action: "user.password_set",
        target: Some(members::target(&user)),
        network: client.address.map(network_text),
        detail: Some("by a link for a new password".to_owned()),
    };
    let token = write_tx!(context.store, user.account_id, |tx| {
        // Another request may have used it meanwhile.
        match welcome_codes::user_of(tx, &code, now_ms()).await? {
            Some(found) if found == user_id => {
                audit::append(tx, noted, now_ms()).await?;
                replace_password(tx, hash, new, most).await.map(Some)
            }
            _ => Ok(None),
        }
    })?
    .ok_or_else(used_up)?;
    Ok(Opened {
        user,
        account,
        token,
    })
}

/// Sets another password for a signed-in user and opens a new session; all that there were end, the caller's too.
pub(crate) async fn change_password(
    context: &AccountContext,
    client: &Client<'_>,
    signed_in: &SignedIn,
    current: Secret,
    new_password: Secret,
) -> Result<Opened, ApiError> {
    credentials::check_chosen_password(&new_password)?;
    let (attempts, address) = (&context.attempts, client.address);
    let user = signed_in.user.clone();
    attempts
        .check(&user.username, address, Instant::now())
        .map_err(too_many_passwords)?;
    let turn = context
        .password_checks
        .turn(PasswordUse::Account, address)
        .await?;
    attempts
        .begin(&user.username, address, Instant::now())
        .await
        .map_err(too_many_passwords)?;
    let known = user.password_hash.clone();
    let hash = turn.run(move || {
        credentials::verify_password(&current, &known)
            .then(|| credentials::hash_password(&new_password))
    });
    let hash = hash.await?.ok_or(ApiError::WrongPassword)??;
    attempts.succeeded(&user.username, address).await;
    let account = accounts::get(&mut context.store.read().await?, user.account_id).await?;
    let new = new_session(context, client, user.id);
    let most = context.config.sign_in.max_sessions;
    // The session may have ended since its request began, by another password that this one must not replace.
    let checked = user.password_hash.clone();
    let token = write_tx!(context.store, user.account_id, |tx| {
        match users::has_password(tx, new.user_id, &checked).await? {
            true => replace_password(tx, hash, new, most).await.map(Ok),
            false => Ok(Err(ApiError::Unauthenticated(
                "the password was changed meanwhile: sign in with the new one",
            ))),
        }
    })??;
    Ok(Opened {
        user,
        account,
        token,
    })
}

/// The sessions of a user, the one that was used last first.
pub(crate) async fn list(
    context: &AccountContext,
    user_id: Uuid,
) -> Result<Vec<SignInSession>, ApiError> {
    let most = context.config.sign_in.max_sessions;
    let mut db = context.store.read().await?;
    Ok(sessions::list(&mut db, user_id, most, now_ms()).await?)
}

/// Ends a session of a user; 404 when it is another's.
pub(crate) async fn end(
    context: &AccountContext,
    user_id: Uuid,
    session_id: Uuid,
) -> Result<(), ApiError> {
    let ended = context.store.write_beside(move |tx| {
        Box::pin(async move { sessions::end(tx, user_id, session_id).await })
    });
    Ok(ended.await?)
}

/// Lifetime of a session from its last extension, in milliseconds.
pub(crate) fn lifetime_ms(context: &AccountContext) -> i64 {
    i64::try_from(context.config.sign_in.session_lifetime.as_millis()).unwrap_or(i64::MAX / 4)
}

/// Returns the user when the password matches. An unknown user costs the same work, so that the time reveals nothing.
fn verified(user: Option<User>, password: &Secret) -> Option<User> {
    let Some(user) = user else {
        credentials::verify_no_one(password);
        return None;
    };
    credentials::verify_password(password, &user.password_hash).then_some(user)
}

async fn account_in_force(context: &AccountContext, user: &User) -> Result<Account, ApiError> {
    let account = accounts::get(&mut context.store.read().await?, user.account_id).await?;
    match account.is_suspended() {
        true => Err(ApiError::AccountSuspended),
        false => Ok(account),
    }
}

async fn replace_password(
    tx: &mut Tx<'_>,
    hash: PasswordHash,
    new: NewSession,
    most: u32,
) -> Result<Secret, sluice_store::Error> {
    users::set_password(tx, new.user_id, hash, now_ms()).await?;
    open(tx, new, most).await
}

/// Opens a session; the ones of the user beyond `most` that were not used for longest end.
pub(super) async fn open(
    tx: &mut Tx<'_>,
    new: NewSession,
    most: u32,
) -> Result<Secret, sluice_store::Error> {
    let user_id = new.user_id;
    let (_, token) = sessions::create(tx, new, now_ms()).await?;
    sessions::keep_newest(tx, user_id, most).await?;
    Ok(token)
}

pub(super) fn new_session(
    context: &AccountContext,
    client: &Client<'_>,
    user_id: Uuid,
) -> NewSession {
    NewSession {
        user_id,
        lifetime_ms: lifetime_ms(context),
        network: client.address.map(network_text),
        user_agent: client.user_agent.and_then(shortened),
    }
}

/// Shortens a `User-Agent`; `None` when nothing can be shown of it.
fn shortened(user_agent: &str) -> Option<String> {
    let shown = user_agent.chars().filter(|c| !c.is_control());
    let shown: String = shown.take(MAX_USER_AGENT).collect();
    let shown = shown.trim();
    (!shown.is_empty()).then(|| shown.to_owned())
}

fn too_many_passwords(retry_after_s: u64) -> ApiError {
    ApiError::TooMany {
        message: "too many wrong passwords: wait until Retry-After is over",
        retry_after_s,
    }
}

/// The one answer to a code that is unknown, used or expired.
fn used_up() -> ApiError {
    ApiError::Gone(
        "this link was used already or has expired: sign in, or ask an admin of your account for another link (on the machine \
         of the service: `sluice users welcome NAME`)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_remembers_networks_and_a_bounded_user_agent() {
        for (address, text) in [
            ("203.0.113.7", "203.0.113.7"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("::1", "::/64"),
        ] {
            assert_eq!(network_text(address.parse().unwrap()), text);
        }
        assert_eq!(shortened("Firefox/1").as_deref(), Some("Firefox/1"));
        assert_eq!(shortened(" \u{7}\t"), None);
        let long = shortened(&"ä".repeat(5_000)).unwrap();
        assert_eq!(long.chars().count(), MAX_USER_AGENT);
    }
}
