//! Fields of a folder in answers: `ancestors`, `has_children`, `shared`, `file_count`, `bytes`; most folders added up for sums.

use std::collections::HashMap;

use serde::Serialize;
use sluice_store::{
    Reader,
    folder_list::{self, PathFolder},
    folder_totals,
    folders::Folder,
    now_ms,
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{answer::Timestamp, error::ApiError};

/// Folders that are added up for the sums of one answer.
const MOST_ADDED_UP: u32 = 100_000;

/// Folder of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FolderRef {
    id: Uuid,
    name: String,
}

impl From<PathFolder> for FolderRef {
    fn from(folder: PathFolder) -> Self {
        Self {
            id: folder.id,
            name: folder.name,
        }
    }
}

/// A folder.
#[derive(Serialize, ToSchema)]
pub struct FolderRecord {
    id: Uuid,
    name: String,
    color: Option<String>,
    /// Null: at the top.
    parent_id: Option<Uuid>,
    /// Folders that it lies in, outermost first; empty at the top.
    ancestors: Vec<FolderRef>,
    /// True when there are folders in it.
    has_children: bool,
    /// True when it has a link of its own that has not expired.
    shared: bool,
    /// Files in it and in everything below. Null in lists without `totals=true`, and where more than 100 000 folders would have to
    /// be added up.
    file_count: Option<i64>,
    /// Bytes of these files.
    bytes: Option<i64>,
    created_at: Timestamp,
}

/// Builds the record of one folder, with its sums.
pub(crate) async fn record_of(
    db: &mut Reader,
    account_id: Uuid,
    folder: Folder,
) -> Result<FolderRecord, ApiError> {
    let records = records_of(db, account_id, vec![folder], true).await?;
    Ok(records
        .into_iter()
        .next()
        .expect("one record for each folder"))
}

/// Builds the records of folders, in their order. Sums end once as many folders were looked at as one answer may.
pub(crate) async fn records_of(
    db: &mut Reader,
    account_id: Uuid,
    folders: Vec<Folder>,
    with_totals: bool,
) -> Result<Vec<FolderRecord>, ApiError> {
    let ids: Vec<Uuid> = folders.iter().map(|folder| folder.id).collect();
    let marks = folder_list::marks(db, &ids, now_ms()).await?;
    let mut paths = Paths::default();
    let mut left = MOST_ADDED_UP;
    let mut records = Vec::with_capacity(folders.len());
    for folder in folders {
        let totals = match with_totals {
            true => folder_totals::tree(db, account_id, folder.id, left).await?,
            false => None,
        };
        if with_totals {
            let looked_at = totals.map_or(i64::from(left), |totals| totals.folders);
            left = left.saturating_sub(u32::try_from(looked_at).unwrap_or(left));
        }
        let marks = marks.get(&folder.id).copied().unwrap_or_default();
        records.push(FolderRecord {
            ancestors: paths.to(db, account_id, folder.parent_id).await?,
            id: folder.id,
            name: folder.name,
            color: folder.color,
            parent_id: folder.parent_id,
            has_children: marks.has_children,
            shared: marks.is_shared,
            file_count: totals.map(|totals| totals.files),
            bytes: totals.map(|totals| totals.bytes),
            created_at: Timestamp(folder.created_at),
        });
    }
    Ok(records)
}

/// Paths that were read for one answer: most folders of a list lie in the same one.
#[derive(Default)]
struct Paths(HashMap<Uuid, Vec<FolderRef>>);

impl Paths {
    /// Returns the path to a folder, itself included.
    async fn to(
        &mut self,
        db: &mut Reader,
        account_id: Uuid,
        folder_id: Option<Uuid>,
    ) -> Result<Vec<FolderRef>, ApiError> {
        let Some(folder_id) = folder_id else {
            return Ok(Vec::new());
        };
        if let Some(known) = self.0.get(&folder_id) {
            return Ok(known.clone());
        }
        let path = folder_list::path(db, account_id, folder_id).await?;
        let path: Vec<FolderRef> = path.into_iter().map(FolderRef::from).collect();
        self.0.insert(folder_id, path.clone());
        Ok(path)
    }
}
