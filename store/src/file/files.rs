//! Rows of files: create, get, patch, delete; name, folder, media type, size, focal point, tags. The bytes never change
//! under one id.

use uuid::Uuid;

use crate::{
    Connection, Error, Tx,
    blob::BlobHash,
    file_filter::FileType,
    folders, lineage,
    name_key::name_key,
    rows::{self, Json, JsonText, Narrow},
    statement::query_as,
    storage,
};

text_enum! {
    /// Origin of a file.
    pub enum Role {
        Uploaded = "uploaded",
        Converted = "converted",
        Recording = "recording",
    }
}

#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct File {
    pub id: Uuid,
    pub account_id: Uuid,
    /// `None`: at the top.
    pub folder_id: Option<Uuid>,
    /// Safe to be shown and sent: NFC, without control characters and path separators.
    pub filename: String,
    /// MIME type as recognised from the bytes, or from the name.
    pub mime_type: String,
    pub size_bytes: i64,
    #[sqlx(rename = "blob_hash")]
    pub blob: BlobHash,
    pub role: Role,
    /// Width in pixels as shown, after orientation.
    #[sqlx(try_from = "Narrow")]
    pub width: Option<u32>,
    #[sqlx(try_from = "Narrow")]
    pub height: Option<u32>,
    pub duration_ms: Option<i64>,
    focal_x: Option<f64>,
    focal_y: Option<f64>,
    pub description: Option<String>,
    #[sqlx(try_from = "JsonText")]
    pub tags: Vec<String>,
    /// Number of workflow runs between the file and an upload; 0: it is an upload or a conversion.
    #[sqlx(try_from = "i64")]
    pub generation: u32,
    pub created_at: i64,
    pub updated_at: i64,
}

impl File {
    /// Returns the focal point of the image, as shares of its width and height, 0 to 1.
    pub fn focal_point(&self) -> Option<(f64, f64)> {
        self.focal_x.zip(self.focal_y)
    }
}

/// Facts found in the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Width in pixels as shown, after orientation.
    pub width: Option<u32>,
    pub height: Option<u32>,
    pub duration_ms: Option<i64>,
}

/// A file to be made of a blob that is recorded in the same transaction or named by another row.
#[derive(Clone, Debug)]
pub struct NewFile {
    pub folder_id: Option<Uuid>,
    pub filename: String,
    pub mime_type: String,
    pub size_bytes: u64,
    pub blob: BlobHash,
    pub role: Role,
    pub width: Option<u32>,
    pub height: Option<u32>,
    pub duration_ms: Option<i64>,
    /// Generation of the run that stores it, plus one; 0 for an upload and a conversion.
    pub generation: u32,
}

/// Changes of a file; `None` leaves a field as it is, `Some(None)` empties it.
#[derive(Clone, Debug, Default)]
pub struct FilePatch {
    pub filename: Option<String>,
    pub folder_id: Option<Option<Uuid>>,
    pub focal_point: Option<Option<(f64, f64)>>,
    pub description: Option<Option<String>>,
    pub tags: Option<Vec<String>>,
}

/// Adds a file. `Error::NotFound` for a folder that the account does not have. Call [`storage::check`] before: it
/// decides whether the account may store more.
pub async fn create(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    new: NewFile,
    now_ms: i64,
) -> Result<File, Error> {
    if let Some(folder_id) = new.folder_id {
        folders::get(tx, account_id, folder_id).await?;
    }
    let size_bytes = i64::try_from(new.size_bytes)
        .map_err(|_| Error::Invalid("a file has at most 8 EiB".into()))?;
    storage::add(tx, account_id, 1, size_bytes).await?;
    let file = query_as(
        "INSERT INTO files (id, account_id, folder_id, filename, search_name, name_key, mime_type, file_type, size_bytes,
             blob_hash, role, width, height, duration_ms, generation, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $16) RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(account_id)
    .bind(new.folder_id)
    .bind(&new.filename)
    .bind(new.filename.to_lowercase())
    .bind(name_key(&new.filename))
    .bind(&new.mime_type)
    .bind(FileType::of(&new.mime_type).as_str())
    .bind(size_bytes)
    .bind(new.blob)
    .bind(new.role)
    .bind(new.width)
    .bind(new.height)
    .bind(new.duration_ms)
    .bind(new.generation)
    .bind(now_ms)
    .fetch_one(tx)
    .await?;
    Ok(file)
}

/// Returns a file; `Error::NotFound` for an unknown id and for another account's.
pub async fn get(db: &mut impl Connection, account_id: Uuid, id: Uuid) -> Result<File, Error> {
    query_as("SELECT * FROM files WHERE id = $1 AND account_id = $2")
        .bind(id)
        .bind(account_id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("file"))
}

/// Returns a file of any account, for callers that were authorized otherwise.
pub async fn by_id(db: &mut impl Connection, id: Uuid) -> Result<Option<File>, Error> {
    Ok(query_as("SELECT * FROM files WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?)
}

/// Returns those of the files that exist, of any account, for caches.
pub async fn by_ids(db: &mut impl Connection, ids: &[Uuid]) -> Result<Vec<File>, Error> {
    Ok(
        query_as("SELECT f.* FROM json_each($1) j CROSS JOIN files f ON f.id = unhex(j.value)")
            .bind(rows::ids(ids)?)
            .fetch_all(db)
            .await?,
    )
}

/// Changes the fields of the patch; returns the row as it is then. `Error::NotFound` for the file and for the folder.
pub async fn patch(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    patch: FilePatch,
    now_ms: i64,
) -> Result<File, Error> {
    if let Some(Some(folder_id)) = patch.folder_id {
        folders::get(tx, account_id, folder_id).await?;
    }
    let focal_point = patch.focal_point.flatten();
    query_as(
        "UPDATE files SET
             filename = coalesce($3, filename),
             search_name = coalesce($4, search_name),
             name_key = coalesce($5, name_key),
             folder_id = CASE WHEN $6 THEN $7 ELSE folder_id END,
             focal_x = CASE WHEN $8 THEN $9 ELSE focal_x END,
             focal_y = CASE WHEN $8 THEN $10 ELSE focal_y END,
             description = CASE WHEN $11 THEN $12 ELSE description END,
             tags = coalesce($13, tags),
             updated_at = $14
         WHERE id = $1 AND account_id = $2 RETURNING *",
    )
    .bind(id)
    .bind(account_id)
    .bind(&patch.filename)
    .bind(patch.filename.as_ref().map(|name| name.to_lowercase()))
    .bind(patch.filename.as_deref().map(name_key))
    .bind(patch.folder_id.is_some())
    .bind(patch.folder_id.flatten())
    .bind(patch.focal_point.is_some())
    .bind(focal_point.map(|(x, _)| x))
    .bind(focal_point.map(|(_, y)| y))
    .bind(patch.description.is_some())
    .bind(patch.description.flatten())
    .bind(patch.tags.map(Json))
    .bind(now_ms)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("file"))
}

/// Deletes the file, and returns its row. Objects made from it are kept, without their source.
pub async fn delete(tx: &mut Tx<'_>, account_id: Uuid, id: Uuid) -> Result<File, Error> {
    let file: File = query_as("DELETE FROM files WHERE id = $1 AND account_id = $2 RETURNING *")
        .bind(id)
        .bind(account_id)
        .fetch_optional(tx)
        .await?
        .ok_or(Error::NotFound("file"))?;
    storage::add(tx, account_id, -1, -file.size_bytes).await?;
    lineage::forget(tx, &lineage::Derived::file(id)).await?;
    Ok(file)
}
