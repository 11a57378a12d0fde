//! RTMP client of outputs: connects, publishes, and says why a target failed or rejected the stream.
//!
//! [`Publisher`] is the driver between a socket and the state machine. It reads while it sends, so that pings are
//! answered and a rejection is received; every wait has a bound.

mod session;
mod tag;

use std::{io, time::Duration};

use bytes::BytesMut;
use sluice_media::unit::Unit;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

pub use session::PublishTarget;

use self::session::ClientSession;
use crate::Error;

/// Free space that a read is given.
const READ: usize = 4 << 10;
/// Time for the server to read our last message: closing at once would reset the connection, and it would be lost.
const LINGER: Duration = Duration::from_secs(1);

/// Reason why nothing can be published, in words for the person who entered the address. The stream key is in none of
/// them.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("it rejected the stream: {0}")]
    Refused(String),
    #[error("it ended the stream: {0}")]
    Ended(String),
    #[error("it closed the connection")]
    Closed,
    #[error("{what} took longer than {limit:?}")]
    TimedOut { what: &'static str, limit: Duration },
    #[error("the stream cannot go by RTMP: {0}")]
    Protocol(#[from] Error),
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

/// Bounds of the server's response times.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Time from the connection to the permission to publish.
    pub answer: Duration,
    /// Time for reading what is sent.
    pub write: Duration,
}

/// A publish that was admitted.
#[derive(Debug)]
pub struct Publisher<S> {
    socket: S,
    session: ClientSession,
    input: BytesMut,
    patience: Patience,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Publisher<S> {
    /// Connects, from the handshake to the permission to publish.
    pub async fn open(
        socket: S,
        target: PublishTarget,
        patience: Patience,
    ) -> Result<Self, Failure> {
        let mut publisher = Self {
            socket,
            session: ClientSession::new(target, |buffer| {
                // The random bytes of the handshake protect nothing; zeros would do.
                let _ = getrandom::fill(buffer);
            }),
            input: BytesMut::new(),
            patience,
        };
        let asking = timeout(patience.answer, publisher.ask());
        asking.await.map_err(|_| Failure::TimedOut {
            what: "the answer to publish",
            limit: patience.answer,
        })??;
        Ok(publisher)
    }

    async fn ask(&mut self) -> Result<(), Failure> {
        while !self.session.is_publishing() {
            self.flush().await?;
            self.read().await?;
        }
        Ok(())
    }

    /// Sends units, whose times must rise from 0 on, and waiting answers; returns the bytes sent. Must not be
    /// cancelled half way: the connection is unusable then.
    pub async fn send(&mut self, units: &[Unit]) -> Result<u64, Failure> {
        for unit in units {
            self.session.push(unit)?;
        }
        self.flush().await
    }

    /// Reads the server's messages until there is something to be answered, by [`Publisher::send`]. Cancel safe.
    pub async fn attend(&mut self) -> Result<(), Failure> {
        while self.session.output().is_empty() {
            self.read().await?;
        }
        Ok(())
    }

    /// Ends the publish, and waits a moment for the server to read that.
    pub async fn close(mut self) {
        self.session.end_publish();
        let unpublished = timeout(LINGER, async {
            self.flush().await?;
            self.socket.shutdown().await?;
            loop {
                self.input.clear();
                self.input.reserve(READ);
                if self.socket.read_buf(&mut self.input).await? == 0 {
                    return Ok::<(), Failure>(());
                }
            }
        });
        // Whatever the outcome, the connection is over.
        let _ = unpublished.await;
    }

    async fn read(&mut self) -> Result<(), Failure> {
        self.input.reserve(READ);
        match self.socket.read_buf(&mut self.input).await? {
            0 => Err(Failure::Closed),
            len => self.session.receive(len, &mut self.input),
        }
    }

    async fn flush(&mut self) -> Result<u64, Failure> {
        let output = self.session.output();
        let len = output.len() as u64;
        if len == 0 {
            return Ok(0);
        }
        let (limit, socket) = (self.patience.write, &mut self.socket);
        let written = timeout(limit, async {
            socket.write_all(output).await?;
            socket.flush().await
        })
        .await;
        output.clear();
        let what = "taking the stream";
        written.map_err(|_| Failure::TimedOut { what, limit })??;
        Ok(len)
    }
}
