//! Relay between an output and its target that takes less and less.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    time::sleep,
};

use crate::support::Failure;

/// Bytes read at a time when there is a limit.
const PIECE: usize = 16 << 10;
/// Buffer of the receiving socket, small so that little waits when nothing is read.
const RECEIVED: u32 = 8 << 10;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A relay with a limited rate.
#[derive(Debug)]
pub struct Relay {
    pub address: SocketAddr,
    /// Bytes a second towards the target; 0: it is stuck.
    rate: Arc<AtomicU64>,
}

impl Relay {
    /// Starts a relay without a limit.
    pub fn start(target: SocketAddr) -> Result<Self, Failure> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(RECEIVED)?;
        socket.bind("127.0.0.1:0".parse()?)?;
        let listener = socket.listen(16)?;
        let rate = Arc::new(AtomicU64::new(u64::MAX));
        let relay = Self {
            address: listener.local_addr()?,
            rate: rate.clone(),
        };
        tokio::spawn(accept(listener, target, rate));
        Ok(relay)
    }

    pub fn set_rate(&self, bytes_per_second: u64) {
        self.rate.store(bytes_per_second, Ordering::Relaxed);
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, rate: Arc<AtomicU64>) {
    while let Ok((near, _)) = listener.accept().await {
        let rate = rate.clone();
        tokio::spawn(async move {
            if let Ok(far) = TcpStream::connect(target).await {
                let (near_out, near_in) = near.into_split();
                let (far_out, far_in) = far.into_split();
                let back = tokio::spawn(async move {
                    let (mut from, mut to) = (far_out, near_in);
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
                let _ = carry(near_out, far_in, &rate).await;
                back.abort();
            }
        });
    }
}

async fn carry(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    rate: &AtomicU64,
) -> std::io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let rate = rate.load(Ordering::Relaxed);
        if rate == 0 {
            sleep(LOOK_AGAIN).await;
            continue;
        }
        let len = from.read(&mut piece).await?;
        if len == 0 {
            return to.shutdown().await;
        }
        to.write_all(&piece[..len]).await?;
        if rate < u64::MAX {
            sleep(Duration::from_secs_f64(len as f64 / rate as f64)).await;
        }
    }
}
