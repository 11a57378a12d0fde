//! What webhooks do, and what waits for them.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet},
    metrics::{MetricType, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};
use sluice_actors::webhooks::{Waits, WebhookStatistics};
use sluice_store::webhooks::Counts;

use super::{Status, signed};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attempts {
    outcome: &'static str,
}

#[derive(Debug, Default)]
pub(super) struct Webhooks {
    attempts: Family<Attempts, Gauge>,
    in_flight: Gauge,
    deliveries: Family<Status, Gauge>,
    held: Gauge,
    endpoints: Family<Status, Gauge>,
    oldest_due: Gauge<f64, AtomicU64>,
    waits: FirstAttempts,
}

impl Webhooks {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "webhook_attempts",
            "Attempts of webhooks since the start, by how they ended",
            self.attempts.clone(),
        );
        registry.register(
            "webhook_attempts_in_flight",
            "Attempts of webhooks under way",
            self.in_flight.clone(),
        );
        registry.register(
            "webhook_deliveries",
            "Deliveries that are open, by status",
            self.deliveries.clone(),
        );
        registry.register(
            "webhook_deliveries_held",
            "Deliveries that wait because their endpoint is suspended or paused",
            self.held.clone(),
        );
        registry.register(
            "webhook_endpoints",
            "Endpoints that are sent nothing but probes, or nothing, by status",
            self.endpoints.clone(),
        );
        registry.register_with_unit(
            "webhook_oldest_due",
            "Age of the oldest delivery that is due to an active endpoint",
            Unit::Seconds,
            self.oldest_due.clone(),
        );
        registry.register_collector(Box::new(self.waits.clone()));
    }

    pub(super) fn show(&self, backlog: &Counts, done: WebhookStatistics, now_ms: i64) {
        for (outcome, count) in [
            ("delivered", done.delivered),
            ("failed", done.failed),
            ("interrupted", done.interrupted),
        ] {
            let attempts = self.attempts.get_or_create(&Attempts { outcome });
            attempts.set(signed(count));
        }
        self.in_flight.set(signed(done.in_flight));
        for (status, count) in [
            ("pending", backlog.pending),
            ("delivering", backlog.delivering),
            ("retrying", backlog.retrying),
        ] {
            let deliveries = self.deliveries.get_or_create(&Status { status });
            deliveries.set(count);
        }
        self.held.set(backlog.held);
        for (status, count) in [
            ("suspended", backlog.suspended_endpoints),
            ("paused", backlog.paused_endpoints),
        ] {
            let endpoints = self.endpoints.get_or_create(&Status { status });
            endpoints.set(count);
        }
        let due_for = backlog.oldest_due_at.map_or(0, |at| (now_ms - at).max(0));
        self.oldest_due.set(due_for as f64 / 1_000.0);
        self.waits.show(done.waits);
    }
}

/// How long events waited for their first attempts: counted where webhooks are sent, read at the scrape.
#[derive(Clone, Debug, Default)]
struct FirstAttempts(Arc<Mutex<Waits>>);

impl FirstAttempts {
    fn show(&self, waits: Waits) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = waits;
    }
}

impl Collector for FirstAttempts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut metric = encoder.encode_descriptor(
            "webhook_wait",
            "From an event to its first attempt at an endpoint.",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        metric.encode_histogram::<NoLabelSet>(waits.sum_s, waits.count, &waits.buckets, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Metrics, OnAir, PoolStatus, Statistics};

    #[test]
    fn a_scrape_shows_webhooks() {
        let metrics = Metrics::default();
        let backlog = Counts {
            pending: 7,
            delivering: 2,
            retrying: 3,
            suspended_endpoints: 1,
            held: 4,
            oldest_due_at: Some(10_000),
            ..Counts::default()
        };
        let done = WebhookStatistics {
            delivered: 11,
            failed: 5,
            interrupted: 1,
            in_flight: 2,
            waits: Waits {
                buckets: vec![(0.5, 3), (f64::INFINITY, 1)],
                sum_s: 2.5,
                count: 4,
            },
        };
        metrics.webhooks(&backlog, done, 12_500);
        let text = metrics.scrape(
            OnAir::default(),
            Statistics::default(),
            0,
            &PoolStatus::default(),
        );
        for line in [
            r#"sluice_webhook_attempts{outcome="delivered"} 11"#,
            r#"sluice_webhook_attempts{outcome="failed"} 5"#,
            r#"sluice_webhook_attempts{outcome="interrupted"} 1"#,
            "sluice_webhook_attempts_in_flight 2",
            r#"sluice_webhook_deliveries{status="pending"} 7"#,
            r#"sluice_webhook_deliveries{status="retrying"} 3"#,
            "sluice_webhook_deliveries_held 4",
            r#"sluice_webhook_endpoints{status="suspended"} 1"#,
            "sluice_webhook_oldest_due_seconds 2.5",
            r#"sluice_webhook_wait_seconds_bucket{le="0.5"} 3"#,
            r#"sluice_webhook_wait_seconds_bucket{le="+Inf"} 4"#,
            "sluice_webhook_wait_seconds_count 4",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
