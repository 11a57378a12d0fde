//! Selections: files and folders that were chosen to be downloaded as one archive. A selection names them; the archive
//! is computed when it is downloaded.

use sqlx::FromRow;
use uuid::Uuid;

use crate::{
    Connection, Error, Tx,
    statement::{query, query_as},
};

/// Deletes selections that have expired by the time `$1`, `$2` at most.
pub(crate) const DELETE_EXPIRED: &str = "DELETE FROM archive_selections WHERE id IN (
     SELECT id FROM archive_selections WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    pub id: Uuid,
    pub account_id: Uuid,
    /// Name of the archive, without an extension.
    pub name: String,
    /// In the order in which they were chosen.
    pub files: Vec<Uuid>,
    pub folders: Vec<Uuid>,
    pub expires_at: i64,
}

/// Selection to be made.
#[derive(Clone, Debug)]
pub struct NewSelection {
    pub name: String,
    pub files: Vec<Uuid>,
    pub folders: Vec<Uuid>,
    pub expires_at: i64,
}

#[derive(FromRow)]
struct Row {
    id: Uuid,
    account_id: Uuid,
    name: String,
    files: Vec<u8>,
    folders: Vec<u8>,
    expires_at: i64,
}

impl From<Row> for Selection {
    fn from(row: Row) -> Self {
        Self {
            id: row.id,
            account_id: row.account_id,
            name: row.name,
            files: unpacked(&row.files),
            folders: unpacked(&row.folders),
            expires_at: row.expires_at,
        }
    }
}

/// Creates a selection. Of an account that has more than `most` the oldest ones end.
pub async fn create(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    new: NewSelection,
    most: u32,
    now_ms: i64,
) -> Result<Selection, Error> {
    let row: Row = query_as(
        "INSERT INTO archive_selections (id, account_id, name, files, folders, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(account_id)
    .bind(new.name)
    .bind(packed(&new.files))
    .bind(packed(&new.folders))
    .bind(now_ms)
    .bind(new.expires_at)
    .fetch_one(tx)
    .await?;
    query(
        "DELETE FROM archive_selections WHERE id IN (
             SELECT id FROM archive_selections WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT -1 OFFSET $2)",
    )
    .bind(account_id)
    .bind(most)
    .execute(tx)
    .await?;
    Ok(row.into())
}

/// Returns a selection of any account, for the holder of its address; `None` for one that has ended.
pub async fn by_id(
    db: &mut impl Connection,
    id: Uuid,
    now_ms: i64,
) -> Result<Option<Selection>, Error> {
    let row: Option<Row> =
        query_as("SELECT * FROM archive_selections WHERE id = $1 AND expires_at > $2")
            .bind(id)
            .bind(now_ms)
            .fetch_optional(db)
            .await?;
    Ok(row.map(Into::into))
}

fn packed(ids: &[Uuid]) -> Vec<u8> {
    ids.iter().flat_map(|id| *id.as_bytes()).collect()
}

fn unpacked(bytes: &[u8]) -> Vec<Uuid> {
    let (ids, _) = bytes.as_chunks::<16>();
    ids.iter().map(|id| Uuid::from_bytes(*id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_in_their_order() {
        let ids: Vec<Uuid> = (0..5).rev().map(Uuid::from_u128).collect();
        assert_eq!(unpacked(&packed(&ids)), ids);
        assert_eq!(unpacked(&packed(&[])), Vec::<Uuid>::new());
    }
}
