//! Clients that connect in numbers and say nothing: others are served as before.

use std::net::{IpAddr, SocketAddr};

use reqwest::Client;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::timeout,
};

use super::CLOSED_WITHIN;
use crate::support::{
    Failure, eventually,
    http::client,
    media::Recipe,
    publisher::{Pace, Publisher},
    server::Settings,
};

const SILENT_ADDRESS: [u8; 4] = [127, 0, 0, 2];
/// More than actix-web lets one worker have of unfinished handshakes, which is 256.
const MOST_HANDSHAKES: usize = 280;
const MOST_UNADMITTED: usize = 4;
const BEYOND: usize = 20;
/// Longer than the scenario: the service does not end a silent connection meanwhile.
const LONG: &str = "10m";

/// Silent connections, those that the service closes apart.
struct Silent {
    closed: JoinSet<()>,
    open: usize,
}

impl Silent {
    async fn connect(server: SocketAddr, number: usize) -> Result<Self, Failure> {
        let mut closed = JoinSet::new();
        for _ in 0..number {
            let mut socket = connect(server).await?;
            closed.spawn(async move {
                let _ = socket.read(&mut [0]).await;
            });
        }
        Ok(Self {
            closed,
            open: number,
        })
    }

    /// Waits until the service has closed so many of them.
    async fn until_closed(&mut self, number: usize) -> Result<(), Failure> {
        for _ in 0..number {
            let closed = timeout(CLOSED_WITHIN, self.closed.join_next());
            closed.await?.ok_or("none is left")??;
            self.open -= 1;
        }
        Ok(())
    }

    /// Checks that no connections were closed but those waited for.
    fn check_open(&mut self) {
        assert!(self.closed.try_join_next().is_none());
        assert_eq!(self.closed.len(), self.open);
    }
}

async fn connect(server: SocketAddr) -> Result<TcpStream, Failure> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((SILENT_ADDRESS, 0)))?;
    Ok(socket.connect(server).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_https_connections_delay_their_own_network_only() -> Result<(), Failure> {
    let server = Settings::new()
        .tls()
        .env("SLUICE_HTTP__WORKERS", "1")
        .env("SLUICE_HTTP__MAX_HANDSHAKES", &MOST_HANDSHAKES.to_string())
        .env("SLUICE_HTTP__HANDSHAKE_TIMEOUT", LONG)
        .start()
        .await?;
    let url = format!("{}/healthz", server.base_url());
    let mut silent = Silent::connect(server.addresses().http, MOST_HANDSHAKES + BEYOND).await?;
    silent.until_closed(BEYOND).await?;
    assert_eq!(client().get(&url).send().await?.status(), 200);
    silent.check_open();

    let neighbour = Client::builder()
        .no_proxy()
        .tls_danger_accept_invalid_certs(true)
        .local_address(IpAddr::from(SILENT_ADDRESS))
        .build()?;
    assert!(neighbour.get(&url).send().await.is_err());
    drop(silent);
    eventually("a network's places come free", CLOSED_WITHIN, async || {
        neighbour.get(&url).send().await.ok()
    })
    .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_rtmp_connections_cost_others_no_place() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let server = Settings::new()
        .env("SLUICE_RTMP__MAX_CONNECTIONS", "16")
        .env("SLUICE_RTMP__MAX_UNADMITTED", &MOST_UNADMITTED.to_string())
        .env("SLUICE_RTMP__HANDSHAKE_TIMEOUT", LONG)
        .start()
        .await?;
    let api = server.api();
    let mut silent = Silent::connect(server.addresses().rtmp, MOST_UNADMITTED + BEYOND).await?;
    silent.until_closed(BEYOND).await?;

    // Encoders of another network, more than the bound: an admitted one gives its place back.
    let mut encoders = Vec::new();
    for number in 0..=MOST_UNADMITTED {
        let input = api.create(json!({"name": format!("{number}")})).await?;
        let mut encoder = Publisher::open(&input.target(), &clip).await?;
        encoder.send_frames(1, Pace::Unbounded).await?;
        encoders.push(encoder);
    }
    silent.check_open();
    drop(silent);
    let rtmp = server.addresses().rtmp;
    eventually("a network's places come free", CLOSED_WITHIN, async || {
        let mut socket = connect(rtmp).await.ok()?;
        // C0 and C1; a connection that has a place is answered.
        socket
            .write_all(&[&[3][..], &[0; 1536]].concat())
            .await
            .ok()?;
        let answered = socket.read(&mut [0; 1]).await.ok()?;
        (answered == 1).then_some(())
    })
    .await
}
