//! Sockets of RTMP publishers, read at an interval (`live.read_interval`) instead of at every packet, unless a viewer of WebRTC
//! watches.
//!
//! An encoder sends some 77 small writes a second; waking up for each costs several times what reading them does. Once
//! a publish is admitted, the socket leaves the event queue and is read when the process-wide read time comes: all
//! publishers at the same moment, so that one wake-up serves them all. An interval of 50 ms delays a frame by 25 ms on
//! average; a part lasts 200 ms. While a prompt follower reads the input's units, its socket is in the event queue again.

use std::{
    io::{self, Read, Write},
    net::Shutdown,
    pin::Pin,
    sync::{Arc, LazyLock},
    task::{Context, Poll, ready},
    time::Duration,
};

use parking_lot::Mutex;
use rustix::io::ioctl_fionread;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep_until},
};

use super::restream::unit_window::UnitWindow;

/// Start of the read intervals, common to all connections.
static FIRST_READ: LazyLock<Instant> = LazyLock::new(Instant::now);
/// Pause before a peer that did not take all bytes is written to again.
const WRITE_AGAIN: Duration = Duration::from_millis(10);

/// Says when one socket is read: at every packet until its publish is admitted, then at the interval, and at every packet while
/// the window of its units has a prompt follower.
#[derive(Clone, Debug, Default)]
pub(super) struct BatchingSwitch(Arc<Mutex<Option<Arc<UnitWindow>>>>);

impl BatchingSwitch {
    /// Turns batched reads on for a publisher of these units.
    pub fn turn_on(&self, tap: Arc<UnitWindow>) {
        *self.0.lock() = Some(tap);
    }

    fn is_on(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|tap| !tap.is_prompt())
    }
}

/// See the module documentation.
pub(super) struct BatchedStream {
    socket: Socket,
    switch: BatchingSwitch,
    /// Zero: read at every packet.
    read_interval: Duration,
    next_read: Pin<Box<Sleep>>,
    is_waiting: bool,
    next_write: Option<Pin<Box<Sleep>>>,
}

enum Socket {
    Queued(TcpStream),
    Paced(std::net::TcpStream),
    /// The socket could not leave the event queue.
    Lost,
}

impl BatchedStream {
    pub fn new(socket: TcpStream, switch: BatchingSwitch, read_interval: Duration) -> Self {
        Self {
            socket: Socket::Queued(socket),
            switch,
            read_interval,
            next_read: Box::pin(sleep_until(Instant::now())),
            is_waiting: false,
            next_write: None,
        }
    }

    /// Leaves the event queue when batched reads are turned on, and comes back when they are turned off: seen at the next read.
    fn settle(&mut self) -> io::Result<()> {
        let is_batched = !self.read_interval.is_zero() && self.switch.is_on();
        match (&self.socket, is_batched) {
            (Socket::Queued(_), true) | (Socket::Paced(_), false) => {}
            _ => return Ok(()),
        }
        self.socket = match std::mem::replace(&mut self.socket, Socket::Lost) {
            Socket::Queued(socket) => Socket::Paced(socket.into_std()?),
            Socket::Paced(socket) => Socket::Queued(TcpStream::from_std(socket)?),
            Socket::Lost => Socket::Lost,
        };
        Ok(())
    }

    fn wait_for_read(&mut self) {
        self.next_read
            .as_mut()
            .reset(next_read(Instant::now(), self.read_interval));
        self.is_waiting = true;
    }
}

/// Returns the next common read time after `now`.
fn next_read(now: Instant, read_interval: Duration) -> Instant {
    let intervals = now.duration_since(*FIRST_READ).as_nanos() / read_interval.as_nanos() + 1;
    *FIRST_READ + Duration::from_nanos((intervals * read_interval.as_nanos()) as u64)
}

fn lost() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the socket is gone")
}

