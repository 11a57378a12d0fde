//! Rows of share links to folders: token hash, password, expiry, `downloadLimit`, counts of views and downloads.
//!
//! The token of a link is derived from its id, and only the token's hash is stored. A folder has one link at most; it
//! is deleted with its folder. A link shows its folder and the folders and files below: [`path`] and [`file`] are the
//! places where that is decided.

use sqlx::FromRow;
use uuid::Uuid;

use crate::{
    Connection, Error, Page, Tx,
    credentials::PasswordHash,
    files::File,
    folders::{self, Folder, MAX_DEPTH},
    rows::Narrow,
    statement::{query, query_as, query_scalar},
};

/// Folders that one sum covers.
const MOST_FOLDERS: i64 = 100_000;

/// Deletes shares that have expired by the time `$1`, `$2` at most.
pub(crate) const DELETE_EXPIRED: &str = "DELETE FROM shares WHERE id IN (
     SELECT id FROM shares WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)";

#[derive(Clone, Debug, FromRow)]
pub struct Share {
    pub id: Uuid,
    pub account_id: Uuid,
    pub folder_id: Uuid,
    /// SHA-256, hexadecimal.
    pub token_hash: String,
    pub password_hash: Option<PasswordHash>,
    /// `None`: no bound.
    #[sqlx(try_from = "Narrow")]
    pub download_limit: Option<u32>,
    /// True when originals may be downloaded.
    pub allow_download: bool,
    pub view_count: i64,
    pub download_count: i64,
    pub created_at: i64,
    /// `None`: never.
    pub expires_at: Option<i64>,
}

impl Share {
    pub fn has_expired(&self, now_ms: i64) -> bool {
        self.expires_at.is_some_and(|at| at <= now_ms)
    }

    /// Returns whether as many downloads have begun as it allows.
    pub fn is_used_up(&self) -> bool {
        let limit = self.download_limit.map(i64::from);
        limit.is_some_and(|limit| self.download_count >= limit)
    }
}

/// Share to be made. The caller makes its id, from which the token is derived.
#[derive(Clone, Debug)]
pub struct NewShare {
    pub id: Uuid,
    pub account_id: Uuid,
    pub folder_id: Uuid,
    pub token_hash: String,
    pub password_hash: Option<PasswordHash>,
    pub download_limit: Option<u32>,
    pub allow_download: bool,
    pub expires_at: Option<i64>,
}

/// Share that was made, and the one that it replaced.
#[derive(Clone, Debug)]
pub struct ShareChange {
    pub share: Share,
    pub replaced: Option<Share>,
}

/// Makes a share; the folder's earlier one is invalid from now on. `Error::NotFound` for a folder that the account
/// does not have.
pub async fn create(tx: &mut Tx<'_>, new: NewShare, now_ms: i64) -> Result<ShareChange, Error> {
    let replaced = delete(tx, new.account_id, new.folder_id).await?;
    let share = query_as(
        "INSERT INTO shares (id, account_id, folder_id, token_hash, password_hash, download_limit, allow_download, created_at,
             expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING *",
    )
    .bind(new.id)
    .bind(new.account_id)
    .bind(new.folder_id)
    .bind(new.token_hash)
    .bind(new.password_hash)
    .bind(new.download_limit)
    .bind(new.allow_download)
    .bind(now_ms)
    .bind(new.expires_at)
    .fetch_one(tx)
    .await?;
    Ok(ShareChange { share, replaced })
}

/// Returns the folder's share, unless it has expired. `Error::NotFound` for a folder that the account does not have.
pub async fn of_folder(
    db: &mut impl Connection,
    account_id: Uuid,
    folder_id: Uuid,
    now_ms: i64,
) -> Result<Option<Share>, Error> {
    folders::get(db, account_id, folder_id).await?;
    let share: Option<Share> = query_as("SELECT * FROM shares WHERE folder_id = $1")
        .bind(folder_id)
        .fetch_optional(db)
        .await?;
    Ok(share.filter(|share| !share.has_expired(now_ms)))
}

/// Lists the shares of an account that have not expired, newest first.
pub async fn list(
    db: &mut impl Connection,
    account_id: Uuid,
    page: Page,
    now_ms: i64,
) -> Result<Vec<Share>, Error> {
    let query = query_as(
        "SELECT * FROM shares INDEXED BY shares_by_account
         WHERE account_id = $1 AND (created_at, id) < ($3, $4) AND (expires_at IS NULL OR expires_at > $2)
         ORDER BY created_at DESC, id DESC LIMIT $5",
    )
    .bind(account_id)
    .bind(now_ms);
    page.read(query, db).await
}

/// Revokes the folder's share, and returns it; `None` when there was none. `Error::NotFound` for a folder that the account does
/// not have.
pub async fn delete(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    folder_id: Uuid,
) -> Result<Option<Share>, Error> {
    folders::get(tx, account_id, folder_id).await?;
    Ok(
        query_as("DELETE FROM shares WHERE folder_id = $1 RETURNING *")
            .bind(folder_id)
            .fetch_optional(tx)
            .await?,
    )
}

