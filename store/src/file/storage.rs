//! Storage used by an account (`files`, `bytes`), and the check of its plan's storage limit, with bytes held by
//! unfinished uploads. Every change of a file updates the sums.

use uuid::Uuid;

use crate::{
    Connection, Error, Tx,
    statement::{query, query_as, query_scalar},
};

/// Storage used by an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub files: u64,
    pub bytes: u64,
}

pub async fn totals(db: &mut impl Connection, account_id: Uuid) -> Result<Totals, Error> {
    let sums: Option<(i64, i64)> =
        query_as("SELECT files, bytes FROM storage_totals WHERE account_id = $1")
            .bind(account_id)
            .fetch_optional(db)
            .await?;
    Ok(sums.map_or_else(Totals::default, |(files, bytes)| Totals {
        files: files.unsigned_abs(),
        bytes: bytes.unsigned_abs(),
    }))
}

/// Checks the limit. `Error::OverQuota` when `more_bytes` beside the stored ones exceed it; 0 is no limit.
pub async fn check(
    db: &mut impl Connection,
    account_id: Uuid,
    more_bytes: u64,
    limit_bytes: u64,
) -> Result<(), Error> {
    if limit_bytes == 0 {
        return Ok(());
    }
    let used_bytes = totals(db, account_id).await?.bytes;
    match used_bytes.saturating_add(more_bytes) > limit_bytes {
        true => Err(Error::OverQuota {
            used_bytes,
            limit_bytes,
        }),
        false => Ok(()),
    }
}

/// Returns how many more bytes may be stored; without a bound when the limit is 0, which is none.
pub async fn room(
    db: &mut impl Connection,
    account_id: Uuid,
    limit_bytes: u64,
) -> Result<u64, Error> {
    if limit_bytes == 0 {
        return Ok(u64::MAX);
    }
    Ok(limit_bytes.saturating_sub(totals(db, account_id).await?.bytes))
}

/// Checks as [`check`] does, with the bytes that unfinished uploads hold; those of the upload `but` are not counted.
/// Returns how many bytes there is room for, `more_bytes` at least.
pub async fn check_beside_uploads(
    db: &mut impl Connection,
    account_id: Uuid,
    but: Option<Uuid>,
    more_bytes: u64,
    limit_bytes: u64,
    now_ms: i64,
) -> Result<u64, Error> {
    if limit_bytes == 0 {
        return Ok(u64::MAX);
    }
    let stored = totals(db, account_id).await?.bytes;
    let used_bytes = stored.saturating_add(held_by_uploads(db, account_id, but, now_ms).await?);
    match used_bytes.saturating_add(more_bytes) > limit_bytes {
        true => Err(Error::OverQuota {
            used_bytes,
            limit_bytes,
        }),
        false => Ok(limit_bytes - used_bytes),
    }
}

/// Returns the bytes that resumable uploads hold, and the bytes of direct ones that have arrived.
async fn held_by_uploads(
    db: &mut impl Connection,
    account_id: Uuid,
    but: Option<Uuid>,
    now_ms: i64,
) -> Result<u64, Error> {
    let held: i64 = query_scalar(
        "SELECT (SELECT CAST(coalesce(sum(held_bytes), 0) AS INTEGER) FROM tus_uploads
                 WHERE account_id = $1 AND completed_at IS NULL AND expires_at > $2 AND id IS NOT $3)
              + (SELECT CAST(coalesce(sum(size_bytes), 0) AS INTEGER) FROM uploads
                 WHERE account_id = $1 AND state = 'received' AND expires_at > $2 AND id IS NOT $3)",
    )
    .bind(account_id)
    .bind(now_ms)
    .bind(but)
    .fetch_one(db)
    .await?;
    Ok(held.unsigned_abs())
}

/// Adds to the sums, or takes from them.
pub(crate) async fn add(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    files: i64,
    bytes: i64,
) -> Result<(), Error> {
    query(
        "INSERT INTO storage_totals (account_id, files, bytes) VALUES ($1, $2, $3)
         ON CONFLICT (account_id) DO UPDATE SET files = storage_totals.files + excluded.files,
             bytes = storage_totals.bytes + excluded.bytes",
    )
    .bind(account_id)
    .bind(files)
    .bind(bytes)
    .execute(tx)
    .await?;
    Ok(())
}
