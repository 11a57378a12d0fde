//! Shared state of share links: previews at a time (`shares.max_previews`), end of requests when a folder is deleted, retries while
//! the store is busy.

pub(crate) mod counts;
pub(crate) mod failed_tokens;
pub(crate) mod links;
pub(crate) mod open_requests;
pub(crate) mod request;
pub(crate) mod totals;

use std::{sync::Arc, time::Duration};

use sluice_store::{Error, Store, shares};
use tokio::sync::{Semaphore, SemaphorePermit};

use self::{counts::Counts, open_requests::OpenRequests};
use crate::{
    application::{
        error::ApiError,
        share::{failed_tokens::FailedTokens, totals::KnownTotals},
        shared_attempts,
        sign_in::Attempts,
    },
    config,
};

/// Links in use that are looked up in one query.
pub(crate) const LINKS_PER_QUERY: usize = 1_000;

/// Longest wait of a preview for a permit.
pub(crate) const LONGEST_PREVIEW_WAIT: Duration = Duration::from_secs(30);

/// Attempts to look links up while the store is busy.
pub(crate) const BUSY_ATTEMPTS: usize = 60;

/// Pause between two attempts while the store is busy.
pub(crate) const BUSY_PAUSE: Duration = Duration::from_millis(500);

/// State that the handlers of shares have in common. All of it may be lost, but for the counts, which are written.
pub struct Shares {
    pub(crate) open_requests: Arc<OpenRequests>,
    pub(crate) failed_tokens: FailedTokens,
    pub(crate) attempts: Attempts,
    previews: Semaphore,
    pub(crate) counts: Arc<Counts>,
    pub(crate) totals: KnownTotals,
}

impl Shares {
    /// `store`: where the nodes of a cluster count together.
    pub fn new(settings: &config::Shares, store: &Store) -> Self {
        Self {
            open_requests: Arc::default(),
            failed_tokens: FailedTokens::new(settings.failed_tokens, settings.failed_token_window),
            attempts: Attempts::new(
                settings.password_attempts,
                settings.network_password_attempts,
                settings.password_window,
            )
            .shared_by_nodes(store, shared_attempts::SHARES),
            previews: Semaphore::new(settings.max_previews),
            counts: Arc::default(),
            totals: KnownTotals::new(store.cluster().is_solo()),
        }
    }

    /// Waits for a permit to have a preview rendered: anyone with a link may request thousands at once.
    pub(crate) async fn preview_turn(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        match tokio::time::timeout(LONGEST_PREVIEW_WAIT, self.previews.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(ApiError::Unavailable {
                what: "the previews of shared folders",
                retry_after_s: 5,
            }),
        }
    }

    /// Withdraws the requests under links of deleted folders, after the commit. Retries while the store is busy, since
    /// nothing else would end them.
    pub(crate) async fn folders_deleted(&self, store: &Store) -> Result<(), Error> {
        for some in self.open_requests.entered().chunks(LINKS_PER_QUERY) {
            for token_hash in gone(store, some).await? {
                self.open_requests.withdraw(&token_hash);
            }
        }
        Ok(())
    }

    /// Withdraws the requests under links that are gone, by a commit of any node.
    pub(crate) async fn links_changed(&self, store: &Store) -> Result<(), Error> {
        for some in self.open_requests.entered().chunks(LINKS_PER_QUERY) {
            let gone = shares::gone(&mut store.read().await?, some).await?;
            for token_hash in gone {
                self.open_requests.withdraw(&token_hash);
            }
        }
        Ok(())
    }

    /// Writes what is only noted in memory. Also before the store closes.
    pub async fn flush(&self, store: &Store) {
        self.counts.flush(store).await;
    }
}

pub(crate) async fn gone(store: &Store, token_hashes: &[String]) -> Result<Vec<String>, Error> {
    for _ in 1..BUSY_ATTEMPTS {
        let looked = async { shares::gone(&mut store.read().await?, token_hashes).await };
        match looked.await {
            Err(Error::Busy(_)) => tokio::time::sleep(BUSY_PAUSE).await,
            answer => return answer,
        }
    }
    shares::gone(&mut store.read().await?, token_hashes).await
}
