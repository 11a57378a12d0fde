//! Sweeps of jobs: deletes results after their `expires_at`, and old jobs.

use uuid::Uuid;

use crate::{
    Error, Tx,
    lineage::{self, Derived, DerivedKind},
    statement::{query, query_scalar},
};

// Without an order PostgreSQL expects a job at the first look, and reads all of them when there is none.
const EXPIRED: &str = "SELECT id FROM jobs WHERE expires_at <= $1 ORDER BY expires_at LIMIT 1";
const ENDED_BEFORE: &str =
    "SELECT id FROM jobs WHERE completed_at < $1 ORDER BY completed_at LIMIT 1";

/// Deletes the results of jobs whose downloads have expired, at most `limit` rows of files and jobs together; returns
/// how many. Their blobs are swept, once nothing else names them.
pub(crate) async fn expire_results(tx: &mut Tx<'_>, now_ms: i64, limit: u32) -> Result<u64, Error> {
    let mut left = u64::from(limit);
    while left > 0 {
        let expired = query_scalar(EXPIRED)
            .bind(now_ms)
            .fetch_optional(tx)
            .await?;
        let Some(job_id) = expired else {
            break;
        };
        left -= forget_results(tx, job_id, left).await?;
        if left > 0 {
            query("UPDATE jobs SET expires_at = NULL, archive_blob = NULL WHERE id = $1")
                .bind(job_id)
                .execute(tx)
                .await?;
            left -= 1;
        }
    }
    Ok(u64::from(limit) - left)
}

/// Deletes at most `limit` of a job's results; a job may have thousands.
async fn forget_results(tx: &mut Tx<'_>, job_id: Uuid, limit: u64) -> Result<u64, Error> {
    let gone: Vec<Uuid> = query_scalar(
        "UPDATE job_files SET result_blob = NULL, attachment_blob = NULL WHERE id IN (
             SELECT id FROM job_files WHERE job_id = $1 AND result_blob IS NOT NULL LIMIT $2) RETURNING id",
    )
    .bind(job_id)
    .bind(i64::try_from(limit).unwrap_or(i64::MAX))
    .fetch_all(tx)
    .await?;
    for id in &gone {
        let result = Derived {
            kind: DerivedKind::Conversion,
            id: id.to_string(),
        };
        lineage::forget(tx, &result).await?;
    }
    Ok(gone.len() as u64)
}

/// Deletes jobs that ended before a time, at most `limit` rows of files and jobs together; returns how many.
pub(crate) async fn delete_ended_before(
    tx: &mut Tx<'_>,
    ended_before: i64,
    limit: u32,
) -> Result<u64, Error> {
    let mut left = u64::from(limit);
    while left > 0 {
        let old: Option<Uuid> = query_scalar(ENDED_BEFORE)
            .bind(ended_before)
            .fetch_optional(tx)
            .await?;
        let Some(job_id) = old else {
            break;
        };
        let deleted = query(
            "DELETE FROM job_files WHERE id IN (SELECT id FROM job_files WHERE job_id = $1 LIMIT $2)",
        )
        .bind(job_id)
        .bind(i64::try_from(left).unwrap_or(i64::MAX))
        .execute(tx)
        .await?;
        left -= deleted.rows_affected();
        if left > 0 {
            query("DELETE FROM jobs WHERE id = $1")
                .bind(job_id)
                .execute(tx)
                .await?;
            left -= 1;
        }
    }
    Ok(u64::from(limit) - left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, StoreSettings, accounts};

    /// Two jobs with three results each, of the account and the blob that exist.
    const ROWS: &str = "
        INSERT INTO jobs (id, account_id, job_type, tool, state, lane, saves, archives, allowance, month, total_files,
                created_at, completed_at, expires_at)
            SELECT unhex('0000000000000000000000000000000' || column1), id, 'convert', 'convert', 'completed', 1, FALSE, FALSE,
                '{}', 202611, 3, 0, 5, 5
            FROM accounts, (VALUES (1), (2)) numbers;
        INSERT INTO job_files (id, job_id, position, operation, operations, state, original_name, original_size,
                result_blob)
            SELECT unhex(substr(hex(jobs.id), 2) || column1), jobs.id, column1, '{}', 1, 'completed', 'a', 0, hash
            FROM jobs, blobs, (VALUES (1), (2), (3)) numbers;";

    #[tokio::test]
    async fn a_turn_counts_the_files_of_jobs_too() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::without_reserve(folder.path());
        let store = Store::open(&settings).await.unwrap();
        let turns = store.write(|tx| {
            Box::pin(async move {
                accounts::create(tx, "a", 0).await?;
                query(
                    "INSERT INTO blobs (hash, size_bytes, crc32, created_at) VALUES ($1, 0, 0, 0)",
                )
                .bind(&[0_u8; 32][..])
                .execute(tx)
                .await?;
                crate::statement::script(tx, ROWS).await?;
                let mut turns = Vec::new();
                for _ in 0..4 {
                    turns.push(expire_results(tx, 5, 3).await?);
                }
                for _ in 0..4 {
                    turns.push(delete_ended_before(tx, 6, 3).await?);
                }
                Ok(turns)
            })
        });
        assert_eq!(turns.await.unwrap(), [3, 3, 2, 0, 3, 3, 2, 0]);
    }
}
