//! `/api/delivery-keys`: list, make, change (`alias`, `presets_only`) and revoke the public keys of image addresses (snake_case).

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use sluice_store::{
    Listed,
    delivery_keys::{self, DeliveryKey},
    derived::DerivedTokens,
};
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::{Body, PageQuery};
use crate::application::{
    answer::{Success, Timestamp},
    caller::{Caller, Read, Write},
    context::DeliveryContext,
    delivery::{self, ChangeDeliveryKey, NewDeliveryKeyRequest},
    error::ApiError,
    page::next_cursor,
};

/// A delivery key.
#[derive(Serialize, ToSchema)]
pub struct DeliveryKeyRecord {
    id: Uuid,
    name: String,
    key_prefix: String,
    delivery_alias: Option<String>,
    presets_only: bool,
    /// The key itself, which is public: part of the addresses of images. Null for a key that was made before tokens could be shown
    /// again.
    token: Option<String>,
    created_at: Timestamp,
    /// Exact to five minutes.
    last_used_at: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
pub struct DeliveryKeyList {
    keys: Vec<DeliveryKeyRecord>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct DeliveryKeyMade {
    key: DeliveryKeyRecord,
    /// The key itself, as in `key.token`.
    token: String,
}

#[derive(Serialize, ToSchema)]
pub struct AliasAnswer {
    available: bool,
}

#[derive(Serialize, ToSchema)]
pub struct DeliveryKeyAnswer {
    key: DeliveryKeyRecord,
}

impl DeliveryKeyRecord {
    fn new(key: DeliveryKey, tokens: &DerivedTokens) -> Self {
        Self {
            token: key.token(tokens).map(|token| token.expose().to_owned()),
            id: key.id,
            name: key.name,
            key_prefix: key.key_prefix,
            delivery_alias: key.delivery_alias,
            presets_only: key.presets_only,
            created_at: Timestamp(key.created_at),
            last_used_at: key.last_used_at.map(Timestamp),
        }
    }
}

/// List delivery keys
#[utoipa::path(get, path = "/api/delivery-keys", tag = "delivery_keys", params(
    ("limit" = Option<u32>, Query, description = "1 to 100"),
    ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
), responses((status = 200, description = "Newest first", body = DeliveryKeyList)))]
pub async fn list(
    context: web::Data<DeliveryContext>,
    caller: Caller<Read>,
    PageQuery(page): PageQuery,
) -> Result<HttpResponse, ApiError> {
    let mut db = context.store.read().await?;
    let keys = delivery_keys::list(&mut db, caller.account_id(), page).await?;
    let next_cursor = next_cursor(&keys, page, Listed::cursor);
    let tokens = DerivedTokens::of(&mut db).await?;
    drop(db);
    let shown = |key| DeliveryKeyRecord::new(key, &tokens);
    let keys = keys.into_iter().map(shown).collect();
    Ok(HttpResponse::Ok().json(DeliveryKeyList { keys, next_cursor }))
}

/// Make a delivery key
///
/// It may be used in public pages: it reads images and nothing else.
#[utoipa::path(post, path = "/api/delivery-keys", tag = "delivery_keys", request_body = NewDeliveryKeyRequest, responses(
    (status = 201, description = "The key", body = DeliveryKeyMade),
    (status = 409, description = "The alias is taken", body = crate::application::error::ErrorBody),
))]
pub async fn create(
    context: web::Data<DeliveryContext>,
    caller: Caller<Write>,
    Body(request): Body<NewDeliveryKeyRequest>,
) -> Result<HttpResponse, ApiError> {
    let tokens = DerivedTokens::of(&mut context.store.read().await?).await?;
    let context = context.into_inner();
    let (key, token) = delivery::create_key(context, caller.account_id(), request).await?;
    Ok(HttpResponse::Created().json(DeliveryKeyMade {
        key: DeliveryKeyRecord::new(key, &tokens),
        token: token.expose().to_owned(),
    }))
}

/// Change a delivery key
///
/// Only the fields given change. Addresses with the token stay as they are; those with an alias that is removed are 404 from the
/// answer on.
#[utoipa::path(patch, path = "/api/delivery-keys/{id}", tag = "delivery_keys", request_body = ChangeDeliveryKey,
    params(("id" = Uuid, Path, description = "The key's id")),
    responses(
        (status = 200, description = "The key as it is now", body = DeliveryKeyAnswer),
        (status = 409, description = "The alias is taken", body = crate::application::error::ErrorBody)))]
pub async fn change(
    context: web::Data<DeliveryContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
    Body(request): Body<ChangeDeliveryKey>,
) -> Result<HttpResponse, ApiError> {
    let tokens = DerivedTokens::of(&mut context.store.read().await?).await?;
    let context = context.into_inner();
    let key = delivery::change_key(context, caller.account_id(), *id, request).await?;
    Ok(HttpResponse::Ok().json(DeliveryKeyAnswer {
        key: DeliveryKeyRecord::new(key, &tokens),
    }))
}

/// Ask whether an alias is free
#[utoipa::path(get, path = "/api/delivery-keys/alias", tag = "delivery_keys",
    params(("alias" = String, Query, description = "3 to 63 of a-z, 0-9, _ and -")),
    responses((status = 200, description = "`available` is true when a new key could have it", body = AliasAnswer)))]
pub async fn alias(
    request: HttpRequest,
    context: web::Data<DeliveryContext>,
    _caller: Caller<Read>,
) -> Result<HttpResponse, ApiError> {
    let alias = form_urlencoded::parse(request.query_string().as_bytes())
        .find(|(name, _)| name == "alias")
        .map(|(_, alias)| alias.into_owned())
        .ok_or_else(|| invalid!("alias is missing: ask with ?alias="))?;
    let mut db = context.store.read().await?;
    let available = delivery_keys::is_alias_free(&mut db, &alias).await?;
    Ok(HttpResponse::Ok().json(AliasAnswer { available }))
}

/// Revoke a delivery key
///
/// Addresses with it are 404 from the answer on; its alias is free again.
#[utoipa::path(delete, path = "/api/delivery-keys/{id}", tag = "delivery_keys",
    params(("id" = Uuid, Path, description = "The key's id")),
    responses((status = 200, description = "Revoked", body = Success)))]
pub async fn revoke(
    context: web::Data<DeliveryContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    delivery::revoke_key(context.into_inner(), caller.account_id(), *id).await?;
    Ok(HttpResponse::Ok().json(Success::default()))
}
