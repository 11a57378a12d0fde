//! Deliveries to endpoints, attempt by attempt, and their repetition.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use sluice_store::{
    Listed, Page,
    webhooks::{self, Delivery, DeliveryFilter, DeliveryStatus},
};
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    application::{
        caller::{Caller, Read, Write},
        context::EventContext,
        error::{ApiError, ErrorBody},
        field,
        object::camel_case,
        page::{next_cursor, page},
        webhooks::{
            deliveries as operations,
            record::{AttemptRecord, DeliveryRecord},
            request::{RecoverRequest, checked_type},
        },
    },
    http::extract::Body,
};

/// Deliveries of one page when the client names no limit.
const PAGE: u32 = 25;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryList {
    deliveries: Vec<DeliveryRecord>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct DeliveryAnswer {
    delivery: DeliveryRecord,
}

#[derive(Serialize, ToSchema)]
pub struct DeliveryWithAttempts {
    delivery: DeliveryRecord,
    /// In the order they were made; the last 1 000.
    attempts: Vec<AttemptRecord>,
}

#[derive(Serialize, ToSchema)]
pub struct Recovered {
    /// Deliveries that are sent again.
    recovered: u64,
}

/// List deliveries
#[utoipa::path(get, path = "/api/webhooks/deliveries", tag = "webhooks", params(
    ("limit" = Option<u32>, Query, description = "1 to 100, 25 without one"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before"),
    ("status" = Option<String>, Query, description = "Only `pending`, `delivering`, `retrying`, `delivered` or `failed` ones"),
    ("eventType" = Option<String>, Query, description = "Only those of this type, such as `file.uploaded`"),
    ("endpointId" = Option<Uuid>, Query, description = "Only those to this webhook, also when it is deleted"),
), responses((status = 200, description = "Newest first", body = DeliveryList)))]
pub async fn deliveries(
    request: HttpRequest,
    context: web::Data<EventContext>,
    caller: Caller<Read>,
) -> Result<HttpResponse, ApiError> {
    let (page, filter) = list_query(request.query_string())?;
    let mut db = context.store.read().await?;
    let rows = webhooks::deliveries(&mut db, caller.account_id(), &filter, page).await?;
    drop(db);
    let next_cursor = next_cursor(&rows, page, Listed::cursor);
    let deliveries = rows.into_iter().map(DeliveryRecord::from).collect();
    Ok(HttpResponse::Ok().json(DeliveryList {
        deliveries,
        next_cursor,
    }))
}

fn list_query(query: &str) -> Result<(Page, DeliveryFilter), ApiError> {
    let page = page(query, PAGE)?;
    let mut filter = DeliveryFilter::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match camel_case(&name).as_str() {
            _ if value.is_empty() => {}
            "status" => {
                let words: Vec<&str> = DeliveryStatus::ALL
                    .iter()
                    .map(|status| status.as_str())
                    .collect();
                filter.status =
                    field::choice("status", Some(&value), &words, DeliveryStatus::parse)?;
            }
            "eventType" => filter.event_type = Some(checked_type("eventType", &value)?),
            "endpointId" => filter.endpoint_id = Some(endpoint_id(&value)?),
            _ => {}
        }
    }
    Ok((page, filter))
}

fn endpoint_id(text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| {
        ApiError::Invalid(format!(
            "endpointId must be the id of a webhook, got `{}`",
            field::shorten(text)
        ))
    })
}

/// Show a delivery
#[utoipa::path(get, path = "/api/webhooks/deliveries/{id}", tag = "webhooks",
    params(("id" = Uuid, Path, description = "The delivery's id")),
    responses((status = 200, description = "The delivery and its attempts", body = DeliveryWithAttempts)))]
pub async fn delivery(
    context: web::Data<EventContext>,
    caller: Caller<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let mut db = context.store.read().await?;
    let delivery = webhooks::delivery(&mut db, caller.account_id(), *id).await?;
    let attempts = webhooks::attempts(&mut db, delivery.id).await?;
    Ok(HttpResponse::Ok().json(DeliveryWithAttempts {
        delivery: delivery.into(),
        attempts: attempts.into_iter().map(AttemptRecord::from).collect(),
    }))
}

/// Send a delivery again
///
/// One attempt, at once, whatever the state of the webhook, with the same id and body; also of a delivery that had arrived. One
/// that still waits for an attempt of its own is brought forward, and waits on while its webhook is suspended or paused.
#[utoipa::path(post, path = "/api/webhooks/deliveries/{deliveryId}/retry", tag = "webhooks",
    params(("deliveryId" = Uuid, Path, description = "The delivery's id")),
    responses(
        (status = 202, description = "It will be sent", body = DeliveryAnswer),
        (status = 409, description = "It is being sent, or its webhook is deleted", body = ErrorBody)))]
pub async fn retry(
    context: web::Data<EventContext>,
    caller: Caller<Write>,
    delivery_id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let delivery = operations::retry(&context, caller.account_id(), *delivery_id).await?;
    Ok(sending(delivery))
}

/// Send a test event
///
/// `webhook.test` goes to this webhook alone, in one attempt, whatever it subscribes to and also while it is paused.
#[utoipa::path(post, path = "/api/webhooks/{id}/test", tag = "webhooks",
    params(("id" = Uuid, Path, description = "The webhook's id")),
    responses((status = 202, description = "It will be sent", body = DeliveryAnswer)))]
pub async fn test(
    context: web::Data<EventContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let delivery = operations::test(&context, caller.account_id(), *id).await?;
    Ok(sending(delivery))
}

/// Send failed deliveries again
///
/// All that were made since a time and failed, oldest first, one attempt each.
#[utoipa::path(post, path = "/api/webhooks/{id}/recover", tag = "webhooks", request_body = RecoverRequest,
    params(("id" = Uuid, Path, description = "The webhook's id")),
    responses((status = 202, description = "How many will be sent", body = Recovered)))]
pub async fn recover(
    context: web::Data<EventContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
    Body(request): Body<RecoverRequest>,
) -> Result<HttpResponse, ApiError> {
    let recovered = operations::recover(&context, caller.account_id(), *id, request).await?;
    Ok(HttpResponse::Accepted().json(Recovered { recovered }))
}

fn sending(delivery: Delivery) -> HttpResponse {
    HttpResponse::Accepted().json(DeliveryAnswer {
        delivery: delivery.into(),
    })
}
