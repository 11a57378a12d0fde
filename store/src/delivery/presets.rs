//! Rows of presets, named sets of image delivery parameters: create, list, patch, delete; at most 1 000 for an account.
//! `params` is a canonical query string; its meaning is `media`'s.

use uuid::Uuid;

use crate::{
    Connection, Error, Tx, page,
    statement::{query_as, query_scalar},
};

/// Presets of one account: a bound on the service's memory.
const MOST_PRESETS: i64 = 1_000;

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Preset {
    pub id: Uuid,
    pub account_id: Uuid,
    /// Unique in the account.
    pub name: String,
    pub params: String,
    pub created_at: i64,
    pub updated_at: i64,
}

/// Creates a preset. `Error::Conflict` when the account has one of that name, or too many.
pub async fn create(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    name: &str,
    params: &str,
    now_ms: i64,
) -> Result<Preset, Error> {
    let count: i64 = query_scalar("SELECT count(*) FROM cdn_presets WHERE account_id = $1")
        .bind(account_id)
        .fetch_one(tx)
        .await?;
    if count >= MOST_PRESETS {
        return Err(Error::Conflict(format!(
            "an account has at most {MOST_PRESETS} presets: delete one first"
        )));
    }
    query_as(
        "INSERT INTO cdn_presets (id, account_id, name, params, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5)
         ON CONFLICT (account_id, name) DO NOTHING RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(account_id)
    .bind(name)
    .bind(params)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?
    .ok_or_else(|| taken(name))
}

/// Returns a preset; `Error::NotFound` for an unknown id and for another account's.
pub async fn get(db: &mut impl Connection, account_id: Uuid, id: Uuid) -> Result<Preset, Error> {
    query_as("SELECT * FROM cdn_presets WHERE id = $1 AND account_id = $2")
        .bind(id)
        .bind(account_id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("preset"))
}

/// Returns a preset of any account, for image delivery.
pub async fn by_id(db: &mut impl Connection, id: Uuid) -> Result<Option<Preset>, Error> {
    Ok(query_as("SELECT * FROM cdn_presets WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?)
}

/// The account's presets, newest first; there are at most 1 000.
pub async fn list(db: &mut impl Connection, account_id: Uuid) -> Result<Vec<Preset>, Error> {
    let presets = query_as(
        "SELECT * FROM cdn_presets WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2",
    )
    .bind(account_id)
    .bind(MOST_PRESETS)
    .fetch_all(db)
    .await?;
    Ok(presets)
}

/// Every preset of every account, for the start of the service; read in pages.
pub async fn all(db: &mut impl Connection) -> Result<Vec<Preset>, Error> {
    page::all(
        db,
        "SELECT * FROM cdn_presets WHERE id > $1 ORDER BY id LIMIT $2",
    )
    .await
}

/// Changes the given fields; `Error::Conflict` when another preset has the name.
pub async fn patch(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    name: Option<String>,
    params: Option<String>,
    now_ms: i64,
) -> Result<Preset, Error> {
    if let Some(name) = &name {
        let other: Option<Preset> =
            query_as("SELECT * FROM cdn_presets WHERE account_id = $1 AND name = $2 AND id <> $3")
                .bind(account_id)
                .bind(name)
                .bind(id)
                .fetch_optional(tx)
                .await?;
        if other.is_some() {
            return Err(taken(name));
        }
    }
    query_as(
        "UPDATE cdn_presets SET name = coalesce($3, name), params = coalesce($4, params), updated_at = $5
         WHERE id = $1 AND account_id = $2 RETURNING *",
    )
    .bind(id)
    .bind(account_id)
    .bind(name)
    .bind(params)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("preset"))
}

/// Deletes the preset, and returns its row.
pub async fn delete(tx: &mut Tx<'_>, account_id: Uuid, id: Uuid) -> Result<Preset, Error> {
    query_as("DELETE FROM cdn_presets WHERE id = $1 AND account_id = $2 RETURNING *")
        .bind(id)
        .bind(account_id)
        .fetch_optional(tx)
        .await?
        .ok_or(Error::NotFound("preset"))
}

fn taken(name: &str) -> Error {
    Error::Conflict(format!("there is a preset {name} already"))
}
