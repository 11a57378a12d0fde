//! Lineage of rendered variants: the file each was made from, and its canonical request.
//!
//! The bytes are in the cache, which may drop them at any time; a row without bytes costs one render only.

use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Connection, Error, Tx};

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Variant {
    pub file_id: Uuid,
    /// Name in the cache; 16 bytes.
    pub name: Vec<u8>,
    /// Canonical request with the negotiated format.
    pub request: String,
    pub content_type: String,
    pub bytes: i64,
    pub rendered_at: i64,
}

/// Records variants that were rendered; those of files that are deleted by now are left out.
pub async fn record(tx: &mut Tx<'_>, variants: &[Variant]) -> Result<(), Error> {
    for variant in variants {
        query(
            "INSERT INTO variants (file_id, name, request, content_type, bytes, rendered_at)
             SELECT $1, $2, $3, $4, $5, $6 WHERE EXISTS (SELECT 1 FROM files WHERE id = $1)
             ON CONFLICT (file_id, name) DO UPDATE SET content_type = $4, bytes = $5, rendered_at = $6",
        )
        .bind(variant.file_id)
        .bind(&variant.name)
        .bind(&variant.request)
        .bind(&variant.content_type)
        .bind(variant.bytes)
        .bind(variant.rendered_at)
        .execute(tx.sqlite())
        .await?;
    }
    Ok(())
}

/// Deletes the rows of variants whose bytes the cache dropped: `(file, name)`.
pub async fn forget(tx: &mut Tx<'_>, dropped: &[(Uuid, Vec<u8>)]) -> Result<(), Error> {
    for (file_id, name) in dropped {
        query("DELETE FROM variants WHERE file_id = $1 AND name = $2")
            .bind(file_id)
            .bind(name)
            .execute(tx.sqlite())
            .await?;
    }
    Ok(())
}

/// Deletes the rows of all variants of a file; returns how many there were.
pub async fn forget_file(tx: &mut Tx<'_>, file_id: Uuid) -> Result<u64, Error> {
    Ok(query("DELETE FROM variants WHERE file_id = $1")
        .bind(file_id)
        .execute(tx.sqlite())
        .await?
        .rows_affected())
}

/// The variants made from a file, newest first, at most `limit`.
pub async fn of_file(
    db: &mut impl Connection,
    file_id: Uuid,
    limit: u32,
) -> Result<Vec<Variant>, Error> {
    let variants = query_as(
        "SELECT * FROM variants WHERE file_id = $1 ORDER BY rendered_at DESC, request LIMIT $2",
    )
    .bind(file_id)
    .bind(limit)
    .fetch_all(db.sqlite())
    .await?;
    Ok(variants)
}
