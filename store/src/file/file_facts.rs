//! Inspected facts of files, and whether an image can be made of them. The bytes of a file never change, so that they
//! are inspected once.

use std::collections::HashSet;

use serde_json::Value;
use uuid::Uuid;

use crate::{
    Connection, Error, Tx, rows,
    rows::Json,
    statement::{query, query_as, query_scalar},
};

/// Result of the inspection of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileFacts {
    /// `None`: the bytes cannot be read.
    pub facts: Option<Value>,
    /// True when an image can be made of it.
    pub has_picture: bool,
}

/// Records the result of an inspection, replacing an earlier one; does nothing for a file that was deleted.
pub async fn record(tx: &mut Tx<'_>, file_id: Uuid, found: &FileFacts) -> Result<(), Error> {
    query(
        "INSERT INTO file_facts (file_id, facts, has_picture)
         SELECT id, $2, $3 FROM files WHERE id = $1
         ON CONFLICT (file_id) DO UPDATE SET facts = excluded.facts, has_picture = excluded.has_picture",
    )
    .bind(file_id)
    .bind(found.facts.as_ref().map(Json))
    .bind(found.has_picture)
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns the result of the inspection; `None`: the file was not inspected yet.
pub async fn of(db: &mut impl Connection, file_id: Uuid) -> Result<Option<FileFacts>, Error> {
    let row: Option<(Option<Json<Value>>, bool)> =
        query_as("SELECT facts, has_picture FROM file_facts WHERE file_id = $1")
            .bind(file_id)
            .fetch_optional(db)
            .await?;
    Ok(row.map(|(facts, has_picture)| FileFacts {
        facts: facts.map(|Json(facts)| facts),
        has_picture,
    }))
}

/// Returns those of the files of which no image can be made, as far as they were inspected.
pub async fn without_picture(
    db: &mut impl Connection,
    file_ids: &[Uuid],
) -> Result<HashSet<Uuid>, Error> {
    if file_ids.is_empty() {
        return Ok(HashSet::new());
    }
    let found: Vec<Uuid> = query_scalar(
        "SELECT f.file_id FROM json_each($1) j CROSS JOIN file_facts f ON f.file_id = unhex(j.value)
         WHERE NOT f.has_picture",
    )
    .bind(rows::ids(file_ids)?)
    .fetch_all(db)
    .await?;
    Ok(found.into_iter().collect())
}
