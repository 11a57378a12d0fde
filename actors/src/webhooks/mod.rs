//! Webhooks: due deliveries are claimed, sent and recorded (decisions.md §9).
//!
//! The rows are the truth. The actor ([`sender`]) looks at whom there is something for, decides ([`dispatcher`], pure) and
//! writes what it decided in one transaction a turn; attempts are futures beside it. What is in memory is bounded by
//! `webhooks.max_in_flight` and the number of endpoints with something open, not by the backlog: a body is read when its
//! delivery is claimed.
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
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Duration,
};

use sluice_store::Store;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

use self::{
    attempt::{AttemptLimits, Carrier},
    counters::WebhookCounters,
    schedule::RetrySchedule,
    sender::{MAILBOX, Nudge, Sender},
};
use crate::{
    clock::SystemClock,
    component::{ActorHandle, Component},
    outbound::Outbound,
};

pub use attempt::headers;
pub use counters::{Waits, WebhookStatistics};
pub use settings::WebhookSettings;

/// A lease is this much longer than the longest attempt, for the outcome to be recorded.
const LEASE_MARGIN: Duration = Duration::from_secs(60);
/// What the end of the service waits for outcomes to be recorded, after the longest attempt.
const STOP_MARGIN: Duration = Duration::from_secs(3);

/// The handle of webhooks for the façade. Clones share it; it exists before the actor runs.
#[derive(Clone)]
pub struct Webhooks {
    services: Arc<WebhookServices>,
    handle: ActorHandle<Sender>,
}

/// What survives the actor.
struct WebhookServices {
    settings: WebhookSettings,
    store: Store,
    carrier: Arc<dyn Carrier>,
    schedule: RetrySchedule,
    clock: SystemClock,
    /// Of this process's leases.
    owner: Uuid,
    counters: WebhookCounters,
    /// How many actors of this process there have been.
    incarnation: AtomicU64,
    /// An actor of this process has noted what earlier ones left.
    has_started: AtomicBool,
    /// Nothing more is to be claimed.
    closing: CancellationToken,
    /// Everything that was claimed is recorded.
    closed: CancellationToken,
}

impl WebhookServices {
    fn terms(&self) -> AttemptLimits {
        AttemptLimits {
            timeout: self.settings.timeout,
            max_answer: usize::try_from(self.settings.max_answer.as_u64()).unwrap_or(usize::MAX),
        }
    }

    fn lease(&self) -> Duration {
        self.settings.timeout + LEASE_MARGIN
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}

impl Webhooks {
    pub fn new(settings: WebhookSettings, store: Store, outbound: Outbound) -> Self {
        Self::over(settings, store, Arc::new(outbound))
    }

    /// With another carrier than the guarded connector, for tests.
    fn over(settings: WebhookSettings, store: Store, carrier: Arc<dyn Carrier>) -> Self {
        Self {
            services: Arc::new(WebhookServices {
                schedule: RetrySchedule::new(&settings),
                settings,
                store,
                carrier,
                clock: SystemClock::default(),
                owner: Uuid::now_v7(),
                counters: WebhookCounters::default(),
                incarnation: AtomicU64::new(0),
                has_started: AtomicBool::new(false),
                closing: CancellationToken::new(),
                closed: CancellationToken::new(),
            }),
            handle: ActorHandle::default(),
        }
    }

    /// The components that run it.
    pub fn components(&self) -> Vec<Component> {
        vec![Component::new(
            "webhooks",
            self.services.clone(),
            MAILBOX,
            self.handle.clone(),
        )]
    }

    /// Something may be due now. May be lost: the actor looks each second, and after every commit of an event.
    pub fn nudge(&self) {
        if let Some(sender) = self.handle.get() {
            let _ = sender.tell(Nudge).try_send();
        }
    }

    /// The time by which attempts are scheduled and recorded, in milliseconds since 1970; it never goes back.
    pub fn now_ms(&self) -> i64 {
        self.services.clock.now_ms()
    }

    /// What was done since the start, and what is in flight.
    pub fn statistics(&self) -> WebhookStatistics {
        self.services.counters.read()
    }

    /// From now on nothing is claimed; what is in flight goes on.
    pub fn drain(&self) {
        self.services.closing.cancel();
    }

    /// Waits until what is in flight has ended and is recorded: `webhooks.timeout` and a moment at most. Before the actor
    /// and the store end.
    pub async fn close(&self) {
        self.drain();
        if self.handle.get().is_none() {
            return;
        }
        self.nudge();
        let longest = self.services.settings.timeout + STOP_MARGIN;
        let closed = self.services.closed.cancelled();
        if tokio::time::timeout(longest, closed).await.is_err() {
            warn!("webhook attempts are cut short: they are made again at the next start");
        }
    }
}
