//! Rows of dashboard sessions: cookie token, CSRF token, expiry that moves with use, list and end. The cookie's token
//! is stored as a hash.

use uuid::Uuid;

use crate::{
    Connection, Error, Secret, Tx,
    credentials::{self, csrf_token},
    statement::{query, query_as, query_scalar},
    users::{self, User},
};

/// Precision of `last_used_at`: a write for every request would be wasted.
const LAST_USED_GRAIN_MS: i64 = 5 * 60 * 1000;

/// Deletes sessions that have expired by the time `$1`, `$2` at most.
pub(crate) const DELETE_EXPIRED: &str = "DELETE FROM sessions WHERE token_hash IN (
     SELECT token_hash FROM sessions WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)";

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct SignInSession {
    pub token_hash: String,
    /// Names the session without giving it away.
    pub id: Uuid,
    pub user_id: Uuid,
    pub csrf_hash: String,
    /// Network of the client at the sign-in.
    pub network: Option<String>,
    /// `User-Agent` of the client at the sign-in, as it came but shortened.
    pub user_agent: Option<String>,
    pub created_at: i64,
    /// Exact to five minutes.
    pub last_used_at: i64,
    pub expires_at: i64,
}

/// Session to be made.
#[derive(Clone, Debug)]
pub struct NewSession {
    pub user_id: Uuid,
    pub lifetime_ms: i64,
    pub network: Option<String>,
    pub user_agent: Option<String>,
}

impl SignInSession {
    /// Returns whether the recorded last use is old enough for a [`touch`].
    pub fn is_due_to_touch(&self, now_ms: i64) -> bool {
        self.last_used_at + LAST_USED_GRAIN_MS <= now_ms
    }

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
    new: NewSession,
    now_ms: i64,
) -> Result<(SignInSession, Secret), Error> {
    let token = credentials::session_token();
    let session = query_as(
        "INSERT INTO sessions (token_hash, id, user_id, csrf_hash, network, user_agent, created_at, last_used_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8) RETURNING *",
    )
    .bind(credentials::hash(token.expose()))
    .bind(Uuid::now_v7())
    .bind(new.user_id)
    .bind(credentials::hash(csrf_token(&token).expose()))
    .bind(new.network)
    .bind(new.user_agent)
    .bind(now_ms)
    .bind(now_ms + new.lifetime_ms)
    .fetch_one(tx)
    .await?;
    users::saw(tx, new.user_id, now_ms).await?;
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
            .fetch_optional(db)
            .await?;
    let Some(session) = session else {
        return Ok(None);
    };
    let user = query_as("SELECT * FROM users WHERE id = $1")
        .bind(session.user_id)
        .fetch_optional(db)
        .await?;
    Ok(user.map(|user| (session, user)))
}

/// The user's sessions that have not expired, at most `most`, the one that was used last first.
pub async fn list(
    db: &mut impl Connection,
    user_id: Uuid,
    most: u32,
    now_ms: i64,
) -> Result<Vec<SignInSession>, Error> {
    Ok(query_as(
        "SELECT * FROM sessions WHERE user_id = $1 AND expires_at > $2 ORDER BY last_used_at DESC, id DESC LIMIT $3",
    )
    .bind(user_id)
    .bind(now_ms)
    .bind(most)
    .fetch_all(db)
    .await?)
}

/// Ends the sessions of a user beyond the `most` that were used last.
pub async fn keep_newest(tx: &mut Tx<'_>, user_id: Uuid, most: u32) -> Result<(), Error> {
    query(
        "DELETE FROM sessions WHERE token_hash IN
             (SELECT token_hash FROM sessions WHERE user_id = $1 ORDER BY last_used_at DESC, id DESC LIMIT -1 OFFSET $2)",
    )
    .bind(user_id)
    .bind(most)
    .execute(tx)
    .await?;
    Ok(())
}

/// Notes a use, see [`SignInSession::is_due_to_touch`].
pub async fn touch(tx: &mut Tx<'_>, id: Uuid, now_ms: i64) -> Result<(), Error> {
    let user_id: Option<Uuid> = query_scalar(
        "UPDATE sessions SET last_used_at = $2 WHERE id = $1 AND last_used_at < $2 RETURNING user_id",
    )
    .bind(id)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?;
    match user_id {
        Some(user_id) => users::saw(tx, user_id, now_ms).await,
        None => Ok(()),
    }
}

/// Ends a session of a user; `Error::NotFound` when it is another's or has ended.
pub async fn end(tx: &mut Tx<'_>, user_id: Uuid, id: Uuid) -> Result<(), Error> {
    let ended = query("DELETE FROM sessions WHERE id = $1 AND user_id = $2")
        .bind(id)
        .bind(user_id)
        .execute(tx)
        .await?;
    match ended.rows_affected() {
        0 => Err(Error::NotFound("session")),
        _ => Ok(()),
    }
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
        .execute(tx)
        .await?;
    Ok(())
}

/// Ends a session; one that does not exist any more is fine.
pub async fn delete(tx: &mut Tx<'_>, token_hash: &str) -> Result<(), Error> {
    query("DELETE FROM sessions WHERE token_hash = $1")
        .bind(token_hash)
        .execute(tx)
        .await?;
    Ok(())
}

/// Ends all sessions of a user.
pub async fn delete_of_user(tx: &mut Tx<'_>, user_id: Uuid) -> Result<(), Error> {
    query("DELETE FROM sessions WHERE user_id = $1")
        .bind(user_id)
        .execute(tx)
        .await?;
    Ok(())
}
