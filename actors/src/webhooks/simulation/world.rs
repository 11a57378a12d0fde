//! A simulated process over the table, its receivers and its faults; the rules are checked as things happen.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use sluice_store::webhooks::{Attempted, Claimed, EndpointStatus, Next, What};
use uuid::Uuid;

use super::{
    Dice, MINUTE, SECOND,
    receiver::Manner,
    table::{End, Status, Table},
};
use crate::webhooks::{
    WebhookSettings,
    attempt::AttemptOutcome,
    dispatcher::{Dispatcher, Ended, Plan},
    schedule::{AttemptResult, RetrySchedule},
};

/// The scan is seldomer than the real one, so that alarms must come in time.
const SCAN_EVERY: i64 = 10 * MINUTE;
/// Longest wait of a write for a locked database.
const PATIENCE: i64 = 5 * SECOND;
const START: i64 = 1_795_219_200_000;

#[derive(Clone, Copy, Debug)]
pub enum Happening {
    /// Something was committed for an endpoint.
    Event(usize),
    Becomes(usize, Manner),
    /// The process dies, and starts again.
    Crash,
    /// The actor dies, and starts again in the same process.
    Panic,
    /// The database, for so long.
    Locked(i64),
    /// The wall clock, by so much.
    Jump(i64),
    /// Someone asks for a delivery again.
    Replay,
    /// The owner of an endpoint resumes it.
    Resume(usize),
    /// All receivers answer from now on.
    Calm,
    Scan,
    Alarm,
    Looked(u32),
    CarriedOut(u32, bool),
    Ended(u32, Uuid, AttemptResult),
}

/// An attempt on its way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    of: usize,
    /// Revision of its endpoint, when it began.
    revision: i64,
    began_at: i64,
}

/// Before when a delivery must not be attempted, in the eyes of one incarnation.
#[derive(Clone, Copy, Debug)]
struct Promise {
    not_before: i64,
    jumps: u32,
}

pub struct World {
    seed: u64,
    dice: Dice,
    settings: WebhookSettings,
    pub table: Table,
    manners: Vec<Manner>,
    /// Healthy from the first moment to the last.
    always_healthy: HashSet<usize>,
    agenda: BTreeMap<(i64, u64), Happening>,
    entries: u64,
    real_ms: i64,
    wall_offset: i64,
    /// Last reading of the scheduler's clock, and its time.
    shown: (i64, i64),
    jumps: u32,
    locked_until: i64,
    dispatcher: Dispatcher,
    incarnation: u32,
    /// Attempts that are really in flight.
    flights: HashMap<Uuid, Flight>,
    reported: Vec<Ended>,
    claims: HashMap<Uuid, Claimed>,
    endings: HashMap<(Uuid, i64), AttemptResult>,
    planned: Option<(Plan, HashSet<usize>)>,
    is_turning: bool,
    asked_again: bool,
    alarm: Option<(i64, u64)>,
    promises: HashMap<usize, Promise>,
    /// Attempts that a row had when it was asked for again.
    replayed: HashMap<usize, usize>,
}

impl World {
    pub fn new(seed: u64, settings: WebhookSettings) -> Self {
        let mut world = Self {
            seed,
            dice: Dice(!seed),
            dispatcher: Dispatcher::new(&settings),
            settings,
            table: Table::default(),
            manners: Vec::new(),
            always_healthy: HashSet::new(),
            agenda: BTreeMap::new(),
            entries: 0,
            real_ms: 0,
            wall_offset: START,
            shown: (START, 0),
            jumps: 0,
            locked_until: 0,
            incarnation: 0,
            flights: HashMap::new(),
            reported: Vec::new(),
            claims: HashMap::new(),
            endings: HashMap::new(),
            planned: None,
            is_turning: false,
            asked_again: false,
            alarm: None,
            promises: HashMap::new(),
            replayed: HashMap::new(),
        };
        world.at(0, Happening::Scan);
        world
    }

