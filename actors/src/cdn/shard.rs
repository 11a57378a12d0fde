//! `CdnCache`: a shard of the image cache, in which equal requests wait for one render, here or on the node on which the file is
//! placed, and failures are remembered (`cdn.remember_failures`).
//!
//! A file belongs to one shard, by its id. A client that leaves cancels no other's render. Survives a restart: both tiers
//! (in [`ImageServices`]). May be lost: waiting requests, which are answered to come again, and the remembered failures.
//! Mailbox 1024; when it is full, 503 with Retry-After.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Instant};

use futures_util::FutureExt as _;
use kameo::{
    Actor,
    actor::ActorRef,
    error::Infallible,
    message::{Context, Message},
};
use sluice_media::task::Failure;
use sluice_store::cluster::{Node, Role};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{
    ImageServices,
    disk::name_of,
    entry::Entry,
    forward,
    key::Key,
    render::{self, Problem, VariantJob},
    source::Material,
};

pub(super) const MAILBOX: usize = 1024;
/// Failures that one shard remembers; when there are more, it forgets all.
const MOST_FAILURES: usize = 1024;

/// A variant, and whether it was rendered for this request.
#[derive(Clone, Debug)]
pub struct Fetched {
    pub entry: Arc<Entry>,
    pub rendered: bool,
}

type Outcome = Result<Fetched, Problem>;
/// File and canonical request.
type VariantKey = (Uuid, Arc<str>);

/// File and canonical request, and where the variant comes from: a request of another node must not wait for one that may wait
/// for that node.
type FlightKey = (VariantKey, Origin);

/// Where a variant comes from when this node has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Origin {
    Rendered,
    /// The node on which the file is placed, see [`forward`].
    Elsewhere,
    /// The same, for a key that may cause no render now.
    KeptElsewhere,
}

/// The node that is asked for a variant.
#[derive(Debug)]
struct Forwarding {
    node: Node,
    /// The outcome when it keeps none; `None`: it renders the variant, or else this node does.
    otherwise: Option<Problem>,
}

/// A variant that was brought, and where it is to be kept.
#[derive(Debug)]
struct Brought {
    fetched: Fetched,
    keep: Keep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    /// It is kept already.
    No,
    InMemory,
    InMemoryAndOnDisk,
}

/// The actor; see the module documentation.
pub(super) struct CdnCache {
    services: Arc<ImageServices>,
    flights: HashMap<FlightKey, PendingRender>,
    failures: HashMap<VariantKey, (Failure, Instant)>,
    renders_started: u64,
}

/// A variant that is being made.
#[derive(Debug)]
struct PendingRender {
    number: u64,
    wanted: VariantJob,
    /// The key that it counts for as a new variant.
    charged: Option<Arc<Key>>,
    waiting: Vec<oneshot::Sender<Outcome>>,
}

impl PendingRender {
    fn answer(self, outcome: &Outcome) {
        for waiting in self.waiting {
            let _ = waiting.send(outcome.clone());
        }
    }
}

/// Answer with the variant; render it where it is not kept.
#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) wanted: VariantJob,
    /// `None`: no limit of new variants applies.
    pub(super) key: Option<Arc<Key>>,
    /// True for another node, which has this one render.
    pub(super) is_for_node: bool,
    pub(super) answer: oneshot::Sender<Outcome>,
}

/// A render has ended.
#[derive(Debug)]
struct RenderFinished {
    key: FlightKey,
    number: u64,
    outcome: Result<Brought, Problem>,
}

impl Actor for CdnCache {
    type Args = Arc<ImageServices>;
    type Error = Infallible;

    async fn on_start(services: Arc<ImageServices>, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(Self {
            services,
            flights: HashMap::new(),
            failures: HashMap::new(),
            renders_started: 0,
        })
    }
}

impl Message<Fetch> for CdnCache {
    type Reply = ();

