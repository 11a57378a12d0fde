//! Rows of delivery keys: create, patch, list, revoke; length and characters of their `alias`. They are public,
//! read-only credentials that are part of the address of a delivered image.
//!
//! Only hash and prefix are stored; the token of a new key is derived from its id, so that it can be shown again. A revoked
//! key releases its alias, so that the next key can have it.

use uuid::Uuid;

use crate::{
    Connection, Error, Page, Secret, Tx, credentials,
    derived::DerivedTokens,
    page,
    statement::{query, query_as, query_scalar},
};

/// Characters of an alias.
const ALIAS_LENGTH: std::ops::RangeInclusive<usize> = 3..=63;

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct DeliveryKey {
    pub id: Uuid,
    pub account_id: Uuid,
    pub name: String,
    pub delivery_alias: Option<String>,
    /// True when the key delivers presets only.
    pub presets_only: bool,
    /// SHA-256, hexadecimal.
    pub key_hash: String,
    pub key_prefix: String,
    pub created_at: i64,
    /// Exact to some minutes.
    pub last_used_at: Option<i64>,
    pub revoked_at: Option<i64>,
}

/// A key to be made.
#[derive(Clone, Debug, Default)]
pub struct NewDeliveryKey {
    pub name: String,
    pub alias: Option<String>,
    pub presets_only: bool,
}

/// Changes of a key; `None` leaves a field as it is.
#[derive(Clone, Debug, Default)]
pub struct DeliveryKeyPatch {
    pub name: Option<String>,
    /// `Some(None)` gives the alias up.
    pub alias: Option<Option<String>>,
    pub presets_only: Option<bool>,
}

impl DeliveryKey {
    /// The key in plain; `None` for one that was made before keys were derived, whose hash fits no derived token.
    pub fn token(&self, tokens: &DerivedTokens) -> Option<Secret> {
        let token = tokens.delivery_token(self.id);
        let is_derived = credentials::same(&credentials::hash(token.expose()), &self.key_hash);
        is_derived.then_some(token)
    }
}

/// Rejects an alias that is not 3 to 63 of `a-z 0-9 _ -`, or that could be mistaken for a key.
pub fn check_alias(alias: &str) -> Result<(), Error> {
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    if !ALIAS_LENGTH.contains(&alias.len()) || !alias.bytes().all(is_plain) {
        return Err(Error::Invalid(
            "alias must be 3 to 63 of a-z, 0-9, _ and -".into(),
        ));
    }
    if alias.starts_with("svc_") {
        return Err(Error::Invalid("alias must not begin with svc_".into()));
    }
    Ok(())
}

/// Makes a key and returns it in plain. `Error::Conflict` when the alias is taken.
pub async fn create(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    new: NewDeliveryKey,
    now_ms: i64,
) -> Result<(DeliveryKey, Secret), Error> {
    if let Some(alias) = &new.alias {
        check_alias(alias)?;
    }
    let id = Uuid::now_v7();
    let token = DerivedTokens::of(tx).await?.delivery_token(id);
    let key: Option<DeliveryKey> = query_as(
        "INSERT INTO delivery_keys (id, account_id, name, delivery_alias, presets_only, key_hash, key_prefix, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (delivery_alias) DO NOTHING RETURNING *",
    )
    .bind(id)
    .bind(account_id)
    .bind(new.name)
    .bind(&new.alias)
    .bind(new.presets_only)
    .bind(credentials::hash(token.expose()))
    .bind(credentials::prefix(token.expose()))
    .bind(now_ms)
    .fetch_optional(tx)
    .await?;
    match key {
        Some(key) => Ok((key, token)),
        None => Err(alias_taken(new.alias)),
    }
}

fn alias_taken(alias: Option<String>) -> Error {
    Error::Conflict(format!("the alias {} is taken", alias.unwrap_or_default()))
}

