//! Name lookups (DNS, `/etc/hosts`): one lookup of a name at a time, `outbound.max_lookups`, `resolve_timeout`, no cache.
//!
//! A lookup cannot be cancelled, so its permit is held until it has ended, even when its callers are gone: a dead name server
//! costs `outbound.max_lookups` threads and no more. Half of the permits are kept for names whose last lookup was in time:
//! names that hang delay other new ones, and no known receivers.
//!
//! Lookups run where the resolver was made. An HTTP worker has a runtime of its own with few threads for what blocks
//! (512 divided by the cores): there, lookups that hang would delay the files that the worker reads.

use std::{
    collections::{HashMap, HashSet},
    io,
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{Semaphore, watch},
    time::timeout,
};

/// Looks names up; tests have their own.
pub trait Resolve: Send + Sync {
    /// Returns all addresses of the name; the caller checks them and dials those that it checked.
    fn lookup(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver: `getaddrinfo`, with `/etc/hosts` and the machine's other sources.
pub(super) struct SystemResolver;

impl Resolve for SystemResolver {
    fn lookup(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let host = host.to_owned();
        async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    }
}

/// Reason why a name has no addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LookupError {
    /// No place for a lookup became free in time.
    Busy,
    Slow,
    Failed(String),
}

type Found = Result<Arc<[IpAddr]>, LookupError>;
/// Lookups in progress by name; `None` until the answer is there.
type Flights = Mutex<HashMap<String, watch::Receiver<Option<Found>>>>;

/// Most names that are remembered as found in time; beyond, all are forgotten.
const MOST_PROVEN: usize = 4_096;

pub(super) struct Resolver {
    port: Arc<dyn Resolve>,
    places: Arc<LookupPermits>,
    patience: Duration,
    flights: Arc<Flights>,
    /// Runtime of the lookups; `None`: that of the caller.
    home: Option<Handle>,
}

/// Permits for lookups, and the time of each.
struct LookupPermits {
    all: Semaphore,
    /// For names that are not proven, beside one of all.
    unproven: Semaphore,
    /// Names whose last lookup ended in time and with addresses.
    proven: Mutex<HashSet<String>>,
}

impl LookupPermits {
    fn new(max: usize) -> Self {
        Self {
            all: Semaphore::new(max),
            unproven: Semaphore::new(max.div_ceil(2)),
            proven: Mutex::default(),
        }
    }

    /// Looks up as soon as there is a place for the name.
    async fn look_up(&self, port: &dyn Resolve, host: &str, patience: Duration) -> Found {
        let wait = async {
            let unproven = match self.is_proven(host) {
                true => None,
                false => Some(self.unproven.acquire().await),
            };
            (unproven, self.all.acquire().await)
        };
        let Ok(_places) = timeout(patience, wait).await else {
            return Err(LookupError::Busy);
        };
        let mut lookup = port.lookup(host);
        match timeout(patience, &mut lookup).await {
            Ok(answer) => {
                let found = addresses(answer);
                self.note(host, found.is_ok());
                found
            }
            Err(_) => {
                self.note(host, false);
                addresses(lookup.await)
            }
        }
    }

    fn is_proven(&self, host: &str) -> bool {
        self.proven.lock().contains(host)
    }

    fn note(&self, host: &str, is_proven: bool) {
        let mut proven = self.proven.lock();
        if !is_proven {
            proven.remove(host);
        } else if !proven.contains(host) {
            if proven.len() >= MOST_PROVEN {
                proven.clear();
            }
            proven.insert(host.to_owned());
        }
    }
}

impl Resolver {
    pub(super) fn new(port: Arc<dyn Resolve>, max_lookups: usize, patience: Duration) -> Self {
        Self {
            port,
            places: Arc::new(LookupPermits::new(max_lookups)),
            patience,
            flights: Arc::default(),
            home: Handle::try_current().ok(),
        }
    }

    /// Returns the addresses of a name, at least one, unchecked.
    pub(super) async fn resolve(&self, host: &str) -> Found {
        let mut flight = self.join(host);
        let finished = timeout(self.patience, flight.wait_for(Option::is_some));
        match finished.await {
            Ok(Ok(found)) => found.clone().expect("it was waited for"),
            Ok(Err(_)) => Err(LookupError::Failed("the lookup was broken off".to_owned())),
            Err(_) => Err(LookupError::Slow),
        }
    }

