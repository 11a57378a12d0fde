//! How much each account stores: sums that every change of a file keeps.

use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Connection, Error, Tx};

/// What an account stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub files: u64,
    pub bytes: u64,
}

pub async fn totals(db: &mut impl Connection, account_id: Uuid) -> Result<Totals, Error> {
    let sums: Option<(i64, i64)> =
        query_as("SELECT files, bytes FROM storage_totals WHERE account_id = $1")
            .bind(account_id)
            .fetch_optional(db.sqlite())
            .await?;
    Ok(sums.map_or_else(Totals::default, |(files, bytes)| Totals {
        files: files.unsigned_abs(),
        bytes: bytes.unsigned_abs(),
    }))
}

/// `Error::OverQuota` when `more_bytes` beside what is stored exceed the limit; 0 is no limit.
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

/// How many more bytes may be stored; all there are when the limit is 0, which is none.
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

/// Adds to the sums, or takes from them.
pub(crate) async fn add(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    files: i64,
    bytes: i64,
) -> Result<(), Error> {
    query(
        "INSERT INTO storage_totals (account_id, files, bytes) VALUES ($1, $2, $3)
         ON CONFLICT (account_id) DO UPDATE SET files = files + excluded.files, bytes = bytes + excluded.bytes",
    )
    .bind(account_id)
    .bind(files)
    .bind(bytes)
    .execute(tx.sqlite())
    .await?;
    Ok(())
}
