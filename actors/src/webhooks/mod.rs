//! Webhooks: handle, leases, drain, close, metrics (`webhook_attempts`, `webhook_deliveries`, `webhook_endpoints`,
//! `webhook_wait`); see docs/guide/webhooks.md.
//!
//! The rows are the truth. The actor ([`sender`]) reads the endpoints with something due, decides ([`dispatcher`], pure) and
//! writes the decision in one transaction a turn; attempts are futures beside it. What is in memory is bounded by
//! `webhooks.max_in_flight` and the number of endpoints with something open, not by the backlog: a body is read when its
//! delivery is claimed. In a cluster each endpoint has one node that sends to it.
//!
//! ```text
//! events committed, nudges, outcomes, each second
//!        │
//!        ▼
//!   lanes ──▶ Dispatcher::plan ──▶ one write: record, rewind, claim ──▶ attempts ──▶ outcomes ─┐
//!        ▲         │ health, schedule, scheduler                                                    │
//!        └─────────┴───────────────────────────────────────────────────────────────────────────┘
//! ```

mod attempt;
mod counters;
mod dispatcher;
mod health;
mod preview;
mod schedule;
mod scheduler;
mod sender;
mod settings;
pub mod signature;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Duration,
};

use futures_util::future::{BoxFuture, ready};
use sluice_store::{Store, cluster::Role, now_ms, webhooks};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use attempt::{headers, unsigned_headers};
pub use counters::WebhookStatistics;
pub use settings::WebhookSettings;

use self::{
    attempt::Carrier,
    counters::WebhookCounters,
    schedule::RetrySchedule,
    sender::{MAILBOX, Nudge, Sender},
};
use crate::{
    Error,
    clock::SystemClock,
    component::{ActorHandle, Component},
    metric::{Metric, MetricUnit},
    outbound::Outbound,
    subsystem::Subsystem,
};

/// Part of a lease beyond the longest attempt, in which the outcome is recorded.
const LEASE_MARGIN: Duration = Duration::from_secs(60);
/// Longest wait of the service's end for outcomes to be recorded, after the longest attempt.
const STOP_MARGIN: Duration = Duration::from_secs(3);

/// The handle of webhooks for the façade. Clones share it; it exists before the actor runs.
#[derive(Clone)]
pub struct Webhooks {
    services: Arc<WebhookServices>,
    handle: ActorHandle<Sender>,
}

/// State that survives the actor.
struct WebhookServices {
    settings: WebhookSettings,
    store: Store,
    carrier: Arc<dyn Carrier>,
    schedule: RetrySchedule,
    clock: SystemClock,
    /// Owner of this process's leases: its node.
    owner: Uuid,
    counters: WebhookCounters,
    /// Number of actors of this process so far.
    incarnation: AtomicU64,
    /// An actor of this process has noted the attempts that earlier ones left.
    has_started: AtomicBool,
    /// Nothing more is to be claimed.
    closing: CancellationToken,
    /// Everything that was claimed is recorded.
    closed: CancellationToken,
}

impl WebhookServices {
    fn lease(&self) -> Duration {
        self.settings.timeout + LEASE_MARGIN
    }

    /// Returns whether this node sends to an endpoint: one node at a time does, a node that drains does not.
    fn sends_to(&self, endpoint_id: Uuid) -> bool {
        let cluster = self.store.cluster();
        cluster.is_solo()
            || (cluster.this().has_role(Role::Worker)
                && cluster.is_mine(Role::Worker, endpoint_id.as_bytes()))
    }
}

impl Webhooks {
    pub fn new(settings: WebhookSettings, store: Store, outbound: Outbound) -> Self {
        Self::over(settings, store, Arc::new(outbound))
    }

    /// [`Self::new`] with another carrier than the guarded connector, for tests.
    fn over(settings: WebhookSettings, store: Store, carrier: Arc<dyn Carrier>) -> Self {
        Self {
            services: Arc::new(WebhookServices {
                schedule: RetrySchedule::new(&settings),
                settings,
                carrier,
                clock: SystemClock::default(),
                owner: store.owner(),
                counters: WebhookCounters::default(),
                incarnation: AtomicU64::new(0),
                has_started: AtomicBool::new(false),
                closing: CancellationToken::new(),
                closed: CancellationToken::new(),
                store,
            }),
            handle: ActorHandle::default(),
        }
    }

    /// Announces that something may be due. May be lost: the actor scans each second, and after every commit of an event.
    pub fn nudge(&self) {
        if let Some(sender) = self.handle.get() {
            let _ = sender.tell(Nudge).try_send();
        }
    }