/// Changes a key that is not revoked. `Error::Conflict` when the alias is taken.
pub async fn patch(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    patch: DeliveryKeyPatch,
) -> Result<DeliveryKey, Error> {
    let DeliveryKeyPatch {
        name,
        alias,
        presets_only,
    } = patch;
    let present: DeliveryKey = query_as(
        "SELECT * FROM delivery_keys WHERE id = $1 AND account_id = $2 AND revoked_at IS NULL",
    )
    .bind(id)
    .bind(account_id)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("delivery key"))?;
    let alias = alias.unwrap_or(present.delivery_alias);
    if let Some(alias) = &alias {
        check_alias(alias)?;
    }
    query_as(
        "UPDATE delivery_keys SET name = $2, delivery_alias = $3, presets_only = $4
         WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM delivery_keys other WHERE other.delivery_alias = $3 AND other.id <> $1)
         RETURNING *",
    )
    .bind(id)
    .bind(name.unwrap_or(present.name))
    .bind(&alias)
    .bind(presets_only.unwrap_or(present.presets_only))
    .fetch_optional(tx)
    .await?
    .ok_or_else(|| alias_taken(alias))
}

/// The account's keys that are not revoked, newest first.
pub async fn list(
    db: &mut impl Connection,
    account_id: Uuid,
    page: Page,
) -> Result<Vec<DeliveryKey>, Error> {
    let query = query_as(
        "SELECT * FROM delivery_keys WHERE account_id = $1 AND revoked_at IS NULL AND (created_at, id) < ($2, $3)
         ORDER BY created_at DESC, id DESC LIMIT $4",
    )
    .bind(account_id);
    page.read(query, db).await
}

/// Every key of every account that is not revoked, for the start of the service; read in pages.
pub async fn all(db: &mut impl Connection) -> Result<Vec<DeliveryKey>, Error> {
    page::all(
        db,
        "SELECT * FROM delivery_keys WHERE id > $1 AND revoked_at IS NULL ORDER BY id LIMIT $2",
    )
    .await
}

/// Returns a key of any account, for image delivery; `None` also for one that is revoked.
pub async fn by_id(db: &mut impl Connection, id: Uuid) -> Result<Option<DeliveryKey>, Error> {
    Ok(
        query_as("SELECT * FROM delivery_keys WHERE id = $1 AND revoked_at IS NULL")
            .bind(id)
            .fetch_optional(db)
            .await?,
    )
}

/// Returns whether a new key could have the alias. `Error::Invalid` for a text that is no alias.
pub async fn is_alias_free(db: &mut impl Connection, alias: &str) -> Result<bool, Error> {
    check_alias(alias)?;
    Ok(
        query_scalar("SELECT count(*) = 0 FROM delivery_keys WHERE delivery_alias = $1")
            .bind(alias)
            .fetch_one(db)
            .await?,
    )
}

/// Revokes a key at once; `Error::NotFound` when it is not the account's or revoked already.
pub async fn revoke(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    now_ms: i64,
) -> Result<DeliveryKey, Error> {
    query_as(
        "UPDATE delivery_keys SET revoked_at = $3, delivery_alias = NULL
         WHERE id = $1 AND account_id = $2 AND revoked_at IS NULL RETURNING *",
    )
    .bind(id)
    .bind(account_id)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("delivery key"))
}

/// Notes when keys were last used: `(id, time)`.
pub async fn touch(tx: &mut Tx<'_>, uses: &[(Uuid, i64)]) -> Result<(), Error> {
    for (id, used_at) in uses {
        query("UPDATE delivery_keys SET last_used_at = max(coalesce(last_used_at, 0), $2) WHERE id = $1")
            .bind(id)
            .bind(used_at)
            .execute(tx)
            .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_plain_and_no_key() {
        let long = "a".repeat(64);
        for (alias, expected) in [
            ("", false),
            ("ab", false),
            ("abc", true),
            ("my-shop_2", true),
            (&long[1..], true),
            (&long, false),
            ("Shop", false),
            ("a b", false),
            ("äbc", false),
            ("a/b", false),
            ("svc_pub_x", false),
        ] {
            assert_eq!(check_alias(alias).is_ok(), expected, "{alias}");
        }
    }
}
