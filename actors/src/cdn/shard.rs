//! `CdnCache`: a shard of the image cache, in which equal requests wait for one render, and failures are remembered
//! (`cdn.remember_failures`).
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
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{
    ImageServices,
    disk::name_of,
    entry::Entry,
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

/// The actor; see the module documentation.
pub(super) struct CdnCache {
    services: Arc<ImageServices>,
    flights: HashMap<VariantKey, PendingRender>,
    failures: HashMap<VariantKey, (Failure, Instant)>,
    renders_started: u64,
}

/// A variant that is being made.
#[derive(Debug)]
struct PendingRender {
    number: u64,
    wanted: VariantJob,
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
    pub(super) answer: oneshot::Sender<Outcome>,
}

/// A render has ended.
#[derive(Debug)]
struct RenderFinished {
    key: VariantKey,
    number: u64,
    outcome: Outcome,
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
            answer,
        } = fetch;
        let variant = (wanted.source.id, wanted.cache_key.clone());
        if let Some(outcome) = self.known(&variant, &wanted) {
            let _ = answer.send(outcome);
            return;
        }
        if let Some(flight) = self.flights.get_mut(&variant)
            && flight.wanted.source.is_current()
        {
            flight.waiting.push(answer);
            return;
        }
        if let Err(problem) = self.admit(&wanted, key.as_deref()) {
            let _ = answer.send(Err(problem));
            return;
        }
        self.start(variant, wanted, answer, context.actor_ref());
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

    /// Admits a new variant. Variants on disk are not new, and neither are repeated frames of a live input.
    fn admit(&self, wanted: &VariantJob, key: Option<&Key>) -> Result<(), Problem> {
        let Some(key) = key else { return Ok(()) };
        if let Material::Live(frame) = &wanted.source.material
            && frame.known_variants.knows(&wanted.cache_key)
        {
            return Ok(());
        }
        let name = name_of(wanted.source.id, &wanted.cache_key);
        if self.services.disk.holds(&name) {
            return Ok(());
        }
        let limit = self.services.settings.new_variants_per_minute;
        key.admit_variant(limit, Instant::now())
            .map_err(|wait| Problem::TooManyNew {
                retry_after_s: wait.as_secs().max(1),
            })
    }

    fn start(
        &mut self,
        key: VariantKey,
        wanted: VariantJob,
        answer: oneshot::Sender<Outcome>,
        me: &ActorRef<Self>,
    ) {
        self.renders_started += 1;
        let flight = PendingRender {
            number: self.renders_started,
            wanted: wanted.clone(),
            waiting: vec![answer],
        };
        let (number, services, me) = (flight.number, self.services.clone(), me.clone());
        if let Some(stale) = self.flights.insert(key.clone(), flight) {
            stale.answer(&Err(Problem::Stale));
        }
        tokio::spawn(async move {
            let rendering = AssertUnwindSafe(render(&services, &wanted)).catch_unwind();
            let outcome = rendering.await.unwrap_or_else(|_| {
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

    /// Publishes a rendered variant in memory, then on disk.
    fn publish(&self, wanted: &VariantJob, fetched: &Fetched) {
        let (services, source) = (self.services.clone(), wanted.source.clone());
        let (request, entry) = (wanted.cache_key.clone(), fetched.entry.clone());
        services.memory.put(&source, &request, entry.clone());
        if source.is_live() {
            return;
        }
        tokio::spawn(async move { render::keep(&services, &source, &request, &entry).await });
    }
}

/// Reads the variant from disk, or renders it.
async fn render(services: &ImageServices, wanted: &VariantJob) -> Outcome {
    if let Some(entry) = render::load(services, &wanted.source, &wanted.cache_key).await {
        return Ok(Fetched {
            entry,
            rendered: false,
        });
    }
    let entry = Arc::new(render::render(services, wanted).await?);
    Ok(Fetched {
        entry,
        rendered: true,
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
            Ok(fetched) if fetched.rendered => {
                self.publish(&flight.wanted, fetched);
            }
            Err(Problem::Failed(failure)) => self.remember(key, failure.clone()),
            _ => {}
        }
        flight.answer(&outcome);
    }
}
