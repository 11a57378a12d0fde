//! Queue for password hashing (sign-in, shares): one hash for each client network, `sign_in.max_waiting`, 429 and 503. A hash takes
//! 19 MiB and tens of milliseconds of a core.
//!
//! One client network hashes at most one password at a time and has a bounded number of requests waiting, and permits are
//! given in order of arrival, so that a network with many requests delays each other network by one check at most. A
//! permit is held by the work and not by the request: it ends when the hash is made, also after a disconnect.

use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use sluice_actors::network::client_network;
use sluice_store::credentials::CONCURRENT_HASHES;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::application::error::ApiError;

/// Passwords of links that are hashed at a time: sign-in must not wait behind strangers' attempts.
const CONCURRENT_LINK_HASHES: usize = 1;
/// Longest wait of a request for a permit.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Use of a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PasswordUse {
    /// Sign-in, and setting a password.
    Account,
    /// Opening a link.
    Link,
}

type Network = (PasswordUse, Option<IpAddr>);

/// Permits, shared by client network.
#[derive(Debug)]
pub(crate) struct PasswordChecks {
    /// Bound of the requests of one network that wait or have a permit.
    max_waiting: usize,
    all: Arc<Semaphore>,
    links: Arc<Semaphore>,
    networks: Networks,
}

type Networks = Arc<Mutex<HashMap<Network, Queue>>>;

/// The requests of one network; removed with the last of them.
#[derive(Debug)]
struct Queue {
    requests: usize,
    one: Arc<Semaphore>,
}

/// A request in the queue of its network.
#[derive(Debug)]
struct Queued {
    networks: Networks,
    network: Network,
}

/// Permit to hash one password.
#[derive(Debug)]
pub(crate) struct HashPermit {
    _permits: [Option<OwnedSemaphorePermit>; 3],
    _queued: Queued,
}

impl PasswordChecks {
    pub(crate) fn new(max_waiting: usize) -> Self {
        Self {
            max_waiting,
            all: Arc::new(Semaphore::new(CONCURRENT_HASHES)),
            links: Arc::new(Semaphore::new(CONCURRENT_LINK_HASHES)),
            networks: Arc::default(),
        }
    }

    /// Waits for a permit. 429 when too many requests of the network wait, 503 when the wait is too long.
    pub(crate) async fn turn(
        &self,
        purpose: PasswordUse,
        client: Option<IpAddr>,
    ) -> Result<HashPermit, ApiError> {
        let network = (purpose, client.map(client_network));
        let (queued, one) = self.queue(network).ok_or(ApiError::TooMany {
            message: "too many passwords are being checked for this address: send them one after the other",
            retry_after_s: 1,
        })?;
        let links = (purpose == PasswordUse::Link).then(|| self.links.clone());
        let permits = async {
            // The network's own permit comes first: only one request of each network queues for the shared permits,
            // which keeps their order fair.
            let one = permit(Some(one)).await;
            let link = permit(links).await;
            [one, link, permit(Some(self.all.clone())).await]
        };
        let permits = tokio::time::timeout(LONGEST_WAIT, permits).await;
        Ok(HashPermit {
            _permits: permits.map_err(|_| ApiError::Unavailable {
                what: "the check of passwords",
                retry_after_s: 5,
            })?,
            _queued: queued,
        })
    }

    fn queue(&self, network: Network) -> Option<(Queued, Arc<Semaphore>)> {
        let mut networks = self.networks.lock();
        let queue = networks.entry(network).or_insert_with(|| Queue {
            requests: 0,
            one: Arc::new(Semaphore::new(1)),
        });
        if queue.requests >= self.max_waiting {
            return None;
        }
        queue.requests += 1;
        let queued = Queued {
            networks: self.networks.clone(),
            network,
        };
        Some((queued, queue.one.clone()))
    }
}

async fn permit(semaphore: Option<Arc<Semaphore>>) -> Option<OwnedSemaphorePermit> {
    // These semaphores are never closed.
    semaphore?.acquire_owned().await.ok()
}

impl HashPermit {
    /// Runs `work` on the blocking pool. The permit ends with the work, also when this future is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let run = move || {
            let _turn = self;
            work()
        };
        tokio::task::spawn_blocking(run)
            .await
            .map_err(ApiError::internal)
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        let mut networks = self.networks.lock();
        if let Some(queue) = networks.get_mut(&self.network) {
            queue.requests -= 1;
            if queue.requests == 0 {
                networks.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt as _;

    use super::*;

    fn client(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    #[tokio::test]
    async fn a_turn_lasts_until_its_work_is_done_though_its_request_is_gone() {
        let checks = PasswordChecks::new(10);
        let (begin, begun) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let turn = checks.turn(PasswordUse::Account, client(1)).await.unwrap();
        let request = tokio::spawn(turn.run(move || {
            begin.send(()).unwrap();
            ended.recv().unwrap();
        }));
        tokio::task::spawn_blocking(move || begun.recv().unwrap())
            .await
            .unwrap();
        request.abort();
        assert!(request.await.is_err_and(|error| error.is_cancelled()));
        assert_eq!(checks.all.available_permits(), CONCURRENT_HASHES - 1);
        let next = checks.turn(PasswordUse::Account, client(1));
        let mut next = Box::pin(next);
        assert!(next.as_mut().now_or_never().is_none(), "one for a network");
        end.send(()).unwrap();
        drop(next.await.unwrap());
        let all = u32::try_from(CONCURRENT_HASHES).unwrap();
        assert!(checks.all.acquire_many(all).await.is_ok());
    }

    #[tokio::test]
    async fn one_network_delays_another_by_one_check() {
        let checks = PasswordChecks::new(10);
        let turn = |last| Box::pin(checks.turn(PasswordUse::Account, client(last)));
        let first = turn(1).await.unwrap();
        let mut waiting: Vec<_> = (0..9).map(|_| turn(1)).collect();
        for turn in &mut waiting {
            assert!(turn.as_mut().now_or_never().is_none());
        }
        let rejected = turn(1).await.unwrap_err();
        assert!(matches!(rejected, ApiError::TooMany { .. }), "{rejected:?}");
        // A second network gets the other slot at once, and a third one the next that is free.
        let second = turn(2).await.unwrap();
        let mut third = turn(3);
        assert!(third.as_mut().now_or_never().is_none());
        drop(first);
        assert!(third.as_mut().now_or_never().is_some());
        drop((second, waiting));
        assert!(checks.networks.lock().is_empty());
    }

    #[tokio::test]
    async fn links_leave_a_place_for_sign_in() {
        let checks = PasswordChecks::new(10);
        let link = checks.turn(PasswordUse::Link, client(1)).await.unwrap();
        let mut next = Box::pin(checks.turn(PasswordUse::Link, client(2)));
        assert!(next.as_mut().now_or_never().is_none());
        assert!(checks.turn(PasswordUse::Account, client(1)).await.is_ok());
        drop(link);
        assert!(next.await.is_ok());
    }
}
