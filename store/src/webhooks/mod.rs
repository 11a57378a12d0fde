//! Rows of webhooks: endpoints, deliveries of events to them, and attempts; the states of a delivery.
//!
//! A delivery is leased in place (docs/decisions/0013), by the rules of [`crate::work`] but for three: a claim takes
//! rows of one endpoint at a time and in the order of its events, the retry schedule bounds the tries instead of a
//! number of claims, and a lease outlives the longest attempt, so that there is no heartbeat.
//!
//! ```text
//!              claim                      record
//!   pending ────────▶ delivering ──────────────────▶ delivered
//!                      ▲      │ ├──────────────────▶ failed ─┐ replay
//!                claim │      ▼ record, interrupt            │
//!                     retrying ◀─────────────────────────────┘
//! ```
//!
//! - A claim commits the attempt's row before the first byte is sent; its fence rises, and [`record`] skips a claim
//!   whose fence is not the row's any more.
//! - An attempt whose owner has ended is marked `interrupted` and made again at once; it does not count in the retry
//!   schedule.
//! - Nodes of a cluster share the endpoints out among them, and a node claims nothing of an endpoint of which another one still
//!   holds deliveries ([`claimable`]): so an endpoint's order and limits are the same on one node and on several.
//! - Waiting deliveries are ordered by due time and then by event ([`claim`]). After a suspension or a pause,
//!   [`rewind`] restores the order of the events.

mod attempts;
mod counts;
mod deliveries;
mod endpoints;
mod health;
pub(crate) mod owned;
mod replay;
mod request;
pub(crate) mod retention;
mod subscriptions;
#[cfg(test)]
pub(crate) mod tests;
mod turns;

pub use attempts::{
    Attempt, AttemptStatus, Attempted, Next, attempts, interrupt, interrupt_expired,
    mend_due_times, record,
};
pub(crate) use counts::kept_bytes;
pub use counts::{Counts, MOST_COUNTED, counts, waiting};
pub use deliveries::{
    Delivery, DeliveryFilter, DeliveryStatus, MOST_PREVIEW_CHARACTERS, deliveries, delivery,
};
pub use endpoints::{
    Endpoint, EndpointPatch, EndpointStatus, NewEndpoint, create, delete, get, list, patch,
    rotate_secret,
};
pub use health::{EndpointHealth, finish_release, rewind, set_healths};
pub use replay::{Probed, probe, recover, replay, test};
pub use request::{AttemptTime, DeliveryRequest, request};
pub use retention::Retention;
pub(crate) use subscriptions::{endpoints_of, fan_out};
pub use turns::{ClaimRequest, Claimed, Lane, What, claim, claimable, held_elsewhere, lanes};
