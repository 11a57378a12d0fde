//! `/api/webhooks/deliveries`: list (`status`, `httpStatus`, `since`), show and retry deliveries; test, probe and recover of an
//! endpoint; default `limit`.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use sluice_store::{
    Listed, Page,
    webhooks::{self, Delivery, DeliveryFilter, DeliveryStatus, Probed},
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
            record::{AttemptRecord, DeliveryRecord, WebhookRecord},
            request::{RecoverRequest, checked_type},
            sent::SentRequest,
        },
    },
    http::{events::event_id, extract::Body},
};

/// Deliveries of one page when the client names no limit.
const DEFAULT_LIMIT: u32 = 25;

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
    request: SentRequest,
}

#[derive(Serialize, ToSchema)]
pub struct ProbeAnswer {
    webhook: WebhookRecord,
    /// The delivery that is sent to it now.
    delivery: DeliveryRecord,
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
    ("eventId" = Option<String>, Query, description = "Only those of this event, `evt_…`"),
    ("httpStatus" = Option<String>, Query, description = "Only those whose last answer had this status, `500`, or one of this class, `5xx`"),
    ("since" = Option<String>, Query, description = "Only those made at this time or later: ISO 8601, or Unix seconds"),
    ("until" = Option<String>, Query, description = "Only those made before this time"),
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
    let page = page(query, DEFAULT_LIMIT)?;
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
            "endpointId" => {
                let id = field::id("endpointId", "the id of a webhook", &value)?;
                filter.endpoint_id = Some(id);
            }
            "eventId" => filter.event_id = Some(event_id("eventId", &value)?),
            "httpStatus" => filter.http_status = Some(status_codes(&value)?),
            "since" => filter.since = Some(field::time("since", &value)?),
            "until" => filter.until = Some(field::time("until", &value)?),
            _ => {}
        }
    }
    Ok((page, filter))
}

/// Reads a status code, or a class of them, as a range whose end is not included.
fn status_codes(text: &str) -> Result<(u16, u16), ApiError> {
    let of_class = |class: char| {
        let class = class.to_digit(10).filter(|class| (1..=5).contains(class))?;
        let first = u16::try_from(class * 100).ok()?;
        Some((first, first + 100))
    };
    let exact = || {
        let code: u16 = text.parse().ok()?;
        (100..=599).contains(&code).then_some((code, code + 1))
    };
    let mut characters = text.chars();
    let codes = match (characters.next(), characters.as_str()) {
        (Some(class), "xx" | "XX") => of_class(class),
        _ => exact(),
    };
    codes.ok_or_else(|| {
        field::wrong(
            "httpStatus",
            "a status such as 500, or a class such as 5xx",
            text,
        )
    })
}

/// Show a delivery
///
/// With its attempts, and with the request that the receiver got: URL, headers with their signatures, and body.
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
    let request = webhooks::request(&mut db, caller.account_id(), delivery.id).await?;
    drop(db);
    Ok(HttpResponse::Ok().json(DeliveryWithAttempts {
        request: SentRequest::of(request)?,
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

/// Try a suspended webhook now
///
/// Sends the oldest delivery that waits, or `webhook.test` when none does, without waiting for the next probe. When the receiver
/// answers 2xx, everything that waits is sent, in the order of the events.
#[utoipa::path(post, path = "/api/webhooks/{id}/probe", tag = "webhooks",
    params(("id" = Uuid, Path, description = "The webhook's id")),
    responses(
        (status = 202, description = "It is tried", body = ProbeAnswer),
        (status = 409, description = "It is not suspended", body = ErrorBody)))]
pub async fn probe(
    context: web::Data<EventContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let Probed { endpoint, delivery } =
        operations::probe(&context, caller.account_id(), *id).await?;
    Ok(HttpResponse::Accepted().json(ProbeAnswer {
        webhook: super::record(&context, endpoint).await?,
        delivery: delivery.into(),
    }))
}

/// Send failed deliveries again
///
/// All that were made since a time and failed, oldest first, one attempt each.
#[utoipa::path(post, path = "/api/webhooks/{id}/recover", tag = "webhooks", request_body = RecoverRequest,
    params(("id" = Uuid, Path, description = "The webhook's id")),
    responses((status = 202, description = "The number that will be sent", body = Recovered)))]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_named_by_its_status_or_its_class() {
        for (text, expected) in [
            ("500", Some((500, 501))),
            ("100", Some((100, 101))),
            ("599", Some((599, 600))),
            ("5xx", Some((500, 600))),
            ("2XX", Some((200, 300))),
            ("6xx", None),
            ("0xx", None),
            ("xxx", None),
            ("5x", None),
            ("99", None),
            ("600", None),
            ("-1", None),
            ("５xx", None),
            ("5xx ", None),
            ("", None),
        ] {
            assert_eq!(status_codes(text).ok(), expected, "{text}");
        }
    }
}
