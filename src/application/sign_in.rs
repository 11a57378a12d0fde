//! Lock-out after wrong passwords (`sign_in.attempts`, `network_attempts`, `window`), by name and client network. Counted by name
//! and network, so that no other client is locked out, and by network alone, so that many names do not allow many attempts. In a
//! cluster the nodes count together ([`SharedAttempts`]), and each by itself when the database is away.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use sluice_actors::network::client_network;
use sluice_store::Store;

use crate::application::{
    attempt_counter::AttemptCounter,
    shared_attempts::{AttemptKinds, AttemptLimits, SharedAttempts},
};

/// Characters of a user name that count, so that an entry is small.
const NAME_LENGTH: usize = 64;

/// Wrong passwords of the last `window`.
#[derive(Debug)]
pub struct Attempts {
    limits: AttemptLimits,
    by_name: AttemptCounter<(String, Option<IpAddr>)>,
    by_network: AttemptCounter<Option<IpAddr>>,
    /// `None` unless this is a node of a cluster.
    shared: Option<SharedAttempts>,
}

impl Attempts {
    /// Allows `allowed` wrong passwords for one name from one network, and `allowed_in_all` for all names.
    pub fn new(allowed: u32, allowed_in_all: u32, window: Duration) -> Self {
        let limits = AttemptLimits {
            by_name: allowed,
            by_network: allowed_in_all,
            window,
        };
        Self {
            limits,
            by_name: AttemptCounter::new(allowed, window),
            by_network: AttemptCounter::new(allowed_in_all, window),
            shared: None,
        }
    }

    /// Has the nodes of a cluster count together.
    pub(crate) fn shared_by_nodes(mut self, store: &Store, kinds: AttemptKinds) -> Self {
        self.shared = SharedAttempts::new(store, kinds, self.limits);
        self
    }

    /// Checks whether a password may be tried, by what this process has counted. `Err` holds the seconds to wait. Counts nothing.
    pub fn check(&self, name: &str, client: Option<IpAddr>, now: Instant) -> Result<(), u64> {
        let pair = pair(name, client);
        let by_network = self.by_network.locked_out(&pair.1, now);
        match by_network.max(self.by_name.locked_out(&pair, now)) {
            Some(left) => Err(seconds(left)),
            None => Ok(()),
        }
    }

