//! `Sender`: the actor that sends webhooks: scans each second, claims and records in one write a turn, runs attempts, notes
//! interrupted ones after a crash.
//!
//! A turn reads the lanes, plans ([`Dispatcher`]), and carries the plan out in one transaction: outcomes are recorded,
//! released endpoints put into order, deliveries claimed. Outcomes and events that come meanwhile are taken by the next
//! turn. A turn follows a commit of events, a nudge, an outcome, an alarm, and a scan each second.
//!
//! When the database takes no changes, outcomes wait in their places, nothing is claimed, and only the scan tries again.
//!
//! In a cluster each endpoint is placed on one node ([`WebhookServices::sends_to`]). When the nodes change, the node that an
//! endpoint leaves claims nothing of it from the next turn on, and still records its attempts in flight; the node that it
//! comes to claims once no other holds a delivery of it ([`webhooks::claimable`]). What a dead node held is interrupted by
//! another one.
//!
//! Mailbox 64: nudges and ticks may be dropped, a scan follows; of a turn's own messages there is one at a time. What
//! survives a restart (in `Args`): the clock, the owner's id and the counters. The mailbox does too: messages of a panicked
//! actor's turn name that actor, and are ignored by its successor. The attempts of a panicked actor end with it; the first
//! turn of its successor notes them as interrupted, as the first turn of a process does with those of the process before.

use std::{
    collections::{HashMap, HashSet},
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use futures_util::FutureExt as _;
use kameo::{
    Actor,
    actor::ActorRef,
    error::Infallible,
    message::{Context, Message},
};
use parking_lot::Mutex;
use sluice_store::{
    Engine, Error, Tx,
    webhooks::{self, Attempted, ClaimRequest, Claimed, Endpoint, Lane},
};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, error, info, warn};
use url::Url;
use uuid::Uuid;

use super::{
    WebhookServices,
    attempt::{Attempt, AttemptOutcome},
    dispatcher::{Dispatcher, Ended, News, Plan, REWIND_ROWS},
    health::Change,
    schedule::{AttemptResult, after},
};

pub(super) const MAILBOX: usize = 64;
/// Interval at which due deliveries are looked for without a nudge.
const SCAN_EVERY: Duration = Duration::from_secs(1);
/// Most attempts of a predecessor that are noted as interrupted in one write.
const INTERRUPT_ROWS: u32 = 500;
/// Interval at which deliveries are freed whose owner is not known any more.
const FREE_EXPIRED_EVERY: Duration = Duration::from_secs(10);

/// The actor; see the module documentation.
pub(super) struct Sender {
    services: Arc<WebhookServices>,
    incarnation: u64,
    dispatcher: Dispatcher,
    /// Aborted when this is dropped.
    attempts: JoinSet<()>,
    /// Outcomes on their way to the dispatcher; one for each place at most.
    reports: AttemptResults,
    /// The plan that is being carried out, and its receivers.
    planned: Option<(Arc<Plan>, Receivers)>,
    turn: Option<AbortOnDropHandle<()>>,
    /// A turn was requested during one.
    asked_again: bool,
    /// The predecessor's attempts are noted as interrupted.
    has_recovered: bool,
    /// The last turn failed.
    is_failing: bool,
    alarm: Option<AbortOnDropHandle<()>>,
    _pacer: AbortOnDropHandle<()>,
    /// Frees deliveries of unknown owners, in a cluster.
    _freeing: Option<AbortOnDropHandle<()>>,
}

/// Attempts push to its end, and only the actor takes from its front.
type AttemptResults = Arc<Mutex<Vec<Ended>>>;

type Receivers = HashMap<Uuid, Arc<Endpoint>>;

impl Actor for Sender {
    type Args = Arc<WebhookServices>;
    type Error = Infallible;