    pub fn add_endpoint(&mut self, manner: Manner) -> usize {
        let of = self.table.add_endpoint();
        self.manners.push(manner);
        if manner == Manner::Healthy {
            self.always_healthy.insert(of);
        }
        of
    }

    /// Milliseconds after the beginning.
    pub fn at(&mut self, real_ms: i64, happening: Happening) -> (i64, u64) {
        if let Happening::Becomes(of, _) = happening {
            self.always_healthy.remove(&of);
        }
        self.entries += 1;
        self.agenda.insert((real_ms, self.entries), happening);
        (real_ms, self.entries)
    }

    /// By the scheduler's clock, where no clock jumps.
    pub fn time_of(&self, real_ms: i64) -> i64 {
        START + real_ms
    }

    pub fn run_until(&mut self, end: i64) {
        while let Some(((real_ms, _), happening)) = self.agenda.pop_first() {
            if real_ms > end {
                break;
            }
            self.real_ms = real_ms;
            self.happen(happening);
        }
    }

    fn soon(&mut self, pause: i64, happening: Happening) {
        self.at(self.real_ms + pause, happening);
    }

    /// Same as in [`crate::clock::SystemClock`].
    fn now_ms(&mut self) -> i64 {
        let steady = self.shown.0 + (self.real_ms - self.shown.1);
        self.shown = (steady.max(self.wall_ms()), self.real_ms);
        self.shown.0
    }

