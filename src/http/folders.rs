//! `/api/folders`: list, make, find by path, show, change and delete (`recursive`) folders.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use sluice_store::folders::{self as rows, Folder};
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::{Body, query_value};
use crate::application::{
    answer::Success,
    caller::{Caller, Read, Write},
    context::FileContext,
    error::ApiError,
    folders::{
        self, ChangeFolder, NewFolderRequest,
        list::{self as lists, FolderList},
        path::{self as paths, FolderPathAnswer, FolderPathRequest},
        record::{FolderRecord, record_of},
    },
};

#[derive(Serialize, ToSchema)]
pub struct FolderAnswer {
    folder: FolderRecord,
}

impl FolderAnswer {
    async fn of(context: &FileContext, folder: Folder) -> Result<Self, ApiError> {
        let mut db = context.store.read().await?;
        let folder = record_of(&mut db, folder.account_id, folder).await?;
        Ok(Self { folder })
    }
}

/// List folders
#[utoipa::path(get, path = "/api/folders", tag = "folders", params(
    ("parentId" = Option<String>, Query, description = "Only those in this folder; `null`: only those at the top"),
    ("q" = Option<String>, Query, description = "The name contains this, in any case"),
    ("sort" = Option<String>, Query, description = "`created` (default) or `name`, without regard to case, numbers by their value"),
    ("order" = Option<String>, Query, description = "`asc` or `desc`; by default newest first, or names from a to z"),
    ("totals" = Option<bool>, Query, description = "Also add up the files in and below each folder (false)"),
    ("limit" = Option<u32>, Query, description = "1 to 100"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before, with the same `sort`"),
), responses((status = 200, description = "Folders, newest first by default", body = FolderList)))]
pub async fn list(
    request: HttpRequest,
    context: web::Data<FileContext>,
    caller: Caller<Read>,
) -> Result<HttpResponse, ApiError> {
    let found = lists::listed(&context, caller.account_id(), request.query_string()).await?;
    Ok(HttpResponse::Ok().json(found))
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
    Ok(HttpResponse::Created().json(FolderAnswer::of(&context, folder).await?))
}

/// Find or make a folder by its path
///
/// Each folder that is missing is made, once, also when many ask for one path at the same time. Of several folders of one name the
/// oldest is taken.
#[utoipa::path(post, path = "/api/folders/path", tag = "folders", request_body = FolderPathRequest,
    responses(
        (status = 200, description = "The folder; all of the path was there", body = FolderPathAnswer),
        (status = 201, description = "The folder; some of the path was made", body = FolderPathAnswer),
        (status = 404, description = "There is no such parent folder", body = crate::application::error::ErrorBody),
        (status = 409, description = "It would lie too deep", body = crate::application::error::ErrorBody)))]
pub async fn ensure_path(
    context: web::Data<FileContext>,
    caller: Caller<Write>,
    Body(request): Body<FolderPathRequest>,
) -> Result<HttpResponse, ApiError> {
    let ensured = paths::ensure(&context, caller.account_id(), request).await?;
    let mut response = match ensured.created {
        0 => HttpResponse::Ok(),
        _ => HttpResponse::Created(),
    };
    Ok(response.json(ensured))
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
    Ok(HttpResponse::Ok().json(FolderAnswer::of(&context, folder).await?))
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
    Ok(HttpResponse::Ok().json(FolderAnswer::of(&context, folder).await?))
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