impl AsyncRead for BatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if self.is_waiting {
                ready!(self.next_read.as_mut().poll(context));
                self.is_waiting = false;
            }
            self.settle()?;
            let socket = match &mut self.socket {
                Socket::Queued(socket) => return Pin::new(socket).poll_read(context, buffer),
                Socket::Paced(socket) => socket,
                Socket::Lost => return Poll::Ready(Err(lost())),
            };
            // Asking first costs less than clearing a whole buffer for what may be a tenth of it.
            let there = usize::try_from(ioctl_fionread(&*socket)?).unwrap_or(usize::MAX);
            let room = there.max(1).min(buffer.remaining());
            match socket.read(buffer.initialize_unfilled_to(room)) {
                Ok(count) => {
                    buffer.advance(count);
                    if count >= there {
                        self.wait_for_read();
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_for_read(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for BatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            if let Some(sleep) = &mut self.next_write {
                ready!(sleep.as_mut().poll(context));
                self.next_write = None;
            }
            let socket = match &mut self.socket {
                Socket::Queued(socket) => return Pin::new(socket).poll_write(context, bytes),
                Socket::Paced(socket) => socket,
                Socket::Lost => return Poll::Ready(Err(lost())),
            };
            match socket.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.next_write = Some(Box::pin(sleep_until(Instant::now() + WRITE_AGAIN)));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Queued(socket) => Pin::new(socket).poll_flush(context),
            Socket::Paced(_) | Socket::Lost => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Queued(socket) => Pin::new(socket).poll_shutdown(context),
            Socket::Paced(socket) => Poll::Ready(socket.shutdown(Shutdown::Write)),
            Socket::Lost => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    async fn pair(read_interval: Duration) -> (TcpStream, BatchedStream, BatchingSwitch) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let switch = BatchingSwitch::default();
        let (socket, _) = listener.accept().await.unwrap();
        (
            peer,
            BatchedStream::new(socket, switch.clone(), read_interval),
            switch,
        )
    }

    #[test]
    fn beats_are_the_same_for_everyone() {
        let read_interval = Duration::from_millis(40);
        let first = *FIRST_READ;
        for (ms, expected) in [(0, 40), (1, 40), (39, 40), (40, 80), (1001, 1040)] {
            let next = next_read(first + Duration::from_millis(ms), read_interval);
            assert_eq!(next, first + Duration::from_millis(expected), "at {ms} ms");
        }
    }

    #[tokio::test]
    async fn bytes_arrive_whole_before_and_after_pacing_begins_and_both_ways() {
        let (mut peer, mut paced, switch) = pair(Duration::from_millis(5)).await;
        let sent: Vec<u8> = (0..1_000_000_u32).map(|at| at as u8).collect();
        let expected = sent.clone();
        let sending = tokio::spawn(async move {
            peer.write_all(&sent).await.unwrap();
            let mut answer = [0; 4];
            peer.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"took");
        });
        let mut received = vec![0; expected.len()];
        paced.read_exact(&mut received[..1000]).await.unwrap();
        switch.turn_on(Arc::default());
        paced.read_exact(&mut received[1000..]).await.unwrap();
        assert!(received == expected);
        paced.write_all(b"took").await.unwrap();
        sending.await.unwrap();
        assert_eq!(
            paced.read(&mut [0; 1]).await.unwrap(),
            0,
            "the peer's end is seen"
        );
    }

    #[tokio::test]
    async fn a_prompt_follower_puts_the_socket_back_into_the_event_queue() {
        let (mut peer, mut paced, switch) = pair(Duration::from_millis(5)).await;
        let tap = Arc::new(UnitWindow::default());
        switch.turn_on(Arc::clone(&tap));
        let mut byte = [0; 1];
        for (is_prompt, sent) in [(false, 1), (true, 2), (false, 3), (true, 4)] {
            let follower = is_prompt.then(|| tap.follow(Duration::ZERO).promptly());
            peer.write_all(&[sent]).await.unwrap();
            paced.read_exact(&mut byte).await.unwrap();
            assert_eq!(byte, [sent]);
            assert_eq!(matches!(paced.socket, Socket::Queued(_)), is_prompt);
            drop(follower);
        }
        drop(peer);
        assert_eq!(paced.read(&mut byte).await.unwrap(), 0);
    }
}