    fn wall_ms(&self) -> i64 {
        self.real_ms + self.wall_offset
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Event(of) => {
                self.table.add_event(of, self.wall_ms());
                self.begin_turn();
            }
            Happening::Becomes(of, manner) => self.manners[of] = manner,
            Happening::Crash => {
                // A clock that was set back goes back with the next process.
                self.jumps += u32::from(self.wall_ms() < self.now_ms());
                self.shown = (self.wall_ms(), self.real_ms);
                self.start_again();
            }
            Happening::Panic => self.start_again(),
            Happening::Locked(time) => self.locked_until = self.real_ms + time,
            Happening::Jump(by) => {
                self.wall_offset += by;
                self.jumps += 1;
            }
            Happening::Replay => self.replay(),
            Happening::Resume(of) => {
                let is_active = self.table.endpoints[of].status == EndpointStatus::Active;
                if !is_active {
                    self.table.resume(of);
                    self.begin_turn();
                }
            }
            Happening::Calm => self.manners.fill(Manner::Healthy),
            Happening::Scan => {
                self.begin_turn();
                self.soon(SCAN_EVERY, Happening::Scan);
            }
            Happening::Alarm => self.begin_turn(),
            Happening::Looked(of) if of == self.incarnation => self.looked(),
            Happening::CarriedOut(of, is_written) if of == self.incarnation => {
                self.carried_out(is_written);
            }
            Happening::Ended(of, delivery_id, ending) if of == self.incarnation => {
                self.ended(delivery_id, ending);
            }
            Happening::Looked(_) | Happening::CarriedOut(..) | Happening::Ended(..) => {}
        }
    }

    fn start_again(&mut self) {
        self.incarnation += 1;
        self.dispatcher = Dispatcher::new(&self.settings);
        self.flights.clear();
        self.reported.clear();
        self.planned = None;
        (self.is_turning, self.asked_again) = (false, false);
        // An interrupted attempt is made again at once.
        for row in &self.table.rows {
            if row.status == Status::Delivering {
                self.promises.remove(&row.seq);
            }
        }
        self.table.interrupt();
        self.begin_turn();
    }

    fn replay(&mut self) {
        if self.table.rows.is_empty() {
            return;
        }
        let row = self.dice.between(0, self.table.rows.len() as i64 - 1) as usize;
        let (before, wall_ms) = (self.table.rows[row].status, self.wall_ms());
        self.table.replay(row, wall_ms);
        if before != Status::Delivering {
            self.promises.remove(&row);
        }
        if matches!(before, Status::Delivered | Status::Failed) {
            let attempts = self.table.rows[row].attempts.len();
            self.replayed.insert(row, attempts);
        }
        self.begin_turn();
    }

    fn begin_turn(&mut self) {
        if self.is_turning {
            self.asked_again = true;
            return;
        }
        (self.is_turning, self.asked_again) = (true, false);
        let pause = self.dice.between(0, 3);
        self.soon(pause, Happening::Looked(self.incarnation));
    }

    fn end_turn(&mut self, has_more: bool) {
        self.is_turning = false;
        if has_more || self.asked_again {
            self.begin_turn();
        }
    }

    fn looked(&mut self) {
        let lanes = self.table.lanes(&self.dispatcher.receivers());
        for ended in std::mem::take(&mut self.reported) {
            self.dispatcher.ended(ended);
        }
        let now_ms = self.now_ms();
        let plan = self
            .dispatcher
            .plan(&lanes, now_ms, &mut || self.dice.fraction());
        self.set_alarm(plan.wake_at, now_ms);
        if plan.is_empty() {
            return self.end_turn(false);
        }
        self.planned = Some((plan, self.slow_endpoints(now_ms)));
        let latency = self.dice.between(1, 30);
        let locked_for = self.locked_until - self.real_ms;
        let (pause, is_written) = match locked_for {
            ..=0 => (latency, true),
            1..=PATIENCE => (locked_for + latency, true),
            _ => (PATIENCE, false),
        };
        self.soon(pause, Happening::CarriedOut(self.incarnation, is_written));
    }

    fn set_alarm(&mut self, wake_at: Option<i64>, now_ms: i64) {
        if let Some(alarm) = self.alarm.take() {
            self.agenda.remove(&alarm);
        }
        let Some(wake_at) = wake_at else { return };
        assert!(wake_at > now_ms, "seed {}: woken for nothing", self.seed);
        self.alarm = Some(self.at(self.real_ms + (wake_at - now_ms), Happening::Alarm));
    }

    fn slow_endpoints(&self, now_ms: i64) -> HashSet<usize> {
        let slow_ms = self.settings.slow_after.as_millis() as i64;
        let flights = self.flights.values();
        let slow = flights.filter(|flight| flight.began_at + slow_ms < now_ms);
        slow.map(|flight| flight.of).collect()
    }

    fn carried_out(&mut self, is_written: bool) {
        let (plan, slow) = self.planned.take().expect("a turn is in progress");
        if !is_written {
            self.is_turning = false;
            return self.soon(SECOND, Happening::Alarm);
        }
        let now_ms = self.now_ms();
        let late = std::mem::take(&mut self.reported);
        let schedule = RetrySchedule::new(&self.settings);
        let mut records = plan.records.clone();
        records.extend(
            late.iter()
                .map(|ended| ended.record(&schedule, self.dice.fraction())),
        );
        let climbed: Vec<u32> = records.iter().map(|one| self.failures(one)).collect();
        let recorded = self.table.record(&records);
        for (record, failures) in records.iter().zip(climbed) {
            if recorded.contains(&self.table.row_of(record.delivery_id)) {
                self.check_record(record, failures);
            }
        }
        for (endpoint_id, health) in &plan.health {
            self.table.set_health(*endpoint_id, health);
        }
        for endpoint_id in &plan.releasing {
            let of = self.table.index_of(*endpoint_id);
            self.table.release(*endpoint_id);
            let rows = self.table.rows.iter().filter(|row| row.of == of);
            for row in rows.filter(|row| row.status == Status::Waiting) {
                self.promises.remove(&row.seq);
            }
        }
        let claimed = self.table.claim(&plan.wanted, plan.horizon_ms, now_ms);
        for one in &claimed {
            self.take_off(one, now_ms);
        }
        self.check_bounds(&claimed, &slow);
        let has_more = self.dispatcher.carried_out(&plan, &claimed, late, now_ms);
        self.end_turn(has_more);
    }

    fn failures(&self, record: &Attempted) -> u32 {
        self.table.rows[self.table.row_of(record.delivery_id)].failures
    }

    /// Begins an attempt, which must be allowed.
    fn take_off(&mut self, claimed: &Claimed, now_ms: i64) {
        let row = self.table.row_of(claimed.delivery_id);
        let (of, what) = (
            self.table.rows[row].of,
            self.table.rows[row]
                .attempts
                .last()
                .expect("just made")
                .what,
        );
        let flight = Flight {
            of,
            revision: self.table.endpoints[of].revision,
            began_at: now_ms,
        };
        self.claims.insert(claimed.delivery_id, claimed.clone());
        let other = self.flights.insert(claimed.delivery_id, flight);
        assert!(
            other.is_none(),
            "seed {}: two in flight for one delivery",
            self.seed
        );
        if what == What::Due {
            self.check_due(row, now_ms);
        }
        let manner = self.manners[of];
        let (time, ending) = manner.answer(&mut self.dice, self.settings.timeout);
        self.endings
            .insert((claimed.delivery_id, claimed.fence), ending);
        let ended = Happening::Ended(self.incarnation, claimed.delivery_id, ending);
        self.soon(time, ended);
    }

    fn ended(&mut self, delivery_id: Uuid, ending: AttemptResult) {
        let flight = self.flights.remove(&delivery_id);
        let revision = flight.expect("what ends was in flight").revision;
        let outcome = AttemptOutcome {
            signed_at: None,
            ended_at: self.now_ms(),
            ending,
            http_status: None,
            response_preview: None,
            error: None,
        };
        let claimed = self.claims.remove(&delivery_id);
        let claimed = claimed.expect("what ends was claimed");
        self.reported.push(Ended::of(&claimed, revision, outcome));
        self.begin_turn();
    }

    /// None before it is due, unless a clock that was ahead put it off, before a restart.
    fn check_due(&self, row: usize, now_ms: i64) {
        let created_at = self.table.rows[row].created_at;
        let promise = self.promises.get(&row).copied().unwrap_or(Promise {
            not_before: i64::MIN,
            jumps: self.jumps,
        });
        let is_early = now_ms < promise.not_before && promise.jumps == self.jumps;
        assert!(!is_early, "seed {}: row {row} before it was due", self.seed);
        let is_before_its_event = now_ms < created_at && self.jumps == 0;
        assert!(
            !is_before_its_event,
            "seed {}: row {row} before its event",
            self.seed
        );
    }

    fn check_record(&mut self, record: &Attempted, failures: u32) {
        let (seed, row) = (self.seed, self.table.row_of(record.delivery_id));
        let what = self.table.rows[row].attempts[record.number as usize - 1].what;
        let ending = self.endings[&(record.delivery_id, record.fence)];
        let rung = self.settings.retry_after_s.get(failures as usize).copied();
        let is_right = match (record.next, ending) {
            (Next::Delivered, ending) => ending == AttemptResult::Success,
            (_, AttemptResult::Success) => false,
            (Next::Failed, AttemptResult::Gone) => true,
            (_, AttemptResult::Gone) => false,
            (Next::Failed, _) => what == What::Replay || (what == What::Due && rung.is_none()),
            (Next::Wait, _) => what == What::Probe,
            (Next::RetryAt(at), AttemptResult::Failure { retry_after }) => {
                let pause = Duration::from_secs(rung.unwrap_or(u64::MAX / 1_000));
                self.promises.insert(
                    row,
                    Promise {
                        not_before: record.ended_at + pause.mul_f64(0.8).as_millis() as i64,
                        jumps: self.jumps,
                    },
                );
                let asked = retry_after.unwrap_or_default();
                let longest = pause
                    .mul_f64(1.2)
                    .max(asked.min(self.settings.max_retry_after));
                let shortest = pause
                    .mul_f64(0.8)
                    .max(asked.min(self.settings.max_retry_after));
                let waits = (at - record.ended_at) as u128;
                what == What::Due && (shortest.as_millis()..=longest.as_millis()).contains(&waits)
            }
        };
        assert!(
            is_right,
            "seed {seed}: {what:?} that ended as {ending:?} became {record:?}"
        );
        if what == What::Replay {
            self.check_replay(row);
        }
    }

    /// Checks a single attempt on request, beside those that were cut short.
    fn check_replay(&self, row: usize) {
        let Some(before) = self.replayed.get(&row) else {
            panic!("seed {}: no one asked for row {row} again", self.seed);
        };
        let made = self.table.rows[row].attempts[*before..].iter();
        let whole = made
            .filter(|made| made.end != Some(End::Interrupted))
            .count();
        assert_eq!(whole, 1, "seed {}: attempts of a replay", self.seed);
        assert_ne!(
            self.table.rows[row].status,
            Status::Waiting,
            "seed {}",
            self.seed
        );
    }

    /// `slow`: when the plan was made.
    fn check_bounds(&self, claimed: &[Claimed], slow: &HashSet<usize>) {
        let seed = self.seed;
        let in_all = self.flights.len();
        let most = self.settings.max_in_flight;
        assert!(in_all <= most, "seed {seed}: {in_all} in flight of {most}");
        let known = self.dispatcher.in_flight();
        assert!(known <= most, "seed {seed}: {known} in memory of {most}");
        let in_flight = |of| {
            self.flights
                .values()
                .filter(|flight| flight.of == of)
                .count()
        };
        let is_failing =
            |of: usize| slow.contains(&of) || self.table.endpoints[of].consecutive_failures > 0;
        let mut has_failing = false;
        for one in claimed {
            let of = self.table.index_of(one.endpoint_id);
            let (has, is_failing) = (in_flight(of), is_failing(of));
            has_failing |= is_failing;
            let most = match is_failing {
                true => 1,
                false => self.settings.max_per_endpoint,
            };
            assert!(
                has <= most,
                "seed {seed}: {has} of {most} for one (failing: {is_failing})"
            );
        }
        if has_failing {
            let failing = self.flights.values().filter(|flight| is_failing(flight.of));
            let (failing, half) = (failing.count(), (self.settings.max_in_flight / 2).max(1));
            assert!(failing <= half, "seed {seed}: {failing} failing of {half}");
        }
    }

    /// All receivers have answered for some hours.
    pub fn check_the_end(&self) {
        let seed = self.seed;
        assert!(
            self.flights.is_empty(),
            "seed {seed}: something is still in flight"
        );
        for row in &self.table.rows {
            let endpoint = &self.table.endpoints[row.of];
            let is_paused = endpoint.status == EndpointStatus::Paused;
            let is_open = matches!(row.status, Status::Waiting | Status::Delivering);
            assert!(
                !is_open || (is_paused && !row.is_replay),
                "seed {seed}: left behind: {row:?} of {endpoint:?}"
            );
            if self.always_healthy.contains(&row.of) {
                let was_attempted = !row.attempts.is_empty();
                assert!(was_attempted, "seed {seed}: never attempted: {row:?}");
                let arrived = row.status == Status::Delivered;
                assert!(arrived, "seed {seed}: lost: {row:?}");
            }
        }
        let healthy: Vec<usize> = self.always_healthy.iter().copied().collect();
        let longest = self.longest_wait(&healthy);
        assert!(
            self.jumps > 0 || longest < 10 * MINUTE,
            "seed {seed}: a healthy endpoint waited for {longest} ms"
        );
    }

    /// From an event to the first attempt, at some endpoints.
    pub fn longest_wait(&self, at: &[usize]) -> i64 {
        let rows = self.table.rows.iter().filter(|row| at.contains(&row.of));
        let waits = rows.filter_map(|row| Some(row.attempts.first()?.began_at - row.created_at));
        waits.max().unwrap_or(0)
    }
}
