//! HTTP/1.1 connection to a receiver: one request at a time, bounds on the head of the answer (`outbound.max_head`) and the
//! bytes before it.
//!
//! hyper bounds one head (`outbound.max_head`), not the number of informational ones (RFC 9110 §15.2) before it; so bytes
//! are counted below it from the request to the head of the final answer. Dropping a connection closes it.

use std::{
    error::Error as _,
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use hyper::{
    Request, Response,
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

use super::{Body, Error, dial::Io};

/// Longest time after an answer until the connection takes the next request. Only a receiver that answered before it had
/// read the request needs any.
const READY_WITHIN: Duration = Duration::from_millis(50);

pub(crate) struct Connection {
    sender: SendRequest<Body>,
    allowance: Arc<Allowance>,
    max_head: u64,
    _driver: AbortOnDropHandle<()>,
}

/// Reason why there is no answer.
pub(crate) enum Failure {
    /// Not a byte of the request was sent: it may go by another connection.
    Unsent(Box<Request<Body>>),
    /// The receiver may have got it.
    Broken(Error),
}

impl Connection {
    pub(crate) async fn open(stream: Box<dyn Io>, max_head: u64) -> Result<Self, Error> {
        let allowance = Arc::new(Allowance::default());
        let counted = Counted {
            stream,
            allowance: allowance.clone(),
        };
        let max_buffer = usize::try_from(max_head).unwrap_or(usize::MAX);
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(max_buffer)
            .handshake(TokioIo::new(counted))
            .await
            .map_err(|error| explained(&error))?;
        let driver = tokio::spawn(async move {
            // The caller that waits for the answer gets the error.
            let _ended = connection.await;
        });
        Ok(Self {
            sender,
            allowance,
            max_head,
            _driver: AbortOnDropHandle::new(driver),
        })
    }

    /// Sends a request and waits for the head of its answer. The answer's body must be read before the next request.
    pub(crate) async fn send(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Failure> {
        // One read more than a whole head: it may bring the beginning of the body with it.
        self.allowance.set(2 * self.max_head);
        match self.sender.try_send_request(request).await {
            Ok(answer) => {
                self.allowance.set(Allowance::NO_BOUND);
                Ok(answer)
            }
            Err(mut failure) => Err(match failure.take_message() {
                Some(request) => Failure::Unsent(Box::new(request)),
                // hyper itself does not report that a head was too large.
                None if self.allowance.left() <= self.max_head => {
                    Failure::Broken(Error::HeadTooLarge(self.max_head))
                }
                None => Failure::Broken(explained(failure.error())),
            }),
        }
    }

    /// Returns whether it takes another request, once the last answer has been read to its end.
    pub(crate) async fn is_ready_again(&mut self) -> bool {
        self.allowance.set(2 * self.max_head);
        matches!(timeout(READY_WITHIN, self.sender.ready()).await, Ok(Ok(())))
    }
}

/// Maps an error of hyper to one with a message for users.
pub(crate) fn explained(error: &hyper::Error) -> Error {
    if error.is_parse() {
        return Error::Malformed(error.to_string());
    }
    match error.source() {
        Some(cause) => Error::Closed(cause.to_string()),
        None => Error::Closed(error.to_string()),
    }
}

/// Bytes that may still be read.
#[derive(Default)]
struct Allowance(AtomicU64);

impl Allowance {
    const NO_BOUND: u64 = u64::MAX;

    fn set(&self, bytes: u64) {
        self.0.store(bytes, Relaxed);
    }

    fn left(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn spend(&self, bytes: u64) {
        let spent = |left| (left != Self::NO_BOUND).then(|| u64::saturating_sub(left, bytes));
        // An error says that there is no bound.
        let _unbounded = self.0.fetch_update(Relaxed, Relaxed, spent);
    }
}

/// A stream that stops reading when its allowance is spent.
struct Counted {
    stream: Box<dyn Io>,
    allowance: Arc<Allowance>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.allowance.left() == 0 {
            return Poll::Ready(Err(io::Error::other("too much came before the answer")));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.allowance
            .spend((buffer.filled().len() - before) as u64);
        read
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
