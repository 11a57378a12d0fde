//! Fields of webhook endpoints, deliveries and attempts in answers: `status`, `nextProbeAt`, `nextAttemptAt`.

use serde::Serialize;
use sluice_store::{
    Reader, events,
    webhooks::{self, Attempt, Delivery, Endpoint},
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{answer::Timestamp, error::ApiError};

/// An endpoint that events are sent to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookRecord {
    id: Uuid,
    url: String,
    event_types: Vec<String>,
    description: Option<String>,
    is_active: bool,
    /// `active`; `suspended` after many failures in a row: deliveries wait and one is tried each minute until the receiver
    /// is back; `paused` by its owner or by an answer 410: events are not kept for it.
    status: &'static str,
    /// Time since which it has this status.
    status_since: Timestamp,
    /// Reason why it is suspended or paused.
    status_reason: Option<String>,
    /// Deliveries that wait for it; 10000: that many or more.
    waiting: u32,
    /// Time at which a suspended one is tried next, without a request.
    next_probe_at: Option<Timestamp>,
    /// The first 12 characters of the secret.
    secret_prefix: String,
    /// Attempts that failed since one succeeded.
    consecutive_failures: u32,
    /// Time of the first of them.
    first_failure_at: Option<Timestamp>,
    last_success_at: Option<Timestamp>,
    last_failure_at: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl WebhookRecord {
    /// Records of endpoints, with what waits for them.
    pub(crate) async fn of_all(
        db: &mut Reader,
        endpoints: Vec<Endpoint>,
    ) -> Result<Vec<Self>, ApiError> {
        let ids: Vec<Uuid> = endpoints.iter().map(|endpoint| endpoint.id).collect();
        let waiting = webhooks::waiting(db, &ids).await?;
        let record = |endpoint: Endpoint| {
            let waiting = waiting.get(&endpoint.id).copied().unwrap_or(0);
            Self::new(endpoint, waiting)
        };
        Ok(endpoints.into_iter().map(record).collect())
    }

    /// `waiting`: deliveries that wait for it.
    pub(crate) fn new(endpoint: Endpoint, waiting: u32) -> Self {
        Self {
            waiting,
            status_since: Timestamp(endpoint.status_since),
            next_probe_at: endpoint.next_probe_at.map(Timestamp),
            first_failure_at: endpoint.first_failure_at.map(Timestamp),
            secret_prefix: endpoint.secret_prefix().to_owned(),
            id: endpoint.id,
            url: endpoint.url,
            event_types: endpoint.event_types,
            description: endpoint.description,
            is_active: endpoint.is_active,
            status: endpoint.status.as_str(),
            status_reason: endpoint.status_reason,
            consecutive_failures: endpoint.consecutive_failures,
            last_success_at: endpoint.last_success_at.map(Timestamp),
            last_failure_at: endpoint.last_failure_at.map(Timestamp),
            created_at: Timestamp(endpoint.created_at),
            updated_at: Timestamp(endpoint.updated_at),
        }
    }
}

/// An event on its way to an endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryRecord {
    id: Uuid,
    endpoint_id: Uuid,
    endpoint_url: String,
    /// Event id `evt_…`, the same on every attempt.
    event_id: String,
    event_type: String,
    /// `pending`, `delivering`, `retrying`, `delivered` or `failed`.
    status: &'static str,
    /// The receiver's last answer; null when there was none.
    http_status: Option<u16>,
    /// The beginning of its body, at most 1000 characters; null when it was not text.
    response_body_preview: Option<String>,
    /// Reason why the last attempt failed.
    error: Option<String>,
    attempt_count: u32,
    /// Null while it is being sent, and once it has ended.
    next_attempt_at: Option<Timestamp>,
    created_at: Timestamp,
    last_attempt_at: Option<Timestamp>,
    delivered_at: Option<Timestamp>,
}

impl From<Delivery> for DeliveryRecord {
    fn from(delivery: Delivery) -> Self {
        Self {
            next_attempt_at: delivery.next_attempt_at().map(Timestamp),
            id: delivery.id,
            endpoint_id: delivery.endpoint_id,
            endpoint_url: delivery.endpoint_url,
            event_id: events::name(delivery.event_id),
            event_type: delivery.event_type,
            status: delivery.status.as_str(),
            http_status: delivery.http_status,
            response_body_preview: delivery.response_preview,
            error: delivery.error,
            attempt_count: delivery.attempts,
            created_at: Timestamp(delivery.created_at),
            last_attempt_at: delivery.last_attempt_at.map(Timestamp),
            delivered_at: delivery.delivered_at.map(Timestamp),
        }
    }
}

/// A request to the endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptRecord {
    /// From 1.
    number: u32,
    /// `running`, `delivered`, `failed`, or `interrupted` by the end of the service: it is made again.
    status: &'static str,
    http_status: Option<u16>,
    error: Option<String>,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    /// True when it probed a suspended endpoint.
    is_probe: bool,
}

impl From<Attempt> for AttemptRecord {
    fn from(attempt: Attempt) -> Self {
        Self {
            number: attempt.number,
            status: attempt.status.as_str(),
            http_status: attempt.http_status,
            error: attempt.error,
            started_at: Timestamp(attempt.started_at),
            ended_at: attempt.ended_at.map(Timestamp),
            is_probe: attempt.is_probe,
        }
    }
}
