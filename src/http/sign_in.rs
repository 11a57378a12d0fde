//! Wrong passwords: counted by user and address, so that guessing stops and nobody else is locked out.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::Mutex,
    time::{Duration, Instant},
};

/// Pairs of user and address remembered at a time. When a flood fills it, the oldest are forgotten.
const CAPACITY: usize = 10_000;

type Pair = (String, Option<IpAddr>);

/// The wrong passwords of the last `window`.
#[derive(Debug)]
pub struct Attempts {
    allowed: u32,
    window: Duration,
    wrong: Mutex<HashMap<Pair, Wrong>>,
}

#[derive(Debug)]
struct Wrong {
    count: u32,
    since: Instant,
}

impl Attempts {
    pub fn new(allowed: u32, window: Duration) -> Self {
        Self {
            allowed,
            window,
            wrong: Mutex::default(),
        }
    }

    /// Counts a try before its password is looked at, so that tries at the same time cannot slip through; a right one is
    /// taken back by [`Attempts::succeeded`]. `Err` holds the seconds to wait.
    pub fn begin(&self, user: &str, address: Option<IpAddr>, now: Instant) -> Result<(), u64> {
        let mut wrong = self.wrong.lock().expect("no panic under this lock");
        let pair = pair(user, address);
        if !wrong.contains_key(&pair) && wrong.len() >= CAPACITY {
            self.make_room(&mut wrong, now);
        }
        let entry = wrong.entry(pair).or_insert(Wrong {
            count: 0,
            since: now,
        });
        if now.duration_since(entry.since) >= self.window {
            *entry = Wrong {
                count: 0,
                since: now,
            };
        }
        if entry.count >= self.allowed {
            let left = self.window.saturating_sub(now.duration_since(entry.since));
            return Err(left.as_secs().max(1));
        }
        entry.count += 1;
        Ok(())
    }

    /// The password was right: the pair starts anew.
    pub fn succeeded(&self, user: &str, address: Option<IpAddr>) {
        self.wrong
            .lock()
            .expect("no panic under this lock")
            .remove(&pair(user, address));
    }

    fn make_room(&self, wrong: &mut HashMap<Pair, Wrong>, now: Instant) {
        wrong.retain(|_, entry| now.duration_since(entry.since) < self.window);
        if wrong.len() >= CAPACITY {
            let oldest = wrong
                .iter()
                .min_by_key(|(_, entry)| entry.since)
                .map(|(pair, _)| pair.clone());
            if let Some(pair) = oldest {
                wrong.remove(&pair);
            }
        }
    }
}

/// Long names are cut, so that an entry is small.
fn pair(user: &str, address: Option<IpAddr>) -> Pair {
    let user = user.trim().to_ascii_lowercase().chars().take(64).collect();
    (user, network(address))
}

/// What counts as one client: an IPv4 address, or one household's IPv6 network.
pub(super) fn network(address: Option<IpAddr>) -> Option<IpAddr> {
    address.map(|address| match address {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 64 << 64).into()),
        v4 => v4,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(900);

    #[test]
    fn the_sixth_try_waits_until_the_window_is_over() {
        let (attempts, start) = (Attempts::new(5, WINDOW), Instant::now());
        let home = "192.0.2.1".parse().ok();
        let at = |user: &str, address, seconds| {
            attempts.begin(user, address, start + Duration::from_secs(seconds))
        };
        for second in 0..5 {
            assert_eq!(at("admin", home, second), Ok(()));
        }
        assert_eq!(at("admin", home, 10), Err(890));
        assert_eq!(at(" Admin ", home, 10), Err(890), "spelling does not help");
        assert_eq!(at("other", home, 10), Ok(()));
        assert_eq!(at("admin", "192.0.2.2".parse().ok(), 10), Ok(()));
        assert_eq!(at("admin", home, 900), Ok(()));
    }

    #[test]
    fn a_right_password_starts_the_count_anew() {
        let (attempts, now) = (Attempts::new(2, WINDOW), Instant::now());
        let first = "2001:db8::1".parse().ok();
        let neighbour = "2001:db8::2".parse().ok();
        assert_eq!(attempts.begin("admin", first, now), Ok(()));
        assert_eq!(attempts.begin("admin", neighbour, now), Ok(()));
        assert_eq!(attempts.begin("admin", first, now), Err(900));
        attempts.succeeded("admin", neighbour);
        assert_eq!(attempts.begin("admin", first, now), Ok(()));
    }

    #[test]
    fn a_flood_of_names_stays_in_bounds() {
        let (attempts, start) = (Attempts::new(1, WINDOW), Instant::now());
        for number in 0..CAPACITY + 50 {
            let now = start + Duration::from_millis(number as u64);
            assert_eq!(attempts.begin(&number.to_string(), None, now), Ok(()));
        }
        assert!(attempts.wrong.lock().unwrap().len() <= CAPACITY);
    }
}
