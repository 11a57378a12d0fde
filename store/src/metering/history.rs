//! Usage by day: media operations by kind, deliveries by key; kept for 400 days ([`KEPT_DAYS`]).

use uuid::Uuid;

use super::deliveries::Day;
use crate::{
    Connection, Error, Tx, rows,
    statement::{query, query_as},
};

/// Days that are kept, the present one included.
pub const KEPT_DAYS: i64 = 400;

/// Operations of a day and a kind.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct OperationDay {
    /// Days since 1970 (UTC).
    pub day: i64,
    pub kind: String,
    pub operations: i64,
}

/// Deliveries of a day under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct KeyDay {
    pub account_id: Uuid,
    pub key_id: Uuid,
    #[sqlx(flatten)]
    pub day: Day,
}

/// Deliveries under a key in some days.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct KeyTotal {
    pub key_id: Uuid,
    pub name: String,
    pub is_revoked: bool,
    pub hits: i64,
    pub misses: i64,
    pub bytes: i64,
}

/// Operations from the day `since` on, by day and kind.
pub async fn operation_days(
    db: &mut impl Connection,
    account_id: Uuid,
    since: i64,
) -> Result<Vec<OperationDay>, Error> {
    Ok(query_as(
        "SELECT day, kind, operations FROM operation_days WHERE account_id = $1 AND day >= $2 AND operations > 0
         ORDER BY day, kind",
    )
    .bind(account_id)
    .bind(since)
    .fetch_all(db)
    .await?)
}

/// Adds to the days of keys.
pub async fn add_to_key_days(tx: &mut Tx<'_>, days: &[KeyDay]) -> Result<(), Error> {
    for KeyDay {
        account_id,
        key_id,
        day,
    } in days
    {
        query(
            "INSERT INTO delivery_key_days (account_id, day, key_id, hits, misses, bytes) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (account_id, day, key_id) DO UPDATE SET hits = delivery_key_days.hits + $4,
                 misses = delivery_key_days.misses + $5, bytes = delivery_key_days.bytes + $6",
        )
        .bind(account_id)
        .bind(day.day)
        .bind(key_id)
        .bind(day.hits)
        .bind(day.misses)
        .bind(day.bytes)
        .execute(tx)
        .await?;
    }
    Ok(())
}

/// The keys with deliveries from the day `since` on, or `key` alone, those with the most first, at most `most`.
pub async fn key_totals(
    db: &mut impl Connection,
    account_id: Uuid,
    since: i64,
    key: Option<Uuid>,
    most: u32,
) -> Result<Vec<KeyTotal>, Error> {
    Ok(query_as(
        "SELECT k.id AS key_id, k.name, k.revoked_at IS NOT NULL AS is_revoked, d.hits, d.misses, d.bytes
         FROM (SELECT key_id, CAST(sum(hits) AS INTEGER) AS hits, CAST(sum(misses) AS INTEGER) AS misses,
                   CAST(sum(bytes) AS INTEGER) AS bytes FROM delivery_key_days
               WHERE account_id = $1 AND day >= $2 AND ($3 IS NULL OR key_id = $3) GROUP BY key_id) d
         CROSS JOIN delivery_keys k ON k.id = d.key_id
         ORDER BY d.hits + d.misses DESC, k.id LIMIT $4",
    )
    .bind(account_id)
    .bind(since)
    .bind(key)
    .bind(most)
    .fetch_all(db)
    .await?)
}

/// The days of some keys from the day `since` on, oldest first.
pub async fn key_days(
    db: &mut impl Connection,
    account_id: Uuid,
    since: i64,
    keys: &[Uuid],
) -> Result<Vec<KeyDay>, Error> {
    Ok(query_as(
        "SELECT account_id, key_id, day, hits, misses, bytes FROM delivery_key_days
         WHERE account_id = $1 AND day >= $2 AND key_id IN (SELECT unhex(value) FROM json_each($3)) ORDER BY day",
    )
    .bind(account_id)
    .bind(since)
    .bind(rows::ids(keys)?)
    .fetch_all(db)
    .await?)
}

/// Drops the days before `day`.
pub async fn forget_before(tx: &mut Tx<'_>, day: i64) -> Result<(), Error> {
    for statement in [
        "DELETE FROM operation_days WHERE day < $1",
        "DELETE FROM delivery_key_days WHERE day < $1",
    ] {
        query(statement).bind(day).execute(tx).await?;
    }
    Ok(())
}