    async fn on_start(
        services: Arc<WebhookServices>,
        me: ActorRef<Self>,
    ) -> Result<Self, Infallible> {
        let cluster = services.store.cluster();
        let pacer = pace(me, services.store.newest_event(), cluster.changed());
        let freeing = (!cluster.is_solo()).then(|| tokio::spawn(free_expired(services.clone())));
        services.counters.in_flight.store(0, Relaxed);
        Ok(Self {
            incarnation: services.incarnation.fetch_add(1, Relaxed) + 1,
            dispatcher: Dispatcher::new(&services.settings),
            attempts: JoinSet::new(),
            reports: AttemptResults::default(),
            planned: None,
            turn: None,
            asked_again: false,
            has_recovered: false,
            is_failing: false,
            alarm: None,
            _pacer: AbortOnDropHandle::new(tokio::spawn(pacer)),
            _freeing: freeing.map(AbortOnDropHandle::new),
            services,
        })
    }
}

impl Sender {
    /// Begins a turn, or has one follow the present one.
    fn begin(&mut self, me: &ActorRef<Self>) {
        if self.turn.is_some() {
            self.asked_again = true;
            return;
        }
        self.asked_again = false;
        let (services, me, of) = (self.services.clone(), me.clone(), self.incarnation);
        let turn = if self.has_recovered {
            let receivers = self.dispatcher.receivers();
            tokio::spawn(async move {
                let lanes = look(&services, &receivers).await;
                let _ = me.tell(ScanFinished(of, lanes)).await;
            })
        } else {
            tokio::spawn(async move {
                let interrupted = recover(&services).await;
                let _ = me.tell(Interrupted(of, interrupted)).await;
            })
        };
        self.turn = Some(AbortOnDropHandle::new(turn));
    }

    /// Ends a turn.
    fn end(&mut self, has_more: bool, me: &ActorRef<Self>) {
        self.turn = None;
        self.is_failing = false;
        let in_flight = self.dispatcher.in_flight() as u64;
        self.services.counters.in_flight.store(in_flight, Relaxed);
        if self.services.closing.is_cancelled() && self.dispatcher.is_idle() {
            self.services.closed.cancel();
        }
        if has_more || self.asked_again {
            self.begin(me);
        }
    }

    /// Begins as a successor does, with all claims interrupted: a commit of unknown outcome may have claimed deliveries of which
    /// no attempt knows, and no other turn would look for them. Attempts in flight end, and are made again under the same ids.
    fn start_over(&mut self) {
        self.incarnation = self.services.incarnation.fetch_add(1, Relaxed) + 1;
        self.dispatcher = Dispatcher::new(&self.services.settings);
        self.attempts = JoinSet::new();
        self.reports = AttemptResults::default();
        self.has_recovered = false;
        self.services.counters.in_flight.store(0, Relaxed);
    }

    /// Ends a turn that failed and changed nothing; the next scan begins another one.
    fn fail(&mut self, error: &Error) {
        self.turn = None;
        self.planned = None;
        self.asked_again = false;
        // After its close every attempt is recorded, and the store ends while the last look is in progress.
        let has_ended = self.services.closed.is_cancelled();
        if !std::mem::replace(&mut self.is_failing, true) && !has_ended {
            warn!(%error, "webhooks wait until the database takes changes again");
        }
    }

