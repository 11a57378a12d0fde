//! Connection to the service that breaks: each carries some bytes and ends, at times before the answer is through.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::support::{Failure, dice::Dice};

/// Ends when it is dropped.
pub struct Line {
    pub address: SocketAddr,
    breaks: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

impl Line {
    /// To `service`; a connection brings it less than `most_bytes`.
    pub async fn to(service: SocketAddr, most_bytes: u64, mut dice: Dice) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let breaks = Arc::new(AtomicU64::new(0));
        let counted = breaks.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let budget = dice.below(most_bytes);
                // A quarter of the connections lose an answer.
                let loses_answer = dice.below(4) == 0;
                let counted = counted.clone();
                connections.spawn(async move {
                    let carried = carry(client, service, budget, loses_answer);
                    if carried.await.is_none() {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        Ok(Self {
            address,
            breaks,
            _tasks: tasks,
        })
    }

    /// Connections that broke.
    pub fn breaks(&self) -> u64 {
        self.breaks.load(Ordering::Relaxed)
    }
}

/// Carries bytes both ways. `None` when the connection broke by plan; otherwise one of the two has closed.
async fn carry(
    mut client: TcpStream,
    service: SocketAddr,
    budget: u64,
    loses_answer: bool,
) -> Option<()> {
    let mut server = TcpStream::connect(service).await.ok()?;
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.split(), server.split());
    let upwards = async {
        let (mut left, mut piece) = (budget, vec![0; 16 * 1024]);
        loop {
            let count = from_client.read(&mut piece).await.unwrap_or(0);
            if count == 0 {
                return Some(());
            }
            let taken = (count as u64).min(left);
            to_server.write_all(&piece[..taken as usize]).await.ok()?;
            left -= taken;
            if left == 0 {
                return None;
            }
        }
    };
    let downwards = async {
        let mut piece = vec![0; 16 * 1024];
        loop {
            let count = from_server.read(&mut piece).await.unwrap_or(0);
            if count == 0 {
                return Some(());
            }
            if loses_answer {
                return None;
            }
            to_client.write_all(&piece[..count]).await.ok()?;
        }
    };
    tokio::select! { ended = upwards => ended, ended = downwards => ended }
}
