//! Lineage of files: sources and operation of each derived object, products of a file.

use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{
    Connection, Error, Tx,
    rows::Json,
    rows::JsonText,
    statement::{query, query_as},
};

text_enum! {
    /// Kinds of objects that are made from files.
    pub enum DerivedKind {
        /// A stored file.
        File = "file",
        /// A result that can be downloaded for a day.
        Conversion = "conversion",
        /// A video stream.
        Rendition = "rendition",
        /// The output of a workflow run; its id is the run's.
        RunOutput = "run_output",
    }
}

/// An object that was made from a file.
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
    #[sqlx(try_from = "JsonText")]
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
    .execute(tx)
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
    .fetch_all(db)
    .await?;
    Ok(rows)
}

/// A file as lineage shows it.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct FileSummary {
    pub id: Uuid,
    pub filename: String,
    pub mime_type: String,
    pub size_bytes: i64,
}

/// One origin of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// `None`: it was never stored, or is deleted.
    pub file: Option<FileSummary>,
    pub operation: Value,
    pub created_at: i64,
}

/// One object that was made from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    pub kind: DerivedKind,
    /// Unique within its kind.
    pub id: String,
    /// `None` for other kinds than [`DerivedKind::File`].
    pub file: Option<FileSummary>,
    pub operation: Value,
    pub created_at: i64,
}

/// A row of lineage with the file on its other side, if there is one.
#[derive(FromRow)]
struct Joined {
    derived_kind: DerivedKind,
    derived_id: String,
    #[sqlx(try_from = "JsonText")]
    operation: Value,
    lineage_at: i64,
    file_id: Option<Uuid>,
    filename: Option<String>,
    mime_type: Option<String>,
    size_bytes: Option<i64>,
}

impl Joined {
    fn file(&mut self) -> Option<FileSummary> {
        Some(FileSummary {
            id: self.file_id?,
            filename: self.filename.take()?,
            mime_type: self.mime_type.take()?,
            size_bytes: self.size_bytes?,
        })
    }
}

/// Returns the sources of a file, in the order in which they were noted, at most `limit`.
pub async fn sources(
    db: &mut impl Connection,
    file_id: Uuid,
    limit: u32,
) -> Result<Vec<Source>, Error> {
    let derived = Derived::file(file_id);
    let rows: Vec<Joined> = query_as(
        "SELECT l.derived_kind, l.derived_id, l.operation, l.created_at AS lineage_at,
             f.id AS file_id, f.filename, f.mime_type, f.size_bytes
         FROM lineage l LEFT JOIN files f ON f.id = l.source_file_id
         WHERE l.derived_kind = $1 AND l.derived_id = $2 ORDER BY l.rowid LIMIT $3",
    )
    .bind(derived.kind)
    .bind(derived.id)
    .bind(limit)
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|mut row| Source {
            file: row.file(),
            operation: row.operation,
            created_at: row.lineage_at,
        })
        .collect())
}

/// Returns the objects that were made from a file and still exist, oldest first: at most `limit`, after the first
/// `offset`.
pub async fn products(
    db: &mut impl Connection,
    file_id: Uuid,
    limit: u32,
    offset: u32,
) -> Result<Vec<Product>, Error> {
    // Ids of files are bytes in `files` and text here.
    let rows: Vec<Joined> = query_as(
        "SELECT l.derived_kind, l.derived_id, l.operation, l.created_at AS lineage_at,
             f.id AS file_id, f.filename, f.mime_type, f.size_bytes
         FROM lineage l LEFT JOIN files f
             ON l.derived_kind = 'file' AND f.id = unhex(replace(l.derived_id, '-', ''))
         WHERE l.source_file_id = $1 ORDER BY l.rowid LIMIT $2 OFFSET $3",
    )
    .bind(file_id)
    .bind(limit)
    .bind(offset)
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|mut row| Product {
            file: row.file(),
            kind: row.derived_kind,
            id: row.derived_id,
            operation: row.operation,
            created_at: row.lineage_at,
        })
        .collect())
}

/// Counts the objects that were made from a file and still exist.
pub async fn count_products(db: &mut impl Connection, file_id: Uuid) -> Result<u64, Error> {
    let (count,): (i64,) = query_as("SELECT count(*) FROM lineage WHERE source_file_id = $1")
        .bind(file_id)
        .fetch_one(db)
        .await?;
    Ok(count as u64)
}

/// Deletes the lineage of a derived object that was deleted.
pub async fn forget(tx: &mut Tx<'_>, derived: &Derived) -> Result<(), Error> {
    query("DELETE FROM lineage WHERE derived_kind = $1 AND derived_id = $2")
        .bind(derived.kind)
        .bind(&derived.id)
        .execute(tx)
        .await?;
    Ok(())
}