    /// Decides what this turn writes, and has it written.
    fn plan(&mut self, lanes: Vec<Lane>, me: &ActorRef<Self>) {
        for ended in std::mem::take(&mut *self.reports.lock()) {
            self.dispatcher.ended(ended);
        }
        if self.services.closing.is_cancelled() {
            self.dispatcher.close();
        }
        let now_ms = self.services.clock.now_ms();
        let mut plan = self.dispatcher.plan(&lanes, now_ms, &mut draw);
        plan.releasing.retain(|id| self.services.sends_to(*id));
        self.set_alarm(plan.wake_at, now_ms, me);
        if plan.is_empty() {
            self.end(false, me);
            return;
        }
        let (plan, services, me) = (Arc::new(plan), self.services.clone(), me.clone());
        self.planned = Some((plan.clone(), receivers(lanes)));
        let (incarnation, reports) = (self.incarnation, self.reports.clone());
        self.turn = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            let done = carry_out(&services, incarnation, plan, reports).await;
            let _ = me.tell(PlanWritten(incarnation, done)).await;
        })));
    }

    /// Wakes the actor sooner than the next scan.
    fn set_alarm(&mut self, wake_at: Option<i64>, now_ms: i64, me: &ActorRef<Self>) {
        let pause = wake_at.map(|at| at.saturating_sub(now_ms).max(1));
        let pause = pause.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(1)));
        let me = me.clone();
        self.alarm = pause.filter(|pause| *pause < SCAN_EVERY).map(|pause| {
            AbortOnDropHandle::new(tokio::spawn(async move {
                tokio::time::sleep(pause).await;
                let _ = me.tell(Nudge).try_send();
            }))
        });
    }

    /// Sends the claimed deliveries.
    fn send(&mut self, claimed: Vec<Claimed>, receivers: &Receivers, me: &ActorRef<Self>) {
        while self.attempts.try_join_next().is_some() {}
        for claimed in claimed {
            let endpoint = receivers.get(&claimed.endpoint_id);
            let endpoint = endpoint
                .expect("claims are of endpoints that have lanes")
                .clone();
            if claimed.number == 1 {
                let waited_ms = self.services.clock.now_ms() - claimed.created_at;
                let waited = Duration::from_millis(u64::try_from(waited_ms).unwrap_or(0));
                self.services.counters.note_wait(waited);
            }
            let attempt = Attempt {
                endpoint,
                event_id: claimed.event_id,
                event_type: claimed.event_type.clone(),
                body: claimed.body.clone(),
            };
            let (services, reports) = (self.services.clone(), self.reports.clone());
            let (revision, me) = (attempt.endpoint.revision, me.clone());
            self.attempts.spawn(async move {
                let outcome = attempt_outcome(&services, &attempt).await;
                reports.lock().push(Ended::of(&claimed, revision, outcome));
                let _ = me.tell(Nudge).try_send();
            });
        }
        // The runtime runs what was spawned last before everything else; this takes that place, so that the attempts are begun
        // in the order in which they were claimed.
        self.attempts.spawn(async {});
    }
}

/// Carries an attempt out; a panic in it is a failed attempt.
async fn attempt_outcome(services: &WebhookServices, attempt: &Attempt) -> AttemptOutcome {
    let performing = attempt.perform(&*services.carrier, &services.settings, &services.clock);
    let outcome = AssertUnwindSafe(performing).catch_unwind().await;
    let outcome = outcome.unwrap_or_else(|_| {
        error!(endpoint = %attempt.endpoint.id, "an attempt panicked");
        AttemptOutcome::without_answer(
            "the service failed at this attempt",
            services.clock.now_ms(),
        )
    });
    let counter = match outcome.ending {
        AttemptResult::Success => &services.counters.delivered,
        AttemptResult::Failure { .. } | AttemptResult::Gone => &services.counters.failed,
    };
    counter.fetch_add(1, Relaxed);
    debug!(
        endpoint = %attempt.endpoint.id,
        event = %attempt.event_id,
        status = outcome.http_status,
        error = outcome.error,
        "attempted"
    );
    outcome
}

async fn look(services: &WebhookServices, receivers: &[Uuid]) -> Result<Vec<Lane>, Error> {
    let mut db = services.store.read().await?;
    let lanes = webhooks::lanes(&mut db, receivers).await?;
    if services.store.cluster().is_solo() {
        return Ok(lanes);
    }
    let held = webhooks::held_elsewhere(&mut db, services.owner).await?;
    let held: HashSet<Uuid> = held.into_iter().collect();
    let may_claim = |id: Uuid| !held.contains(&id) && services.sends_to(id);
    Ok(own_lanes(lanes, receivers, may_claim))
}

