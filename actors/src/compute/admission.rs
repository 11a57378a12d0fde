//! Queue of image tasks (`image_workers.queue`, `queue_per_account`): a permit for each worker, interactive before batch,
//! turns by account.
//!
//! The arbiter's own queue has no order and no bound, so nothing gets into it without a permit; there is one for each
//! worker. The rules:
//!
//! - Slow work, which is batch work and tasks that may run long ([`Task::may_run_long`]), leaves one worker free, so that
//!   short interactive work never waits for it.
//! - With three workers or more, one account never has all of them, nor all the places for slow work; and of its own
//!   places, its slow work leaves one to its short interactive work.
//! - Interactive work goes before batch work. Then the account goes first that has the fewest tasks running, then the one
//!   that was served least recently, then the task that came first.
//! - An account whose task ran very long lately is a suspect: its long tasks go behind all others of their lane.
//! - An account has a bound of waiting places of its own, so that it cannot fill the queue for the others.
//!
//! A single worker has no place to keep free: there, a long task holds up all else for up to its deadline.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sluice_media::task::Task;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{
    assignment::{Error, Lane},
    settings::ComputeSettings,
};

/// Time for which an account is a suspect after a task that ran very long.
const SUSPECT_FOR: Duration = Duration::from_secs(60);

/// The admission queue. Clones share it.
#[derive(Clone)]
pub(super) struct AdmissionQueue(Arc<Mutex<Queue>>);

/// A task in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    account_id: Uuid,
    lane: Lane,
    /// Bounded by its deadline alone.
    is_long: bool,
}

/// Class of a task by its duration: how soon its worker is free again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum WorkClass {
    Fast,
    /// Batch work and long tasks.
    Slow,
}

/// The right to use a worker, until it is dropped.
pub(super) struct Permit {
    admission: AdmissionQueue,
    ticket: Ticket,
    since: Instant,
}

/// A task that waits for its permit.
struct Waiter {
    ticket: Ticket,
    since: Instant,
    turn: oneshot::Sender<Permit>,
}

/// Share of an account in the workers, by class of work. Forgotten when it has nothing running and nothing waiting.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    running: usize,
    /// The number of its last turn.
    served: u64,
}

struct Bounds {
    workers: usize,
    slow: usize,
    of_account: usize,
    slow_of_account: usize,
    waiting: usize,
    waiting_of_account: usize,
    /// A long task that takes so much time makes its account a suspect.
    suspect_after: Duration,
}

struct Queue {
    bounds: Bounds,
    busy: usize,
    busy_slow: usize,
    /// Permits that were given so far.
    turns: u64,
    /// Permits that were given back since the start.
    ended: u64,
    shares: HashMap<(Uuid, WorkClass), Share>,
    /// Accounts, and the time until which each is a suspect.
    suspects: HashMap<Uuid, Instant>,
    /// Waiting tasks, in the order of their arrival.
    waiting: Vec<Waiter>,
}

impl Ticket {
    pub(super) fn of(account_id: Uuid, lane: Lane, task: &Task) -> Self {
        Self {
            account_id,
            lane,
            is_long: task.may_run_long(),
        }
    }

    fn class(self) -> WorkClass {
        match self.lane == Lane::Batch || self.is_long {
            true => WorkClass::Slow,
            false => WorkClass::Fast,
        }
    }

    fn is_slow(self) -> bool {
        self.class() == WorkClass::Slow
    }

    fn share(self) -> (Uuid, WorkClass) {
        (self.account_id, self.class())
    }
}

impl AdmissionQueue {
    pub(super) fn new(settings: &ComputeSettings) -> Self {
        let workers = settings.worker_count();
        let all_but_one = |places: usize| places.saturating_sub(1).max(1);
        let slow = all_but_one(workers);
        Self(Arc::new(Mutex::new(Queue {
            bounds: Bounds {
                workers,
                slow,
                of_account: if workers < 3 { workers } else { slow },
                slow_of_account: all_but_one(slow),
                waiting: settings.queue,
                waiting_of_account: settings.queue_per_account,
                suspect_after: settings.document_timeout / 2,
            },
            busy: 0,
            busy_slow: 0,
            turns: 0,
            ended: 0,
            shares: HashMap::new(),
            suspects: HashMap::new(),
            waiting: Vec::new(),
        })))
    }

