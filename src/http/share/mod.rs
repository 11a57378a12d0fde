//! Folder shares: a link by which anyone with it looks through a folder (decisions.md §10).
//!
//! The owner makes, shows and revokes the link of a folder ([`owner`]). A reader shows nothing but the link's token: every
//! handler of a reader takes a [`ShareAccess`], and whatever is wrong with a link is answered alike ([`access`]). Bytes run
//! under the link's leave ([`open_requests`]) and end when it is withdrawn.

mod access;
mod counts;
mod failed_tokens;
mod listing;
mod open_requests;
mod owner;
mod page;
mod password;
mod reader;
mod request;
mod totals;

use std::{sync::Arc, time::Duration};

use sluice_store::{Error, Store, shares};
use tokio::sync::{Semaphore, SemaphorePermit};

pub use owner::{__path_create, __path_revoke, __path_show, create, revoke, show};
pub use page::{__path_enter_password, __path_open_page, enter_password, open_page};
pub use reader::{
    __path_browse, __path_download, __path_preview, __path_unlock, __path_zip, browse, download,
    preview, unlock, zip,
};

use self::{
    counts::Counts, failed_tokens::FailedTokens, open_requests::OpenRequests, totals::KnownTotals,
};
use super::{error::ApiError, sign_in::Attempts};
use crate::config;

/// Links under way that are looked up at a time.
const LOOKED_UP: usize = 1_000;
/// How long a preview waits for its turn.
const PREVIEW_PATIENCE: Duration = Duration::from_secs(30);
/// How often a store that is busy is asked again.
const TRIES: usize = 60;
const BUSY_PAUSE: Duration = Duration::from_millis(500);

/// What the handlers of shares have in common. All of it may be lost, but for the counts, which are written.
pub struct Shares {
    open_requests: Arc<OpenRequests>,
    failed_tokens: FailedTokens,
    attempts: Attempts,
    previews: Semaphore,
    counts: Counts,
    totals: KnownTotals,
}

impl Shares {
    pub fn new(settings: &config::Shares) -> Self {
        Self {
            open_requests: Arc::default(),
            failed_tokens: FailedTokens::new(settings.failed_tokens, settings.failed_token_window),
            attempts: Attempts::new(
                settings.password_attempts,
                settings.network_password_attempts,
                settings.password_window,
            ),
            previews: Semaphore::new(settings.max_previews),
            counts: Counts::default(),
            totals: KnownTotals::default(),
        }
    }

    /// A turn to have a preview rendered: anyone with a link may ask for thousands at once.
    pub(super) async fn preview_turn(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        match tokio::time::timeout(PREVIEW_PATIENCE, self.previews.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(ApiError::Unavailable {
                what: "the previews of shared folders",
                retry_after_s: 5,
            }),
        }
    }

    /// Folders were deleted, and that is committed: what runs under their links ends. A store that is busy is asked again: no one
    /// else would end it.
    pub(super) async fn folders_deleted(&self, store: &Store) -> Result<(), Error> {
        for some in self.open_requests.entered().chunks(LOOKED_UP) {
            for token_hash in gone(store, some).await? {
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

async fn gone(store: &Store, token_hashes: &[String]) -> Result<Vec<String>, Error> {
    for _ in 1..TRIES {
        let looked = async { shares::gone(&mut store.read().await?, token_hashes).await };
        match looked.await {
            Err(Error::Busy(_)) => tokio::time::sleep(BUSY_PAUSE).await,
            answer => return answer,
        }
    }
    shares::gone(&mut store.read().await?, token_hashes).await
}
