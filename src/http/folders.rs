//! `/api/folders`: where files lie.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use sluice_store::{
    Listed,
    folders::{self, Folder, FolderPatch, NewFolder},
    now_ms,
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::{Body, PageQuery, query_value};
use crate::application::{
    answer::{Success, Time},
    caller::{Caller, Read, Write},
    context::FileContext,
    error::ApiError,
    field::given,
    filename,
    files::{request::id_or_top, to_its_end},
    page::next_cursor,
};

const MAX_COLOR: usize = 32;
/// Files that one unit of work deletes of a folder.
const FILES_PER_TURN: u32 = 100;

/// A folder, in snake_case as files are.
#[derive(Serialize, ToSchema)]
pub struct FolderRecord {
    id: Uuid,
    name: String,
    color: Option<String>,
    /// Null: at the top.
    parent_id: Option<Uuid>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

impl From<Folder> for FolderRecord {
    fn from(folder: Folder) -> Self {
        Self {
            id: folder.id,
            name: folder.name,
            color: folder.color,
            parent_id: folder.parent_id,
            created_at: Time(folder.created_at),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct FolderAnswer {
    folder: FolderRecord,
}

impl FolderAnswer {
    fn of(folder: Folder) -> Self {
        Self {
            folder: folder.into(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct FolderList {
    folders: Vec<FolderRecord>,
    #[serde(rename = "nextCursor")]
    next_cursor: Option<String>,
}

/// A folder to be made.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewFolderRequest {
    /// 1 to 255 bytes, without path separators and control characters; names may repeat.
    name: String,
    /// At most 32 characters, as the client likes.
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

/// List folders
#[utoipa::path(get, path = "/api/folders", tag = "folders", params(
    ("parentId" = Option<String>, Query, description = "Only those in this folder; `null`: only those at the top"),
    ("limit" = Option<u32>, Query, description = "1 to 100"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before"),
), responses((status = 200, description = "Newest first", body = FolderList)))]
pub async fn list(
    request: HttpRequest,
    context: web::Data<FileContext>,
    caller: Caller<Read>,
    PageQuery(page): PageQuery,
) -> Result<HttpResponse, ApiError> {
    let parent = query_value(&request, "parentId")
        .map(|text| id_or_top("parentId", &text))
        .transpose()?;
    let mut db = context.store.read().await?;
    let rows = folders::list(&mut db, caller.account_id(), parent, page).await?;
    let next_cursor = next_cursor(&rows, page, Listed::cursor);
    let folders = rows.into_iter().map(FolderRecord::from).collect();
    Ok(HttpResponse::Ok().json(FolderList {
        folders,
        next_cursor,
    }))
}

/// Make a folder
#[utoipa::path(post, path = "/api/folders", tag = "folders", request_body = NewFolderRequest,
    responses(
        (status = 201, description = "The folder", body = FolderAnswer),
        (status = 404, description = "There is no such parent folder", body = crate::application::error::ErrorBody)))]
pub async fn create(
    context: web::Data<FileContext>,
    caller: Caller<Write>,
    Body(request): Body<NewFolderRequest>,
) -> Result<HttpResponse, ApiError> {
    let account_id = caller.account_id();
    let new = NewFolder {
        name: filename::checked("name", &request.name)?,
        color: request.color.map(checked_color).transpose()?,
        parent_id: request.parent_id,
    };
    let folder = context
        .store
        .write(move |tx| {
            Box::pin(async move { folders::create(tx, account_id, new, now_ms()).await })
        })
        .await?;
    Ok(HttpResponse::Created().json(FolderAnswer::of(folder)))
}

/// Show a folder
#[utoipa::path(get, path = "/api/folders/{id}", tag = "folders",
    params(("id" = Uuid, Path, description = "The folder's id")),
    responses((status = 200, description = "The folder", body = FolderAnswer)))]
pub async fn show(
    context: web::Data<FileContext>,
    caller: Caller<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let folder = folders::get(&mut context.store.read().await?, caller.account_id(), *id).await?;
    Ok(HttpResponse::Ok().json(FolderAnswer::of(folder)))
}

/// Change a folder
///
/// A folder cannot be moved into itself or below itself (409).
#[utoipa::path(patch, path = "/api/folders/{id}", tag = "folders", request_body = ChangeFolder,
    params(("id" = Uuid, Path, description = "The folder's id")),
    responses(
        (status = 200, description = "The folder as it is now", body = FolderAnswer),
        (status = 409, description = "It would lie in itself, or too deep", body = crate::application::error::ErrorBody)))]
pub async fn change(
    context: web::Data<FileContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
    Body(request): Body<ChangeFolder>,
) -> Result<HttpResponse, ApiError> {
    let (account_id, id) = (caller.account_id(), *id);
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
    let folder = context
        .store
        .write(move |tx| {
            Box::pin(async move { folders::patch(tx, account_id, id, patch, now_ms()).await })
        })
        .await?;
    Ok(HttpResponse::Ok().json(FolderAnswer::of(folder)))
}

/// Delete a folder
///
/// 409 when it is not empty, unless `recursive=true`: then everything in it goes.
#[utoipa::path(delete, path = "/api/folders/{id}", tag = "folders",
    params(("id" = Uuid, Path, description = "The folder's id"),
        ("recursive" = Option<bool>, Query, description = "Delete what is in it, too")),
    responses(
        (status = 200, description = "Deleted", body = Success),
        (status = 409, description = "Not empty", body = crate::application::error::ErrorBody)))]
pub async fn delete(
    request: HttpRequest,
    context: web::Data<FileContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let (account_id, id) = (caller.account_id(), *id);
    match query_value(&request, "recursive").as_deref() {
        Some("true") => to_its_end(delete_with_contents(context, account_id, id)).await?,
        None | Some("" | "false") => {
            to_its_end(async move {
                let emptied = context.store.write(move |tx| {
                    Box::pin(async move { folders::delete_empty(tx, account_id, id).await })
                });
                emptied.await?;
                Ok(context.shares.folders_deleted(&context.store).await?)
            })
            .await?;
        }
        Some(_) => {
            return Err(ApiError::Invalid(
                "recursive must be true or false".to_owned(),
            ));
        }
    }
    Ok(HttpResponse::Ok().json(Success::default()))
}

/// In turns, so that a folder of a million files does not hold up the writer; cut short, the rest stays as it is.
async fn delete_with_contents(
    context: web::Data<FileContext>,
    account_id: Uuid,
    id: Uuid,
) -> Result<(), ApiError> {
    loop {
        let turn = context.store.write(move |tx| {
            Box::pin(async move { folders::delete_turn(tx, account_id, id, FILES_PER_TURN).await })
        });
        let emptied = turn.await?;
        for file_id in emptied.files {
            context.images.purge_file(file_id).await;
        }
        if emptied.is_gone {
            context.shares.folders_deleted(&context.store).await?;
            return Ok(());
        }
    }
}

fn checked_color(color: String) -> Result<String, ApiError> {
    let length = color.chars().count();
    match (1..=MAX_COLOR).contains(&length) && !color.chars().any(char::is_control) {
        true => Ok(color),
        false => Err(ApiError::Invalid(format!(
            "color must have 1 to {MAX_COLOR} characters and no control characters, got {length}"
        ))),
    }
}