    /// Returns the time by which attempts are scheduled and recorded, in milliseconds since 1970; it never goes back.
    pub fn now_ms(&self) -> i64 {
        self.services.clock.now_ms()
    }

    /// Returns the counts since the start, and the attempts in flight.
    pub fn statistics(&self) -> WebhookStatistics {
        self.services.counters.read()
    }
}

impl Subsystem for Webhooks {
    fn name(&self) -> &'static str {
        "webhooks"
    }

    fn components(&self) -> Vec<Component> {
        vec![Component::new(
            self.name(),
            self.services.clone(),
            MAILBOX,
            self.handle.clone(),
        )]
    }

    /// Attempts in flight continue.
    fn drain(&self) -> BoxFuture<'_, ()> {
        self.services.closing.cancel();
        Box::pin(ready(()))
    }

    /// Waits until attempts in flight have ended and are recorded; those that were interrupted are made again at the next
    /// start.
    fn close(&self) -> BoxFuture<'_, ()> {
        if self.handle.get().is_none() {
            return Box::pin(ready(()));
        }
        self.nudge();
        Box::pin(self.services.closed.cancelled())
    }

    fn close_timeout(&self) -> Duration {
        self.services.settings.timeout + STOP_MARGIN
    }

    fn metrics(&self) -> BoxFuture<'_, Result<Vec<Metric>, Error>> {
        Box::pin(async {
            let backlog = webhooks::counts(&mut self.services.store.read().await?).await?;
            Ok(metrics(&backlog, self.statistics(), now_ms()))
        })
    }
}

fn metrics(backlog: &webhooks::Counts, done: WebhookStatistics, now_ms: i64) -> Vec<Metric> {
    let due_for_ms = backlog.oldest_due_at.map_or(0, |at| (now_ms - at).max(0));
    vec![
        Metric::by_label(
            "webhook_attempts",
            "Attempts of webhooks since the start, by how they ended",
            "outcome",
            [
                ("delivered", done.delivered),
                ("failed", done.failed),
                ("interrupted", done.interrupted),
            ],
        ),
        Metric::gauge(
            "webhook_attempts_in_flight",
            "Attempts of webhooks in flight",
            done.in_flight,
        ),
        Metric::by_label(
            "webhook_deliveries",
            "Deliveries that are open, by status",
            "status",
            [
                ("pending", backlog.pending),
                ("delivering", backlog.delivering),
                ("retrying", backlog.retrying),
            ],
        ),
        Metric::gauge(
            "webhook_deliveries_held",
            "Deliveries that wait because their endpoint is suspended or paused",
            backlog.held,
        ),
        Metric::by_label(
            "webhook_endpoints",
            "Endpoints that are sent nothing but probes, or nothing, by status",
            "status",
            [
                ("suspended", backlog.suspended_endpoints),
                ("paused", backlog.paused_endpoints),
            ],
        ),
        Metric::gauge(
            "webhook_oldest_due",
            "Age of the oldest delivery that is due to an active endpoint",
            due_for_ms as f64 / 1_000.0,
        )
        .with_unit(MetricUnit::Seconds),
        Metric::histogram(
            "webhook_wait",
            "From an event to its first attempt at an endpoint",
            done.waits,
        )
        .with_unit(MetricUnit::Seconds),
    ]
}

#[cfg(test)]
mod metric_tests {
    use super::*;
    use crate::metric::MetricValue;

    #[test]
    fn the_backlog_is_shown_by_status_and_age() {
        let backlog = webhooks::Counts {
            pending: 7,
            suspended_endpoints: 1,
            held: 4,
            oldest_due_at: Some(10_000),
            ..webhooks::Counts::default()
        };
        let metrics = metrics(&backlog, WebhookStatistics::default(), 12_500);
        let first = |name: &str| match &metrics.iter().find(|it| it.name == name).unwrap().value {
            MetricValue::Gauge(samples) => (samples[0].labels.first().cloned(), samples[0].value),
            MetricValue::Histogram(_) => panic!("{name} is a gauge"),
        };
        let pending = ("status", "pending".into());
        assert_eq!(first("webhook_deliveries"), (Some(pending), 7.0));
        let suspended = ("status", "suspended".into());
        assert_eq!(first("webhook_endpoints"), (Some(suspended), 1.0));
        assert_eq!(first("webhook_deliveries_held"), (None, 4.0));
        assert_eq!(first("webhook_oldest_due"), (None, 2.5));
    }
}
