//! The publisher's connection: commands, answers, and the certainty that what was written has arrived.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::BytesMut;
use sluice_testkit::{
    Failure, eventually,
    publisher::{ANSWER_DEADLINE, Connection, PublishError, Status, Target, listen, put_pong},
};
use tokio::{
    io::AsyncWriteExt,
    net::tcp::OwnedWriteHalf,
    sync::{mpsc, watch},
    task::JoinHandle,
    time::timeout,
};

/// An accepted publish on its socket. The connection is cut when this is dropped.
#[derive(Debug)]
pub struct Wire {
    writer: OwnedWriteHalf,
    local: SocketAddr,
    stream_id: u32,
    pings: mpsc::Receiver<[u8; 4]>,
    statuses: Arc<Mutex<Vec<Status>>>,
    closed: watch::Receiver<bool>,
    _listening: Listening,
}

/// Ends the reading task, which holds the other half of the socket.
#[derive(Debug)]
struct Listening(JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Wire {
    /// Handshake and commands up to the server's permission.
    pub async fn open(target: &Target) -> Result<Self, PublishError> {
        let Connection {
            answers,
            writer,
            stream_id,
        } = Connection::open(target).await?;
        let local = writer.local_addr().map_err(Failure::from)?;
        let statuses = Arc::new(Mutex::new(Vec::new()));
        let (asked, pings) = mpsc::channel(4);
        let (gone, closed) = watch::channel(false);
        let kept = Arc::clone(&statuses);
        let listening = tokio::spawn(async move {
            let keep = |status| kept.lock().expect("no holder panics").push(status);
            listen(answers, asked, keep).await;
            gone.send_replace(true);
        });
        Ok(Self {
            writer,
            local,
            stream_id,
            pings,
            statuses,
            closed,
            _listening: Listening(listening),
        })
    }

    pub fn stream_id(&self) -> u32 {
        self.stream_id
    }

    pub fn statuses(&self) -> Vec<Status> {
        self.statuses.lock().expect("no holder panics").clone()
    }

    /// Writes all of `out`, and answers a ping that waits.
    pub async fn write(&mut self, out: &mut BytesMut) -> Result<(), Failure> {
        if let Ok(time) = self.pings.try_recv() {
            let mut first = BytesMut::new();
            put_pong(&mut first, time);
            self.writer.write_all_buf(&mut first).await?;
        }
        match timeout(ANSWER_DEADLINE, self.writer.write_all_buf(out)).await {
            Ok(written) => Ok(written?),
            Err(_) => Err(format!("the server has not read for {ANSWER_DEADLINE:?}").into()),
        }
    }

    /// Waits until the peer's kernel has acknowledged every byte.
    pub async fn flush(&mut self) -> Result<(), Failure> {
        let local = self.local;
        eventually(
            "the server's acknowledgement",
            ANSWER_DEADLINE,
            async || (unacknowledged_bytes(local) == Some(0)).then_some(()),
        )
        .await
    }

    pub async fn wait_closed(&mut self, deadline: Duration) -> Result<(), Failure> {
        match timeout(deadline, self.closed.wait_for(|&closed| closed)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("the server keeps the connection after {deadline:?}").into()),
        }
    }

    /// Closes the socket by RST, which drops what was not acknowledged.
    pub fn reset(self) -> Result<(), Failure> {
        self.writer.as_ref().set_zero_linger()?;
        // Dropped, it would send FIN before.
        self.writer.forget();
        Ok(())
    }
}

/// Bytes in the send queue of the socket with this local address (proc_net_tcp); `None` when there is none any more.
fn unacknowledged_bytes(local: SocketAddr) -> Option<u64> {
    let IpAddr::V4(ip) = local.ip() else {
        return None;
    };
    let address = format!(
        "{:08X}:{:04X}",
        u32::from_ne_bytes(ip.octets()),
        local.port()
    );
    let table = std::fs::read_to_string("/proc/self/net/tcp").ok()?;
    let mut rows = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row.get(1) == Some(&address.as_str()))?;
    u64::from_str_radix(row.get(4)?.split(':').next()?, 16).ok()
}
