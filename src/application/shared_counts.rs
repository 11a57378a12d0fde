//! Counts that the nodes of a cluster have together: each second this node adds its own and reads those of all.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::application::context::{AccountContext, ShareContext};

/// Pause between two turns.
const EVERY: Duration = Duration::from_secs(1);

/// Shares counts until `stop`; a service that is alone has nothing to share.
pub async fn follow(
    accounts: Arc<AccountContext>,
    shares: Arc<ShareContext>,
    stop: CancellationToken,
) {
    let store = &accounts.store;
    if store.cluster().is_solo() {
        return;
    }
    loop {
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = stop.cancelled() => return,
        }
        for shared in [
            accounts.rate_limit.share(store).await,
            shares.shares.failed_tokens.share(store).await,
        ] {
            if let Err(error) = shared {
                tracing::debug!(%error, "this node counts requests and failed tokens by itself");
            }
        }
    }
}
