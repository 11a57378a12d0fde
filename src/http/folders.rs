//! `/api/folders`: where files lie.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use sluice_store::{
    Listed,
    folders::{self as rows, Folder},
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::{Body, PageQuery, query_value};
use crate::application::{
    answer::Success,
    caller::{Caller, Read, Write},
    context::FileContext,
    error::ApiError,
    files::request::id_or_top,
    folders::{self, ChangeFolder, FolderRecord, NewFolderRequest},
    page::next_cursor,
};

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
    let found = rows::list(&mut db, caller.account_id(), parent, page).await?;
    let next_cursor = next_cursor(&found, page, Listed::cursor);
    let folders = found.into_iter().map(FolderRecord::from).collect();
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
    let folder = folders::create(&context, caller.account_id(), request).await?;
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
    let folder = rows::get(&mut context.store.read().await?, caller.account_id(), *id).await?;
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
    let folder = folders::change(&context, caller.account_id(), *id, request).await?;
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
    let with_contents = match query_value(&request, "recursive").as_deref() {
        Some("true") => true,
        None | Some("" | "false") => false,
        Some(_) => {
            return Err(ApiError::Invalid(
                "recursive must be true or false".to_owned(),
            ));
        }
    };
    let context = context.into_inner();
    folders::delete(context, caller.account_id(), *id, with_contents).await?;
    Ok(HttpResponse::Ok().json(Success::default()))
}
