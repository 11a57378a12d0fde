//! Bound on guessed share links by client network (`shares.failed_tokens`, `failed_token_window`).
//!
//! Only tokens of no link are counted, each once: a page that was open when its link was revoked requests a hundred
//! images with one token, and is no guesser. After too many of them, every link is unavailable to that network.
//!
//! In a cluster each node adds what it counted to the counts of all each second, and learns which networks are at their limit.

use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, RwLock};
use sluice_actors::network::client_network;
use sluice_store::{
    Error, Store,
    counters::{self, Added},
    duration_ms, now_ms,
};

use crate::application::attempt_counter::AttemptCounter;

/// Characters of a token's hash that are remembered.
const HASH_CHARACTERS: usize = 16;
/// Kind of the counts of all nodes.
const KIND: &str = "failed tokens";
/// Networks that are written each second; the others follow.
const NETWORKS_PER_TURN: usize = 1_000;
/// Networks at their limit by the counts of all nodes; further ones go by the counts of each node.
const MOST_AT_LIMIT: usize = 10_000;
/// Networks at their limit that are read each second; the others follow. One that is known stays so until its window is over.
const AT_LIMIT_PER_TURN: u32 = 1_000;

/// The tokens that opened nothing in the last `window`.
#[derive(Debug)]
pub(crate) struct FailedTokens {
    /// Tokens that end a network's guesses.
    limit: u32,
    by_network: AttemptCounter<Option<IpAddr>>,
    /// Networks at their limit by the counts of all nodes, until these times.
    by_all_nodes: RwLock<HashMap<Option<IpAddr>, Instant>>,
    /// Name of a count from which the next turn reads those.
    next_name: Mutex<String>,
}

impl FailedTokens {
    pub(crate) fn new(allowed: u32, window: Duration) -> Self {
        // The guess beyond those allowed is the one that ends them.
        let limit = allowed.saturating_add(1);
        Self {
            limit,
            by_network: AttemptCounter::new(limit, window),
            by_all_nodes: RwLock::default(),
            next_name: Mutex::default(),
        }
    }

    /// Returns whether the address may try no further token; `missed` is the hash of the token it showed, if that opens
    /// nothing.
    pub(crate) fn is_over(
        &self,
        client: Option<IpAddr>,
        missed: Option<&str>,
        now: Instant,
    ) -> bool {
        let network = client.map(client_network);
        let missed = missed.map(|token_hash| Some(short(token_hash)));
        let counted = missed.map(|hash| self.by_network.count(network, hash, now));
        counted.is_some_and(|counted| counted.is_err())
            || self.by_network.locked_out(&network, now).is_some()
            || self.is_over_on_nodes(&network, now)
    }

    fn is_over_on_nodes(&self, network: &Option<IpAddr>, now: Instant) -> bool {
        let by_all_nodes = self.by_all_nodes.read();
        by_all_nodes.get(network).is_some_and(|until| *until > now)
    }

    /// Adds what was counted here to the counts of all nodes, and takes up which networks are at their limit.
    pub(crate) async fn share(&self, store: &Store) -> Result<(), Error> {
        let (now, now_ms) = (Instant::now(), now_ms());
        let counted = self.by_network.take_unshared(NETWORKS_PER_TURN, now);
        if !counted.is_empty() {
            let added: Vec<Added> = counted
                .iter()
                .map(|(network, failures, left)| Added {
                    name: name(network),
                    used: *failures,
                    ends_at: now_ms.saturating_add(duration_ms(*left)),
                })
                .collect();
            let adding = store.write_beside(move |tx| {
                Box::pin(async move { counters::add(tx, KIND, &added, now_ms).await })
            });
            if let Err(error) = adding.await {
                if !matches!(error, Error::Unknown) {
                    self.by_network.put_unshared_back(&counted);
                }
                return Err(error);
            }
        }
        let mut db = store.read().await?;
        let (limit, from) = (self.limit, self.next_name.lock().clone());
        let most = AT_LIMIT_PER_TURN;
        let full = counters::at_limit(&mut db, KIND, limit, &from, now_ms, most).await?;
        *self.next_name.lock() = match full.last() {
            Some(last) if full.len() == most as usize => last.name.clone(),
            _ => String::new(),
        };
        let mut by_all_nodes = self.by_all_nodes.write();
        by_all_nodes.retain(|_, until| *until > now);
        for count in full {
            if by_all_nodes.len() >= MOST_AT_LIMIT {
                break;
            }
            let left_ms = u64::try_from(count.ends_at - now_ms).unwrap_or(0);
            let until = now + Duration::from_millis(left_ms);
            by_all_nodes.insert(count.name.parse().ok(), until);
        }
        Ok(())
    }
}