    async fn handle(&mut self, fetch: Fetch, context: &mut Context<Self, ()>) {
        let Fetch {
            wanted,
            key,
            is_for_node,
            answer,
        } = fetch;
        let variant = (wanted.source.id, wanted.cache_key.clone());
        if let Some(outcome) = self.known(&variant, &wanted) {
            let _ = answer.send(outcome);
            return;
        }
        let node = match is_for_node {
            true => None,
            false => forward::elsewhere(&self.services, &wanted.source),
        };
        let origin = match &node {
            Some(_) => Origin::Elsewhere,
            None => Origin::Rendered,
        };
        let Some(answer) = self.join((variant.clone(), origin), answer) else {
            return;
        };
        let me = context.actor_ref();
        match (self.admit(&wanted, key), node) {
            (Ok(charged), node) => {
                let forwarding = node.map(|node| Forwarding {
                    node,
                    otherwise: None,
                });
                self.start((variant, origin), wanted, charged, forwarding, answer, me);
            }
            (Err(problem), None) => {
                let _ = answer.send(Err(problem));
            }
            (Err(problem), Some(node)) => {
                let flight = (variant, Origin::KeptElsewhere);
                let Some(answer) = self.join(flight.clone(), answer) else {
                    return;
                };
                let forwarding = Forwarding {
                    node,
                    otherwise: Some(problem),
                };
                self.start(flight, wanted, None, Some(forwarding), answer, me);
            }
        }
    }
}

impl CdnCache {
    /// Returns the answer that needs no render.
    fn known(&mut self, variant: &VariantKey, wanted: &VariantJob) -> Option<Outcome> {
        if !wanted.source.is_current() {
            return Some(Err(Problem::Stale));
        }
        if let Some(entry) = self.services.memory.get(variant.0, &variant.1) {
            return Some(Ok(Fetched {
                entry,
                rendered: false,
            }));
        }
        let (failure, failed_at) = self.failures.get(variant)?;
        if failed_at.elapsed() < self.services.settings.remember_failures {
            return Some(Err(Problem::Failed(failure.clone())));
        }
        self.failures.remove(variant);
        None
    }

    /// Adds a request to the flight that brings its variant; returns it when there is none.
    fn join(
        &mut self,
        flight: FlightKey,
        answer: oneshot::Sender<Outcome>,
    ) -> Option<oneshot::Sender<Outcome>> {
        match self.flights.get_mut(&flight) {
            Some(flight) if flight.wanted.source.is_current() => {
                flight.waiting.push(answer);
                None
            }
            _ => Some(answer),
        }
    }

    /// Admits a new variant, and returns the key that it counts for. Variants on disk are not new, and neither are repeated
    /// frames of a live input.
    fn admit(
        &self,
        wanted: &VariantJob,
        key: Option<Arc<Key>>,
    ) -> Result<Option<Arc<Key>>, Problem> {
        let Some(key) = key else { return Ok(None) };
        if let Material::Live(frame) = &wanted.source.material
            && frame.known_variants.knows(&wanted.cache_key)
        {
            return Ok(None);
        }
        let name = name_of(wanted.source.id, &wanted.cache_key);
        if self.services.disk.holds(&name) {
            return Ok(None);
        }
        match key.admit_variant(self.most_new_variants(), Instant::now()) {
            Ok(()) => Ok(Some(key)),
            Err(wait) => Err(Problem::TooManyNew {
                retry_after_s: wait.as_secs().max(1),
            }),
        }
    }

    /// Returns this node's share of the new variants that a key may cause in a minute; 0: no bound.
    fn most_new_variants(&self) -> u32 {
        let most = self.services.settings.new_variants_per_minute;
        let cluster = self.services.peers.cluster();
        match cluster.is_solo() || most == 0 {
            true => most,
            false => (most / cluster.live_count(Role::Api)).max(1),
        }
    }

