//! Process queue of video and audio work: short and long queue with slots of their own, shared memory, most waiting tasks
//! (`av_workers.queue`), places.
//!
//! - Short work needs a slot, and never waits for memory or for long work.
//! - Long work needs a slot and its memory. It goes in turn: what does not fit yet holds up those behind it, so that it gets
//!   its memory once enough of those before it have ended. Work that needs more than there is at all runs alone.
//! - Interactive work comes before delivery and that before batch work of its queue; each task is passed [`MOST_PASSED`]
//!   times at most.
//! - Delivery may take one waiting place of [`PLACES_FOR_DELIVERY`]: anonymous requests for frames of clips, which take
//!   long, do not keep out those with a key.

use std::{collections::VecDeque, mem, sync::Arc, time::Instant};

use parking_lot::{Mutex, MutexGuard};
use sluice_media::av::Report;
use tokio::sync::{oneshot, watch};

use super::demand::{Demand, Queue};
use crate::compute::{
    assignment::{Error, Follow, Lane},
    status::QueueStatus,
};

/// Most tasks of an earlier lane that may pass a waiting one.
const MOST_PASSED: u32 = 16;
/// One in so many waiting places may be taken by delivery.
const PLACES_FOR_DELIVERY: usize = 4;

/// Slots and memory for all tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Supply {
    pub(super) short_slots: usize,
    pub(super) long_slots: usize,
    pub(super) memory_bytes: u64,
    /// Tasks that may wait, over both queues.
    pub(super) max_waiting: usize,
}

/// The queue. Clones share it.
#[derive(Clone)]
pub(super) struct ProcessQueue(Arc<Mutex<State>>);

/// The right to run a task, until it is dropped.
pub(super) struct Permit {
    line: ProcessQueue,
    demand: Demand,
}

struct State {
    supply: Supply,
    short: Side,
    long: Side,
    /// Memory of all running tasks.
    memory_bytes: u64,
    /// Permits that were given back since the start.
    ended: u64,
    next_id: u64,
}

/// A queue with its slots.
#[derive(Default)]
struct Side {
    running: usize,
    waiting: VecDeque<Waiter>,
}

struct Waiter {
    id: u64,
    since: Instant,
    demand: Demand,
    /// Number of later tasks that were put before it.
    passed: u32,
    turn: oneshot::Sender<Permit>,
    /// 1: it is next.
    place: watch::Sender<u32>,
}

/// A place in the queue; dropping it gives it up.
struct QueuePlace {
    line: ProcessQueue,
    id: u64,
    queue: Queue,
    turn: oneshot::Receiver<Permit>,
    place: watch::Receiver<u32>,
}

impl ProcessQueue {
    pub(super) fn new(supply: Supply) -> Self {
        Self(Arc::new(Mutex::new(State {
            supply,
            short: Side::default(),
            long: Side::default(),
            memory_bytes: 0,
            ended: 0,
            next_id: 0,
        })))
    }

    /// Waits for its turn; `follow` receives each new place. Dropping the future gives the place up.
    pub(super) async fn enter(&self, demand: Demand, follow: &Follow) -> Result<Permit, Error> {
        let place = self.line_up(demand)?;
        place.turn(follow).await
    }

    pub(super) fn short(&self) -> QueueStatus {
        self.0.lock().short.status()
    }

    pub(super) fn long(&self) -> QueueStatus {
        self.0.lock().long.status()
    }

    /// Permits that were given back since the start.
    pub(super) fn ended(&self) -> u64 {
        self.0.lock().ended
    }

    fn line_up(&self, demand: Demand) -> Result<QueuePlace, Error> {
        let mut state = self.0.lock();
        let (turn, its_turn) = oneshot::channel();
        let (place, its_place) = watch::channel(0);
        let id = state.line_up(demand, turn, place)?;
        let place = QueuePlace {
            line: self.clone(),
            id,
            queue: demand.queue,
            turn: its_turn,
            place: its_place,
        };
        self.let_in(state);
        Ok(place)
    }