/// Returns the lanes of which may be claimed, and those of receivers, with nothing due, for the outcomes of their attempts.
fn own_lanes(lanes: Vec<Lane>, receivers: &[Uuid], may_claim: impl Fn(Uuid) -> bool) -> Vec<Lane> {
    let own = lanes.into_iter().filter_map(|lane| {
        let id = lane.endpoint.id;
        if may_claim(id) {
            return Some(lane);
        }
        receivers.contains(&id).then_some(Lane {
            next_due_at: None,
            replay_due_at: None,
            ..lane
        })
    });
    own.collect()
}

/// Repairs of a predecessor's work, at most [`INTERRUPT_ROWS`] deliveries.
struct Recovered {
    interrupted: u64,
    /// Due times of another clock, of which a running process has none: its own clock never goes back.
    mended: u64,
}

/// Notes attempts that no sender makes any more, and at the start of the process repairs due times.
async fn recover(services: &WebhookServices) -> Result<Recovered, Error> {
    // The claims of an actor of this process, or else those of an earlier process, of which a cluster has others.
    let is_own = services.has_started.load(Relaxed) || !services.store.cluster().is_solo();
    let of = is_own.then_some(services.owner);
    let now_ms = services.clock.now_ms();
    let horizon_ms = after(now_ms, services.schedule.longest());
    services
        .store
        .write_beside(move |tx| {
            Box::pin(async move {
                let interrupted = webhooks::interrupt(tx, of, INTERRUPT_ROWS, now_ms).await?;
                let left = INTERRUPT_ROWS.saturating_sub(u32::try_from(interrupted).unwrap_or(0));
                let mended = match of {
                    None => webhooks::mend_due_times(tx, left, horizon_ms, now_ms).await?,
                    Some(_) => 0,
                };
                Ok(Recovered {
                    interrupted,
                    mended,
                })
            })
        })
        .await
}

/// Frees deliveries again and again whose owner is not known any more, on one node of a cluster.
async fn free_expired(services: Arc<WebhookServices>) {
    let mut turns = tokio::time::interval(FREE_EXPIRED_EVERY);
    loop {
        turns.tick().await;
        if !services.store.cluster().is_janitor() {
            continue;
        }
        let nodes = services.store.cluster().nodes();
        let live: Vec<Uuid> = nodes.iter().map(|node| node.id).collect();
        let now_ms = services.clock.now_ms();
        let freed = services
            .store
            .write_beside(move |tx| {
                Box::pin(async move {
                    webhooks::interrupt_expired(tx, &live, INTERRUPT_ROWS, now_ms).await
                })
            })
            .await;
        match freed {
            Ok(0) => {}
            Ok(rows) => {
                warn!(
                    rows,
                    "webhook deliveries were freed whose node is not known any more"
                );
                services.counters.interrupted.fetch_add(rows, Relaxed);
            }
            Err(error) => {
                debug!(%error, "webhook deliveries of unknown nodes are looked for again")
            }
        }
    }
}

/// Writes of a turn.
struct Done {
    claimed: Vec<Claimed>,
    /// Outcomes that the plan did not know of, recorded with it: the first ones of the reports.
    late: usize,
}

/// Writes a plan; nothing for an actor that has a successor, which would not know of it.
async fn carry_out(
    services: &Arc<WebhookServices>,
    incarnation: u64,
    plan: Arc<Plan>,
    reports: AttemptResults,
) -> Result<Done, Error> {
    let of = services.clone();
    services
        .store
        .write_beside(move |tx| {
            Box::pin(async move {
                if of.incarnation.load(Relaxed) != incarnation {
                    return Err(Error::Conflict("the sender was replaced".into()));
                }
                let late = late_records(&of, &reports);
                Ok(Done {
                    late: late.len(),
                    claimed: write(tx, &of, &plan, &late).await?,
                })
            })
        })
        .await
}

/// Returns the records of the reports, which keep them until the transaction is committed.
fn late_records(services: &WebhookServices, reports: &AttemptResults) -> Vec<Attempted> {
    let reports = reports.lock();
    let records = reports
        .iter()
        .map(|ended| ended.record(&services.schedule, draw()));
    records.collect()
}

