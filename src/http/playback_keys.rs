//! `/api/playback-keys`: keys with which an account mints playback tokens itself. A key's secret is shown once.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use sluice_store::{
    now_ms,
    playback_keys::{self, PlaybackKey},
    write_tx,
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::Body;
use crate::application::{
    answer::{Success, Timestamp},
    caller::{Admin, Caller},
    context::PlaybackTokens,
    error::ApiError,
    field,
    playback_token::TokenKeys,
};

/// A playback key to be made.
#[derive(Deserialize, ToSchema)]
pub struct NewPlaybackKey {
    /// 1 to 120 characters; `Playback key` without one.
    name: Option<String>,
}

/// A playback key without its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaybackKeyRecord {
    /// Sent as `kid` in the header of a token.
    id: Uuid,
    name: String,
    created_at: Timestamp,
}

#[derive(Serialize, ToSchema)]
pub struct PlaybackKeyList {
    keys: Vec<PlaybackKeyRecord>,
}

#[derive(Serialize, ToSchema)]
pub struct PlaybackKeyMade {
    key: PlaybackKeyRecord,
    /// Its text is the key of HS256; shown now and never again.
    secret: String,
}

impl From<PlaybackKey> for PlaybackKeyRecord {
    fn from(key: PlaybackKey) -> Self {
        Self {
            id: key.id,
            name: key.name,
            created_at: Timestamp(key.created_at),
        }
    }
}

/// List playback keys
#[utoipa::path(get, path = "/api/playback-keys", tag = "playback_keys",
    responses((status = 200, description = "All of them, newest first; there are at most 20", body = PlaybackKeyList)))]
pub async fn list(
    context: web::Data<PlaybackTokens>,
    caller: Caller<Admin>,
) -> Result<HttpResponse, ApiError> {
    let keys = playback_keys::list(&mut context.store.read().await?, caller.account_id()).await?;
    let keys = keys.into_iter().map(PlaybackKeyRecord::from).collect();
    Ok(HttpResponse::Ok().json(PlaybackKeyList { keys }))
}

/// Make a playback key
///
/// A program that has it mints playback tokens without asking the service: JWTs with `alg` HS256, the key's id as `kid`, and
/// the claims `sub` (a playback id of this account), `exp` and, if wanted, `dom` (hosts) and `nbf`.
#[utoipa::path(post, path = "/api/playback-keys", tag = "playback_keys", request_body = NewPlaybackKey, responses(
    (status = 201, description = "The key, its secret shown once", body = PlaybackKeyMade),
    (status = 409, description = "There are 20 already", body = crate::application::error::ErrorBody),
))]
pub async fn create(
    context: web::Data<PlaybackTokens>,
    caller: Caller<Admin>,
    Body(new): Body<NewPlaybackKey>,
) -> Result<HttpResponse, ApiError> {
    let name = field::name(new.name)?.unwrap_or_else(|| "Playback key".to_owned());
    let (account_id, tokens) = (caller.account_id(), TokenKeys::of(&context).await?);
    let _changes = context.key_changes.lock().await;
    let key = write_tx!(context.store, account_id, |tx| {
        playback_keys::create(tx, account_id, &name, now_ms()).await
    })?;
    tokens.made(key.id, account_id);
    let secret = tokens.secret(key.id).expose().to_owned();
    Ok(HttpResponse::Created().json(PlaybackKeyMade {
        key: key.into(),
        secret,
    }))
}

/// Revoke a playback key
///
/// Tokens that were minted with it are no longer accepted once this is answered.
#[utoipa::path(delete, path = "/api/playback-keys/{id}", tag = "playback_keys",
    params(("id" = Uuid, Path, description = "The key's id")),
    responses((status = 200, description = "Revoked", body = Success)))]
pub async fn revoke(
    context: web::Data<PlaybackTokens>,
    caller: Caller<Admin>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let (account_id, id) = (caller.account_id(), id.into_inner());
    let tokens = TokenKeys::of(&context).await?;
    let _changes = context.key_changes.lock().await;
    write_tx!(context.store, account_id, |tx| {
        playback_keys::delete(tx, account_id, id).await
    })?;
    tokens.revoked(id);
    Ok(HttpResponse::Ok().json(Success::default()))
}
