//! Bound on guessed share links by client network (`shares.failed_tokens`, `failed_token_window`).
//!
//! Only tokens of no link are counted, each once: a page that was open when its link was revoked requests a hundred
//! images with one token, and is no guesser. After too many of them, every link is unavailable to that network.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use sluice_actors::network::client_network;

use crate::application::attempt_counter::AttemptCounter;

/// Characters of a token's hash that are remembered.
const HASH_CHARACTERS: usize = 16;

/// The tokens that opened nothing in the last `window`.
#[derive(Debug)]
pub(crate) struct FailedTokens {
    by_network: AttemptCounter<Option<IpAddr>>,
}

impl FailedTokens {
    pub(crate) fn new(allowed: u32, window: Duration) -> Self {
        Self {
            // The guess beyond those allowed is the one that ends them.
            by_network: AttemptCounter::new(allowed.saturating_add(1), window),
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
    }
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
}