    /// Waits for a worker. Dropping the future gives the place up.
    pub(super) async fn enter(&self, ticket: Ticket) -> Result<Permit, Error> {
        let turn = {
            let mut queue = self.0.lock();
            if queue.has_room(ticket) {
                queue.begin(ticket);
                return Ok(self.permit(ticket));
            }
            queue.wait(ticket)?
        };
        Ok(turn.await.expect("the queue outlives those who wait in it"))
    }

    /// Returns the number of permits that are held.
    pub(super) fn busy(&self) -> usize {
        self.0.lock().busy
    }

    /// Returns the number of permits that were given back since the start.
    pub(super) fn ended(&self) -> u64 {
        self.0.lock().ended
    }

    /// Returns the number of waiting tasks, over both lanes.
    pub(super) fn waiting(&self) -> usize {
        self.0.lock().waiting.iter().filter(|it| it.waits()).count()
    }

    /// Returns the time for which the first of the waiting tasks has waited.
    pub(super) fn oldest_wait(&self) -> Duration {
        let queue = self.0.lock();
        let oldest = queue.waiting.iter().find(|it| it.waits());
        oldest.map_or(Duration::ZERO, |waiter| waiter.since.elapsed())
    }

    fn leave(&self, ticket: Ticket, held: Duration) {
        let mut queue = self.0.lock();
        queue.end(ticket, held, Instant::now());
        while let Some(waiter) = queue.next(Instant::now()) {
            queue.begin(waiter.ticket);
            // A caller that left in this very moment hands it back by dropping it, which takes the lock again.
            drop(queue);
            let _ = waiter.turn.send(self.permit(waiter.ticket));
            queue = self.0.lock();
        }
    }

    fn permit(&self, ticket: Ticket) -> Permit {
        Permit {
            admission: self.clone(),
            ticket,
            since: Instant::now(),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.leave(self.ticket, self.since.elapsed());
    }
}

impl Waiter {
    fn waits(&self) -> bool {
        !self.turn.is_closed()
    }
}

impl Queue {
    fn has_room(&self, ticket: Ticket) -> bool {
        let bounds = &self.bounds;
        let running = |class| self.share((ticket.account_id, class)).running;
        let is_worker_free = self.busy < bounds.workers
            && running(WorkClass::Fast) + running(WorkClass::Slow) < bounds.of_account;
        let is_slow_place_free =
            self.busy_slow < bounds.slow && running(WorkClass::Slow) < bounds.slow_of_account;
        is_worker_free && (!ticket.is_slow() || is_slow_place_free)
    }

    fn share(&self, of: (Uuid, WorkClass)) -> Share {
        self.shares.get(&of).copied().unwrap_or_default()
    }

    fn begin(&mut self, ticket: Ticket) {
        self.busy += 1;
        self.busy_slow += usize::from(ticket.is_slow());
        self.turns += 1;
        let share = self.shares.entry(ticket.share()).or_default();
        share.running += 1;
        share.served = self.turns;
    }

    fn end(&mut self, ticket: Ticket, held: Duration, now: Instant) {
        self.busy -= 1;
        self.ended += 1;
        self.busy_slow -= usize::from(ticket.is_slow());
        if let Some(share) = self.shares.get_mut(&ticket.share()) {
            share.running -= 1;
        }
        self.forget_idle();
        if ticket.is_long && held >= self.bounds.suspect_after {
            self.suspects.retain(|_, until| *until > now);
            self.suspects.insert(ticket.account_id, now + SUSPECT_FOR);
        }
    }

