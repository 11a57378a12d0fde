//! Sluice: a self-hosted media service. RTMP in, low-latency HLS out, driven by REST.
//!
//! [`app::Service`] is the whole service: `main`, the integration tests and the load harness start the same one.

pub mod app;
pub mod application;
pub mod causes;
pub mod cli;
pub mod config;
#[doc(hidden)]
pub mod fuzzing;
pub mod http;
mod mcp;
pub mod metrics;
pub mod protocols;
pub mod tls;
