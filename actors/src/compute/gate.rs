//! Who works next: a permit for each worker, two lanes in front of them, and a bound on who waits.
//!
//! The arbiter's own queue has no order and no bound, so nothing gets into it without a permit; there is one for each
//! worker. Interactive work goes before batch work, which leaves a worker free where there are two.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::sync::oneshot;

use super::assignment::{Error, Lane};

/// The way to the workers. Clones share it.
#[derive(Clone)]
pub(super) struct Gate(Arc<Mutex<Lanes>>);

/// Leave to use a worker, until it is dropped.
pub(super) struct Permit {
    gate: Gate,
    lane: Lane,
}

type Waiter = oneshot::Sender<Permit>;

struct Lanes {
    workers: usize,
    max_batch: usize,
    max_waiting: usize,
    busy: usize,
    busy_batch: usize,
    /// Permits that were given back since the start.
    ended: u64,
    interactive: VecDeque<Waiter>,
    batch: VecDeque<Waiter>,
}

impl Gate {
    pub(super) fn new(workers: usize, max_waiting: usize) -> Self {
        Self(Arc::new(Mutex::new(Lanes {
            workers,
            max_batch: workers.saturating_sub(1).max(1),
            max_waiting,
            busy: 0,
            busy_batch: 0,
            ended: 0,
            interactive: VecDeque::new(),
            batch: VecDeque::new(),
        })))
    }

    /// Waits for a worker. Dropping the future gives the place up.
    pub(super) async fn enter(&self, lane: Lane) -> Result<Permit, Error> {
        let turn = {
            let mut lanes = self.lock();
            if lanes.has_room(lane) {
                lanes.begin(lane);
                return Ok(self.permit(lane));
            }
            lanes.wait(lane)?
        };
        Ok(turn.await.expect("lanes outlive those who wait in them"))
    }

    /// Permits that are out.
    pub(super) fn busy(&self) -> usize {
        self.lock().busy
    }

    /// Permits that were given back since the start.
    pub(super) fn ended(&self) -> u64 {
        self.lock().ended
    }

    /// Those who wait, over both lanes.
    pub(super) fn waiting(&self) -> usize {
        let lanes = self.lock();
        let both = lanes.interactive.iter().chain(&lanes.batch);
        both.filter(|waiter| !waiter.is_closed()).count()
    }

    fn leave(&self, lane: Lane) {
        let mut lanes = self.lock();
        lanes.end(lane);
        while let Some((lane, waiter)) = lanes.next() {
            lanes.begin(lane);
            // One who left in this very moment hands it back by dropping it, which takes the lock again.
            drop(lanes);
            let _ = waiter.send(self.permit(lane));
            lanes = self.lock();
        }
    }

    fn permit(&self, lane: Lane) -> Permit {
        let gate = self.clone();
        Permit { gate, lane }
    }

    fn lock(&self) -> MutexGuard<'_, Lanes> {
        self.0.lock().expect("no panic under this lock")
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("busy", &self.busy())
            .field("waiting", &self.waiting())
            .finish()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gate.leave(self.lane);
    }
}

impl Lanes {
    fn has_room(&self, lane: Lane) -> bool {
        self.busy < self.workers && (lane != Lane::Batch || self.busy_batch < self.max_batch)
    }

    fn begin(&mut self, lane: Lane) {
        self.busy += 1;
        self.busy_batch += usize::from(lane == Lane::Batch);
    }

    fn end(&mut self, lane: Lane) {
        self.busy -= 1;
        self.ended += 1;
        self.busy_batch -= usize::from(lane == Lane::Batch);
    }

    fn wait(&mut self, lane: Lane) -> Result<oneshot::Receiver<Permit>, Error> {
        if self.interactive.len() + self.batch.len() >= self.max_waiting {
            self.forget_who_left();
        }
        if self.interactive.len() + self.batch.len() >= self.max_waiting {
            return Err(Error::Busy);
        }
        let (waiter, turn) = oneshot::channel();
        match lane {
            Lane::Interactive | Lane::Delivery => self.interactive.push_back(waiter),
            Lane::Batch => self.batch.push_back(waiter),
        }
        Ok(turn)
    }