    fn wait(&mut self, ticket: Ticket) -> Result<oneshot::Receiver<Permit>, Error> {
        // Places that were given up count for nothing.
        self.waiting.retain(Waiter::waits);
        let of_account = |it: &&Waiter| it.ticket.account_id == ticket.account_id;
        if self.waiting.len() >= self.bounds.waiting
            || self.waiting.iter().filter(of_account).count() >= self.bounds.waiting_of_account
        {
            return Err(Error::Busy);
        }
        let (turn, receiver) = oneshot::channel();
        self.waiting.push(Waiter {
            ticket,
            since: Instant::now(),
            turn,
        });
        Ok(receiver)
    }

    /// Takes out the next in turn that still waits and for which there is room.
    fn next(&mut self, now: Instant) -> Option<Waiter> {
        if self.busy >= self.bounds.workers {
            return None;
        }
        self.waiting.retain(Waiter::waits);
        let next = (0..self.waiting.len())
            .filter(|at| self.has_room(self.waiting[*at].ticket))
            .min_by_key(|at| (self.precedence(self.waiting[*at].ticket, now), *at))?;
        Some(self.waiting.remove(next))
    }

    /// Returns the precedence of a waiting task: the least goes first.
    fn precedence(&self, ticket: Ticket, now: Instant) -> (bool, bool, usize, u64) {
        let Share { running, served } = self.share(ticket.share());
        let suspect_until = self.suspects.get(&ticket.account_id);
        let is_suspect = suspect_until.is_some_and(|until| *until > now);
        (
            ticket.lane == Lane::Batch,
            is_suspect && ticket.is_long,
            running,
            served,
        )
    }

    fn forget_idle(&mut self) {
        let waiting = &self.waiting;
        let waits = |of: (Uuid, WorkClass)| waiting.iter().any(|it| it.ticket.share() == of);
        self.shares
            .retain(|of, share| share.running > 0 || waits(*of));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::{Pin, pin},
        task::{Context, Poll, Waker},
    };

    use sluice_media::format::Format;

    use super::*;

    const A: Uuid = Uuid::from_u128(1);
    const B: Uuid = Uuid::from_u128(2);
    const C: Uuid = Uuid::from_u128(3);

    type Entering = Pin<Box<dyn Future<Output = Result<Permit, Error>>>>;

    /// Polls once: what the queue gives, it gives at once.
    fn look<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn admission(workers: usize, queue: usize) -> AdmissionQueue {
        AdmissionQueue::new(&ComputeSettings {
            workers,
            queue,
            queue_per_account: queue,
            ..ComputeSettings::default()
        })
    }

    fn ticket(account_id: Uuid, lane: Lane, format: Format) -> Ticket {
        Ticket::of(account_id, lane, &Task::Inspect { format })
    }

    fn short(account_id: Uuid) -> Ticket {
        ticket(account_id, Lane::Interactive, Format::Jpg)
    }

    fn long(account_id: Uuid) -> Ticket {
        ticket(account_id, Lane::Interactive, Format::Svg)
    }

    fn batch(account_id: Uuid) -> Ticket {
        ticket(account_id, Lane::Batch, Format::Jpg)
    }

    fn entered(entering: Poll<Result<Permit, Error>>) -> Option<Permit> {
        match entering {
            Poll::Ready(entered) => entered.ok(),
            Poll::Pending => None,
        }
    }

    fn try_enter(admission: &AdmissionQueue, ticket: Ticket) -> Option<Permit> {
        entered(look(pin!(admission.enter(ticket))))
    }

    /// Takes as many permits as there are.
    fn fill(admission: &AdmissionQueue, ticket: Ticket) -> Vec<Permit> {
        std::iter::from_fn(|| try_enter(admission, ticket)).collect()
    }

