//! Sluice, a self-hosted media service: modules of the library that `main`, the integration tests and the load harness start.
//!
//! [`app::Service`] is the whole service.

#[macro_use]
pub mod application;

pub mod app;
pub mod causes;
pub mod cli;
pub mod config;
pub mod doctor;
#[cfg(test)]
mod fixtures;
#[doc(hidden)]
pub mod fuzzing;
pub mod http;
pub mod log;
mod mcp;
pub mod metrics;
mod peer;
pub mod protocols;
pub mod tls;
