//! `/api/folders/{id}/share`: the link of a folder, for its owner.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use sluice_store::{
    Secret, credentials, folders, now_ms,
    shares::{self, NewShare, Share},
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::access::{api_url, page_url};
use crate::{
    application::{
        answer::{Success, Time},
        caller::{Caller, Read, Write},
        context::ShareContext,
        error::ApiError,
        files::to_its_end,
        password_checks::PasswordUse,
        reached::Reached,
        share::request::NewShareRequest,
        signing::{self, Purpose, Signer},
    },
    http::extract::Body,
};

/// A folder's link.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShareRecord {
    folder_id: Uuid,
    /// Anyone with it may look.
    token: String,
    /// The page.
    url: String,
    /// Everything in one archive.
    zip_url: String,
    /// Null: never.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Time>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
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

impl ShareRecord {
    fn of(share: Share, signer: &Signer, reached: &Reached) -> Self {
        let (token, base) = (token(signer, share.id), &reached.address.base);
        Self {
            folder_id: share.folder_id,
            url: page_url(base, &token),
            zip_url: api_url(base, &token, "/zip"),
            token,
            expires_at: share.expires_at.map(Time),
            created_at: Time(share.created_at),
            has_password: share.password_hash.is_some(),
            download_limit: share.download_limit,
            allow_download: share.allow_download,
            view_count: share.view_count,
            download_count: share.download_count,
        }
    }
}

/// Makes a token of 32 bytes that only the installation's key can distinguish from random ones and make again.
fn token(signer: &Signer, share_id: Uuid) -> String {
    signing::encode(&signer.sign(Purpose::Share, share_id.as_bytes()))
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
    let terms = request.checked(now_ms())?;
    let mut db = context.store.read().await?;
    folders::get(&mut db, caller.account_id(), *id).await?;
    let signer = Signer::of(&mut db).await?;
    drop(db);
    let password_hash = match terms.password {
        Some(password) => Some(hashed(&context, &reached, password).await?),
        None => None,
    };
    let share_id = Uuid::now_v7();
    let new = NewShare {
        id: share_id,
        account_id: caller.account_id(),
        folder_id: *id,
        token_hash: credentials::hash(&token(&signer, share_id)),
        password_hash,
        download_limit: terms.download_limit,
        allow_download: terms.allow_download,
        expires_at: terms.expires_at,
    };
    let made = to_its_end(async move {
        let made = context
            .store
            .write(move |tx| Box::pin(async move { shares::create(tx, new, now_ms()).await }))
            .await?;
        if let Some(replaced) = &made.replaced {
            context.shares.open_requests.withdraw(&replaced.token_hash);
        }
        Ok(made)
    })
    .await?;
    Ok(HttpResponse::Created().json(ShareAnswer {
        share: ShareRecord::of(made.share, &signer, &reached),
    }))
}

async fn hashed(
    context: &ShareContext,
    reached: &Reached,
    password: Secret,
) -> Result<credentials::PasswordHash, ApiError> {
    let checks = &context.password_checks;
    let turn = checks.turn(PasswordUse::Account, reached.client).await?;
    let hashed = turn.run(move || credentials::hash_password(&password));
    Ok(hashed.await??)
}

/// Revoke a folder's link
///
/// Downloads under way end within a second.
#[utoipa::path(delete, path = "/api/folders/{id}/share", tag = "shares",
    params(("id" = Uuid, Path, description = "The folder's id")),
    responses((status = 200, description = "There is no link any more", body = Success)))]
pub async fn revoke(
    context: web::Data<ShareContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let (account_id, id) = (caller.account_id(), *id);
    to_its_end(async move {
        let revoked = context
            .store
            .write(move |tx| Box::pin(async move { shares::delete(tx, account_id, id).await }))
            .await?;
        if let Some(share) = revoked {
            context.shares.open_requests.withdraw(&share.token_hash);
        }
        Ok(())
    })
    .await?;
    Ok(HttpResponse::Ok().json(Success::default()))
}
