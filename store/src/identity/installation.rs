//! Row of the installation: its random key, from which tokens are derived, and the version of the schema.

use crate::{
    Connection, Error, Tx, credentials,
    statement::{query_as, query_scalar},
};

/// The installation's own secret, made at the first start. Never in Debug output.
#[derive(Clone, sqlx::FromRow)]
pub struct Installation {
    key: Vec<u8>,
    pub created_at: i64,
}

impl Installation {
    /// 32 random bytes.
    pub fn key(&self) -> &[u8] {
        &self.key
    }
}

impl std::fmt::Debug for Installation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Installation")
            .field("created_at", &self.created_at)
            .finish_non_exhaustive()
    }
}

/// The installation's row, made when there is none. [`crate::Store::open`] calls it, so that [`get`] always finds it.
pub async fn get_or_create(tx: &mut Tx<'_>, now_ms: i64) -> Result<Installation, Error> {
    let installation = query_as(
        "INSERT INTO installation (id, key, created_at) VALUES (1, $1, $2)
         ON CONFLICT (id) DO UPDATE SET id = excluded.id RETURNING key, created_at",
    )
    .bind(credentials::random_bytes::<32>().to_vec())
    .bind(now_ms)
    .fetch_one(tx)
    .await?;
    Ok(installation)
}

pub async fn get(db: &mut impl Connection) -> Result<Installation, Error> {
    query_as("SELECT key, created_at FROM installation WHERE id = 1")
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("installation"))
}

/// The number of the last migration that the database has been through.
pub async fn schema_version(db: &mut impl Connection) -> Result<i64, Error> {
    let version: Option<i64> = query_scalar("SELECT max(version) FROM _sqlx_migrations")
        .fetch_one(db)
        .await?;
    Ok(version.unwrap_or(0))
}
