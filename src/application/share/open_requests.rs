//! End of running requests when a share link is revoked or expires, within a second.
//!
//! A request enters by the hash of its token *before* the link is looked up. So a revocation that commits after the
//! look-up finds the request here, and one that commits before it is found by the look-up.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use sluice_store::now_ms;
use tokio_util::sync::CancellationToken;

/// Open requests by the hash of their token. Bounded by the number of connections.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests {
    inside: Mutex<HashMap<String, Weak<RequestGuard>>>,
}

/// Permission to send under one link; running requests share it.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    open_requests: Arc<OpenRequests>,
    token_hash: String,
    withdrawn: CancellationToken,
}

impl OpenRequests {
    pub(crate) fn enter(self: &Arc<Self>, token_hash: &str) -> Arc<RequestGuard> {
        let mut inside = self.inside.lock();
        if let Some(guard) = inside.get(token_hash).and_then(Weak::upgrade) {
            return guard;
        }
        let guard = Arc::new(RequestGuard {
            open_requests: self.clone(),
            token_hash: token_hash.to_owned(),
            withdrawn: CancellationToken::new(),
        });
        inside.insert(token_hash.to_owned(), Arc::downgrade(&guard));
        guard
    }

    /// Ends the requests under a link whose end is committed.
    pub(crate) fn withdraw(&self, token_hash: &str) {
        // Dropped outside of the lock: the drop of the last guard takes it, too.
        let guard = self
            .inside
            .lock()
            .remove(token_hash)
            .and_then(|it| it.upgrade());
        if let Some(guard) = guard {
            guard.withdrawn.cancel();
        }
    }

    /// The hashes of the tokens inside.
    pub(crate) fn entered(&self) -> Vec<String> {
        self.inside.lock().keys().cloned().collect()
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut inside = self.open_requests.inside.lock();
        // A new guard for the same token may have been inserted meanwhile.
        if inside
            .get(&self.token_hash)
            .is_some_and(|it| it.strong_count() == 0)
        {
            inside.remove(&self.token_hash);
        }
    }
}

/// Resolves when the link is revoked, its folder is deleted, or at `expires_at` (milliseconds since 1970).
pub(crate) async fn withdrawn(guard: Arc<RequestGuard>, expires_at: Option<i64>) {
    let expired = async {
        match expires_at {
            Some(at) => {
                // A sleep of zero length is not ready at its first poll.
                if let Ok(left_ms @ 1..) = u64::try_from(at - now_ms()) {
                    tokio::time::sleep(Duration::from_millis(left_ms)).await;
                }
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = guard.withdrawn.cancelled() => {}
        () = expired => {}
    }
}
