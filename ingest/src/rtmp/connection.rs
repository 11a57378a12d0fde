//! Serves an RTMP publisher's socket: read sizes, back-pressure, time to linger after the last message. It drives the
//! protocol's state machine and asks the authorizer.
//!
//! One loop: decode what was read, deliver it, send what is to be sent, wait. While units wait to be taken, the socket
//! is not read: that is the back-pressure to the encoder. One ticker of a second serves every deadline.

use std::{future::Future, io, net::SocketAddr, pin::pin, time::Duration};

use bytes::BytesMut;
use sluice_media::unit::Unit;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::{Instant, Interval, MissedTickBehavior, interval, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Error,
    publish::{
        ADMIT_WITHIN, Closed, Ended, Protocol, PublishAuthorizer, PublishRequest, PublishSession,
        Rejection,
    },
};

use super::{
    RtmpSettings,
    session::{DecodeState, PublishCommand, ServerSession},
};

/// Interval of the checks of deadlines.
const TICK: Duration = Duration::from_secs(1);
/// Free space for a read before `publish`, while no key was checked.
const READ_BEFORE_PUBLISH: usize = 4 << 10;
/// Free space for a read of a publisher.
const READ_PUBLISHING: usize = 64 << 10;
/// A buffer with less room than this is replaced before it is read into.
const SMALLEST_READ: usize = 4 << 10;
/// Time within which data is read that a publisher had sent when the service ended its publish: sockets may be read in
/// batches of up to 100 ms. Bytes that have arrived already are taken later too, up to the bound.
const LAST_READ: Duration = Duration::from_millis(120);
const LAST_READ_BYTES: usize = 4 << 20;
/// Time, and bytes, for which a peer may continue sending after our last message. Closing at once would reset the
/// connection, and the peer would lose that message.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 4 << 20;

