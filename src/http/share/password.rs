//! Password of a share link: unlock cookie `sluice_share`, its lifetime (`shares.unlock_lifetime`), lock-out after wrong passwords.
//! The cookie replaces the password for this link alone.
//!
//! The cookie is signed and not stored. A link that is made again has another id, so that cookies of the old one are
//! not valid.

use std::time::Instant;

use actix_web::{
    HttpRequest,
    cookie::{Cookie, SameSite, time},
};
use sluice_store::{Connection, Secret, credentials, duration_ms, now_ms};
use url::Url;
use uuid::Uuid;

use super::access::LockedShare;
use crate::application::{
    context::ShareContext,
    error::ApiError,
    password_checks::PasswordUse,
    signing::{self, Purpose, Signer},
};

/// Name of the cookie, which is sent on the link's own paths only, so that one name serves all links.
const COOKIE: &str = "sluice_share";

/// Returns whether the request carries the cookie of a correct password.
pub(super) async fn was_shown(
    request: &HttpRequest,
    db: &mut impl Connection,
    share_id: Uuid,
) -> Result<bool, ApiError> {
    let Some(cookie) = request.cookie(COOKIE) else {
        return Ok(false);
    };
    let signer = Signer::of(db).await?;
    Ok(accepts(&signer, share_id, cookie.value(), now_ms()))
}

/// Makes the cookie's value: `{milliseconds since 1970, hexadecimal}.{signature}`.
fn value(signer: &Signer, share_id: Uuid, expires_at: i64) -> String {
    let signature = signer.sign(
        Purpose::ShareUnlock,
        &signing::id_until(share_id, expires_at),
    );
    format!("{expires_at:x}.{}", signing::encode(&signature))
}

fn accepts(signer: &Signer, share_id: Uuid, value: &str, now_ms: i64) -> bool {
    let read = value.split_once('.').and_then(|(expires_at, signature)| {
        let expires_at = i64::from_str_radix(expires_at, 16).ok()?;
        Some((expires_at, signing::decode(signature)?))
    });
    read.is_some_and(|(expires_at, signature)| {
        now_ms < expires_at
            && signer.accepts(
                Purpose::ShareUnlock,
                &signing::id_until(share_id, expires_at),
                &signature,
            )
    })
}

/// Checks a password; returns the cookies that replace it, one for the API's paths and one for the page's.
///
/// 403 `wrong_password`; 429 after too many wrong ones from this network, for this link or for all.
pub(in crate::http) async fn unlock(
    context: &ShareContext,
    locked: &LockedShare,
    password: Secret,
) -> Result<[Cookie<'static>; 2], ApiError> {
    let access = &locked.0;
    let (share, client) = (&access.share, access.client());
    let attempts = &context.shares.attempts;
    let link = share.id.to_string();
    let too_many = |retry_after_s| ApiError::TooMany {
        message: "too many wrong passwords: wait until Retry-After is over",
        retry_after_s,
    };
    attempts
        .check(&link, client, Instant::now())
        .map_err(too_many)?;
    // The permit comes before the count: a request without a permit has not tried a password.
    let turn = context
        .password_checks
        .turn(PasswordUse::Link, client)
        .await?;
    attempts
        .begin(&link, client, Instant::now())
        .await
        .map_err(too_many)?;
    let hash = share.password_hash.clone();
    let is_right = turn
        .run(move || hash.is_none_or(|hash| credentials::verify_password(&password, &hash)))
        .await?;
    if !is_right {
        return Err(ApiError::NoShare {
            code: "wrong_password",
            message: "this is not the password of this link",
        });
    }
    attempts.succeeded(&link, client).await;

    let lifetime_ms = duration_ms(context.config.shares.unlock_lifetime);
    let expires_at = now_ms().saturating_add(lifetime_ms);
    let expires_at = share.expires_at.map_or(expires_at, |at| at.min(expires_at));
    let signer = Signer::of(&mut context.store.read().await?).await?;
    let value = value(&signer, share.id, expires_at);
    let is_https = access.reached.address.is_https();
    Ok([access.url(""), access.page_url()].map(|address| {
        Cookie::build(COOKIE, value.clone())
            .path(path_of(&address))
            .http_only(true)
            .same_site(SameSite::Lax)
            .secure(is_https)
            .max_age(time::Duration::milliseconds(expires_at - now_ms()))
            .finish()
    }))
}

/// Path as browsers see it: the service may be below a path of its own.
fn path_of(address: &str) -> String {
    Url::parse(address).map_or_else(|_| "/".to_owned(), |url| url.path().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_holds_for_its_link_and_time_only() {
        let (signer, link, other) = (Signer::new(b"key"), Uuid::from_u128(1), Uuid::from_u128(2));
        let cookie = value(&signer, link, 1_000);
        assert!(accepts(&signer, link, &cookie, 999));
        assert!(!accepts(&signer, link, &cookie, 1_000), "expired");
        assert!(!accepts(&signer, other, &cookie, 999));
        assert!(!accepts(&Signer::new(b"other"), link, &cookie, 999));
        let longer = cookie.replacen("3e8.", "3e9.", 1);
        for odd in [longer.as_str(), "", ".", "3e8.", "3e8.x", "x.y", "-1.AAAA"] {
            assert!(!accepts(&signer, link, odd, 0), "{odd}");
        }
    }
}
