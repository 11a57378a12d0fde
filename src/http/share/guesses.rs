//! Guessed links: counted by address, so that guessing comes to an end.
//!
//! What is counted is tokens that open nothing, each once: a page that was open when its link was revoked asks for a hundred
//! pictures with one token, and is no guesser. Whoever has guessed too often is told of every link that it is unavailable.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::Mutex,
    time::{Duration, Instant},
};

use crate::http::sign_in::network;

/// Addresses remembered at a time. When a flood fills it, the oldest are forgotten.
const CAPACITY: usize = 10_000;
/// Of a token's hash that is remembered.
const REMEMBERED: usize = 16;

/// The tokens that opened nothing in the last `window`.
#[derive(Debug)]
pub(super) struct Guesses {
    allowed: usize,
    window: Duration,
    by_network: Mutex<HashMap<Option<IpAddr>, Guessed>>,
}

#[derive(Debug)]
struct Guessed {
    since: Instant,
    tokens: Vec<u64>,
}

impl Guesses {
    pub(super) fn new(allowed: u32, window: Duration) -> Self {
        Self {
            allowed: allowed as usize,
            window,
            by_network: Mutex::default(),
        }
    }

    /// Whether the address may not know of any link; `missed` is the hash of the token it showed, if that opens nothing.
    pub(super) fn is_over(
        &self,
        client: Option<IpAddr>,
        missed: Option<&str>,
        now: Instant,
    ) -> bool {
        let network = network(client);
        let mut guesses = self.by_network.lock().expect("no panic under this lock");
        if let Some(guessed) = guesses.get(&network)
            && now.duration_since(guessed.since) >= self.window
        {
            guesses.remove(&network);
        }
        let Some(token_hash) = missed else {
            let guessed = guesses.get(&network);
            return guessed.is_some_and(|guessed| guessed.tokens.len() > self.allowed);
        };
        if !guesses.contains_key(&network) && guesses.len() >= CAPACITY {
            self.make_room(&mut guesses, now);
        }
        let guessed = guesses.entry(network).or_insert_with(|| Guessed {
            since: now,
            tokens: Vec::new(),
        });
        let token = short(token_hash);
        if guessed.tokens.len() <= self.allowed && !guessed.tokens.contains(&token) {
            guessed.tokens.push(token);
        }
        guessed.tokens.len() > self.allowed
    }

    fn make_room(&self, guesses: &mut HashMap<Option<IpAddr>, Guessed>, now: Instant) {
        guesses.retain(|_, guessed| now.duration_since(guessed.since) < self.window);
        if guesses.len() >= CAPACITY {
            let oldest = guesses.iter().min_by_key(|(_, guessed)| guessed.since);
            if let Some(network) = oldest.map(|(network, _)| *network) {
                guesses.remove(&network);
            }
        }
    }
}

fn short(token_hash: &str) -> u64 {
    let beginning = token_hash.get(..REMEMBERED).unwrap_or_default();
    u64::from_str_radix(beginning, 16).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(600);

    #[test]
    fn a_guesser_learns_nothing_more_until_the_window_is_over() {
        let (guesses, start) = (Guesses::new(3, WINDOW), Instant::now());
        let (home, other) = ("192.0.2.1".parse().ok(), "192.0.2.2".parse().ok());
        let guess = |number: u64, second| {
            let now = start + Duration::from_secs(second);
            guesses.is_over(home, Some(&format!("{number:064x}")[48..]), now)
        };
        let knows =
            |client, second| !guesses.is_over(client, None, start + Duration::from_secs(second));
        for _ in 0..100 {
            assert!(!guess(1, 0), "the same dead link is one guess");
        }
        assert!(!guess(2, 1) && !guess(3, 2) && knows(home, 3));
        assert!(guess(4, 4));
        assert!(!knows(home, 5) && knows(other, 5) && knows(None, 5));
        assert!(!knows(home, 599) && knows(home, 600));
        assert!(!guess(1, 600));
    }

    #[test]
    fn a_flood_of_addresses_stays_in_bounds() {
        let (guesses, start) = (Guesses::new(1, WINDOW), Instant::now());
        for number in 0..CAPACITY as u32 + 50 {
            let client = Some(IpAddr::V4(number.into()));
            let now = start + Duration::from_millis(u64::from(number));
            assert!(!guesses.is_over(client, Some("00"), now));
        }
        assert!(guesses.by_network.lock().unwrap().len() <= CAPACITY);
    }
}
