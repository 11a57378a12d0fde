//! One request at a time writes a resumable upload (tus): a newer request takes it over, 423 `locked`. The newer one ends the
//! present one, waits until its bytes are on the disk, and continues from them.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::{Mutex as Order, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::application::error::ApiError;

/// Longest wait of a request for the end of its predecessor: to flush its bytes, or to make a file of them.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The working and waiting requests of each upload; uploads without one have no entry.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashMap<Uuid, WaitingUploads>>);

#[derive(Debug, Default)]
struct WaitingUploads {
    order: Arc<Order<()>>,
    /// Ends the newest request when a newer one arrives.
    newest: CancellationToken,
    members: usize,
}

/// Turn of one request, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    ended: CancellationToken,
    // Declared, and so dropped, before the membership: no one begins a second queue meanwhile.
    _order: OwnedMutexGuard<()>,
    _member: Member,
}

impl Turn {
    /// Completes when a newer request has arrived.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

impl Turns {
    /// Ends the running request of the upload, and takes its turn. 423 when that one does not end in time, or a newer
    /// request arrived.
    pub(crate) async fn take(self: &Arc<Self>, upload: Uuid) -> Result<Turn, ApiError> {
        let (member, order, ended) = self.join(upload);
        let order = tokio::time::timeout(LONGEST_WAIT, order.lock_owned())
            .await
            .map_err(|_| ApiError::Locked("an earlier request is still at work on this upload"))?;
        match ended.is_cancelled() {
            true => Err(taken_over()),
            false => Ok(Turn {
                ended,
                _order: order,
                _member: member,
            }),
        }
    }

    fn join(self: &Arc<Self>, upload: Uuid) -> (Member, Arc<Order<()>>, CancellationToken) {
        let mut queues = self.0.lock();
        let queue = queues.entry(upload).or_default();
        // Cancels a request that still waits, too: only the newest may follow the running one.
        queue.newest.cancel();
        queue.newest = CancellationToken::new();
        queue.members += 1;
        let member = Member {
            turns: self.clone(),
            upload,
        };
        (member, queue.order.clone(), queue.newest.clone())
    }
}

/// Error for a request that a newer one has ended.
pub(crate) fn taken_over() -> ApiError {
    ApiError::Locked("another request has taken this upload over")
}

/// Keeps the queue of an upload for as long as a request is in it.
#[derive(Debug)]
struct Member {
    turns: Arc<Turns>,
    upload: Uuid,
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut queues = self.turns.0.lock();
        if let Some(queue) = queues.get_mut(&self.upload) {
            queue.members -= 1;
            if queue.members == 0 {
                queues.remove(&self.upload);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_newest_request_is_the_one() {
        let turns = Arc::new(Turns::default());
        let upload = Uuid::new_v4();
        let first = turns.take(upload).await.unwrap();
        let other = turns.take(Uuid::new_v4()).await.unwrap();
        assert!(first.ended().now_or_never().is_none(), "another upload");

        let mut second = pin!(turns.take(upload));
        assert!(second.as_mut().now_or_never().is_none(), "the first works");
        first.ended().await;
        let mut third = pin!(turns.take(upload));
        assert!(third.as_mut().now_or_never().is_none());
        drop(first);
        assert!(matches!(second.await, Err(ApiError::Locked(_))));
        let third = third.await.unwrap();
        assert!(third.ended().now_or_never().is_none());

        // A request that does not end.
        assert!(matches!(turns.take(upload).await, Err(ApiError::Locked(_))));
        drop((third, other));
        assert!(turns.0.lock().is_empty());
    }
}
