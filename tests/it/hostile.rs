//! Bytes that no client should send: they cost their sender the connection, and no other anything.

mod files;
mod forgery;
mod http;
mod passwords;
mod rtmp;
mod silence;

use std::time::Duration;

use tokio::{io::AsyncReadExt, net::TcpStream, time::timeout};

use crate::support::{
    Failure,
    server::{ADMIN_PASSWORD, API_KEY, Input},
};

/// The service's own deadlines in these scenarios are at most 3 s.
const CLOSED_WITHIN: Duration = Duration::from_secs(15);

async fn until_closed(socket: &mut TcpStream) -> Result<(), Failure> {
    let mut piece = [0; 4096];
    let ended = async { while let Ok(1..) = socket.read(&mut piece).await {} };
    timeout(CLOSED_WITHIN, ended)
        .await
        .map_err(|_| format!("open after {CLOSED_WITHIN:?}").into())
}

/// The log has its lines, and no secret in any of them.
fn check_log(log: &str, inputs: &[&Input]) {
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines.len() > 10, "{log}");
    let keys = inputs.iter().map(|input| {
        let key = input.obs_stream_key.split_once('.');
        key.expect("slug and key").1
    });
    for secret in keys.chain([API_KEY, ADMIN_PASSWORD]) {
        let leaked = lines.iter().find(|line| line.contains(secret));
        assert_eq!(leaked, None);
    }
}