/// Returns the name of a network's count: its address, nothing for one that is not known.
fn name(network: &Option<IpAddr>) -> String {
    network.map_or_else(String::new, |network| network.to_string())
}

fn short(token_hash: &str) -> u64 {
    let beginning = token_hash.get(..HASH_CHARACTERS).unwrap_or_default();
    u64::from_str_radix(beginning, 16).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(600);

    #[test]
    fn a_guesser_learns_nothing_more_until_the_window_is_over() {
        let (failed_tokens, start) = (FailedTokens::new(3, WINDOW), Instant::now());
        let (home, other) = ("192.0.2.1".parse().ok(), "192.0.2.2".parse().ok());
        let guess = |number: u64, second| {
            let now = start + Duration::from_secs(second);
            failed_tokens.is_over(home, Some(&format!("{number:064x}")[48..]), now)
        };
        let knows = |client, second| {
            !failed_tokens.is_over(client, None, start + Duration::from_secs(second))
        };
        for _ in 0..100 {
            assert!(!guess(1, 0), "the same dead link is one guess");
        }
        assert!(!guess(2, 1) && !guess(3, 2) && knows(home, 3));
        assert!(guess(4, 4));
        assert!(!knows(home, 5) && knows(other, 5) && knows(None, 5));
        assert!(!knows(home, 599) && knows(home, 600));
        assert!(!guess(1, 600));
    }

    #[tokio::test]
    async fn guesses_on_all_nodes_are_those_of_one_network() {
        let folder = tempfile::tempdir().unwrap();
        let settings = sluice_store::StoreSettings::without_reserve(folder.path());
        let store = Store::open(&settings).await.unwrap();
        let nodes = [(); 3].map(|()| FailedTokens::new(3, WINDOW));
        let (guesser, other) = ("2001:db8::1".parse().ok(), "192.0.2.2".parse().ok());
        let now = Instant::now();
        for (number, node) in nodes[..2].iter().enumerate() {
            for guess in 0..2 {
                let hash = format!("{:016x}", 10 * number + guess);
                assert!(!node.is_over(guesser, Some(&hash), now));
            }
            node.share(&store).await.unwrap();
        }
        for node in &nodes {
            node.share(&store).await.unwrap();
            assert!(node.is_over(guesser, None, now));
            assert!(!node.is_over(other, None, now) && !node.is_over(None, None, now));
            assert!(!node.is_over(guesser, None, now + 2 * WINDOW));
        }
    }

    #[tokio::test]
    async fn networks_at_their_limit_are_read_by_turns() {
        let folder = tempfile::tempdir().unwrap();
        let settings = sluice_store::StoreSettings::without_reserve(folder.path());
        let store = Store::open(&settings).await.unwrap();
        let (node, now_ms) = (FailedTokens::new(3, WINDOW), now_ms());
        let full: Vec<Added> = (0..1_500)
            .map(|number| Added {
                name: format!("10.0.{}.{}", number / 256, number % 256),
                used: node.limit,
                ends_at: now_ms + duration_ms(WINDOW),
            })
            .collect();
        let adding = store.write_beside(move |tx| {
            Box::pin(async move { counters::add(tx, KIND, &full, now_ms).await })
        });
        adding.await.unwrap();
        for known in [1_000, 1_500, 1_500] {
            node.share(&store).await.unwrap();
            assert_eq!(node.by_all_nodes.read().len(), known);
        }
        assert!(node.is_over("10.0.5.219".parse().ok(), None, Instant::now()));
    }
}
