//! Rows of API keys: create, authenticate, list, revoke; scopes `read`, `write`, `admin`; `last_used_at`. Only hash and
//! prefix are stored, the key itself is shown once.

use uuid::Uuid;

use crate::{
    Connection, Error, Page, Secret, Tx, credentials,
    statement::{query, query_as, query_scalar},
};

/// Precision of `last_used_at`: a write for every request would be wasted.
const LAST_USED_GRAIN_MS: i64 = 5 * 60 * 1000;

text_enum! {
    /// Access that a key grants; each scope includes the ones before it.
    #[derive(PartialOrd, Ord)]
    pub enum Scope {
        Read = "read",
        Write = "write",
        Admin = "admin",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct ApiKey {
    pub id: Uuid,
    pub account_id: Uuid,
    pub name: String,
    pub scope: Scope,
    pub key_hash: String,
    pub key_prefix: String,
    pub created_at: i64,
    /// Exact to five minutes.
    pub last_used_at: Option<i64>,
    pub revoked_at: Option<i64>,
}

impl ApiKey {
    /// Returns whether the recorded last use is old enough for a [`touch`].
    pub fn is_due_to_touch(&self, now_ms: i64) -> bool {
        self.last_used_at
            .is_none_or(|last| last + LAST_USED_GRAIN_MS <= now_ms)
    }
}

/// Makes a key and returns it in plain, for the only time.
pub async fn create(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    name: &str,
    scope: Scope,
    now_ms: i64,
) -> Result<(ApiKey, Secret), Error> {
    let token = credentials::api_key();
    let key = create_from(tx, account_id, name, scope, &token, now_ms).await?;
    Ok((key, token))
}

/// Stores a key that the operator chose. `Error::Invalid` when it has not the form of one, `Error::Conflict` when it is stored.
pub async fn create_from(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    name: &str,
    scope: Scope,
    token: &Secret,
    now_ms: i64,
) -> Result<ApiKey, Error> {
    if !credentials::is_api_key(token.expose()) {
        return Err(Error::Invalid(
            "API key: expected svc_ and 43 letters or digits".into(),
        ));
    }
    query_as(
        "INSERT INTO api_keys (id, account_id, name, scope, key_hash, key_prefix, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (key_hash) DO NOTHING RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(account_id)
    .bind(name)
    .bind(scope)
    .bind(credentials::hash(token.expose()))
    .bind(credentials::prefix(token.expose()))
    .bind(now_ms)
    .fetch_optional(tx)
    .await?
    .ok_or_else(|| Error::Conflict("this API key is stored already".into()))
}

/// The key of a token; `None` when it is malformed, unknown or revoked.
pub async fn authenticate(db: &mut impl Connection, token: &str) -> Result<Option<ApiKey>, Error> {
    if !credentials::is_api_key(token) {
        return Ok(None);
    }
    let hash = credentials::hash(token);
    let key: Option<ApiKey> =
        query_as("SELECT * FROM api_keys WHERE key_hash = $1 AND revoked_at IS NULL")
            .bind(&hash)
            .fetch_optional(db)
            .await?;
    Ok(key.filter(|key| credentials::same(&key.key_hash, &hash)))
}

/// Returns whether a key that was authenticated before is still valid.
pub async fn is_in_force(db: &mut impl Connection, id: Uuid) -> Result<bool, Error> {
    Ok(
        query_scalar("SELECT EXISTS (SELECT 1 FROM api_keys WHERE id = $1 AND revoked_at IS NULL)")
            .bind(id)
            .fetch_one(db)
            .await?,
    )
}

/// The account's keys that are not revoked, newest first.
pub async fn list(
    db: &mut impl Connection,
    account_id: Uuid,
    page: Page,
) -> Result<Vec<ApiKey>, Error> {
    let query = query_as(
        "SELECT * FROM api_keys WHERE account_id = $1 AND revoked_at IS NULL AND (created_at, id) < ($2, $3)
         ORDER BY created_at DESC, id DESC LIMIT $4",
    )
    .bind(account_id);
    page.read(query, db).await
}

/// All keys that are not revoked, of one account or of all, newest first.
pub async fn all(db: &mut impl Connection, account_id: Option<Uuid>) -> Result<Vec<ApiKey>, Error> {
    let keys = query_as(
        "SELECT * FROM api_keys WHERE revoked_at IS NULL AND ($1 IS NULL OR account_id = $1)
         ORDER BY created_at DESC, id DESC",
    )
    .bind(account_id)
    .fetch_all(db)
    .await?;
    Ok(keys)
}

/// Revokes a key at once; `Error::NotFound` when it is not the account's or revoked already.
pub async fn revoke(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    now_ms: i64,
) -> Result<ApiKey, Error> {
    query_as("UPDATE api_keys SET revoked_at = $3 WHERE id = $1 AND account_id = $2 AND revoked_at IS NULL RETURNING *")
        .bind(id)
        .bind(account_id)
        .bind(now_ms)
        .fetch_optional(tx)
        .await?
        .ok_or(Error::NotFound("API key"))
}

/// Notes a use, see [`ApiKey::is_due_to_touch`].
pub async fn touch(tx: &mut Tx<'_>, id: Uuid, now_ms: i64) -> Result<(), Error> {
    query("UPDATE api_keys SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)")
        .bind(id)
        .bind(now_ms)
        .execute(tx)
        .await?;
    Ok(())
}