/// The share of a token, by its hash; also one that has expired.
pub async fn by_token_hash(
    db: &mut impl Connection,
    token_hash: &str,
) -> Result<Option<Share>, Error> {
    Ok(query_as("SELECT * FROM shares WHERE token_hash = $1")
        .bind(token_hash)
        .fetch_optional(db)
        .await?)
}

/// Returns those of the hashes that no share has any more.
pub async fn gone(db: &mut impl Connection, token_hashes: &[String]) -> Result<Vec<String>, Error> {
    let hashes = serde_json::to_string(token_hashes).expect("texts are JSON");
    Ok(query_scalar(
        "SELECT j.value FROM json_each($1) j WHERE NOT EXISTS (SELECT 1 FROM shares s WHERE s.token_hash = j.value)",
    )
    .bind(hashes)
    .fetch_all(db)
    .await?)
}

/// Returns the path from the share's folder down to this one, both included; `None` for a folder that is not inside
/// it.
pub async fn path(
    db: &mut impl Connection,
    share: &Share,
    folder_id: Uuid,
) -> Result<Option<Vec<Folder>>, Error> {
    let path: Vec<Folder> = query_as(
        "WITH RECURSIVE above (id, depth) AS (
             SELECT $1, 0 UNION ALL
             SELECT f.parent_id, depth + 1 FROM folders f JOIN above a ON f.id = a.id
             WHERE f.parent_id IS NOT NULL AND a.id <> $2 AND depth < $4)
         SELECT f.* FROM above a JOIN folders f ON f.id = a.id WHERE f.account_id = $3 ORDER BY a.depth DESC",
    )
    .bind(folder_id)
    .bind(share.folder_id)
    .bind(share.account_id)
    .bind(MAX_DEPTH)
    .fetch_all(db)
    .await?;
    let is_below = path.first().is_some_and(|top| top.id == share.folder_id);
    Ok(is_below.then_some(path))
}

/// Returns a file in the share's folder or below; `None` for any other.
pub async fn file(
    db: &mut impl Connection,
    share: &Share,
    file_id: Uuid,
) -> Result<Option<File>, Error> {
    Ok(query_as(
        "WITH RECURSIVE above (id, depth) AS (
             SELECT folder_id, 0 FROM files WHERE id = $1 AND account_id = $3 AND folder_id IS NOT NULL UNION ALL
             SELECT f.parent_id, depth + 1 FROM folders f JOIN above a ON f.id = a.id
             WHERE f.parent_id IS NOT NULL AND a.id <> $2 AND depth < $4)
         SELECT * FROM files WHERE id = $1 AND EXISTS (SELECT 1 FROM above WHERE id = $2)",
    )
    .bind(file_id)
    .bind(share.folder_id)
    .bind(share.account_id)
    .bind(MAX_DEPTH)
    .fetch_optional(db)
    .await?)
}

/// Totals of a folder and its subfolders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow)]
pub struct Totals {
    pub files: i64,
    pub bytes: i64,
    /// Subfolders, without the folder itself.
    pub folders: i64,
    /// True when the totals are complete: counting ends at a bound.
    pub is_exact: bool,
}

/// Sums over a folder and its subfolders, over `most_files` files at most.
pub async fn totals(
    db: &mut impl Connection,
    folder_id: Uuid,
    most_files: u32,
) -> Result<Totals, Error> {
    // CROSS JOIN keeps SQLite from walking all files; both tables are read from indexes alone.
    Ok(query_as(
        "WITH RECURSIVE walk (id) AS (
             SELECT $1 UNION ALL SELECT f.id FROM walk b JOIN folders f ON f.parent_id = b.id LIMIT $2 + 1),
         below (id) AS (SELECT id FROM walk LIMIT $2 + 1),
         found (size_bytes) AS (
             SELECT f.size_bytes FROM below b CROSS JOIN files f ON f.folder_id = b.id LIMIT $3),
         sums (files, bytes, folders) AS (
             SELECT count(*), CAST(coalesce(sum(size_bytes), 0) AS INTEGER), (SELECT count(*) FROM below) - 1 FROM found)
         SELECT files, bytes, folders, files < $3 AND folders < $2 AS is_exact FROM sums",
    )
    .bind(folder_id)
    .bind(MOST_FOLDERS)
    .bind(most_files)
    .fetch_one(db)
    .await?)
}

/// Adds counts that were kept in memory; does nothing for a share that was deleted.
pub async fn count(tx: &mut Tx<'_>, id: Uuid, views: u32, downloads: u32) -> Result<(), Error> {
    query(
        "UPDATE shares SET view_count = view_count + $2, download_count = download_count + $3 WHERE id = $1",
    )
    .bind(id)
    .bind(views)
    .bind(downloads)
    .execute(tx)
    .await?;
    Ok(())
}

/// Counts one download and returns true; false, counting nothing, when as many have begun as the share allows or it
/// was deleted.
pub async fn take_download(tx: &mut Tx<'_>, id: Uuid) -> Result<bool, Error> {
    let taken = query(
        "UPDATE shares SET download_count = download_count + 1
         WHERE id = $1 AND (download_limit IS NULL OR download_count < download_limit)",
    )
    .bind(id)
    .execute(tx)
    .await?;
    Ok(taken.rows_affected() == 1)
}
