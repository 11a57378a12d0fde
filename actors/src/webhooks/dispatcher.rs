//! Decisions of the webhook sender between its turns: deliveries to claim, outcomes to record, replays, orders after a
//! suspension.
//!
//! Pure: lanes, outcomes and time in; records, health and wanted claims out.
//!
//! ```text
//! lanes ──▶ plan ──▶ (one transaction: records, health, rewinds, claims) ──▶ carried_out ──▶ attempts ──▶ ended ─┐
//!             ▲                                                                                                  │
//!             └──────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Outcomes that come between a plan and its transaction are recorded by it all the same, so that a crash has little to
//! repeat; their effect on the endpoints' health follows with the next plan.
//!
//! A plan that could not be carried out is forgotten, and the next one holds the same outcomes. An attempt holds its place
//! until its outcome is recorded, so what is in memory is bounded by the places, however long the backlog is and however
//! long the database is locked.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use sluice_store::webhooks::{
    Attempted, ClaimRequest, Claimed, EndpointHealth, EndpointStatus, Lane, What,
};
use uuid::Uuid;

use super::{
    WebhookSettings,
    attempt::AttemptOutcome,
    health::{self, Change, Rules},
    schedule::{Purpose, RetrySchedule, after},
    scheduler::{Bounds, Candidate, Grant, Load, Scheduler},
};

/// Most waiting deliveries that are put back into the order of their events in one turn.
pub const REWIND_ROWS: u32 = 500;

/// The state; see the module documentation.
#[derive(Debug)]
pub struct Dispatcher {
    rules: Rules,
    schedule: RetrySchedule,
    bounds: Bounds,
    slow_after: Duration,
    /// By delivery: claimed, and their outcomes not recorded yet.
    running: HashMap<Uuid, Running>,
    /// Not recorded yet, in the order in which they came.
    ended: Vec<Ended>,
    /// Recorded by the last turn although its plan did not know of them: their effect on the endpoints' health is not written
    /// yet.
    late: Vec<Ended>,
    scheduler: Scheduler,
    is_closing: bool,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    endpoint_id: Uuid,
    purpose: Purpose,
    started_at: i64,
}

/// An attempt that has ended, and the claim it was made under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub delivery_id: Uuid,
    pub endpoint_id: Uuid,
    pub fence: i64,
    pub number: u32,
    pub purpose: Purpose,
    /// Revision of the endpoint when the attempt was begun.
    pub revision: i64,
    pub outcome: AttemptOutcome,
}

impl Ended {
    /// Makes the end of a claimed attempt; `revision`: of the endpoint that it was sent to.
    pub fn of(claimed: &Claimed, revision: i64, outcome: AttemptOutcome) -> Self {
        Self {
            revision,
            delivery_id: claimed.delivery_id,
            endpoint_id: claimed.endpoint_id,
            fence: claimed.fence,
            number: claimed.number,
            purpose: purpose(claimed),
            outcome,
        }
    }

    /// Returns the row's record of it. `draw`: a random number from 0 up to 1.
    pub fn record(&self, schedule: &RetrySchedule, draw: f64) -> Attempted {
        let outcome = &self.outcome;
        Attempted {
            delivery_id: self.delivery_id,
            fence: self.fence,
            number: self.number,
            signed_at: outcome.signed_at,
            ended_at: outcome.ended_at,
            http_status: outcome.http_status,
            response_preview: outcome.response_preview.clone(),
            error: outcome.error.clone(),
            next: schedule.next(self.purpose, outcome.ending, outcome.ended_at, draw),
        }
    }
}

/// Writes of a turn.
#[derive(Debug, Default)]
pub struct Plan {
    pub records: Vec<Attempted>,
    pub health: Vec<(Uuid, EndpointHealth)>,
    pub news: Vec<News>,
    /// Endpoints whose waiting deliveries are put into the order of their events before any of them is claimed.
    pub releasing: Vec<Uuid>,
    pub wanted: Vec<ClaimRequest>,
    /// A due time later than this was scheduled by another clock, and is due.
    pub horizon_ms: i64,
    /// Time at which something becomes due that is not due now.
    pub wake_at: Option<i64>,
    /// An endpoint had to leave places to others.
    is_short: bool,
    /// Late outcomes whose health it notes.
    late: usize,
}

/// A change of an endpoint's health that its owner should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    pub endpoint_id: Uuid,
    pub change: Change,
    /// In a row, before the change.
    pub failures: u32,
}

impl Plan {
    /// Returns whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
            && self.late == 0
            && self.releasing.is_empty()
            && self.wanted.is_empty()
    }

    fn wake_at(&mut self, at: i64) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }
}

/// Attempts in flight to an endpoint.
#[derive(Clone, Copy, Debug)]
struct Busy {
    attempts: usize,
    oldest_started_at: i64,
    is_probing: bool,
}

/// Due deliveries of an endpoint.
#[derive(Clone, Copy, Debug, Default)]
struct Due {
    regular: Option<What>,
    replay: bool,
}

