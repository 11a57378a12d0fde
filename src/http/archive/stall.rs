//! End of ZIP downloads whose reader takes nothing (`archive.stall_timeout`).
//!
//! A connection that takes nothing is ended by the system (`http.send_timeout`), but HTTP/2 lets a reader hold back one answer on
//! a connection that is well. What an archive holds is dropped then, and its answer ends short of its length.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::Stream;
use parking_lot::Mutex;
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep_until},
};

/// A stream that is dropped when nothing is taken from it for long; it ends in an error then. The time that the stream itself
/// needs for an item does not count.
pub(super) struct Watched<S> {
    held: Arc<Mutex<Held<S>>>,
    watch: AbortHandle,
}

struct Held<S> {
    /// `None` once the stream was dropped.
    stream: Option<Pin<Box<S>>>,
    /// Time since which the reader has had all that it requested; `None` while it waits for the stream.
    untaken_since: Option<Instant>,
}

impl<S: Send + 'static> Watched<S> {
    /// Must be called on a runtime: a task looks after the stream for as long as there is this.
    pub(super) fn new(stream: S, timeout: Duration) -> Self {
        let held = Arc::new(Mutex::new(Held {
            stream: Some(Box::pin(stream)),
            untaken_since: Some(Instant::now()),
        }));
        let watch = tokio::spawn(watch(Arc::downgrade(&held), timeout));
        Self {
            held,
            watch: watch.abort_handle(),
        }
    }
}

/// Drops the stream when its reader has stopped reading for that long.
async fn watch<S>(held: Weak<Mutex<Held<S>>>, timeout: Duration) {
    let mut look_at = Instant::now() + timeout;
    loop {
        sleep_until(look_at).await;
        let Some(held) = held.upgrade() else { return };
        let now = Instant::now();
        let mut held = held.lock();
        look_at = held.untaken_since.unwrap_or(now) + timeout;
        if look_at <= now {
            held.stream = None;
            tracing::info!("an archive ends short: its reader took nothing for {timeout:?}");
            return;
        }
    }
}

impl<S, T> Stream for Watched<S>
where
    S: Stream<Item = io::Result<T>>,
{
    type Item = io::Result<T>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut held = self.held.lock();
        let Some(stream) = &mut held.stream else {
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        };
        let polled = stream.as_mut().poll_next(cx);
        held.untaken_since = None;
        let item = ready!(polled);
        held.untaken_since = Some(Instant::now());
        Poll::Ready(item)
    }
}

impl<S> Drop for Watched<S> {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt as _, stream};
    use tokio::time::{advance, sleep};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(300);

    /// Counts up, each number after this time, and holds what is given.
    fn numbers(held: Arc<()>, pace: Duration) -> impl Stream<Item = io::Result<u32>> + Send {
        stream::unfold((held, 0), move |(held, number)| async move {
            sleep(pace).await;
            Some((Ok(number), (held, number + 1)))
        })
    }

    #[tokio::test(start_paused = true)]
    async fn what_no_one_takes_is_given_up() {
        let held = Arc::new(());
        let mut watched = Watched::new(numbers(held.clone(), Duration::ZERO), PATIENCE);
        assert_eq!(watched.next().await.unwrap().unwrap(), 0);
        sleep(PATIENCE - Duration::from_secs(1)).await;
        assert_eq!(Arc::strong_count(&held), 2);
        sleep(Duration::from_secs(2)).await;
        assert_eq!(Arc::strong_count(&held), 1, "all that it held is free");
        for _ in 0..2 {
            let ended = watched.next().await.unwrap().unwrap_err();
            assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_who_never_begins_is_waited_for_no_longer() {
        let held = Arc::new(());
        let watched = Watched::new(numbers(held.clone(), Duration::ZERO), PATIENCE);
        sleep(PATIENCE + Duration::from_secs(1)).await;
        assert_eq!(Arc::strong_count(&held), 1);
        drop(watched);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_and_a_slow_disk_are_waited_for() {
        let held = Arc::new(());
        let mut watched = Watched::new(numbers(held.clone(), 2 * PATIENCE), PATIENCE);
        for number in 0..5 {
            assert_eq!(watched.next().await.unwrap().unwrap(), number);
            sleep(PATIENCE - Duration::from_secs(1)).await;
        }
        drop(watched);
        assert_eq!(
            Arc::strong_count(&held),
            1,
            "at once, not when the watch ends"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_is_an_end() {
        let mut watched = Watched::new(stream::empty::<io::Result<u32>>(), PATIENCE);
        assert!(watched.next().await.is_none());
        advance(Duration::from_secs(1)).await;
        drop(watched);
    }
}
