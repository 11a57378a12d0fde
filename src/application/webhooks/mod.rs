//! Webhooks: endpoints, deliveries, their requests and records.

pub(crate) mod deliveries;
pub(crate) mod endpoints;
pub(crate) mod record;
pub(crate) mod request;
pub(crate) mod sent;
