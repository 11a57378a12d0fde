//! `/api/keys`: list, make (`name`, `scope`) and revoke API keys. A key is shown once; afterwards only its first characters are
//! known.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use sluice_store::{
    Listed,
    api_keys::{self, ApiKey, Scope},
    now_ms, write_tx,
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::{Body, PageQuery};
use crate::application::{
    answer::{Success, Timestamp},
    caller::{Admin, Caller},
    context::AccountContext,
    error::ApiError,
    field,
    page::next_cursor,
};

/// A key to be made.
#[derive(Deserialize, ToSchema)]
pub struct NewKey {
    /// 1 to 120 characters; `API key` without one.
    name: Option<String>,
    /// `read`, `write` (without one) or `admin`.
    scope: Option<String>,
}

/// An API key without its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyRecord {
    id: Uuid,
    name: String,
    /// `read`, `write` or `admin`.
    scope: &'static str,
    key_prefix: String,
    created_at: Timestamp,
    /// Exact to five minutes.
    last_used_at: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyList {
    keys: Vec<KeyRecord>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct KeyMade {
    key: KeyRecord,
    /// The key itself, shown now and never again.
    token: String,
}

impl From<ApiKey> for KeyRecord {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id,
            name: key.name,
            scope: key.scope.as_str(),
            key_prefix: key.key_prefix,
            created_at: Timestamp(key.created_at),
            last_used_at: key.last_used_at.map(Timestamp),
        }
    }
}

/// List API keys
#[utoipa::path(get, path = "/api/keys", tag = "keys", params(
    ("limit" = Option<u32>, Query, description = "1 to 100"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before"),
), responses((status = 200, description = "Newest first", body = KeyList)))]
pub async fn list(
    context: web::Data<AccountContext>,
    caller: Caller<Admin>,
    PageQuery(page): PageQuery,
) -> Result<HttpResponse, ApiError> {
    let keys = api_keys::list(&mut context.store.read().await?, caller.account_id(), page).await?;
    let next_cursor = next_cursor(&keys, page, Listed::cursor);
    let keys = keys.into_iter().map(KeyRecord::from).collect();
    Ok(HttpResponse::Ok().json(KeyList { keys, next_cursor }))
}

/// Make an API key
#[utoipa::path(post, path = "/api/keys", tag = "keys", request_body = NewKey, responses(
    (status = 201, description = "The key, shown once", body = KeyMade),
))]
pub async fn create(
    context: web::Data<AccountContext>,
    caller: Caller<Admin>,
    Body(new): Body<NewKey>,
) -> Result<HttpResponse, ApiError> {
    let name = field::name(new.name)?.unwrap_or_else(|| "API key".to_owned());
    let scope = field::choice(
        "scope",
        new.scope.as_deref(),
        &["read", "write", "admin"],
        Scope::parse,
    )?;
    let (account_id, scope) = (caller.account_id(), scope.unwrap_or(Scope::Write));
    let (key, token) = write_tx!(context.store, account_id, |tx| {
        api_keys::create(tx, account_id, &name, scope, now_ms()).await
    })?;
    Ok(HttpResponse::Created().json(KeyMade {
        key: key.into(),
        token: token.expose().to_owned(),
    }))
}

/// Revoke an API key
///
/// Once this is answered, the key is no longer accepted.
#[utoipa::path(delete, path = "/api/keys/{id}", tag = "keys", params(("id" = Uuid, Path, description = "The key's id")),
    responses((status = 200, description = "Revoked", body = Success)))]
pub async fn revoke(
    context: web::Data<AccountContext>,
    caller: Caller<Admin>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let (account_id, id) = (caller.account_id(), id.into_inner());
    write_tx!(context.store, account_id, |tx| {
        api_keys::revoke(tx, account_id, id, now_ms()).await
    })?;
    Ok(HttpResponse::Ok().json(Success::default()))
}