    /// Admits tasks after one has come, ended or left.
    fn let_in(&self, mut state: MutexGuard<'_, State>) {
        let admitted = state.admit();
        // Anyone who leaves in this very moment gives the permit back by dropping it, which takes the lock again.
        drop(state);
        for waiter in admitted {
            let permit = Permit {
                line: self.clone(),
                demand: waiter.demand,
            };
            let _ = waiter.turn.send(permit);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.line.0.lock();
        state.end(&self.demand);
        self.line.let_in(state);
    }
}

impl QueuePlace {
    /// Waits, and reports its place.
    async fn turn(mut self, follow: &Follow) -> Result<Permit, Error> {
        let gone = |_| Error::Unavailable("the queue of video work is gone".into());
        loop {
            tokio::select! {
                biased;
                turn = &mut self.turn => return turn.map_err(gone),
                moved = self.place.changed() => {
                    if moved.is_err() {
                        return (&mut self.turn).await.map_err(gone);
                    }
                    let place = *self.place.borrow_and_update();
                    follow.report_from_async(Report::Waiting { place }).await;
                }
            }
        }
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut state = self.line.0.lock();
        if state.side(self.queue).forget(self.id) {
            self.line.let_in(state);
        }
    }
}

impl State {
    fn side(&mut self, queue: Queue) -> &mut Side {
        match queue {
            Queue::Short => &mut self.short,
            Queue::Long => &mut self.long,
        }
    }

    /// Adds a task and returns the id of its place; `Error::Busy` when it would have to wait and the queue is full.
    fn line_up(
        &mut self,
        mut demand: Demand,
        turn: oneshot::Sender<Permit>,
        place: watch::Sender<u32>,
    ) -> Result<u64, Error> {
        demand.memory_bytes = demand.memory_bytes.min(self.supply.memory_bytes);
        let is_full = self.is_full_for(demand.lane);
        let at = self.side(demand.queue).place_for(demand.lane);
        if is_full && !(at == 0 && self.has_room(&demand)) {
            return Err(Error::Busy);
        }
        let id = self.next_id;
        self.next_id += 1;
        let waiter = Waiter {
            id,
            since: Instant::now(),
            demand,
            passed: 0,
            turn,
            place,
        };
        self.side(demand.queue).insert(at, waiter);
        Ok(id)
    }

    /// Returns whether the queue is full; for delivery its own bound counts, too.
    fn is_full_for(&self, lane: Lane) -> bool {
        let all = || self.short.waiting.iter().chain(&self.long.waiting);
        let most = self.supply.max_waiting;
        let deliveries = || all().filter(|it| it.demand.lane == Lane::Delivery).count();
        let is_over_its_share =
            || lane == Lane::Delivery && deliveries() >= most.div_ceil(PLACES_FOR_DELIVERY);
        all().count() >= most || is_over_its_share()
    }

    fn has_room(&self, demand: &Demand) -> bool {
        match demand.queue {
            Queue::Short => self.short.running < self.supply.short_slots,
            Queue::Long => {
                let memory_bytes = self.memory_bytes.saturating_add(demand.memory_bytes);
                self.long.running < self.supply.long_slots
                    && (self.long.running == 0 || memory_bytes <= self.supply.memory_bytes)
            }
        }
    }

    /// Begins tasks while there is room; those that continue to wait get their new place.
    fn admit(&mut self) -> Vec<Waiter> {
        let mut admitted = Vec::new();
        for queue in [Queue::Short, Queue::Long] {
            while let Some(first) = self.side(queue).waiting.front() {
                let demand = first.demand;
                // No later task passes the first one, which could otherwise wait for its memory for ever.
                if !self.has_room(&demand) {
                    break;
                }
                admitted.extend(self.side(queue).waiting.pop_front());
                self.side(queue).running += 1;
                self.memory_bytes += demand.memory_bytes;
            }
            self.side(queue).number();
        }
        admitted
    }

    fn end(&mut self, demand: &Demand) {
        self.side(demand.queue).running -= 1;
        self.memory_bytes -= demand.memory_bytes;
        self.ended += 1;
    }
}

impl Side {
    fn status(&self) -> QueueStatus {
        QueueStatus {
            running: self.running,
            waiting: self.waiting.len(),
            oldest_wait: self
                .waiting
                .iter()
                .map(|waiter| waiter.since.elapsed())
                .max()
                .unwrap_or_default(),
        }
    }

    /// Returns the place of a new task.
    fn place_for(&self, lane: Lane) -> usize {
        let stays_behind =
            |waiter: &Waiter| lane < waiter.demand.lane && waiter.passed < MOST_PASSED;
        let before = self.waiting.iter().rposition(|it| !stays_behind(it));
        before.map_or(0, |index| index + 1)
    }

    fn insert(&mut self, at: usize, waiter: Waiter) {
        self.waiting.insert(at, waiter);
        for passed in self.waiting.iter_mut().skip(at + 1) {
            passed.passed += 1;
        }
    }

    /// Returns whether it was there.
    fn forget(&mut self, id: u64) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiter| waiter.id != id);
        self.waiting.len() < before
    }

    fn number(&self) {
        for (waiter, number) in self.waiting.iter().zip(1..) {
            waiter
                .place
                .send_if_modified(|place| mem::replace(place, number) != number);
        }
    }
}

#[cfg(test)]
mod tests;