async fn write(
    tx: &mut Tx<'_>,
    services: &WebhookServices,
    plan: &Plan,
    late: &[Attempted],
) -> Result<Vec<Claimed>, Error> {
    let wanted = claimable(tx, services, plan).await?;
    webhooks::record(tx, &[&plan.records, late].concat()).await?;
    webhooks::set_healths(tx, &plan.health).await?;
    let mut rows = REWIND_ROWS;
    for endpoint_id in &plan.releasing {
        let rewound = webhooks::rewind(tx, *endpoint_id, rows).await?;
        let rewound = u32::try_from(rewound).unwrap_or(rows);
        if rewound == rows {
            break;
        }
        webhooks::finish_release(tx, *endpoint_id).await?;
        rows -= rewound;
    }
    webhooks::claim(
        tx,
        services.owner,
        &wanted,
        services.lease(),
        plan.horizon_ms,
        services.clock.now_ms(),
    )
    .await
}

/// Returns the wanted claims of endpoints of which no other node holds deliveries. Endpoints that the plan changes or claims of
/// are locked where other units run beside this one.
async fn claimable(
    tx: &mut Tx<'_>,
    services: &WebhookServices,
    plan: &Plan,
) -> Result<Vec<ClaimRequest>, Error> {
    if services.store.engine() == Engine::Sqlite {
        return Ok(plan.wanted.clone());
    }
    let changed = plan.health.iter().map(|(id, _)| *id);
    let claimed_of = plan.wanted.iter().map(|wanted| wanted.endpoint_id);
    let endpoints: HashSet<Uuid> = changed
        .chain(plan.releasing.iter().copied())
        .chain(claimed_of)
        .collect();
    let endpoints: Vec<Uuid> = endpoints.into_iter().collect();
    let free = webhooks::claimable(tx, services.owner, &endpoints).await?;
    let wanted = plan.wanted.iter().copied();
    Ok(wanted
        .filter(|wanted| free.contains(&wanted.endpoint_id))
        .collect())
}

fn receivers(lanes: Vec<Lane>) -> Receivers {
    let endpoints = lanes.into_iter().map(|lane| lane.endpoint);
    endpoints
        .map(|endpoint| (endpoint.id, Arc::new(endpoint)))
        .collect()
}

/// Returns a random number from 0 up to 1.
fn draw() -> f64 {
    let bits = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}

/// Logs a change of an endpoint's health, without its path and query.
fn log_news(news: &News, receivers: &Receivers) {
    let url = receivers
        .get(&news.endpoint_id)
        .map(|endpoint| &endpoint.url);
    let url = url.and_then(|url| Url::parse(url).ok());
    let host = url.as_ref().and_then(Url::host_str).unwrap_or("?");
    let (endpoint, failures) = (news.endpoint_id, news.failures);
    match news.change {
        Change::Suspended => warn!(
            %endpoint, host, failures = failures + 1,
            "webhook endpoint suspended: its deliveries wait until it answers a probe"
        ),
        Change::Released => info!(
            %endpoint, host, failures,
            "webhook endpoint answers again: its waiting deliveries are sent"
        ),
        Change::Paused => warn!(
            %endpoint, host,
            "webhook endpoint paused: it answered 410 Gone"
        ),
    }
}

/// Sends the actor a scan each second, and a nudge when events were committed or the nodes have changed. Aborted with it; the
/// reference is a strong one, since no other holds what a restarted actor is given.
async fn pace(
    sender: ActorRef<Sender>,
    mut newest_event: watch::Receiver<i64>,
    mut nodes: watch::Receiver<u64>,
) {
    let mut scans = tokio::time::interval(SCAN_EVERY);
    let (mut has_writer, mut has_nodes) = (true, true);
    loop {
        let is_scan = tokio::select! {
            _ = scans.tick() => true,
            changed = newest_event.changed(), if has_writer => {
                has_writer = changed.is_ok();
                false
            }
            changed = nodes.changed(), if has_nodes => {
                has_nodes = changed.is_ok();
                false
            }
        };
        let _ = match is_scan {
            true => sender.tell(Scan).try_send().map_err(drop),
            false => sender.tell(Nudge).try_send().map_err(drop),
        };
    }
}