    fn forget_who_left(&mut self) {
        self.interactive.retain(|waiter| !waiter.is_closed());
        self.batch.retain(|waiter| !waiter.is_closed());
    }

    /// The next in turn that still waits and for whom there is room.
    fn next(&mut self) -> Option<(Lane, Waiter)> {
        for lane in [Lane::Interactive, Lane::Batch] {
            while self.has_room(lane) {
                let queue = match lane {
                    Lane::Interactive | Lane::Delivery => &mut self.interactive,
                    Lane::Batch => &mut self.batch,
                };
                match queue.pop_front() {
                    Some(waiter) if !waiter.is_closed() => return Some((lane, waiter)),
                    Some(_) => {}
                    None => break,
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use super::*;

    /// Polls once: what a lane gives, it gives at once.
    fn look<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn try_enter(gate: &Gate, lane: Lane) -> Option<Permit> {
        match look(pin!(gate.enter(lane))) {
            Poll::Ready(entered) => entered.ok(),
            Poll::Pending => None,
        }
    }

    #[test]
    fn batch_leaves_one_worker_free_where_there_are_two() {
        for (workers, batch, all) in [(1, 1, 1), (2, 1, 2), (4, 3, 4)] {
            let gate = Gate::new(workers, 10);
            let batches: Vec<_> = (0..5)
                .filter_map(|_| try_enter(&gate, Lane::Batch))
                .collect();
            assert_eq!(batches.len(), batch, "{workers} workers");
            let others: Vec<_> = (0..5)
                .filter_map(|_| try_enter(&gate, Lane::Interactive))
                .collect();
            assert_eq!(batches.len() + others.len(), all, "{workers} workers");
        }
    }

    #[test]
    fn interactive_work_overtakes_batch_work_that_waits_longer() {
        let gate = Gate::new(1, 10);
        let running = try_enter(&gate, Lane::Batch).unwrap();
        let (mut batch, mut interactive) = (
            pin!(gate.enter(Lane::Batch)),
            pin!(gate.enter(Lane::Interactive)),
        );
        assert!(look(batch.as_mut()).is_pending());
        assert!(look(interactive.as_mut()).is_pending());
        assert_eq!(gate.waiting(), 2);
        drop(running);
        assert!(look(batch.as_mut()).is_pending());
        let Poll::Ready(Ok(permit)) = look(interactive.as_mut()) else {
            panic!("it was its turn");
        };
        drop(permit);
        assert!(look(batch.as_mut()).is_ready());
    }

    #[test]
    fn one_more_than_may_wait_is_busy_and_who_left_does_not_count() {
        let gate = Gate::new(1, 2);
        let running = try_enter(&gate, Lane::Interactive).unwrap();
        let mut first = Box::pin(gate.enter(Lane::Interactive));
        let mut second = Box::pin(gate.enter(Lane::Batch));
        assert!(look(first.as_mut()).is_pending());
        assert!(look(second.as_mut()).is_pending());
        for lane in [Lane::Interactive, Lane::Batch] {
            let refused = look(pin!(gate.enter(lane)));
            assert!(matches!(refused, Poll::Ready(Err(Error::Busy))), "{lane:?}");
        }
        drop(first);
        assert_eq!(gate.waiting(), 1);
        assert!(look(pin!(gate.enter(Lane::Interactive))).is_pending());
        drop(running);
        assert!(look(second.as_mut()).is_ready());
        assert_eq!((gate.busy(), gate.waiting()), (0, 0));
    }

    #[test]
    fn a_permit_given_to_one_who_leaves_goes_to_the_next() {
        let gate = Gate::new(1, 10);
        let running = try_enter(&gate, Lane::Interactive).unwrap();
        let mut leaving = Box::pin(gate.enter(Lane::Interactive));
        let mut staying = pin!(gate.enter(Lane::Interactive));
        assert!(look(leaving.as_mut()).is_pending());
        assert!(look(staying.as_mut()).is_pending());
        drop(running);
        drop(leaving);
        assert!(look(staying.as_mut()).is_ready());
    }
}
