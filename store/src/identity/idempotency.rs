//! Rows of `Idempotency-Key`: a repeated request gets the first job or stream again; kept for 24 hours.
//!
//! An account's keys are one set, whatever they refer to.

use uuid::Uuid;

use crate::{
    Error, Tx,
    statement::{query, query_as},
};

/// Time for which a key is kept.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// Deletes keys that have expired by the time `$1`, `$2` at most.
pub(crate) const DELETE_EXPIRED: &str = "DELETE FROM idempotency_keys WHERE (account_id, key) IN (
     SELECT account_id, key FROM idempotency_keys WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)";

/// Client's key with the fingerprint of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// Key of at most 255 characters, checked by the caller.
    pub key: String,
    /// SHA-256 of every parameter that determines the result.
    pub fingerprint: [u8; 32],
}

/// Result that a key refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdempotentResult {
    Job(Uuid),
    Stream(Uuid),
}

impl IdempotentResult {
    pub(crate) fn job(self) -> Option<Uuid> {
        match self {
            Self::Job(id) => Some(id),
            Self::Stream(_) => None,
        }
    }

    pub(crate) fn stream(self) -> Option<Uuid> {
        match self {
            Self::Stream(id) => Some(id),
            Self::Job(_) => None,
        }
    }
}

/// Returns the id that the key refers to, of the kind that `of` reads. `Error::Conflict` when the key was used with
/// other parameters.
pub(crate) async fn find(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    wanted: &Idempotency,
    of: fn(IdempotentResult) -> Option<Uuid>,
    now_ms: i64,
) -> Result<Option<Uuid>, Error> {
    let kept: Option<(Vec<u8>, Option<Uuid>, Option<Uuid>)> = query_as(
        "SELECT fingerprint, job_id, stream_id FROM idempotency_keys
         WHERE account_id = $1 AND key = $2 AND expires_at > $3",
    )
    .bind(account_id)
    .bind(&wanted.key)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?;
    match kept {
        None => Ok(None),
        Some((fingerprint, ..)) if fingerprint != wanted.fingerprint => Err(used_otherwise()),
        Some((_, job, stream)) => job
            .map(IdempotentResult::Job)
            .or(stream.map(IdempotentResult::Stream))
            .map(|made| of(made).ok_or_else(used_otherwise))
            .transpose(),
    }
}

fn used_otherwise() -> Error {
    Error::Conflict(
        "this Idempotency-Key was used with other parameters or files: choose a new key".into(),
    )
}

/// Binds the key to a result, replacing an expired key.
pub(crate) async fn remember(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    wanted: &Idempotency,
    made: IdempotentResult,
    now_ms: i64,
) -> Result<(), Error> {
    query(
        "INSERT INTO idempotency_keys (account_id, key, fingerprint, job_id, stream_id, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (account_id, key) DO UPDATE
             SET fingerprint = excluded.fingerprint, job_id = excluded.job_id, stream_id = excluded.stream_id,
                 expires_at = excluded.expires_at",
    )
    .bind(account_id)
    .bind(&wanted.key)
    .bind(wanted.fingerprint.to_vec())
    .bind(made.job())
    .bind(made.stream())
    .bind(now_ms + KEPT_MS)
    .execute(tx)
    .await?;
    Ok(())
}
