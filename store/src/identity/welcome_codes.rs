//! Welcome codes: with one a user chooses a password and is signed in, once, within 24 hours.
//!
//! Only the hash is stored. A user has one code at most; a new one replaces it, and its use or another password deletes it.

use uuid::Uuid;

use crate::{
    Connection, Error, Secret, Tx, credentials,
    statement::{query, query_scalar},
};

/// Time for which a code can be used.
pub const LIFETIME_MS: i64 = 24 * 60 * 60 * 1000;

/// Makes a code for a user and returns it in plain, for the only time.
pub async fn create(tx: &mut Tx<'_>, user_id: Uuid, now_ms: i64) -> Result<Secret, Error> {
    let code = credentials::welcome_code();
    query(
        "INSERT INTO welcome_codes (user_id, code_hash, expires_at) VALUES ($1, $2, $3)
         ON CONFLICT (user_id) DO UPDATE SET code_hash = excluded.code_hash, expires_at = excluded.expires_at",
    )
    .bind(user_id)
    .bind(hash(code.expose()))
    .bind(now_ms + LIFETIME_MS)
    .execute(tx)
    .await?;
    Ok(code)
}

/// The user of a code as a person typed it; `None` when it is malformed, unknown, used or expired.
pub async fn user_of(
    db: &mut impl Connection,
    code: &Secret,
    now_ms: i64,
) -> Result<Option<Uuid>, Error> {
    let Some(code) = credentials::read_welcome_code(code.expose()) else {
        return Ok(None);
    };
    let user_id =
        query_scalar("SELECT user_id FROM welcome_codes WHERE code_hash = $1 AND expires_at > $2")
            .bind(hash(&code))
            .bind(now_ms)
            .fetch_optional(db)
            .await?;
    Ok(user_id)
}

/// Deletes the code of a user, where there is one.
pub async fn delete_of_user(tx: &mut Tx<'_>, user_id: Uuid) -> Result<(), Error> {
    query("DELETE FROM welcome_codes WHERE user_id = $1")
        .bind(user_id)
        .execute(tx)
        .await?;
    Ok(())
}

/// The hash is looked up and not the code, so that the time of a look-up reveals nothing about codes that exist.
fn hash(code: &str) -> String {
    credentials::hash(&format!("welcome:{code}"))
}
