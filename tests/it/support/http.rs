//! The HTTP client of the scenarios.

use std::{sync::Once, time::Duration};

/// Longer than the longest blocking reload (three target durations of at most 6 s).
const ANSWER_DEADLINE: Duration = Duration::from_secs(25);

/// A client that takes any certificate and follows nothing.
pub fn client() -> reqwest::Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An error means that somebody installed one before, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    reqwest::Client::builder()
        .no_proxy()
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none())
        .tls_danger_accept_invalid_certs(true)
        .timeout(ANSWER_DEADLINE)
        .build()
        .expect("the client's settings are valid")
}
