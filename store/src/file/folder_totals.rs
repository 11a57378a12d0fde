//! Number and bytes of the files in a folder, alone or with everything below it; triggers keep these sums.

use sqlx::FromRow;
use uuid::Uuid;

use crate::{Connection, Error, statement::query_as};

/// Number of files and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow)]
pub struct FolderTotals {
    pub files: i64,
    pub bytes: i64,
}

/// Returns the sums over the files in a folder, `None` being the top, without those in its subfolders.
pub async fn within(
    db: &mut impl Connection,
    account_id: Uuid,
    folder_id: Option<Uuid>,
) -> Result<FolderTotals, Error> {
    let totals = query_as(
        "SELECT files, bytes FROM folder_totals WHERE account_id = $1 AND folder_id = coalesce($2, x'')",
    )
    .bind(account_id)
    .bind(folder_id)
    .fetch_optional(db)
    .await?;
    Ok(totals.unwrap_or_default())
}

/// Sums over a folder's tree, and how many folders it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow)]
pub struct TreeTotals {
    /// With the folder itself.
    pub folders: i64,
    pub files: i64,
    pub bytes: i64,
}

/// Returns the sums over a folder and everything below it; `None` when that is more than `most_folders` folders. Costs a look
/// at each folder, however many files are in them.
pub async fn tree(
    db: &mut impl Connection,
    account_id: Uuid,
    folder_id: Uuid,
    most_folders: u32,
) -> Result<Option<TreeTotals>, Error> {
    // Sums by a look for each folder: of a join PostgreSQL reads the totals of all folders of the account.
    let totals: TreeTotals = query_as(
        "WITH RECURSIVE walk (id) AS (
             SELECT $2 UNION ALL SELECT f.id FROM walk b JOIN folders f ON f.parent_id = b.id LIMIT $3 + 1),
         below (id) AS (SELECT id FROM walk LIMIT $3 + 1)
         SELECT count(*) AS folders,
             CAST(coalesce(sum((SELECT t.files FROM folder_totals t WHERE t.account_id = $1 AND t.folder_id = b.id)), 0) AS INTEGER) AS files,
             CAST(coalesce(sum((SELECT t.bytes FROM folder_totals t WHERE t.account_id = $1 AND t.folder_id = b.id)), 0) AS INTEGER) AS bytes
         FROM below b",
    )
    .bind(account_id)
    .bind(folder_id)
    .bind(most_folders)
    .fetch_one(db)
    .await?;
    Ok((totals.folders <= i64::from(most_folders)).then_some(totals))
}
