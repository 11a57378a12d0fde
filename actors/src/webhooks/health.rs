//! Health of a webhook endpoint: suspension (`suspend_after`, `suspend_over`), probes (`probe_every`), pause after 410,
//! rests of failing endpoints.
//!
//! Pure.
//!
//! ```text
//!            failures ≥ suspend_after, over ≥ suspend_over
//!   active ───────────────────────────────────────────────▶ suspended     (one probe in probe_every)
//!     ▲ ◀──────────────────── first 2xx ──────────────────────┘
//!     │ owner                                                 │ 410
//!   paused ◀──────────────────── 410 ─────────────────────────┘
//! ```
//!
//! Deliveries of a suspended or paused endpoint wait without using up attempts. A failing endpoint rests before its next
//! attempt, so that a dead receiver with a backlog is not flooded. Times that lie ahead, because the clock was set back
//! between two processes, delay nothing.

use std::time::Duration;

use sluice_store::{
    duration_ms,
    webhooks::{EndpointHealth, EndpointStatus},
};

use super::{
    WebhookSettings,
    schedule::{AttemptResult, Purpose, after},
};

/// Failures in a row before an endpoint rests at all.
const RESTS_FROM: u32 = 3;
/// First rest; it doubles with every further failure up to `webhooks.max_rest`.
const FIRST_REST: Duration = Duration::from_millis(100);
const GONE: &str = "the receiver answered 410 Gone";

/// Rules by which endpoints are suspended, probed and paused between attempts.
#[derive(Clone, Debug)]
pub struct Rules(WebhookSettings);

/// Change that the owner of an endpoint should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Suspended,
    /// It answers again: its waiting deliveries are sent.
    Released,
    /// By 410, until its owner resumes it.
    Paused,
}

impl Rules {
    pub fn new(settings: &WebhookSettings) -> Self {
        Self(settings.clone())
    }

    /// Returns the health of an endpoint after an attempt.
    pub fn judge(
        &self,
        mut health: EndpointHealth,
        purpose: Purpose,
        ending: AttemptResult,
        ended_at: i64,
    ) -> (EndpointHealth, Option<Change>) {
        let change = match ending {
            AttemptResult::Success => self.succeeded(&mut health, ended_at),
            AttemptResult::Failure { .. } => self.failed(&mut health, purpose, ended_at),
            AttemptResult::Gone => {
                note_failure(&mut health, ended_at);
                paused(&mut health)
            }
        };
        (health, change)
    }

    fn succeeded(&self, health: &mut EndpointHealth, ended_at: i64) -> Option<Change> {
        health.consecutive_failures = 0;
        health.first_failure_at = None;
        health.last_success_at = health.last_success_at.max(Some(ended_at));
        if health.status != EndpointStatus::Suspended {
            return None;
        }
        health.status = EndpointStatus::Active;
        health.status_reason = None;
        health.next_probe_at = None;
        health.is_releasing = true;
        Some(Change::Released)
    }

    fn failed(
        &self,
        health: &mut EndpointHealth,
        purpose: Purpose,
        ended_at: i64,
    ) -> Option<Change> {
        note_failure(health, ended_at);
        match health.status {
            EndpointStatus::Paused => None,
            EndpointStatus::Suspended => {
                if purpose == Purpose::Probe {
                    health.next_probe_at = Some(after(ended_at, self.0.probe_every));
                }
                None
            }
            EndpointStatus::Active => {
                let first = health.first_failure_at.unwrap_or(ended_at);
                let is_enough = health.consecutive_failures >= self.0.suspend_after
                    && ended_at.saturating_sub(first) >= duration_ms(self.0.suspend_over);
                is_enough.then(|| self.suspend(health, ended_at))
            }
        }
    }

    fn suspend(&self, health: &mut EndpointHealth, now_ms: i64) -> Change {
        health.status = EndpointStatus::Suspended;
        health.status_reason = Some(format!(
            "{} attempts in a row failed; deliveries wait until the receiver answers again",
            health.consecutive_failures
        ));
        health.next_probe_at = Some(after(now_ms, self.0.probe_every));
        health.is_releasing = false;
        Change::Suspended
    }

    /// Returns the end of a failing endpoint's rest; not later than the longest rest from now.
    pub fn rests_until(&self, health: &EndpointHealth, now_ms: i64) -> i64 {
        match health.last_failure_at {
            Some(failed_at) if failed_at <= now_ms => {
                after(failed_at, self.rest(health.consecutive_failures))
            }
            _ => i64::MIN,
        }
    }

    fn rest(&self, failures: u32) -> Duration {
        match failures.checked_sub(RESTS_FROM) {
            None => Duration::ZERO,
            Some(doublings) => FIRST_REST
                .saturating_mul(1 << doublings.min(20))
                .min(self.0.max_rest),
        }
    }

    /// Returns the time of a suspended endpoint's next probe.
    pub fn probe_at(&self, health: &EndpointHealth, now_ms: i64) -> i64 {
        match health.next_probe_at {
            Some(at) if at <= after(now_ms, self.0.probe_every) => at,
            _ => now_ms,
        }
    }
}

/// Notes the time of an attempt that has no other effect on the health.
pub fn noted(mut health: EndpointHealth, ending: AttemptResult, ended_at: i64) -> EndpointHealth {
    let last = match ending {
        AttemptResult::Success => &mut health.last_success_at,
        AttemptResult::Failure { .. } | AttemptResult::Gone => &mut health.last_failure_at,
    };
    *last = (*last).max(Some(ended_at));
    health
}

/// Returns whether it gets one attempt at a time only.
pub fn is_failing(health: &EndpointHealth) -> bool {
    health.consecutive_failures > 0
}

fn note_failure(health: &mut EndpointHealth, ended_at: i64) {
    health.consecutive_failures = health.consecutive_failures.saturating_add(1);
    let first = health.first_failure_at.unwrap_or(ended_at);
    health.first_failure_at = Some(first.min(ended_at));
    health.last_failure_at = Some(ended_at);
}

fn paused(health: &mut EndpointHealth) -> Option<Change> {
    if health.status == EndpointStatus::Paused {
        return None;
    }
    health.status = EndpointStatus::Paused;
    health.status_reason = Some(GONE.to_owned());
    health.next_probe_at = None;
    health.is_releasing = false;
    Some(Change::Paused)
}
