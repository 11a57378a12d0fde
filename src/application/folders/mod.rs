//! Folders: create, rename, move, delete with contents; length of `color`, files deleted in one transaction.

pub(crate) mod list;
pub(crate) mod path;
pub(crate) mod record;

use std::sync::Arc;

use serde::Deserialize;
use sluice_store::{
    folders::{self, Folder, FolderPatch, NewFolder},
    now_ms, write_tx,
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{
    context::{FileContext, Platform},
    error::ApiError,
    field::given,
    filename,
    files::to_its_end,
};

/// Longest `color`, in characters.
const MAX_COLOR: usize = 32;
/// Files that one unit of work deletes of a folder.
const FILES_PER_TURN: u32 = 100;

/// A folder to be made.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewFolderRequest {
    /// 1 to 255 bytes, without path separators and control characters; names may repeat.
    name: String,
    /// At most 32 characters, in any form.
    color: Option<String>,
    /// Null: at the top.
    parent_id: Option<Uuid>,
}

/// The fields to change; null empties one.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChangeFolder {
    /// 1 to 255 bytes.
    name: Option<String>,
    /// At most 32 characters.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    color: Option<Option<String>>,
    /// Null: to the top.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<Uuid>)]
    parent_id: Option<Option<Uuid>>,
}

/// Makes a folder.
pub(crate) async fn create(
    platform: &Platform,
    account_id: Uuid,
    request: NewFolderRequest,
) -> Result<Folder, ApiError> {
    let new = NewFolder {
        name: filename::checked("name", &request.name)?,
        color: request.color.map(checked_color).transpose()?,
        parent_id: request.parent_id,
    };
    Ok(write_tx!(platform.store, account_id, |tx| {
        folders::create(tx, account_id, new, now_ms()).await
    })?)
}

/// Changes the fields given; 409 for a folder that would lie in itself or too deep.
pub(crate) async fn change(
    platform: &Platform,
    account_id: Uuid,
    id: Uuid,
    request: ChangeFolder,
) -> Result<Folder, ApiError> {
    let name = request.name.map(|name| filename::checked("name", &name));
    let color = match request.color {
        Some(Some(color)) => Some(Some(checked_color(color)?)),
        emptied => emptied,
    };
    let patch = FolderPatch {
        name: name.transpose()?,
        color,
        parent_id: request.parent_id,
    };
    Ok(write_tx!(platform.store, account_id, |tx| {
        folders::patch(tx, account_id, id, patch, now_ms()).await
    })?)
}

/// Deletes a folder, also when its caller goes; 409 for one that is not empty, unless its contents are deleted too.
pub(crate) async fn delete(
    context: Arc<FileContext>,
    account_id: Uuid,
    id: Uuid,
    with_contents: bool,
) -> Result<(), ApiError> {
    to_its_end(async move {
        match with_contents {
            true => delete_contents(&context, account_id, id).await?,
            false => {
                write_tx!(context.store, account_id, |tx| {
                    folders::delete_empty(tx, account_id, id).await
                })?;
            }
        }
        Ok(context.shares.folders_deleted(&context.store).await?)
    })
    .await
}

/// Deletes in turns, so that a folder of a million files does not hold up the writer; when it is interrupted, the rest stays.
async fn delete_contents(
    context: &FileContext,
    account_id: Uuid,
    id: Uuid,
) -> Result<(), ApiError> {
    loop {
        let emptied = write_tx!(context.store, account_id, |tx| {
            folders::delete_turn(tx, account_id, id, FILES_PER_TURN).await
        })?;
        context.images.purge_files(&emptied.files).await;
        if emptied.is_gone {
            return Ok(());
        }
    }
}

fn checked_color(color: String) -> Result<String, ApiError> {
    let length = color.chars().count();
    match (1..=MAX_COLOR).contains(&length) && !color.chars().any(char::is_control) {
        true => Ok(color),
        false => Err(invalid!(
            "color must have 1 to {MAX_COLOR} characters and no control characters, got {length}"
        )),
    }
}
