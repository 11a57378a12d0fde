//! What the janitor takes away: results after their time, and old jobs.

use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{
    Error, Tx,
    lineage::{self, Derived, DerivedKind},
};

/// Lets go of the results of at most `limit` jobs whose downloads have expired; returns how many jobs. Their blobs are
/// swept, once nothing else names them.
pub(crate) async fn expire_results(tx: &mut Tx<'_>, now_ms: i64, limit: u32) -> Result<u64, Error> {
    let expired: Vec<(Uuid,)> = query_as(
        "UPDATE jobs SET expires_at = NULL, archive_blob = NULL WHERE id IN (
             SELECT id FROM jobs WHERE expires_at <= $1 LIMIT $2) RETURNING id",
    )
    .bind(now_ms)
    .bind(limit)
    .fetch_all(tx.sqlite())
    .await?;
    for (job_id,) in &expired {
        forget_results(tx, *job_id).await?;
    }
    Ok(expired.len() as u64)
}

async fn forget_results(tx: &mut Tx<'_>, job_id: Uuid) -> Result<(), Error> {
    let gone: Vec<(Uuid,)> = query_as(
        "UPDATE job_files SET result_blob = NULL WHERE job_id = $1 AND result_blob IS NOT NULL RETURNING id",
    )
    .bind(job_id)
    .fetch_all(tx.sqlite())
    .await?;
    for (id,) in gone {
        let result = Derived {
            kind: DerivedKind::Conversion,
            id: id.to_string(),
        };
        lineage::forget(tx, &result).await?;
    }
    Ok(())
}

/// Deletes at most `limit` jobs that ended before a time, and returns how many.
pub(crate) async fn delete_ended_before(
    tx: &mut Tx<'_>,
    ended_before: i64,
    limit: u32,
) -> Result<u64, Error> {
    let deleted = query(
        "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE completed_at < $1 LIMIT $2)",
    )
    .bind(ended_before)
    .bind(limit)
    .execute(tx.sqlite())
    .await?;
    Ok(deleted.rows_affected())
}
