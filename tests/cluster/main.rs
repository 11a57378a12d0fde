//! Scenarios of several nodes: real processes on PostgreSQL and an S3 server behind HAProxy, with relays that break their lines.
//!
//! They wait for each other; those that need no fault share one installation (`undisturbed.rs`), each other one has its own.
//! `scripts/install.sh test` brings the servers. With `SLUICE_SOAK_FAULTS=300` (`make cluster-soak`) the faults are as many, and the
//! outages as long, as promised.

mod answers;
mod images;
mod limits;
mod outages;
mod rejected;
mod rolling;
mod scaling;
mod soak;
mod stores;
mod support;
mod takeover;
mod undisturbed;
