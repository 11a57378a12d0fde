//! `/healthz`, `/readyz` and `/metrics`: status codes, who may read metrics.

use actix_web::{HttpRequest, HttpResponse, ResponseError as _, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::extract::Operator;
use crate::application::{
    context::ServiceContext,
    error::ApiError,
    readiness::{Reason, reasons},
};
use crate::metrics::{of_changes, of_cluster, of_objects, of_store};

/// Headers by which a proxy shows that a request is not from this machine itself.
const FORWARDING: [&str; 4] = ["forwarded", "x-forwarded-for", "x-forwarded-host", "via"];

#[derive(Debug, Serialize, ToSchema)]
pub struct Alive {
    status: &'static str,
}

/// The service is ready when it admits encoders and viewers. A problem that viewers do not notice makes it `degraded`,
/// which is ready: taking the traffic away would end running streams.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub struct Readiness {
    /// `ready`, `degraded` or `unready`.
    status: &'static str,
    /// Everything that is not well; empty when ready.
    reasons: Vec<Reason>,
}

/// Alive
#[utoipa::path(get, path = "/healthz", tag = "operations", security(()), responses(
    (status = 200, description = "The process answers", body = Alive),
))]
pub async fn alive() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header(("cache-control", "no-store"))
        .json(Alive { status: "ok" })
}

/// Ready
#[utoipa::path(get, path = "/readyz", tag = "operations", security(()), responses(
    (status = 200, description = "Ready, or degraded without harm to streams", body = Readiness),
    (status = 503, description = "Starting, draining, or a component is parked", body = Readiness),
))]
pub async fn ready(context: web::Data<ServiceContext>) -> HttpResponse {
    let readiness = judge(reasons(&context));
    let mut response = match readiness.status {
        "unready" => HttpResponse::ServiceUnavailable(),
        _ => HttpResponse::Ok(),
    };
    if readiness.status == "unready" {
        response.insert_header(("retry-after", 1));
    }
    response
        .insert_header(("cache-control", "no-store"))
        .json(readiness)
}

fn judge(reasons: Vec<Reason>) -> Readiness {
    let status = match () {
        () if reasons.iter().any(|reason| reason.blocking) => "unready",
        () if reasons.is_empty() => "ready",
        () => "degraded",
    };
    Readiness { status, reasons }
}

/// Metrics
///
/// For Prometheus. Answers to this machine itself, to a key with scope `admin`, and to the session of an operator.
#[utoipa::path(get, path = "/metrics", tag = "operations", responses(
    (status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text"),
))]
pub async fn metrics(
    context: web::Data<ServiceContext>,
    request: HttpRequest,
    operator: Result<Operator, ApiError>,
) -> HttpResponse {
    if !is_local(&request)
        && let Err(rejection) = operator
    {
        return rejection.error_response();
    }
    let parked = context
        .components
        .states()
        .iter()
        .filter(|component| !component.running)
        .count();
    let metrics = &context.metrics;
    for subsystem in context.subsystems.iter() {
        // Without the database the numbers stay what they were.
        if let Ok(read) = subsystem.metrics().await {
            metrics.set(subsystem.name(), read);
        }
    }
    metrics.set("store", of_store(context.store.statistics(), parked));
    metrics.set("changes", of_changes(context.store.changes().followers()));
    metrics.set(
        "objects",
        of_objects(context.store.objects().unwrap_or_default()),
    );
    metrics.set("cluster", of_cluster(context.store.cluster()));
    HttpResponse::Ok()
        .content_type("application/openmetrics-text; version=1.0.0; charset=utf-8")
        .insert_header(("cache-control", "no-store"))
        .body(metrics.encode())
}

fn is_local(request: &HttpRequest) -> bool {
    request
        .peer_addr()
        .is_some_and(|peer| peer.ip().to_canonical().is_loopback())
        && FORWARDING
            .iter()
            .all(|name| !request.headers().contains_key(*name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_blocking_reason_makes_the_service_unready() {
        let reason = |blocking| Reason {
            name: "x".into(),
            reason: "y".into(),
            blocking,
        };
        assert_eq!(judge(vec![]).status, "ready");
        assert_eq!(judge(vec![reason(false)]).status, "degraded");
        assert_eq!(judge(vec![reason(false), reason(true)]).status, "unready");
    }
}