    /// Joins the lookup of the name that is in progress, or begins one.
    fn join(&self, host: &str) -> watch::Receiver<Option<Found>> {
        let mut flights = self.flights.lock();
        if let Some(flight) = flights.get(host) {
            return flight.clone();
        }
        let (found, flight) = watch::channel(None);
        flights.insert(host.to_owned(), flight.clone());
        let landing = FlightGuard {
            flights: self.flights.clone(),
            host: host.to_owned(),
        };
        let (port, places, patience) = (self.port.clone(), self.places.clone(), self.patience);
        let home = self.home.clone().unwrap_or_else(Handle::current);
        home.spawn(async move {
            let result = places.look_up(&*port, &landing.host, patience).await;
            drop(landing);
            found.send_replace(Some(result));
        });
        flight
    }
}

fn addresses(answer: io::Result<Vec<IpAddr>>) -> Found {
    match answer {
        Ok(found) if found.is_empty() => Err(LookupError::Failed("it has no address".to_owned())),
        Ok(found) => Ok(found.into()),
        Err(error) => Err(LookupError::Failed(error.to_string())),
    }
}

/// Takes a lookup out of those in progress, also when its task is dropped.
struct FlightGuard {
    flights: Arc<Flights>,
    host: String,
}

impl Drop for FlightGuard {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.host);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::Ipv4Addr,
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
    };

    use futures_util::future::join_all;
    use tokio::sync::Notify;

    use super::*;

    /// Answers on command, and counts.
    #[derive(Default)]
    struct Held {
        asked: AtomicUsize,
        go: Arc<Notify>,
    }

    impl Resolve for Held {
        fn lookup(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            self.asked.fetch_add(1, SeqCst);
            let (go, is_empty) = (self.go.clone(), host == "empty.test");
            async move {
                go.notified().await;
                let found = Ipv4Addr::new(192, 0, 2, 1).into();
                Ok(if is_empty { Vec::new() } else { vec![found] })
            }
            .boxed()
        }
    }

    fn resolver(max_lookups: usize, patience: Duration) -> (Arc<Held>, Resolver) {
        let port = Arc::new(Held::default());
        let resolver = Resolver::new(port.clone(), max_lookups, patience);
        (port, resolver)
    }

    #[tokio::test]
    async fn many_callers_share_one_lookup_and_nothing_is_remembered() {
        let (port, resolver) = resolver(2, Duration::from_secs(30));
        for round in 1..=2 {
            let callers = join_all((0..100).map(|_| resolver.resolve("one.test")));
            // Polled in this order: all wait when the answer comes.
            let (found, ()) = tokio::join!(callers, async { port.go.notify_one() });
            for found in found {
                assert_eq!(found.map(|found| found.len()), Ok(1));
            }
            assert_eq!(port.asked.load(SeqCst), round);
        }
        assert!(resolver.flights.lock().is_empty());
    }

    #[tokio::test]
    async fn a_lookup_that_hangs_keeps_its_place_and_no_more() {
        let (port, resolver) = resolver(1, Duration::from_millis(50));
        for _ in 0..2 {
            assert_eq!(resolver.resolve("slow.test").await, Err(LookupError::Slow));
        }
        let other = resolver.resolve("other.test").await;
        assert!(matches!(other, Err(LookupError::Busy | LookupError::Slow)));
        assert_eq!(port.asked.load(SeqCst), 1);

        // The place that becomes free may go to the other one, whose lookup hangs then.
        let all_finished = async {
            while !resolver.flights.lock().is_empty() {
                port.go.notify_one();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let all_finished = timeout(Duration::from_secs(30), all_finished).await;
        assert!(all_finished.is_ok(), "{:?}", resolver.flights.lock().keys());
        port.go.notify_one();
        assert!(resolver.resolve("other.test").await.is_ok());
    }

    /// Answers for names that begin with `good`, and hangs at others.
    struct HalfDead;

    impl Resolve for HalfDead {
        fn lookup(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            match host.starts_with("good") {
                true => async { Ok(vec![Ipv4Addr::new(192, 0, 2, 1).into()]) }.boxed(),
                false => std::future::pending().boxed(),
            }
        }
    }

    #[tokio::test]
    async fn names_that_hang_leave_half_of_the_places_to_those_that_were_found() {
        let resolver = Resolver::new(Arc::new(HalfDead), 4, Duration::from_millis(500));
        let found = resolver.resolve("good.test").await;
        assert!(found.is_ok(), "{found:?}");
        let hanging: Vec<String> = (0..20).map(|number| format!("{number}.test")).collect();
        let hanging = join_all(hanging.iter().map(|name| resolver.resolve(name)));
        for hung in hanging.await {
            assert!(
                matches!(hung, Err(LookupError::Slow | LookupError::Busy)),
                "{hung:?}"
            );
        }
        let again = resolver.resolve("good.test").await;
        assert!(again.is_ok(), "{again:?}");
        let new = resolver.resolve("good.new.test").await;
        assert!(
            matches!(new, Err(LookupError::Slow | LookupError::Busy)),
            "{new:?}"
        );
    }

    /// Notes the runtimes that it is asked on.
    #[derive(Default)]
    struct Whereabouts(Mutex<Vec<tokio::runtime::Id>>);

    impl Resolve for Whereabouts {
        fn lookup(&self, _host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            self.0.lock().push(Handle::current().id());
            async { Ok(vec![Ipv4Addr::new(192, 0, 2, 1).into()]) }.boxed()
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn lookups_run_where_the_resolver_was_made() {
        let port = Arc::new(Whereabouts::default());
        let resolver = Arc::new(Resolver::new(port.clone(), 1, Duration::from_secs(30)));
        let asked = resolver.clone();
        let elsewhere = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().expect("a runtime");
            runtime.block_on(async { asked.resolve("a.test").await.is_ok() })
        });
        let found = tokio::task::spawn_blocking(move || elsewhere.join());
        assert!(found.await.unwrap().unwrap());
        assert!(resolver.resolve("b.test").await.is_ok());
        assert_eq!(*port.0.lock(), [Handle::current().id(); 2]);
    }

    #[tokio::test]
    async fn the_memory_of_names_has_a_bound() {
        let resolver = Resolver::new(Arc::new(HalfDead), 4, Duration::from_secs(30));
        for number in 0..=MOST_PROVEN {
            let found = resolver.resolve(&format!("good.{number}.test")).await;
            assert!(found.is_ok(), "{found:?}");
        }
        assert_eq!(resolver.places.proven.lock().len(), 1);
    }

    #[tokio::test]
    async fn a_name_without_addresses_is_an_error() {
        let (port, resolver) = resolver(1, Duration::from_secs(30));
        port.go.notify_one();
        let found = resolver.resolve("empty.test").await;
        assert!(matches!(found, Err(LookupError::Failed(_))), "{found:?}");
    }
}
