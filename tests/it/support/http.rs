//! The HTTP client of the scenarios.

use std::{net::SocketAddr, sync::Once, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

pub use sluice_testkit::process::free_port;

use super::Failure;

/// Longer than the longest blocking reload (three target durations of at most 6 s).
const ANSWER_DEADLINE: Duration = Duration::from_secs(25);

/// A client that takes any certificate and follows nothing.
pub fn client() -> reqwest::Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An error means that one was installed before, which serves as well.
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

/// Sends a request byte by byte as given, which no client library would, and reads until the server closes. The request
/// should carry `Connection: close`. Returns the status and the whole answer.
pub async fn exchange(
    address: SocketAddr,
    request: impl AsRef<[u8]>,
) -> Result<(u16, String), Failure> {
    let mut socket = TcpStream::connect(address).await?;
    // A server that has rejected the head may not read the rest.
    let _ = socket.write_all(request.as_ref()).await;
    let mut answer = Vec::new();
    let read = timeout(ANSWER_DEADLINE, socket.read_to_end(&mut answer)).await;
    if read.is_err() {
        return Err(format!("the connection is open after {ANSWER_DEADLINE:?}").into());
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer
        .split_whitespace()
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| format!("no status in {answer:?}"))?;
    Ok((status, answer))
}
