//! Passwords by the thousand: what checking them takes is given back.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use reqwest::StatusCode;
use serde_json::json;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, sync::watch, task::JoinSet};

use crate::{
    share::{make_folder, share},
    support::{
        Failure,
        http::client,
        json::text,
        server::{ADMIN_PASSWORD, Server, Settings},
    },
};

/// Checks whose answers are read; of as many more the clients reset the connection.
const ANSWERED: usize = 500;
const CLIENTS: usize = 10;
const LINK_PASSWORD: &str = "a link's password";
/// Bound on the growth of the service's memory, in KiB: less than four checks take at a time.
const ALLOWANCE_KIB: u64 = 64 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_passwords_leave_no_memory_behind() -> Result<(), Failure> {
    let many = "1000000";
    let server = Settings::new()
        .env("SLUICE_HTTP__TRUSTED_PROXIES", "127.0.0.1")
        .env("SLUICE_SIGN_IN__ATTEMPTS", many)
        .env("SLUICE_SIGN_IN__NETWORK_ATTEMPTS", many)
        .env("SLUICE_SHARES__PASSWORD_ATTEMPTS", many)
        .env("SLUICE_SHARES__NETWORK_PASSWORD_ATTEMPTS", many)
        .start()
        .await?;
    let api = server.api();
    let folder = make_folder(&api, "locked", None).await?;
    let link = share(&api, &folder, json!({"password": LINK_PASSWORD})).await?;
    let checks = Arc::new(Checks {
        client: client(),
        server: server.base_url(),
        address: server.addresses().http,
        link: text(&link["token"])?,
        next: AtomicUsize::new(0),
        answered: watch::Sender::new(0),
    });
    for kind in 0..4 {
        checks.answered(kind).await?;
    }
    let before_kib = server.resident_kib()?;

    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(checks.clone().until_enough());
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    check_memory(&server, before_kib)
}

fn check_memory(server: &Server, before_kib: u64) -> Result<(), Failure> {
    let more_kib = server.resident_kib()?.saturating_sub(before_kib);
    assert!(more_kib < ALLOWANCE_KIB, "{more_kib} KiB more than before");
    Ok(())
}

/// Password checks of clients, and their progress.
struct Checks {
    client: reqwest::Client,
    server: String,
    address: std::net::SocketAddr,
    link: String,
    next: AtomicUsize,
    answered: watch::Sender<usize>,
}

impl Checks {
    async fn until_enough(self: Arc<Self>) -> Result<(), Failure> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= ANSWERED {
                return Ok(());
            }
            self.reset_in_flight(number).await?;
            self.answered(number).await?;
            self.answered.send_modify(|answered| *answered += 1);
        }
    }

    /// Path, body and expected answer: sign-in and a link in turns, with wrong and right passwords.
    fn kind(&self, number: usize) -> (String, String, u16) {
        let unlock = || format!("/api/share/folder/{}/unlock", self.link);
        let sign_in = |password: &str| json!({"username": "admin", "password": password});
        match number % 4 {
            0 => ("/api/session".into(), sign_in("wrong").to_string(), 401),
            1 => (unlock(), json!({"password": "wrong"}).to_string(), 403),
            2 => (
                "/api/session".into(),
                sign_in(ADMIN_PASSWORD).to_string(),
                201,
            ),
            _ => (
                unlock(),
                json!({"password": LINK_PASSWORD}).to_string(),
                200,
            ),
        }
    }

    /// Another client each time, so that clients do not wait for their own network.
    fn client_address(number: usize) -> String {
        format!("198.51.{}.{}", number / 256, number % 256)
    }

    async fn answered(&self, number: usize) -> Result<(), Failure> {
        let (path, body, expected) = self.kind(number);
        let answer = self
            .client
            .post(format!("{}{path}", self.server))
            .header("x-forwarded-for", Self::client_address(number))
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await?;
        assert_eq!(answer.status(), StatusCode::from_u16(expected)?, "{path}");
        Ok(())
    }

    /// Sends a check and resets the connection when another one's answer has come, or all other clients are done.
    async fn reset_in_flight(&self, number: usize) -> Result<(), Failure> {
        let (path, body, _) = self.kind(number + 1);
        let mut answered = self.answered.subscribe();
        let mut socket = TcpStream::connect(self.address).await?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             X-Forwarded-For: {}\r\nContent-Length: {}\r\n\r\n",
            Self::client_address(number + ANSWERED),
            body.len()
        );
        socket.write_all(head.as_bytes()).await?;
        socket.write_all(body.as_bytes()).await?;
        tokio::select! {
            changed = answered.changed() => changed?,
            readable = socket.readable() => readable?,
        }
        Ok(socket.set_zero_linger()?)
    }
}
