//! Idle connections to receivers (`outbound.max_idle`, `max_idle_per_host`, `keep_idle`) and to other nodes, kept for the next
//! request to the same origin.
//!
//! Both bounds hold at every moment: a connection that exceeds one of them replaces the oldest of the same origin, or the
//! oldest of all. The newest is taken first, so that the others can expire.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

/// Interval at which connections whose time is over are closed; it ends with the last of them.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Connections of type `C`, dropped to close them.
pub(crate) struct Pool<C> {
    max: usize,
    max_per_origin: usize,
    connections: Arc<Mutex<IdleConnections<C>>>,
}

struct IdleConnections<C> {
    /// By a number that grows: the first is the oldest.
    idle: BTreeMap<u64, Idle<C>>,
    /// The numbers of each origin, oldest first; never an empty list.
    origins: HashMap<String, Vec<u64>>,
    next: u64,
    is_swept: bool,
}

struct Idle<C> {
    origin: String,
    connection: C,
    until: Instant,
}

impl<C: Send + 'static> Pool<C> {
    pub(crate) fn new(max: usize, max_per_origin: usize) -> Self {
        let connections = IdleConnections {
            idle: BTreeMap::new(),
            origins: HashMap::new(),
            next: 0,
            is_swept: false,
        };
        Self {
            max,
            max_per_origin,
            connections: Arc::new(Mutex::new(connections)),
        }
    }

    /// Takes the connection to the origin that was used last.
    pub(crate) fn take(&self, origin: &str, now: Instant) -> Option<C> {
        let mut connections = self.connections.lock();
        let newest = *connections.origins.get(origin)?.last()?;
        let idle = connections.remove(newest)?;
        (idle.until > now).then_some(idle.connection)
    }

    /// Keeps a connection until `until` at most.
    pub(crate) fn put(&self, origin: String, connection: C, until: Instant) {
        if self.max == 0 || self.max_per_origin == 0 {
            return;
        }
        let mut connections = self.connections.lock();
        let of_origin = connections.origins.get(&origin);
        let is_full = of_origin.is_some_and(|numbers| numbers.len() >= self.max_per_origin);
        let gives_way = if is_full {
            of_origin.and_then(|numbers| numbers.first()).copied()
        } else if connections.idle.len() >= self.max {
            connections.idle.keys().next().copied()
        } else {
            None
        };
        let closed = gives_way.and_then(|number| connections.remove(number));
        connections.insert(Idle {
            origin,
            connection,
            until,
        });
        if !std::mem::replace(&mut connections.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.connections)));
        }
        drop(connections);
        drop(closed);
    }
}

impl<C> IdleConnections<C> {
    fn insert(&mut self, idle: Idle<C>) {
        let number = self.next;
        self.next += 1;
        let numbers = self.origins.entry(idle.origin.clone()).or_default();
        numbers.push(number);
        self.idle.insert(number, idle);
    }

    fn remove(&mut self, number: u64) -> Option<Idle<C>> {
        let idle = self.idle.remove(&number)?;
        if let Some(numbers) = self.origins.get_mut(&idle.origin) {
            numbers.retain(|&other| other != number);
            if numbers.is_empty() {
                self.origins.remove(&idle.origin);
            }
        }
        Some(idle)
    }

    /// Takes out those whose time is over.
    fn expire(&mut self, now: Instant) -> Vec<Idle<C>> {
        let expired = self.idle.iter().filter(|(_, idle)| idle.until <= now);
        let expired: Vec<u64> = expired.map(|(&number, _)| number).collect();
        let expired = expired.into_iter();
        expired.filter_map(|number| self.remove(number)).collect()
    }
}

/// Closes old connections until none is left, or the pool is gone.
async fn sweep<C>(connections: Weak<Mutex<IdleConnections<C>>>) {
    loop {
        sleep(SWEEP_EVERY).await;
        let Some(connections) = connections.upgrade() else {
            return;
        };
        let mut connections = connections.lock();
        let closed = connections.expire(Instant::now());
        let is_empty = connections.idle.is_empty();
        connections.is_swept = !is_empty;
        drop(connections);
        drop(closed);
        if is_empty {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emptied(pool: &Pool<usize>, origin: &str, now: Instant) -> Vec<usize> {
        std::iter::from_fn(|| pool.take(origin, now)).collect()
    }

    #[tokio::test]
    async fn both_bounds_hold_and_the_oldest_gives_way() {
        let now = Instant::now();
        for (max, max_per_origin, origins, a, b) in [
            (8, 4, &["a", "a", "b"][..], &[1, 0][..], &[2][..]),
            (8, 2, &["a", "b", "a", "a"], &[3, 2], &[1]),
            (2, 4, &["a", "b", "b"], &[], &[2, 1]),
            (2, 1, &["b", "a", "b"], &[1], &[2]),
            (0, 4, &["a", "b"], &[], &[]),
            (8, 0, &["a", "b"], &[], &[]),
        ] {
            let pool = Pool::new(max, max_per_origin);
            for (number, origin) in origins.iter().enumerate() {
                pool.put((*origin).to_owned(), number, now + Duration::from_secs(30));
            }
            let kept = ["a", "b"].map(|origin| emptied(&pool, origin, now));
            assert_eq!(kept, [a, b], "{max} {max_per_origin} {origins:?}");
            assert!(pool.connections.lock().origins.is_empty());
        }
    }

    #[tokio::test]
    async fn a_connection_whose_time_is_over_is_not_taken() {
        let (now, pool) = (Instant::now(), Pool::new(8, 4));
        for (number, kept_s) in [(0, 30), (1, 5)] {
            pool.put("a".to_owned(), number, now + Duration::from_secs(kept_s));
        }
        let later = now + Duration::from_secs(5);
        assert_eq!(pool.take("a", later), None);
        assert_eq!(pool.take("a", later), Some(0));
    }

    #[tokio::test]
    async fn old_connections_are_closed_without_a_request() {
        let (witness, pool) = (Arc::new(()), Pool::new(8, 4));
        for kept_s in [0, 600] {
            let until = Instant::now() + Duration::from_secs(kept_s);
            pool.put("a".to_owned(), witness.clone(), until);
        }
        let closed = async {
            while Arc::strong_count(&witness) > 2 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let closed = tokio::time::timeout(Duration::from_secs(30), closed).await;
        assert!(closed.is_ok(), "the one whose time is over is still open");
        assert!(
            pool.connections.lock().is_swept,
            "the other one is still watched"
        );
    }
}
