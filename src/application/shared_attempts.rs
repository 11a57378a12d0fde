//! Attempts that the nodes of a cluster count together, each written before its password is checked: the try beyond the limit is
//! rejected on every node.

use std::time::Duration;

use sluice_store::{Error, Store, counters, credentials, duration_ms, now_ms};

/// Times that a count is tried: one that waits for another in a circle is undone by the database.
const TRIES: usize = 2;

/// Kinds of the counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptKinds {
    pub(crate) by_name: &'static str,
    pub(crate) by_network: &'static str,
}

/// Passwords of users, and codes in their place.
pub(crate) const SIGN_IN: AttemptKinds = AttemptKinds {
    by_name: "sign-in by name",
    by_network: "sign-in by network",
};
/// Passwords of share links.
pub(crate) const SHARES: AttemptKinds = AttemptKinds {
    by_name: "share by link",
    by_network: "share by network",
};

/// Limits, as those of one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptLimits {
    pub(crate) by_name: u32,
    pub(crate) by_network: u32,
    pub(crate) window: Duration,
}

/// The counts of all nodes.
#[derive(Clone)]
pub(crate) struct SharedAttempts {
    store: Store,
    kinds: AttemptKinds,
    limits: AttemptLimits,
}

impl SharedAttempts {
    /// Returns `None` when this process is alone, which needs no rows.
    pub(crate) fn new(store: &Store, kinds: AttemptKinds, limits: AttemptLimits) -> Option<Self> {
        (!store.cluster().is_solo()).then(|| Self {
            store: store.clone(),
            kinds,
            limits,
        })
    }

    /// Returns the counts as those of a node, also when this process is alone.
    #[cfg(test)]
    pub(crate) fn of_node(store: &Store, kinds: AttemptKinds, limits: AttemptLimits) -> Self {
        Self {
            store: store.clone(),
            kinds,
            limits,
        }
    }

    /// Counts a try, and returns those of the name. `Err` holds the time to wait for one beyond the limit. A try that cannot be
    /// written counts on its node alone: `None`.
    pub(crate) async fn begin(&self, name: &str, network: &str) -> Result<Option<u32>, Duration> {
        for _ in 0..TRIES {
            match self.count(name, network).await {
                Ok(Ok(of_name)) => return Ok(Some(u32::try_from(of_name).unwrap_or(u32::MAX))),
                Ok(Err(ends_at)) => {
                    let left_ms = u64::try_from(ends_at - now_ms()).unwrap_or(0);
                    return Err(Duration::from_millis(left_ms));
                }
                Err(error) => {
                    tracing::debug!(%error, "an attempt is counted on this node alone");
                }
            }
        }
        Ok(None)
    }

    /// Counts a try of the network and of the name; returns the tries of the name, or the end of the count that is at its limit.
    async fn count(&self, name: &str, network: &str) -> Result<Result<i64, i64>, Error> {
        let (kinds, limits) = (self.kinds, self.limits);
        let (name, network) = (key(name, network), network.to_owned());
        let (window_ms, now_ms) = (duration_ms(limits.window), now_ms());
        let counting = self.store.write_beside(move |tx| {
            Box::pin(async move {
                let (kind, limit) = (kinds.by_network, limits.by_network);
                let taken = counters::take(tx, kind, &network, limit, window_ms, now_ms).await?;
                if taken.is_err() {
                    return Ok(taken);
                }
                let (kind, limit) = (kinds.by_name, limits.by_name);
                let taken = counters::take(tx, kind, &name, limit, window_ms, now_ms).await?;
                if taken.is_err() {
                    counters::give_back(tx, kinds.by_network, &network).await?;
                }
                Ok(taken)
            })
        });
        counting.await
    }

    /// Clears the name after a right password, and gives one try of the network back.
    pub(crate) async fn succeeded(&self, name: &str, network: &str) {
        let kinds = self.kinds;
        let (name, network) = (key(name, network), network.to_owned());
        let clearing = self.store.write_beside(move |tx| {
            Box::pin(async move {
                counters::give_back(tx, kinds.by_network, &network).await?;
                counters::forget(tx, kinds.by_name, &name).await
            })
        });
        if let Err(error) = clearing.await {
            tracing::debug!(%error, "attempts before a right one stay counted");
        }
    }
}

impl std::fmt::Debug for SharedAttempts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedAttempts")
            .field("kinds", &self.kinds)
            .finish_non_exhaustive()
    }
}

/// Returns the name of a count: hashed, as people type passwords in place of names.
fn key(name: &str, network: &str) -> String {
    credentials::hash(&format!("{network} {name}"))
}

#[cfg(test)]
mod tests {
    use sluice_store::StoreSettings;

    use super::*;

    #[tokio::test]
    async fn the_try_beyond_the_limit_is_rejected_on_every_node() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::without_reserve(folder.path());
        let store = Store::open(&settings).await.unwrap();
        let limits = AttemptLimits {
            by_name: 5,
            by_network: 8,
            window: Duration::from_secs(900),
        };
        assert!(SharedAttempts::new(&store, SIGN_IN, limits).is_none());
        let nodes = [(); 3].map(|()| SharedAttempts::of_node(&store, SIGN_IN, limits));
        for (node, tries) in nodes.iter().cycle().zip(1..=5) {
            assert_eq!(node.begin("admin", "192.0.2.1").await, Ok(Some(tries)));
        }
        for (node, tries) in nodes.iter().zip(1..) {
            let left = node.begin("admin", "192.0.2.1").await.unwrap_err();
            assert!(left > Duration::from_secs(800), "{left:?}");
            assert_eq!(node.begin("admin", "192.0.2.2").await, Ok(Some(tries)));
        }
        nodes[1].succeeded("admin", "192.0.2.1").await;
        // Four tries of the network are left counted: a right password takes its own back only.
        for (node, tries) in nodes.iter().cycle().zip(1..=4) {
            assert_eq!(node.begin("admin", "192.0.2.1").await, Ok(Some(tries)));
        }
        let over = nodes[0].begin("other", "192.0.2.1").await;
        assert!(over.is_err(), "the network has its own limit");
    }
}
