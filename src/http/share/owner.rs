//! `/api/folders/{id}/share` and `/api/shares`: show, list, make and revoke share links; default `limit`.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use sluice_store::{
    Listed, folder_list, now_ms,
    shares::{self, Share},
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::access::{api_url, page_url};
use crate::{
    application::{
        answer::{Success, Timestamp},
        caller::{Caller, Read, Write},
        context::ShareContext,
        error::ApiError,
        folders::record::FolderRef,
        page::{next_cursor, page},
        reached::Reached,
        share::{links, request::NewShareRequest},
        signing::Signer,
    },
    http::extract::Body,
};

/// Links of one page when the client names no limit.
const DEFAULT_LIMIT: u32 = 50;

/// A folder's link.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShareRecord {
    folder_id: Uuid,
    /// Secret of the link; anyone with it may look.
    token: String,
    /// The page.
    url: String,
    /// Everything in one archive.
    zip_url: String,
    /// Null: never.
    expires_at: Option<Timestamp>,
    created_at: Timestamp,
    has_password: bool,
    /// Null: any number.
    download_limit: Option<u32>,
    /// False: for looking only.
    allow_download: bool,
    /// Looks at the beginning of the shared folder.
    view_count: i64,
    /// Downloads that were begun, of files and archives.
    download_count: i64,
}

#[derive(Serialize, ToSchema)]
pub struct ShareAnswer {
    share: ShareRecord,
}

#[derive(Serialize, ToSchema)]
pub struct ShareOrNone {
    /// Null: the folder has no link, or it has expired.
    share: Option<ShareRecord>,
}

/// A link with its folder.
#[derive(Serialize, ToSchema)]
pub struct ListedShare {
    #[serde(flatten)]
    share: ShareRecord,
    folder: SharedFolder,
}

/// Folder of a link.
#[derive(Serialize, ToSchema)]
pub struct SharedFolder {
    id: Uuid,
    name: String,
    /// Path to it and the folder itself, outermost first.
    path: Vec<FolderRef>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShareList {
    shares: Vec<ListedShare>,
    next_cursor: Option<String>,
}

impl ShareRecord {
    fn of(share: Share, signer: &Signer, reached: &Reached) -> Self {
        let (token, base) = (links::token(signer, share.id), &reached.address.base);
        Self {
            folder_id: share.folder_id,
            url: page_url(base, &token),
            zip_url: api_url(base, &token, "/zip"),
            token,
            expires_at: share.expires_at.map(Timestamp),
            created_at: Timestamp(share.created_at),
            has_password: share.password_hash.is_some(),
            download_limit: share.download_limit,
            allow_download: share.allow_download,
            view_count: share.view_count,
            download_count: share.download_count,
        }
    }
}

/// Show a folder's link
#[utoipa::path(get, path = "/api/folders/{id}/share", tag = "shares",
    params(("id" = Uuid, Path, description = "The folder's id")),
    responses((status = 200, description = "The link, or null", body = ShareOrNone)))]
pub async fn show(
    context: web::Data<ShareContext>,
    caller: Caller<Read>,
    reached: Reached,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    context.shares.flush(&context.store).await;
    let mut db = context.store.read().await?;
    let share = shares::of_folder(&mut db, caller.account_id(), *id, now_ms()).await?;
    let signer = Signer::of(&mut db).await?;
    let share = share.map(|share| ShareRecord::of(share, &signer, &reached));
    Ok(HttpResponse::Ok().json(ShareOrNone { share }))
}

/// List all links
///
/// Those of all folders of the account that have not expired.
#[utoipa::path(get, path = "/api/shares", tag = "shares", params(
    ("limit" = Option<u32>, Query, description = "1 to 100, 50 without one"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before"),
), responses((status = 200, description = "Newest first", body = ShareList)))]
pub async fn list(
    request: HttpRequest,
    context: web::Data<ShareContext>,
    caller: Caller<Read>,
    reached: Reached,
) -> Result<HttpResponse, ApiError> {
    let (account_id, page) = (
        caller.account_id(),
        page(request.query_string(), DEFAULT_LIMIT)?,
    );
    context.shares.flush(&context.store).await;
    let mut db = context.store.read().await?;
    let found = shares::list(&mut db, account_id, page, now_ms()).await?;
    let next_cursor = next_cursor(&found, page, Listed::cursor);
    let signer = Signer::of(&mut db).await?;
    let mut listed = Vec::with_capacity(found.len());
    for share in found {
        let path = folder_list::path(&mut db, account_id, share.folder_id).await?;
        // Deleted since, with its folder.
        let Some(folder) = path.last().cloned() else {
            continue;
        };
        listed.push(ListedShare {
            share: ShareRecord::of(share, &signer, &reached),
            folder: SharedFolder {
                id: folder.id,
                name: folder.name,
                path: path.into_iter().map(FolderRef::from).collect(),
            },
        });
    }
    Ok(HttpResponse::Ok().json(ShareList {
        shares: listed,
        next_cursor,
    }))
}

/// Share a folder
///
/// Makes a link by which anyone with it reads the folder and everything below, without an account. An earlier link of
/// the folder stops working.
#[utoipa::path(post, path = "/api/folders/{id}/share", tag = "shares", request_body = NewShareRequest,
    params(("id" = Uuid, Path, description = "The folder's id")),
    responses((status = 201, description = "The link", body = ShareAnswer)))]
pub async fn create(
    context: web::Data<ShareContext>,
    caller: Caller<Write>,
    reached: Reached,
    id: web::Path<Uuid>,
    Body(request): Body<NewShareRequest>,
) -> Result<HttpResponse, ApiError> {
    let context = context.into_inner();
    let (share, signer) =
        links::create(&context, caller.account_id(), *id, &reached, request).await?;
    Ok(HttpResponse::Created().json(ShareAnswer {
        share: ShareRecord::of(share, &signer, &reached),
    }))
}

/// Revoke a folder's link
///
/// Downloads in progress end within a second.
#[utoipa::path(delete, path = "/api/folders/{id}/share", tag = "shares",
    params(("id" = Uuid, Path, description = "The folder's id")),
    responses((status = 200, description = "There is no link any more", body = Success)))]
pub async fn revoke(
    context: web::Data<ShareContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    links::revoke(context.into_inner(), caller.account_id(), *id).await?;
    Ok(HttpResponse::Ok().json(Success::default()))
}