impl Dispatcher {
    pub fn new(settings: &WebhookSettings) -> Self {
        Self {
            rules: Rules::new(settings),
            schedule: RetrySchedule::new(settings),
            bounds: Bounds {
                in_all: settings.max_in_flight,
                for_one: settings.max_per_endpoint,
            },
            slow_after: settings.slow_after,
            running: HashMap::new(),
            ended: Vec::new(),
            late: Vec::new(),
            scheduler: Scheduler::default(),
            is_closing: false,
        }
    }

    /// Ends the claiming of deliveries.
    pub fn close(&mut self) {
        self.is_closing = true;
    }

    /// Returns whether nothing is in flight and everything is recorded.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty() && self.late.is_empty()
    }

    /// Returns the number of attempts that have not ended.
    pub fn in_flight(&self) -> usize {
        self.running.len() - self.ended.len()
    }

    /// Returns the endpoints of attempts in flight or not judged: their lanes are needed, whether anything waits or not.
    pub fn receivers(&self) -> Vec<Uuid> {
        let running = self.running.values().map(|running| running.endpoint_id);
        let receivers = running.chain(self.late.iter().map(|ended| ended.endpoint_id));
        receivers.collect::<HashSet<Uuid>>().into_iter().collect()
    }

    /// Takes the end of an attempt; one of another process is ignored.
    pub fn ended(&mut self, ended: Ended) {
        if self.running.contains_key(&ended.delivery_id) {
            self.ended.push(ended);
        }
    }

    /// Returns the writes of this turn. `draw`: random numbers from 0 up to 1.
    pub fn plan(&mut self, lanes: &[Lane], now_ms: i64, draw: &mut dyn FnMut() -> f64) -> Plan {
        let mut plan = Plan {
            records: self
                .ended
                .iter()
                .map(|ended| ended.record(&self.schedule, draw()))
                .collect(),
            late: self.late.len(),
            horizon_ms: after(now_ms, self.schedule.longest()),
            ..Plan::default()
        };
        let (busy, outcomes) = (self.busy(), self.outcomes());
        let mut load = Load {
            in_all: self.in_flight(),
            failing: 0,
        };
        let (mut candidates, mut dues) = (Vec::new(), HashMap::new());
        for lane in lanes {
            let endpoint_id = lane.endpoint.id;
            let health = match outcomes.get(&endpoint_id) {
                Some(outcomes) => self.judge(lane, outcomes, &mut plan),
                None => lane.endpoint.health(),
            };
            let busy = busy.get(&endpoint_id);
            let candidate = Candidate {
                endpoint_id,
                in_flight: busy.map_or(0, |busy| busy.attempts),
                is_failing: health::is_failing(&health) || self.is_slow(busy, now_ms),
            };
            if candidate.is_failing {
                load.failing += candidate.in_flight;
            }
            let due = self.due(lane, &health, busy, now_ms, &mut plan);
            if due.replay || due.regular.is_some() {
                candidates.push(candidate);
                dues.insert(endpoint_id, due);
            }
        }
        // Of all lanes, also those with nothing due: the scheduler forgets the turns of the others.
        self.scheduler
            .meet(lanes.iter().map(|lane| lane.endpoint.id));
        if self.is_closing {
            // Outcomes are still recorded, but nothing is put back or claimed that this process would not send.
            plan.releasing.clear();
            return plan;
        }
        let (grants, is_short) = self.scheduler.divide(self.bounds, load, &candidates);
        plan.is_short = is_short;
        for grant in grants {
            // By chance, so that neither replays nor regular deliveries starve the other on a short grant.
            let replays_first = draw() < 0.5;
            plan.wanted
                .extend(wanted(grant, dues[&grant.endpoint_id], replays_first));
        }
        plan
    }

    /// Takes up a plan that was written, and with it the outcomes that came too late for it. Returns whether another turn
    /// should follow at once.
    pub fn carried_out(
        &mut self,
        plan: &Plan,
        claimed: &[Claimed],
        late: Vec<Ended>,
        now_ms: i64,
    ) -> bool {
        self.late.drain(..plan.late);
        for ended in self.ended.drain(..plan.records.len()) {
            self.running.remove(&ended.delivery_id);
        }
        for ended in &late {
            self.running.remove(&ended.delivery_id);
        }
        self.late.extend(late);
        for claimed in claimed {
            let running = Running {
                endpoint_id: claimed.endpoint_id,
                purpose: purpose(claimed),
                started_at: now_ms,
            };
            self.running.insert(claimed.delivery_id, running);
        }
        let wanted: usize = plan.wanted.iter().map(|wanted| wanted.rows as usize).sum();
        let left_a_place = !claimed.is_empty() && claimed.len() < wanted;
        !self.late.is_empty() || !plan.releasing.is_empty() || (plan.is_short && left_a_place)
    }

    /// Returns the outcomes that are not judged, by endpoint.
    fn outcomes(&self) -> HashMap<Uuid, Vec<&Ended>> {
        let mut by_endpoint: HashMap<Uuid, Vec<&Ended>> = HashMap::new();
        for ended in self.late.iter().chain(&self.ended) {
            by_endpoint
                .entry(ended.endpoint_id)
                .or_default()
                .push(ended);
        }
        by_endpoint
    }

    /// Judges the health of an endpoint after outcomes, which the plan notes. An attempt that began before its owner
    /// moved or resumed the endpoint does not undo that: only its time is noted.
    fn judge(&self, lane: &Lane, outcomes: &[&Ended], plan: &mut Plan) -> EndpointHealth {
        let endpoint_id = lane.endpoint.id;
        let mut health = lane.endpoint.health();
        for ended in outcomes {
            let failures = health.consecutive_failures;
            let AttemptOutcome {
                ending, ended_at, ..
            } = ended.outcome;
            if ended.revision != lane.endpoint.revision {
                health = health::noted(health, ending, ended_at);
                continue;
            }
            let (judged, change) = self.rules.judge(health, ended.purpose, ending, ended_at);
            plan.news.extend(change.map(|change| News {
                endpoint_id,
                change,
                failures,
            }));
            health = judged;
        }
        plan.health.push((endpoint_id, health.clone()));
        health
    }

    /// Returns the deliveries of an endpoint that may be sent; later ones are noted as a time to wake.
    fn due(
        &self,
        lane: &Lane,
        health: &EndpointHealth,
        busy: Option<&Busy>,
        now_ms: i64,
        plan: &mut Plan,
    ) -> Due {
        let rests_until = self.rules.rests_until(health, now_ms);
        let horizon_ms = plan.horizon_ms;
        let mut is_due = |at: i64| {
            let at = if at > horizon_ms { now_ms } else { at };
            let at = at.max(rests_until);
            if at > now_ms {
                plan.wake_at(at);
            }
            at <= now_ms
        };
        let replay = lane.replay_due_at.is_some_and(&mut is_due);
        let regular = match health.status {
            EndpointStatus::Paused => None,
            EndpointStatus::Active if health.is_releasing => None,
            EndpointStatus::Active => lane
                .next_due_at
                .is_some_and(&mut is_due)
                .then_some(What::Due),
            EndpointStatus::Suspended => {
                let probes = lane.next_due_at.is_some()
                    && !busy.is_some_and(|busy| busy.is_probing)
                    && is_due(self.rules.probe_at(health, now_ms));
                probes.then_some(What::Probe)
            }
        };
        if health.is_releasing && health.status == EndpointStatus::Active {
            plan.releasing.push(lane.endpoint.id);
        }
        Due { regular, replay }
    }

    fn is_slow(&self, busy: Option<&Busy>, now_ms: i64) -> bool {
        busy.is_some_and(|busy| after(busy.oldest_started_at, self.slow_after) < now_ms)
    }

    /// Returns the attempts that have not ended, by endpoint.
    fn busy(&self) -> HashMap<Uuid, Busy> {
        let mut busy: HashMap<Uuid, Busy> = HashMap::new();
        let ended = self.ended.iter().map(|ended| ended.delivery_id);
        let ended: HashSet<Uuid> = ended.collect();
        for (delivery_id, running) in &self.running {
            if ended.contains(delivery_id) {
                continue;
            }
            let of_endpoint = busy.entry(running.endpoint_id).or_insert(Busy {
                attempts: 0,
                oldest_started_at: running.started_at,
                is_probing: false,
            });
            of_endpoint.attempts += 1;
            of_endpoint.oldest_started_at = of_endpoint.oldest_started_at.min(running.started_at);
            of_endpoint.is_probing |= running.purpose == Purpose::Probe;
        }
        busy
    }
}

fn purpose(claimed: &Claimed) -> Purpose {
    match claimed {
        Claimed {
            is_replay: true, ..
        } => Purpose::Replay,
        Claimed { is_probe: true, .. } => Purpose::Probe,
        Claimed { failures, .. } => Purpose::Delivery {
            failures: *failures,
        },
    }
}

/// Divides an endpoint's places between due deliveries and replays.
fn wanted(grant: Grant, due: Due, replays_first: bool) -> impl Iterator<Item = ClaimRequest> {
    let places = u32::try_from(grant.places).unwrap_or(u32::MAX);
    let (more, less) = (places.div_ceil(2), places / 2);
    let (replays, regular) = match (due.replay, due.regular.is_some()) {
        (true, true) if replays_first => (more, less),
        (true, true) => (less, more),
        (true, false) => (places, 0),
        (false, _) => (0, places),
    };
    let regular = due.regular.map(|what| match what {
        What::Probe => (regular.min(1), what),
        _ => (regular, what),
    });
    [Some((replays, What::Replay)), regular]
        .into_iter()
        .flatten()
        .filter(|(rows, _)| *rows > 0)
        .map(move |(rows, what)| ClaimRequest {
            endpoint_id: grant.endpoint_id,
            rows,
            what,
        })
}
