//! Rows of folders: create, patch, delete, paths; depth to which they may be nested (`MAX_DEPTH`). Names may repeat, as
//! users expect of files that they upload twice.

use uuid::Uuid;

use crate::{
    Connection, Error, Tx, files,
    name_key::name_key,
    statement::{query, query_as, query_scalar},
};

/// Greatest nesting depth of folders.
pub const MAX_DEPTH: i64 = 100;

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Folder {
    pub id: Uuid,
    pub account_id: Uuid,
    pub name: String,
    /// Color as the client named it.
    pub color: Option<String>,
    /// `None`: at the top.
    pub parent_id: Option<Uuid>,
    pub created_at: i64,
    pub updated_at: i64,
}

#[derive(Clone, Debug)]
pub struct NewFolder {
    pub name: String,
    pub color: Option<String>,
    pub parent_id: Option<Uuid>,
}

/// Changes of a folder; `None` leaves a field as it is, `Some(None)` empties it.
#[derive(Clone, Debug, Default)]
pub struct FolderPatch {
    pub name: Option<String>,
    pub color: Option<Option<String>>,
    pub parent_id: Option<Option<Uuid>>,
}

/// Creates a folder. `Error::NotFound` for a parent that the account does not have, `Error::Conflict` where it would
/// be nested too deep.
pub async fn create(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    new: NewFolder,
    now_ms: i64,
) -> Result<Folder, Error> {
    if let Some(parent_id) = new.parent_id {
        get(tx, account_id, parent_id).await?;
        check_depth(ancestors(tx, parent_id).await?.len() as i64 + 1)?;
    }
    let folder = query_as(
        "INSERT INTO folders (id, account_id, name, search_name, name_key, color, parent_id, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(account_id)
    .bind(&new.name)
    .bind(new.name.to_lowercase())
    .bind(name_key(&new.name))
    .bind(new.color)
    .bind(new.parent_id)
    .bind(now_ms)
    .fetch_one(tx)
    .await?;
    Ok(folder)
}

/// Returns a folder; `Error::NotFound` for an unknown id and for another account's.
pub async fn get(db: &mut impl Connection, account_id: Uuid, id: Uuid) -> Result<Folder, Error> {
    query_as("SELECT * FROM folders WHERE id = $1 AND account_id = $2")
        .bind(id)
        .bind(account_id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("folder"))
}

/// Changes the fields of the patch; returns the row as it is then. `Error::Conflict` for a move into itself or below
/// itself.
pub async fn patch(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    patch: FolderPatch,
    now_ms: i64,
) -> Result<Folder, Error> {
    if let Some(Some(parent_id)) = patch.parent_id {
        get(tx, account_id, id).await?;
        get(tx, account_id, parent_id).await?;
        let ancestors = ancestors(tx, parent_id).await?;
        if ancestors.contains(&id) {
            return Err(Error::Conflict("a folder cannot lie in itself".into()));
        }
        check_depth(ancestors.len() as i64 + height(tx, id).await?)?;
    }
    query_as(
        "UPDATE folders SET
             name = coalesce($3, name),
             search_name = coalesce($4, search_name),
             name_key = coalesce($5, name_key),
             color = CASE WHEN $6 THEN $7 ELSE color END,
             parent_id = CASE WHEN $8 THEN $9 ELSE parent_id END,
             updated_at = $10
         WHERE id = $1 AND account_id = $2 RETURNING *",
    )
    .bind(id)
    .bind(account_id)
    .bind(&patch.name)
    .bind(patch.name.as_ref().map(|name| name.to_lowercase()))
    .bind(patch.name.as_deref().map(name_key))
    .bind(patch.color.is_some())
    .bind(patch.color.flatten())
    .bind(patch.parent_id.is_some())
    .bind(patch.parent_id.flatten())
    .bind(now_ms)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("folder"))
}

/// Deletes an empty folder; `Error::Conflict` when it is not empty.
pub async fn delete_empty(tx: &mut Tx<'_>, account_id: Uuid, id: Uuid) -> Result<Folder, Error> {
    let folder = get(tx, account_id, id).await?;
    let is_used: bool = query_scalar(
        "SELECT EXISTS (SELECT 1 FROM files WHERE folder_id = $1)
             OR EXISTS (SELECT 1 FROM folders WHERE parent_id = $1)",
    )
    .bind(id)
    .fetch_one(tx)
    .await?;
    if is_used {
        return Err(Error::Conflict(
            "the folder is not empty: delete with ?recursive=true, or empty it first".into(),
        ));
    }
    query("DELETE FROM folders WHERE id = $1")
        .bind(id)
        .execute(tx)
        .await?;
    Ok(folder)
}

/// Result of one turn of deleting a folder with its contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Emptied {
    /// Files that this turn deleted.
    pub files: Vec<Uuid>,
    /// True when nothing is left, the folder itself included.
    pub is_gone: bool,
}