    /// Tasks that wait, each with its name.
    #[derive(Default)]
    struct Waiting(Vec<(&'static str, Entering)>);

    impl Waiting {
        fn add(&mut self, name: &'static str, admission: &AdmissionQueue, ticket: Ticket) {
            let admission = admission.clone();
            let mut entering: Entering = Box::pin(async move { admission.enter(ticket).await });
            assert!(look(entering.as_mut()).is_pending(), "{name} waits");
            self.0.push((name, entering));
        }

        /// Returns the tasks that are admitted now.
        fn admitted(&mut self) -> Vec<(&'static str, Permit)> {
            let mut admitted = Vec::new();
            self.0
                .retain_mut(|(name, entering)| match entered(look(entering.as_mut())) {
                    Some(permit) => {
                        admitted.push((*name, permit));
                        false
                    }
                    None => true,
                });
            admitted
        }

        /// The order of all that wait, when each ends before the next begins, after `running`.
        fn order(mut self, running: Permit) -> Vec<&'static str> {
            let mut order = Vec::new();
            let mut running = vec![running];
            loop {
                running.clear();
                let admitted = self.admitted();
                if admitted.is_empty() {
                    assert!(self.0.is_empty(), "all have had their turn");
                    return order;
                }
                for (name, permit) in admitted {
                    order.push(name);
                    running.push(permit);
                }
            }
        }
    }

    #[test]
    fn slow_work_leaves_a_worker_free_and_one_account_leaves_places_to_others() {
        // workers, then permits of one account: batch, long, short; and long ones of all accounts.
        for (workers, batches, longs, shorts, all_longs) in [
            (1, 1, 1, 1, 1),
            (2, 1, 1, 2, 1),
            (3, 1, 1, 2, 2),
            (5, 3, 3, 4, 4),
        ] {
            let of_one = |ticket| fill(&admission(workers, 10), ticket).len();
            assert_eq!(of_one(batch(A)), batches, "{workers} workers, batch");
            assert_eq!(of_one(long(A)), longs, "{workers} workers, long");
            assert_eq!(of_one(short(A)), shorts, "{workers} workers, short");

            let admission = admission(workers, 10);
            let mut running: Vec<_> = [A, B, C]
                .into_iter()
                .flat_map(|account| fill(&admission, long(account)))
                .collect();
            assert_eq!(running.len(), all_longs, "{workers} workers, all accounts");
            running.extend(fill(&admission, batch(B)));
            assert_eq!(running.len(), all_longs, "batch work is slow, too");
            running.extend(fill(&admission, short(C)));
            assert_eq!(running.len(), workers, "short work has what is left");
        }
    }

    #[test]
    fn ten_drawings_of_one_account_keep_no_one_elses_work_waiting() {
        let admission = admission(3, 50);
        let _drawing = try_enter(&admission, long(A)).unwrap();
        let mut hostile = Waiting::default();
        for _ in 0..9 {
            hostile.add("hostile", &admission, long(A));
        }
        // While the first runs on, work of others and short work of the same account comes and goes at once.
        for ticket in [short(B), short(A), long(B), short(A), short(B), long(C)] {
            assert!(try_enter(&admission, ticket).is_some(), "{ticket:?}");
        }
        assert!(hostile.admitted().is_empty());
        assert_eq!((admission.busy(), admission.waiting()), (1, 9));
    }

    #[test]
    fn slow_work_of_an_account_leaves_a_worker_to_its_own_short_work() {
        for workers in 2..8 {
            let admission = admission(workers, 50);
            let _slow: Vec<_> = [long(A), batch(A), long(A)]
                .into_iter()
                .flat_map(|ticket| fill(&admission, ticket))
                .collect();
            assert!(
                try_enter(&admission, short(A)).is_some(),
                "{workers} workers"
            );
        }
    }

    #[test]
    fn accounts_take_turns_and_interactive_work_goes_first() {
        let admission = admission(1, 50);
        let running = try_enter(&admission, short(C)).unwrap();
        let mut waiting = Waiting::default();
        waiting.add("batch of C", &admission, batch(C));
        for name in ["A1", "A2", "A3"] {
            waiting.add(name, &admission, short(A));
        }
        waiting.add("B1", &admission, short(B));
        waiting.add("B2", &admission, ticket(B, Lane::Delivery, Format::Jpg));
        let order = waiting.order(running);
        assert_eq!(order, ["A1", "B1", "A2", "B2", "A3", "batch of C"]);
    }

    #[test]
    fn the_account_with_fewer_running_tasks_goes_first() {
        let admission = admission(4, 50);
        let mut of_a = fill(&admission, short(A));
        let of_b = try_enter(&admission, short(B)).unwrap();
        let mut waiting = Waiting::default();
        waiting.add("A", &admission, short(A));
        waiting.add("B", &admission, short(B));
        // A was served before B, and has still two.
        of_a.truncate(2);
        let admitted = waiting.admitted();
        assert_eq!(admitted[0].0, "B");
        drop((of_b, admitted));
    }

    #[test]
    fn an_account_whose_drawing_ran_long_goes_behind_the_others_for_a_while() {
        let admission = admission(1, 50);
        let mut running = try_enter(&admission, long(A)).unwrap();
        let half = ComputeSettings::default().document_timeout / 2;
        running.since = running.since.checked_sub(half).unwrap();
        drop(running);

        let running = try_enter(&admission, short(C)).unwrap();
        let mut waiting = Waiting::default();
        waiting.add("long of A", &admission, long(A));
        waiting.add("short of A", &admission, short(A));
        waiting.add("B1", &admission, long(B));
        waiting.add("B2", &admission, long(B));
        let order = waiting.order(running);
        assert_eq!(order, ["short of A", "B1", "B2", "long of A"]);

        let soon = Instant::now();
        let rank = |now| admission.0.lock().precedence(long(A), now).1;
        assert_eq!((rank(soon), rank(soon + SUSPECT_FOR)), (true, false));
    }

    #[test]
    fn one_account_cannot_fill_the_queue_for_the_others() {
        let admission = AdmissionQueue::new(&ComputeSettings {
            workers: 1,
            queue: 3,
            queue_per_account: 2,
            ..ComputeSettings::default()
        });
        let refused = |ticket| {
            matches!(
                look(pin!(admission.enter(ticket))),
                Poll::Ready(Err(Error::Busy))
            )
        };
        let _running = try_enter(&admission, short(A)).unwrap();
        let mut waiting = Waiting::default();
        waiting.add("A1", &admission, short(A));
        waiting.add("A2", &admission, batch(A));
        assert!(refused(short(A)) && refused(batch(A)) && refused(long(A)));
        waiting.add("B1", &admission, short(B));
        assert!(refused(short(C)), "the queue is full");
        // A caller that leaves gives its place up.
        drop(waiting.0.remove(0));
        assert_eq!(admission.waiting(), 2);
        waiting.add("A3", &admission, short(A));
        assert!(refused(short(B)));
    }

    #[test]
    fn a_permit_given_to_one_who_leaves_goes_to_the_next() {
        let admission = admission(1, 10);
        let running = try_enter(&admission, short(A)).unwrap();
        let mut leaving = Box::pin(admission.enter(short(A)));
        let mut staying = pin!(admission.enter(short(A)));
        assert!(look(leaving.as_mut()).is_pending());
        assert!(look(staying.as_mut()).is_pending());
        drop(running);
        drop(leaving);
        assert!(look(staying.as_mut()).is_ready());
    }

    #[test]
    fn nothing_is_kept_of_accounts_that_have_left() {
        let admission = admission(2, 10);
        for account in 0..100 {
            let account = Uuid::from_u128(account);
            drop(try_enter(&admission, long(account)).unwrap());
            let running = fill(&admission, short(account));
            let given_up = Box::pin(admission.enter(short(account)));
            drop((given_up, running));
        }
        let queue = admission.0.lock();
        assert_eq!((queue.shares.len(), queue.waiting.len()), (0, 0));
    }
}
