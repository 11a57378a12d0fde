//! `/api/webhooks`: list, make, show, change and delete webhook endpoints, rotate their secret.

mod deliveries;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use sluice_store::{
    Listed,
    webhooks::{self, Endpoint},
};
use utoipa::{ToSchema, openapi::OpenApi};
use uuid::Uuid;

pub use deliveries::{
    __path_deliveries, __path_delivery, __path_probe, __path_recover, __path_retry, __path_test,
    deliveries, delivery, probe, recover, retry, test,
};

use super::extract::{Body, PageQuery};
use crate::application::{
    answer::Success,
    caller::{Caller, Read, Write},
    context::EventContext,
    error::ApiError,
    page::next_cursor,
    webhooks::{
        endpoints,
        record::WebhookRecord,
        request::{self, ChangeWebhook, NewWebhookRequest},
    },
};

#[derive(Serialize, ToSchema)]
pub struct WebhookAnswer {
    webhook: WebhookRecord,
}

/// An endpoint whose secret was just made.
#[derive(Serialize, ToSchema)]
pub struct WebhookWithSecret {
    webhook: WebhookRecord,
    /// `whsec_…`, the key of the signatures, used whole with its prefix; shown now and never again.
    secret: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookList {
    webhooks: Vec<WebhookRecord>,
    next_cursor: Option<String>,
}

/// List webhooks
#[utoipa::path(get, path = "/api/webhooks", tag = "webhooks", params(
    ("limit" = Option<u32>, Query, description = "1 to 100"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before"),
), responses((status = 200, description = "Newest first", body = WebhookList)))]
pub async fn list(
    context: web::Data<EventContext>,
    caller: Caller<Read>,
    PageQuery(page): PageQuery,
) -> Result<HttpResponse, ApiError> {
    let mut db = context.store.read().await?;
    let endpoints = webhooks::list(&mut db, caller.account_id(), page).await?;
    let next_cursor = next_cursor(&endpoints, page, Listed::cursor);
    let webhooks = WebhookRecord::of_all(&mut db, endpoints).await?;
    Ok(HttpResponse::Ok().json(WebhookList {
        webhooks,
        next_cursor,
    }))
}

/// Make a webhook
///
/// From the answer on, every event of the types asked for is posted to the URL, signed with the secret. A host that is, or now
/// resolves to, an address of a private network is rejected (400) unless the operator allows the network; a name that does not
/// resolve yet is accepted.
#[utoipa::path(post, path = "/api/webhooks", tag = "webhooks", request_body = NewWebhookRequest, responses(
    (status = 201, description = "The webhook and its secret, shown once", body = WebhookWithSecret),
    (status = 409, description = "The account has as many as it may have (`webhooks.max_endpoints`)", body = crate::application::error::ErrorBody),
))]
pub async fn create(
    context: web::Data<EventContext>,
    caller: Caller<Write>,
    Body(request): Body<NewWebhookRequest>,
) -> Result<HttpResponse, ApiError> {
    let (endpoint, secret) = endpoints::create(&context, caller.account_id(), request).await?;
    Ok(HttpResponse::Created().json(WebhookWithSecret {
        webhook: WebhookRecord::new(endpoint, 0),
        secret: secret.expose().to_owned(),
    }))
}

/// Show a webhook
#[utoipa::path(get, path = "/api/webhooks/{id}", tag = "webhooks", params(("id" = Uuid, Path, description = "The webhook's id")),
    responses((status = 200, description = "The webhook and its state", body = WebhookAnswer)))]
pub async fn show(
    context: web::Data<EventContext>,
    caller: Caller<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let endpoint =
        webhooks::get(&mut context.store.read().await?, caller.account_id(), *id).await?;
    shown(&context, endpoint).await
}

/// Change a webhook
///
/// Only the fields given change. `isActive: false` pauses it: events are not kept for it. `isActive: true` resumes one
/// that is paused or suspended; its waiting deliveries continue in the order of the events.
#[utoipa::path(patch, path = "/api/webhooks/{id}", tag = "webhooks", request_body = ChangeWebhook,
    params(("id" = Uuid, Path, description = "The webhook's id")),
    responses((status = 200, description = "The webhook as it is now", body = WebhookAnswer)))]
pub async fn change(
    context: web::Data<EventContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
    Body(request): Body<ChangeWebhook>,
) -> Result<HttpResponse, ApiError> {
    let endpoint = endpoints::change(&context, caller.account_id(), *id, request).await?;
    shown(&context, endpoint).await
}

/// Delete a webhook
///
/// Nothing is sent to it from the answer on; an attempt in flight may still arrive. What waited ends as `failed`.
#[utoipa::path(delete, path = "/api/webhooks/{id}", tag = "webhooks",
    params(("id" = Uuid, Path, description = "The webhook's id")),
    responses((status = 200, description = "Deleted", body = Success)))]
pub async fn delete(
    context: web::Data<EventContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    endpoints::delete(&context, caller.account_id(), *id).await?;
    Ok(HttpResponse::Ok().json(Success::default()))
}

/// Rotate the secret
///
/// For 24 hours (`webhooks.secret_overlap`) both secrets sign: `service-signature` has two `v1=`, the new one first. Take the
/// new secret over in that time. Rotating again ends the oldest one at once.
#[utoipa::path(post, path = "/api/webhooks/{id}/rotate-secret", tag = "webhooks",
    params(("id" = Uuid, Path, description = "The webhook's id")),
    responses((status = 200, description = "The webhook and its new secret, shown once", body = WebhookWithSecret)))]
pub async fn rotate_secret(
    context: web::Data<EventContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let (endpoint, secret) = endpoints::rotate_secret(&context, caller.account_id(), *id).await?;
    Ok(HttpResponse::Ok().json(WebhookWithSecret {
        webhook: record(&context, endpoint).await?,
        secret: secret.expose().to_owned(),
    }))
}

async fn shown(context: &EventContext, endpoint: Endpoint) -> Result<HttpResponse, ApiError> {
    let webhook = record(context, endpoint).await?;
    Ok(HttpResponse::Ok().json(WebhookAnswer { webhook }))
}

/// Returns the record of an endpoint, with the number of its waiting deliveries.
async fn record(context: &EventContext, endpoint: Endpoint) -> Result<WebhookRecord, ApiError> {
    let waiting = webhooks::waiting(&mut context.store.read().await?, &[endpoint.id]).await?;
    let waiting = waiting.get(&endpoint.id).copied().unwrap_or(0);
    Ok(WebhookRecord::new(endpoint, waiting))
}

/// Writes the event types into the description of the calls that take them.
pub(super) fn describe(document: &mut OpenApi) {
    let listed = request::described_types();
    let made = document
        .paths
        .paths
        .get_mut("/api/webhooks")
        .and_then(|item| item.post.as_mut());
    if let Some(operation) = made {
        let description = operation.description.get_or_insert_default();
        description.push_str("\n\n");
        description.push_str(&listed);
    }
}