    fn start(
        &mut self,
        key: FlightKey,
        wanted: VariantJob,
        charged: Option<Arc<Key>>,
        forwarding: Option<Forwarding>,
        answer: oneshot::Sender<Outcome>,
        me: &ActorRef<Self>,
    ) {
        self.renders_started += 1;
        let flight = PendingRender {
            number: self.renders_started,
            wanted: wanted.clone(),
            charged,
            waiting: vec![answer],
        };
        let (number, services, me) = (flight.number, self.services.clone(), me.clone());
        if let Some(stale) = self.flights.insert(key.clone(), flight) {
            stale.answer(&Err(Problem::Stale));
        }
        tokio::spawn(async move {
            let bringing = AssertUnwindSafe(bring(&services, &wanted, forwarding)).catch_unwind();
            let outcome = bringing.await.unwrap_or_else(|_| {
                Err(Problem::Unavailable("making a variant panicked".to_owned()))
            });
            let finished = RenderFinished {
                key,
                number,
                outcome,
            };
            let _ = me.tell(finished).await;
        });
    }

    fn remember(&mut self, key: VariantKey, failure: Failure) {
        self.services.count(|counters| &counters.failures);
        if self.failures.len() >= MOST_FAILURES {
            self.failures.clear();
        }
        self.failures.insert(key, (failure, Instant::now()));
    }

    /// Publishes a variant in memory, then on disk.
    fn publish(&self, wanted: &VariantJob, brought: &Brought) {
        if brought.keep == Keep::No {
            return;
        }
        let (services, source) = (self.services.clone(), wanted.source.clone());
        let (request, entry) = (wanted.cache_key.clone(), brought.fetched.entry.clone());
        services.memory.put(&source, &request, entry.clone());
        if source.is_live() || brought.keep == Keep::InMemory {
            return;
        }
        tokio::spawn(async move { render::keep(&services, &source, &request, &entry).await });
    }
}

/// Reads the variant from disk, has another node render it, or renders it.
async fn bring(
    services: &ImageServices,
    wanted: &VariantJob,
    forwarding: Option<Forwarding>,
) -> Result<Brought, Problem> {
    if let Some(entry) = render::load(services, &wanted.source, &wanted.cache_key).await {
        let fetched = Fetched {
            entry,
            rendered: false,
        };
        return Ok(Brought {
            fetched,
            keep: Keep::No,
        });
    }
    if let Some(Forwarding { node, otherwise }) = forwarding {
        let may_render = otherwise.is_none();
        if let Some(answer) = forward::ask(services, &node, wanted, may_render).await {
            return answer.map(|fetched| Brought {
                fetched,
                keep: Keep::InMemory,
            });
        }
        if let Some(problem) = otherwise {
            return Err(problem);
        }
    }
    let entry = Arc::new(render::render(services, wanted).await?);
    let fetched = Fetched {
        entry,
        rendered: true,
    };
    Ok(Brought {
        fetched,
        keep: Keep::InMemoryAndOnDisk,
    })
}

impl Message<RenderFinished> for CdnCache {
    type Reply = ();

    async fn handle(&mut self, finished: RenderFinished, _: &mut Context<Self, ()>) {
        let RenderFinished {
            key,
            number,
            mut outcome,
        } = finished;
        if self
            .flights
            .get(&key)
            .is_none_or(|flight| flight.number != number)
        {
            return;
        }
        let flight = self.flights.remove(&key).expect("it was just there");
        if !flight.wanted.source.is_current() {
            outcome = Err(Problem::Stale);
        }
        match &outcome {
            Ok(brought) => {
                self.publish(&flight.wanted, brought);
                if let Some(charged) = &flight.charged
                    && !brought.fetched.rendered
                {
                    charged.give_back_variant();
                }
            }
            Err(Problem::Failed(failure)) => self.remember(key.0, failure.clone()),
            Err(_) => {}
        }
        flight.answer(&outcome.map(|brought| brought.fetched));
    }
}
