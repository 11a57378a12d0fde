//! Lineage: source file and operation of each derived object.

use serde_json::Value;
use sqlx::{FromRow, query, query_as, types::Json};
use uuid::Uuid;

use crate::{Connection, Error, Tx};

/// Kinds of objects that are made from files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "TEXT", rename_all = "snake_case")]
pub enum DerivedKind {
    /// A stored file.
    File,
    /// A result that can be downloaded for a day.
    Conversion,
    /// A delivered image.
    Variant,
    Recording,
    Rendition,
    RunOutput,
}

/// Object that was made from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    pub kind: DerivedKind,
    /// Unique within its kind.
    pub id: String,
}

impl Derived {
    pub fn file(id: Uuid) -> Self {
        Self {
            kind: DerivedKind::File,
            id: id.to_string(),
        }
    }
}

/// Source of a derived object.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Lineage {
    pub derived_kind: DerivedKind,
    pub derived_id: String,
    /// `None`: the source was never stored, or is deleted.
    pub source_file_id: Option<Uuid>,
    /// The operation with its fields, as the operation table serialises it.
    #[sqlx(json)]
    pub operation: Value,
    pub created_at: i64,
}

/// Notes one source of a derived object; called once for each source.
pub async fn record(tx: &mut Tx<'_>, lineage: Lineage) -> Result<(), Error> {
    query(
        "INSERT INTO lineage (derived_kind, derived_id, source_file_id, operation, created_at)
         VALUES ($1, $2, (SELECT id FROM files WHERE id = $3), $4, $5)",
    )
    .bind(lineage.derived_kind)
    .bind(lineage.derived_id)
    .bind(lineage.source_file_id)
    .bind(Json(lineage.operation))
    .bind(lineage.created_at)
    .execute(tx.sqlite())
    .await?;
    Ok(())
}

/// Returns the sources of a derived object, in the order in which they were recorded.
pub async fn of(db: &mut impl Connection, derived: &Derived) -> Result<Vec<Lineage>, Error> {
    let rows = query_as(
        "SELECT * FROM lineage WHERE derived_kind = $1 AND derived_id = $2 ORDER BY rowid",
    )
    .bind(derived.kind)
    .bind(&derived.id)
    .fetch_all(db.sqlite())
    .await?;
    Ok(rows)
}

/// Returns the objects that were made from a file, oldest first, at most `limit`.
pub async fn of_source(
    db: &mut impl Connection,
    source_file_id: Uuid,
    limit: u32,
) -> Result<Vec<Lineage>, Error> {
    let rows = query_as("SELECT * FROM lineage WHERE source_file_id = $1 ORDER BY rowid LIMIT $2")
        .bind(source_file_id)
        .bind(limit)
        .fetch_all(db.sqlite())
        .await?;
    Ok(rows)
}

/// Deletes the lineage of a derived object that was deleted.
pub async fn forget(tx: &mut Tx<'_>, derived: &Derived) -> Result<(), Error> {
    query("DELETE FROM lineage WHERE derived_kind = $1 AND derived_id = $2")
        .bind(derived.kind)
        .bind(&derived.id)
        .execute(tx.sqlite())
        .await?;
    Ok(())
}