/// Serves RTMP on an accepted socket until it ends. Never panics, never allocates by a declared length. `stop` ends it
/// with an orderly close.
///
/// `Ok` is an end that either side may choose: publish ended, end of file, taken over, stopped. A rejected publish is
/// [`Error::Refused`], and the encoder has received the reason.
pub async fn serve<S, G>(
    socket: S,
    remote: SocketAddr,
    protocol: Protocol,
    authorizer: &G,
    settings: &RtmpSettings,
    stop: CancellationToken,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    G: PublishAuthorizer,
{
    let mut connection = Connection::new(socket, settings, stop);
    let outcome = connection.run(remote, protocol, authorizer).await;
    let has_last_message = match &outcome {
        Ok(Exit::PeerGone) | Err(Error::Io(_) | Error::TimedOut { .. }) => false,
        Ok(Exit::Closing) | Err(Error::Refused(_) | Error::Unsupported { .. }) => true,
        Err(Error::Invalid { .. } | Error::TooLarge { .. }) => false,
    };
    if has_last_message {
        connection.linger().await;
    }
    outcome.map(|_| ())
}

/// End of a connection without an error.
enum Exit {
    PeerGone,
    /// We close; the peer still reads.
    Closing,
}

/// Reason why the wait for input ended.
enum Wake {
    Read,
    Tick,
    PeerGone,
    Stopped,
    Closed,
}

/// Reason for the end of a publish.
enum PublishEnd {
    Goodbye,
    PeerGone,
    /// The service ended it.
    Ours,
}

struct Connection<S> {
    socket: S,
    session: ServerSession,
    input: BytesMut,
    units: Vec<Unit>,
    started: Instant,
    ticker: Interval,
    write_timeout: Duration,
    /// Free space for a read.
    read_size: usize,
    stop: CancellationToken,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Connection<S> {
    fn new(socket: S, settings: &RtmpSettings, stop: CancellationToken) -> Self {
        let mut ticker = interval(TICK);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            socket,
            session: ServerSession::new(settings, fill_random),
            input: BytesMut::new(),
            units: Vec::new(),
            started: Instant::now(),
            ticker,
            write_timeout: settings.write_timeout,
            read_size: READ_BEFORE_PUBLISH,
            stop,
        }
    }

    async fn run<G: PublishAuthorizer>(
        &mut self,
        remote: SocketAddr,
        protocol: Protocol,
        authorizer: &G,
    ) -> Result<Exit, Error> {
        let ask = match self.until_asked().await? {
            Ok(ask) => ask,
            Err(exit) => return Ok(exit),
        };
        let request = PublishRequest {
            protocol,
            remote,
            stream: ask.stream,
            encoder: ask.encoder,
        };
        let mut publisher = match self.admit(authorizer, request).await {
            Ok(publisher) => publisher,
            Err(rejection) => {
                let error = self.session.refuse(rejection);
                self.flush().await?;
                return Err(error);
            }
        };
        self.read_size = READ_PUBLISHING;
        self.session.admit(self.now());

        let end = self.publish(&mut publisher).await;
        publisher.report(self.session.report());
        let how = match end {
            Ok(PublishEnd::Goodbye) => Ended::Clean,
            _ => Ended::Dropped,
        };
        // Before the last message: a peer that reads slowly must not delay the broadcast's end.
        publisher.end(how).await;
        match end? {
            PublishEnd::PeerGone => Ok(Exit::PeerGone),
            PublishEnd::Goodbye | PublishEnd::Ours => {
                self.session.close_stream();
                self.flush().await?;
                Ok(Exit::Closing)
            }
        }
    }

    /// Runs the connection up to the `publish` command. The inner error is an end without a publish.
    async fn until_asked(&mut self) -> Result<Result<PublishCommand, Exit>, Error> {
        loop {
            let progress = self.decode();
            // Before the error is returned: answers that precede it are still to be sent.
            self.flush().await?;
            match progress? {
                DecodeState::Asked(ask) => return Ok(Ok(ask)),
                DecodeState::Ended => return Ok(Err(Exit::Closing)),
                DecodeState::Paused => continue,
                DecodeState::Starved => {}
            }
            match self.wait(std::future::pending()).await? {
                Wake::Read | Wake::Tick => {}
                Wake::PeerGone => return Ok(Err(Exit::PeerGone)),
                Wake::Stopped | Wake::Closed => return Ok(Err(Exit::Closing)),
            }
        }
    }

    async fn admit<G: PublishAuthorizer>(
        &self,
        authorizer: &G,
        request: PublishRequest,
    ) -> Result<G::Session, Rejection> {
        tokio::select! {
            admitted = timeout(ADMIT_WITHIN, authorizer.admit(request)) => {
                admitted.unwrap_or(Err(Rejection::Busy))
            }
            () = self.stop.cancelled() => Err(Rejection::Busy),
        }
    }

    async fn publish<P: PublishSession>(&mut self, publisher: &mut P) -> Result<PublishEnd, Error> {
        let mut next_report = self.now();
        loop {
            let progress = self.decode();
            // Messages that arrived whole are delivered first, whatever came after them.
            let delivered = self.deliver(publisher).await;
            let answered = self.flush().await;
            if delivered.is_err() {
                answered?;
                self.take_arrived(publisher).await?;
                return Ok(PublishEnd::Ours);
            }
            let progress = progress?;
            // An encoder that says goodbye and closes without reading our answers resets the connection: writing fails
            // while its last frames and its goodbye are still to be read.
            if let (Err(error), false) = (answered, progress == DecodeState::Ended) {
                return match self.take_arrived(publisher).await? {
                    DecodeState::Ended => Ok(PublishEnd::Goodbye),
                    _ => Err(error),
                };
            }
            let now = self.now();
            if now >= next_report {
                publisher.report(self.session.report());
                next_report = now + TICK;
            }
            match progress {
                DecodeState::Ended => return Ok(PublishEnd::Goodbye),
                DecodeState::Paused => {
                    // The input may hold many more messages, and other connections share this thread.
                    tokio::task::yield_now().await;
                    continue;
                }
                // A second `publish` is answered by the session itself.
                DecodeState::Starved | DecodeState::Asked(_) => {}
            }
            match self.wait(publisher.closed()).await? {
                Wake::Read | Wake::Tick => {}
                Wake::PeerGone => return Ok(PublishEnd::PeerGone),
                Wake::Stopped | Wake::Closed => {
                    self.take_arrived(publisher).await?;
                    return Ok(PublishEnd::Ours);
                }
            }
        }
    }

    /// Takes what had arrived before the publish ended, and belongs to it: decodes what was read, then reads until
    /// nothing more comes. The size of one read indicates nothing: behind TLS it is a record.
    async fn take_arrived<P: PublishSession>(
        &mut self,
        publisher: &mut P,
    ) -> Result<DecodeState, Error> {
        let deadline = Instant::now() + LAST_READ;
        let mut taken = 0;
        loop {
            let progress = self.deliver_decoded(publisher).await?;
            if progress != DecodeState::Starved || taken >= LAST_READ_BYTES {
                return Ok(progress);
            }
            self.input.reserve(self.read_size);
            let read = timeout_at(deadline, self.socket.read_buf(&mut self.input)).await;
            let Ok(len @ 1..) = read.unwrap_or(Ok(0)) else {
                return Ok(progress);
            };
            self.session.count_received(len);
            taken += len;
        }
    }

    /// Decodes all of the input for a publish that is known to be closed.
    async fn deliver_decoded<P: PublishSession>(
        &mut self,
        publisher: &mut P,
    ) -> Result<DecodeState, Error> {
        loop {
            let progress = self.decode();
            let _ = self.deliver(publisher).await;
            match progress? {
                DecodeState::Paused => tokio::task::yield_now().await,
                progress => return Ok(progress),
            }
        }
    }

    fn decode(&mut self) -> Result<DecodeState, Error> {
        let now = self.now();
        self.session.receive(&mut self.input, now, &mut self.units)
    }

    async fn deliver<P: PublishSession>(&mut self, publisher: &mut P) -> Result<(), Closed> {
        if self.units.is_empty() {
            return Ok(());
        }
        let delivered = tokio::select! {
            biased;
            delivered = publisher.deliver(&mut self.units) => delivered,
            () = self.stop.cancelled() => Err(Closed),
        };
        self.session.resume(self.started.elapsed());
        delivered
    }

    /// Waits for bytes, the ticker, or an end from our side. Reading comes first because it is the most frequent; a
    /// flood does not hide the others, since deadlines and `stop` are checked after every read.
    async fn wait(&mut self, closed: impl Future<Output = Closed>) -> Result<Wake, Error> {
        if self.stop.is_cancelled() {
            return Ok(Wake::Stopped);
        }
        if self.input.capacity() - self.input.len() < SMALLEST_READ {
            self.input.reserve(self.read_size);
        }
        let closed = pin!(closed);
        let wake = tokio::select! {
            biased;
            read = self.socket.read_buf(&mut self.input) => match read? {
                0 => return Ok(Wake::PeerGone),
                len => {
                    self.session.count_received(len);
                    Wake::Read
                }
            },
            _ = closed => return Ok(Wake::Closed),
            () = self.stop.cancelled() => return Ok(Wake::Stopped),
            _ = self.ticker.tick() => Wake::Tick,
        };
        self.session.tick(self.now())?;
        Ok(wake)
    }

    async fn flush(&mut self) -> Result<(), Error> {
        let output = self.session.output();
        if output.is_empty() {
            return Ok(());
        }
        let limit = self.write_timeout;
        let socket = &mut self.socket;
        let written = timeout(limit, async {
            socket.write_all(output).await?;
            socket.flush().await
        })
        .await;
        // Answers are sent at the start and rarely afterwards: no buffer is kept for them.
        *output = Vec::new();
        let what = "reading our answer";
        written.map_err(|_| Error::TimedOut { what, limit })??;
        Ok(())
    }

    /// Lets the peer read our last message, then closes.
    async fn linger(&mut self) {
        let drained = timeout(LINGER, async {
            self.socket.shutdown().await?;
            let mut drained = 0;
            while drained < LINGER_BYTES {
                self.input.clear();
                self.input.reserve(READ_BEFORE_PUBLISH);
                match self.socket.read_buf(&mut self.input).await? {
                    0 => break,
                    len => drained += len,
                }
            }
            Ok::<(), io::Error>(())
        });
        // Whatever the outcome, the connection is over.
        let _ = drained.await;
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}

fn fill_random(buffer: &mut [u8]) {
    // The random bytes of the handshake protect nothing; zeros would do.
    let _ = getrandom::fill(buffer);
}
