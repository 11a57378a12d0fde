//! Dashboard sessions. The cookie's token is stored as a hash; a session slides while it is used.

use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{
    Connection, Error, Secret, Tx,
    credentials::{self, csrf_token},
    users::User,
};

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct SignInSession {
    pub token_hash: String,
    pub user_id: Uuid,
    pub csrf_hash: String,
    pub created_at: i64,
    pub expires_at: i64,
}

impl SignInSession {
    /// Returns whether less than half of the lifetime is left, so that extending it justifies a write.
    pub fn is_due_to_slide(&self, now_ms: i64, lifetime_ms: i64) -> bool {
        self.expires_at - now_ms < lifetime_ms / 2
    }

    /// Compares a CSRF token with the session's, in constant time.
    pub fn accepts_csrf(&self, token: &str) -> bool {
        credentials::same(&credentials::hash(token), &self.csrf_hash)
    }
}

/// Opens a session and returns the cookie's token; [`csrf_token`] derives the CSRF token from it.
pub async fn create(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    lifetime_ms: i64,
    now_ms: i64,
) -> Result<(SignInSession, Secret), Error> {
    let token = credentials::session_token();
    let session = query_as(
        "INSERT INTO sessions (token_hash, user_id, csrf_hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5) RETURNING *",
    )
    .bind(credentials::hash(token.expose()))
    .bind(user_id)
    .bind(credentials::hash(csrf_token(&token).expose()))
    .bind(now_ms)
    .bind(now_ms + lifetime_ms)
    .fetch_one(tx.sqlite())
    .await?;
    Ok((session, token))
}

/// The session and user of a cookie's token; `None` when unknown or expired.
pub async fn authenticate(
    db: &mut impl Connection,
    token: &str,
    now_ms: i64,
) -> Result<Option<(SignInSession, User)>, Error> {
    if !credentials::is_session_token(token) {
        return Ok(None);
    }
    let session: Option<SignInSession> =
        query_as("SELECT * FROM sessions WHERE token_hash = $1 AND expires_at > $2")
            .bind(credentials::hash(token))
            .bind(now_ms)
            .fetch_optional(db.sqlite())
            .await?;
    let Some(session) = session else {
        return Ok(None);
    };
    let user = query_as("SELECT * FROM users WHERE id = $1")
        .bind(session.user_id)
        .fetch_optional(db.sqlite())
        .await?;
    Ok(user.map(|user| (session, user)))
}

/// Extends a session to a lifetime from now; one that has ended meanwhile is unchanged.
pub async fn slide(
    tx: &mut Tx<'_>,
    token_hash: &str,
    lifetime_ms: i64,
    now_ms: i64,
) -> Result<(), Error> {
    query("UPDATE sessions SET expires_at = $2 WHERE token_hash = $1 AND expires_at > $3 AND expires_at < $2")
        .bind(token_hash)
        .bind(now_ms + lifetime_ms)
        .bind(now_ms)
        .execute(tx.sqlite())
        .await?;
    Ok(())
}

/// Ends a session; one that does not exist any more is fine.
pub async fn delete(tx: &mut Tx<'_>, token_hash: &str) -> Result<(), Error> {
    query("DELETE FROM sessions WHERE token_hash = $1")
        .bind(token_hash)
        .execute(tx.sqlite())
        .await?;
    Ok(())
}

/// Ends all sessions of a user.
pub async fn delete_of_user(tx: &mut Tx<'_>, user_id: Uuid) -> Result<(), Error> {
    query("DELETE FROM sessions WHERE user_id = $1")
        .bind(user_id)
        .execute(tx.sqlite())
        .await?;
    Ok(())
}

/// Deletes at most `limit` expired sessions and returns how many.
pub async fn delete_expired(tx: &mut Tx<'_>, now_ms: i64, limit: u32) -> Result<u64, Error> {
    let deleted = query("DELETE FROM sessions WHERE token_hash IN (SELECT token_hash FROM sessions WHERE expires_at <= $1 LIMIT $2)")
        .bind(now_ms)
        .bind(limit)
        .execute(tx.sqlite())
        .await?;
    Ok(deleted.rows_affected())
}