/// Something may be due, or has ended.
pub(super) struct Nudge;

impl Message<Nudge> for Sender {
    type Reply = ();

    async fn handle(&mut self, _: Nudge, context: &mut Context<Self, ()>) {
        // While it fails only the scan tries again.
        if !self.is_failing {
            let me = context.actor_ref().clone();
            self.begin(&me);
        }
    }
}

/// Begin a turn, whatever was announced.
struct Scan;

impl Message<Scan> for Sender {
    type Reply = ();

    async fn handle(&mut self, _: Scan, context: &mut Context<Self, ()>) {
        let me = context.actor_ref().clone();
        self.begin(&me);
    }
}

/// The attempts of a predecessor were noted as interrupted.
struct Interrupted(u64, Result<Recovered, Error>);

impl Message<Interrupted> for Sender {
    type Reply = ();

    async fn handle(
        &mut self,
        Interrupted(of, interrupted): Interrupted,
        context: &mut Context<Self, ()>,
    ) {
        if of != self.incarnation {
            return;
        }
        let me = context.actor_ref().clone();
        match interrupted {
            Ok(recovered) => {
                let (rows, mended) = (recovered.interrupted, recovered.mended);
                if rows > 0 {
                    info!(rows, "interrupted webhook attempts are made again");
                }
                if mended > 0 {
                    info!(
                        mended,
                        "webhook deliveries are due that a clock ahead had put off"
                    );
                }
                self.services.counters.interrupted.fetch_add(rows, Relaxed);
                self.has_recovered = rows + mended < u64::from(INTERRUPT_ROWS);
                if self.has_recovered {
                    self.services.has_started.store(true, Relaxed);
                }
                self.end(true, &me);
            }
            Err(error) => self.fail(&error),
        }
    }
}

/// The lanes of endpoints with something due were read.
struct ScanFinished(u64, Result<Vec<Lane>, Error>);

impl Message<ScanFinished> for Sender {
    type Reply = ();

    async fn handle(
        &mut self,
        ScanFinished(of, lanes): ScanFinished,
        context: &mut Context<Self, ()>,
    ) {
        if of != self.incarnation {
            return;
        }
        let me = context.actor_ref().clone();
        match lanes {
            Ok(lanes) => self.plan(lanes, &me),
            Err(error) => self.fail(&error),
        }
    }
}

/// The plan was written.
struct PlanWritten(u64, Result<Done, Error>);

impl Message<PlanWritten> for Sender {
    type Reply = ();

    async fn handle(
        &mut self,
        PlanWritten(of, done): PlanWritten,
        context: &mut Context<Self, ()>,
    ) {
        if of != self.incarnation {
            return;
        }
        let me = context.actor_ref().clone();
        let Done { claimed, late } = match done {
            Ok(done) => done,
            Err(error) => {
                if matches!(error, Error::Unknown) {
                    self.start_over();
                }
                return self.fail(&error);
            }
        };
        let Some((plan, receivers)) = self.planned.take() else {
            return;
        };
        for news in &plan.news {
            log_news(news, &receivers);
        }
        let now_ms = self.services.clock.now_ms();
        let late = self.reports.lock().drain(..late).collect();
        let has_more = self.dispatcher.carried_out(&plan, &claimed, late, now_ms);
        self.send(claimed, &receivers, &me);
        self.end(has_more, &me);
    }
}

/// Makes the actor begin a turn, and panic when the turn's message waits in the mailbox.
#[cfg(test)]
pub(super) struct Panic;

#[cfg(test)]
impl Message<Panic> for Sender {
    type Reply = ();

    async fn handle(&mut self, _: Panic, context: &mut Context<Self, ()>) {
        self.begin(&context.actor_ref().clone());
        while self.turn.as_ref().is_some_and(|turn| !turn.is_finished()) {
            tokio::task::yield_now().await;
        }
        panic!("a test asked for this panic");
    }
}