    /// Counts a try before its password is checked, so that concurrent tries cannot exceed the limit; a right one is
    /// taken back by [`Attempts::succeeded`]. `Err` holds the seconds to wait.
    pub async fn begin(&self, name: &str, client: Option<IpAddr>, now: Instant) -> Result<(), u64> {
        self.begin_here(name, client, now)?;
        let Some(shared) = &self.shared else {
            return Ok(());
        };
        let pair = pair(name, client);
        match shared.begin(&pair.0, &text(pair.1)).await {
            Ok(Some(of_name)) => {
                // After a right password on another node they are fewer than what this one has counted.
                self.by_name.lower_to(&pair, of_name);
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(left) => {
                self.by_network.take_back(&pair.1);
                self.by_name.take_back(&pair);
                Err(seconds(left))
            }
        }
    }

    fn begin_here(&self, name: &str, client: Option<IpAddr>, now: Instant) -> Result<(), u64> {
        let pair = pair(name, client);
        let network = pair.1;
        self.by_network.count(network, None, now).map_err(seconds)?;
        self.by_name.count(pair, None, now).map_err(|left| {
            self.by_network.take_back(&network);
            seconds(left)
        })
    }

    /// Clears the name after a right password, and takes back one try of the network. No more than that: one right
    /// password of its own would let a network guess without limit.
    pub async fn succeeded(&self, name: &str, client: Option<IpAddr>) {
        self.succeeded_here(name, client);
        if let Some(shared) = &self.shared {
            let (name, network) = pair(name, client);
            shared.succeeded(&name, &text(network)).await;
        }
    }

    fn succeeded_here(&self, name: &str, client: Option<IpAddr>) {
        let pair = pair(name, client);
        self.by_network.take_back(&pair.1);
        self.by_name.forget(&pair);
    }
}

fn pair(name: &str, client: Option<IpAddr>) -> (String, Option<IpAddr>) {
    let name = name.trim().to_ascii_lowercase();
    let name = name.chars().take(NAME_LENGTH).collect();
    (name, client.map(client_network))
}

/// Returns the name of a network's count: its address, nothing for one that is not known.
fn text(network: Option<IpAddr>) -> String {
    network.map_or_else(String::new, |network| network.to_string())
}

fn seconds(left: Duration) -> u64 {
    left.as_secs().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::shared_attempts::SIGN_IN;

    const WINDOW: Duration = Duration::from_secs(900);

    #[test]
    fn the_sixth_try_waits_until_the_window_is_over() {
        let (attempts, start) = (Attempts::new(5, 50, WINDOW), Instant::now());
        let home = "192.0.2.1".parse().ok();
        let at = |user: &str, address, seconds| {
            attempts.begin_here(user, address, start + Duration::from_secs(seconds))
        };
        for second in 0..5 {
            assert_eq!(at("admin", home, second), Ok(()));
        }
        assert_eq!(at("admin", home, 10), Err(890));
        assert_eq!(at(" Admin ", home, 10), Err(890), "spelling does not help");
        assert_eq!(at("other", home, 10), Ok(()));
        assert_eq!(at("admin", "192.0.2.2".parse().ok(), 10), Ok(()));
        assert_eq!(
            attempts.check("admin", home, start + Duration::from_secs(10)),
            Err(890)
        );
        assert_eq!(attempts.check("other", home, start), Ok(()));
        assert_eq!(at("admin", home, 900), Ok(()));
    }

    #[test]
    fn a_right_password_starts_the_count_of_its_name_again() {
        let (attempts, now) = (Attempts::new(2, 50, WINDOW), Instant::now());
        let first = "2001:db8::1".parse().ok();
        let neighbour = "2001:db8::2".parse().ok();
        assert_eq!(attempts.begin_here("admin", first, now), Ok(()));
        assert_eq!(attempts.begin_here("admin", neighbour, now), Ok(()));
        assert_eq!(attempts.begin_here("admin", first, now), Err(900));
        attempts.succeeded_here("admin", neighbour);
        assert_eq!(attempts.begin_here("admin", first, now), Ok(()));
    }

    #[test]
    fn many_names_are_no_more_guesses_for_one_network() {
        let (attempts, now) = (Attempts::new(5, 10, WINDOW), Instant::now());
        let (network, other) = ("192.0.2.1".parse().ok(), "192.0.2.2".parse().ok());
        for number in 0..10 {
            // A right password in between takes back its own try only.
            assert_eq!(attempts.begin_here("own", network, now), Ok(()));
            attempts.succeeded_here("own", network);
            assert_eq!(
                attempts.begin_here(&number.to_string(), network, now),
                Ok(())
            );
        }
        assert_eq!(attempts.begin_here("admin", network, now), Err(900));
        assert_eq!(attempts.check("admin", network, now), Err(900));
        assert_eq!(attempts.begin_here("admin", other, now), Ok(()));
    }

    #[test]
    fn tries_that_a_name_rejects_do_not_count_for_the_network() {
        let (attempts, now) = (Attempts::new(1, 10, WINDOW), Instant::now());
        assert_eq!(attempts.begin_here("admin", None, now), Ok(()));
        for _ in 0..100 {
            assert_eq!(attempts.begin_here("admin", None, now), Err(900));
        }
        assert_eq!(attempts.begin_here("other", None, now), Ok(()));
    }

    #[tokio::test]
    async fn a_right_password_on_another_node_starts_the_count_of_its_name_again() {
        let folder = tempfile::tempdir().unwrap();
        let settings = sluice_store::StoreSettings::without_reserve(folder.path());
        let store = Store::open(&settings).await.unwrap();
        let [here, there] = [(); 2].map(|()| {
            let mut attempts = Attempts::new(5, 50, WINDOW);
            attempts.shared = Some(SharedAttempts::of_node(&store, SIGN_IN, attempts.limits));
            attempts
        });
        let (home, now) = ("192.0.2.1".parse().ok(), Instant::now());
        for _ in 0..4 {
            assert_eq!(here.begin("admin", home, now).await, Ok(()));
        }
        assert_eq!(there.begin("admin", home, now).await, Ok(()));
        there.succeeded("admin", home).await;
        for _ in 0..4 {
            assert_eq!(here.check("admin", home, now), Ok(()));
            assert_eq!(here.begin("admin", home, now).await, Ok(()));
        }
        assert_eq!(there.begin("admin", home, now).await, Ok(()));
        assert!(here.begin("admin", home, now).await.is_err());
        assert!(there.begin("admin", home, now).await.is_err());
    }
}
