//! Cached sums of files and bytes in a shared folder's tree: how long they are valid, how many are kept. A tree of 100 000 files
//! takes some milliseconds to add up; of simultaneous requests one adds up and the others wait for its answer. In a cluster a
//! reader's next request may come to another node, and sums are valid for a shorter time.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use sluice_store::{Error, shares::Totals};
use tokio::time::Instant;
use uuid::Uuid;

use crate::application::error::ApiError;

/// Time for which sums are valid.
const VALID_FOR: Duration = Duration::from_secs(5);
/// The same in a cluster.
const VALID_IN_CLUSTER: Duration = Duration::from_millis(1_500);
/// Folders whose sums are kept, beside those that are being added up.
const MAX_FOLDERS: usize = 1_000;
/// Longest wait for the request that adds up.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The holder of the lock adds up; when it is dropped, the next one may.
type Sum = Arc<tokio::sync::Mutex<Option<(Instant, Totals)>>>;

#[derive(Debug)]
pub(crate) struct KnownTotals {
    sums: Mutex<HashMap<Uuid, Sum>>,
    valid_for: Duration,
}

impl KnownTotals {
    pub fn new(is_solo: bool) -> Self {
        Self {
            sums: Mutex::default(),
            valid_for: match is_solo {
                true => VALID_FOR,
                false => VALID_IN_CLUSTER,
            },
        }
    }

    /// Returns the totals of a folder: cached ones, or what `sum` returns.
    pub async fn of(
        &self,
        folder_id: Uuid,
        sum: impl AsyncFnOnce() -> Result<Totals, Error>,
    ) -> Result<Totals, ApiError> {
        let known = self.entry(folder_id);
        let turn = tokio::time::timeout(LONGEST_WAIT, known.lock()).await;
        let mut known = turn.map_err(|_| ApiError::Unavailable {
            what: "the size of the folder",
            retry_after_s: 5,
        })?;
        if let Some((made, totals)) = *known
            && made.elapsed() < self.valid_for
        {
            return Ok(totals);
        }
        let totals = sum().await?;
        *known = Some((Instant::now(), totals));
        Ok(totals)
    }

    fn entry(&self, folder_id: Uuid) -> Sum {
        let mut known = self.sums.lock();
        if known.len() >= MAX_FOLDERS && !known.contains_key(&folder_id) {
            known.retain(|_, sum| Arc::strong_count(sum) > 1);
        }
        known.entry(folder_id).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        future::{pending, poll_fn},
        pin::pin,
        task::Poll,
    };

    use futures_util::{FutureExt as _, future::join_all};

    use super::*;

    const FOLDER: Uuid = Uuid::nil();

    fn files(files: i64) -> Totals {
        Totals {
            files,
            ..Totals::default()
        }
    }

    /// Yields to the other futures once.
    async fn step() {
        let mut is_first = true;
        poll_fn(|context| {
            context.waker().wake_by_ref();
            match std::mem::take(&mut is_first) {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_at_once_one_adds_up() {
        let (known, made) = (KnownTotals::new(true), Cell::new(0));
        let ask = || {
            known.of(FOLDER, async || {
                made.set(made.get() + 1);
                step().await;
                Ok(files(made.get()))
            })
        };
        let answers = join_all((0..50).map(|_| ask())).await;
        assert!(answers.into_iter().all(|it| it.unwrap() == files(1)));
        tokio::time::advance(VALID_FOR).await;
        assert_eq!(ask().await.unwrap(), files(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_or_cancelled_sum_lets_the_next_add_up() {
        let known = KnownTotals::new(true);
        {
            let mut leaves = pin!(known.of(FOLDER, async || pending().await));
            assert!(leaves.as_mut().now_or_never().is_none());
            let waits = known.of(FOLDER, async || Ok(files(1)));
            assert!(waits.await.is_err(), "no one waits for ever");
        }
        let failed = known.of(FOLDER, async || Err(Error::NotFound("folder")));
        assert!(failed.await.is_err());
        let next = known.of(FOLDER, async || Ok(files(2)));
        assert_eq!(next.await.unwrap(), files(2));
    }

    #[tokio::test]
    async fn no_more_are_kept_than_there_is_room_for() {
        let known = KnownTotals::new(true);
        for number in 0..=MAX_FOLDERS as u128 {
            let folder = Uuid::from_u128(number);
            known.of(folder, async || Ok(files(0))).await.unwrap();
        }
        assert!(known.sums.lock().len() <= MAX_FOLDERS);
    }
}