/// Deletes up to `most` of the files below a folder, and the folders once there are no files; repeat until `is_gone`.
/// `Error::NotFound` at the first turn for a folder that does not exist.
pub async fn delete_turn(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    most: u32,
) -> Result<Emptied, Error> {
    get(tx, account_id, id).await?;
    let found: Vec<Uuid> = query_scalar(
        "WITH RECURSIVE below (id) AS (
             SELECT $1 UNION SELECT f.id FROM folders f JOIN below b ON f.parent_id = b.id)
         SELECT f.id FROM files f WHERE f.folder_id IN (SELECT id FROM below) LIMIT $2",
    )
    .bind(id)
    .bind(most)
    .fetch_all(tx)
    .await?;
    for file_id in &found {
        files::delete(tx, account_id, *file_id).await?;
    }
    let is_gone = found.len() < most as usize;
    if is_gone {
        // Parents and children are deleted in one statement; the foreign keys are checked at its end.
        query(
            "WITH RECURSIVE below (id) AS (
                 SELECT $1 UNION SELECT f.id FROM folders f JOIN below b ON f.parent_id = b.id)
             DELETE FROM folders WHERE id IN (SELECT id FROM below)",
        )
        .bind(id)
        .execute(tx)
        .await?;
    }
    Ok(Emptied {
        files: found,
        is_gone,
    })
}

/// Folder of a path that was found or made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathEnd {
    /// The innermost folder.
    pub folder: Folder,
    /// Folders of the path that were made.
    pub created: u32,
}

/// Finds the folder at the end of a path below a parent, and creates what is missing of it. Of several folders of one name the
/// oldest counts. Within an account one unit of work runs at a time, so that many who ask for one path get one folder.
///
/// `Error::NotFound` for a parent that the account does not have, `Error::Conflict` where it would be nested too deep,
/// `Error::Invalid` for a path without names.
pub async fn ensure_path(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    parent_id: Option<Uuid>,
    names: &[String],
    now_ms: i64,
) -> Result<PathEnd, Error> {
    if let Some(parent_id) = parent_id {
        get(tx, account_id, parent_id).await?;
    }
    let (mut parent_id, mut end, mut created) = (parent_id, None, 0);
    for name in names {
        let folder = match oldest_named(tx, account_id, parent_id, name).await? {
            Some(folder) => folder,
            None => {
                created += 1;
                let new = NewFolder {
                    name: name.clone(),
                    color: None,
                    parent_id,
                };
                create(tx, account_id, new, now_ms).await?
            }
        };
        parent_id = Some(folder.id);
        end = Some(folder);
    }
    let folder = end.ok_or_else(|| Error::Invalid("a path has at least one name".into()))?;
    Ok(PathEnd { folder, created })
}

async fn oldest_named(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    parent_id: Option<Uuid>,
    name: &str,
) -> Result<Option<Folder>, Error> {
    Ok(query_as(
        "SELECT * FROM folders INDEXED BY folders_by_place_name
         WHERE account_id = $1 AND parent_id IS $2 AND name_key = $3 AND name = $4 ORDER BY id LIMIT 1",
    )
    .bind(account_id)
    .bind(parent_id)
    .bind(name_key(name))
    .bind(name)
    .fetch_optional(tx)
    .await?)
}

/// Returns the folder and its ancestors, innermost first.
pub async fn ancestors(db: &mut impl Connection, id: Uuid) -> Result<Vec<Uuid>, Error> {
    let ids = query_scalar(
        "WITH RECURSIVE above (id, depth) AS (
             SELECT $1, 0 UNION
             SELECT f.parent_id, depth + 1 FROM folders f JOIN above a ON f.id = a.id
             WHERE f.parent_id IS NOT NULL AND depth < $2)
         SELECT id FROM above ORDER BY depth",
    )
    .bind(id)
    .bind(MAX_DEPTH)
    .fetch_all(db)
    .await?;
    Ok(ids)
}

/// Returns how deep folders are nested in a folder; 1 for one without folders in it.
async fn height(db: &mut impl Connection, id: Uuid) -> Result<i64, Error> {
    let height = query_scalar(
        "WITH RECURSIVE below (id, depth) AS (
             SELECT $1, 1 UNION
             SELECT f.id, depth + 1 FROM folders f JOIN below b ON f.parent_id = b.id WHERE depth <= $2)
         SELECT CAST(max(depth) AS INTEGER) FROM below",
    )
    .bind(id)
    .bind(MAX_DEPTH)
    .fetch_one(db)
    .await?;
    Ok(height)
}

fn check_depth(depth: i64) -> Result<(), Error> {
    match depth > MAX_DEPTH {
        true => Err(Error::Conflict(format!(
            "folders lie at most {MAX_DEPTH} deep"
        ))),
        false => Ok(()),
    }
}
