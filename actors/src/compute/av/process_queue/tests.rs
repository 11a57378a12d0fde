//! The process queue without any process: permits are held and dropped, places are checked.

use std::{
    pin::{Pin, pin},
    sync::mpsc,
    task::{Context, Poll, Waker},
};

use super::*;

/// A task that waits, or its permit.
type Entering<'l> = Pin<Box<dyn Future<Output = Result<Permit, Error>> + 'l>>;

fn line(long_slots: usize, memory_bytes: u64, max_waiting: usize) -> ProcessQueue {
    ProcessQueue::new(Supply {
        short_slots: 1,
        long_slots,
        memory_bytes,
        max_waiting,
    })
}

fn demand(queue: Queue, lane: Lane, memory_bytes: u64) -> Demand {
    Demand {
        queue,
        lane,
        memory_bytes,
    }
}

fn long(memory_bytes: u64) -> Demand {
    demand(Queue::Long, Lane::Batch, memory_bytes)
}

fn enter(line: &ProcessQueue, demand: Demand) -> Entering<'_> {
    const UNFOLLOWED: &Follow = &Follow::none();
    Box::pin(line.enter(demand, UNFOLLOWED))
}

/// Polls once: what the line gives, it gives at once.
fn look(entering: &mut Entering<'_>) -> Option<Permit> {
    match entering
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(entered) => entered.ok(),
        Poll::Pending => None,
    }
}

fn try_enter(line: &ProcessQueue, demand: Demand) -> Option<Permit> {
    look(&mut enter(line, demand))
}

#[test]
fn short_work_waits_for_nothing_but_its_own_slots() {
    let line = line(1, 100, 10);
    let _long = try_enter(&line, long(1_000)).unwrap();
    let mut waiting = enter(&line, long(10));
    assert!(look(&mut waiting).is_none());
    let short = demand(Queue::Short, Lane::Batch, 1_000);
    let first = try_enter(&line, short).unwrap();
    let mut second = enter(&line, short);
    assert!(look(&mut second).is_none());
    drop(first);
    assert!(look(&mut second).is_some());
}

#[test]
fn long_work_shares_memory_and_what_exceeds_it_runs_alone() {
    for (wanted, expected) in [
        (&[40, 40, 40][..], 2),
        (&[100, 1], 1),
        (&[1, 100], 1),
        (&[500, 1], 1),
        (&[u64::MAX, u64::MAX], 1),
        (&[1, 1, 1, 1], 3),
    ] {
        let line = line(3, 100, 10);
        let permits: Vec<_> = wanted
            .iter()
            .filter_map(|bytes| try_enter(&line, long(*bytes)))
            .collect();
        assert_eq!(permits.len(), expected, "{wanted:?}");
        drop(permits);
        assert!(try_enter(&line, long(u64::MAX)).is_some(), "{wanted:?}");
    }
}

#[test]
fn a_large_task_is_not_passed_by_small_ones_until_it_leaves() {
    let line = line(3, 100, 10);
    let running = try_enter(&line, long(40)).unwrap();
    let mut large = enter(&line, long(90));
    let mut small = enter(&line, long(10));
    assert!(look(&mut large).is_none());
    assert!(look(&mut small).is_none(), "although it would fit");
    drop(large);
    let small = look(&mut small).unwrap();
    let mut large = enter(&line, long(90));
    assert!(look(&mut large).is_none());
    drop(running);
    assert!(look(&mut large).is_some(), "with 10 beside it");
    drop(small);
    assert_eq!(line.ended(), 3);
}

#[test]
fn interactive_work_passes_batch_work_but_not_for_ever() {
    let line = line(1, 100, 100);
    let running = try_enter(&line, long(1)).unwrap();
    let mut batch = enter(&line, long(1));
    assert!(look(&mut batch).is_none());
    let interactive = demand(Queue::Long, Lane::Interactive, 1);
    let mut passing: Vec<_> = (0..=MOST_PASSED)
        .map(|_| enter(&line, interactive))
        .collect();
    for entering in &mut passing {
        assert!(look(entering).is_none());
    }
    let last = passing.pop();
    drop(running);
    for mut entering in passing {
        assert!(look(&mut batch).is_none());
        assert!(look(&mut entering).is_some(), "in turn");
    }
    assert!(look(&mut batch).is_some(), "before the last");
    assert!(look(&mut last.unwrap()).is_some());
}

/// No one who fetches frames of clips anonymously has those wait who have a key.
#[test]
fn delivery_lets_interactive_work_pass_and_passes_batch_work() {
    let line = line(1, 100, 100);
    let short = |lane| demand(Queue::Short, lane, 1);
    let running = try_enter(&line, short(Lane::Delivery)).unwrap();
    let mut batch = enter(&line, short(Lane::Batch));
    let mut deliveries = [(); 3].map(|()| enter(&line, short(Lane::Delivery)));
    let mut asked = enter(&line, short(Lane::Interactive));
    assert!(look(&mut batch).is_none());
    assert!(deliveries.iter_mut().all(|it| look(it).is_none()));
    assert!(look(&mut asked).is_none());
    drop(running);
    for (number, entering) in deliveries.iter_mut().enumerate() {
        assert!(look(entering).is_none(), "delivery {number}");
    }
    assert!(look(&mut asked).is_some(), "before all that came earlier");
    for (number, entering) in deliveries.iter_mut().enumerate() {
        assert!(look(&mut batch).is_none());
        assert!(look(entering).is_some(), "delivery {number}");
    }
    assert!(look(&mut batch).is_some());
}

#[test]
fn delivery_continues_although_more_and_more_is_asked() {
    let line = line(1, 100, 100);
    let short = |lane| demand(Queue::Short, lane, 1);
    let running = try_enter(&line, short(Lane::Interactive)).unwrap();
    let mut delivery = enter(&line, short(Lane::Delivery));
    assert!(look(&mut delivery).is_none());
    let mut passing: Vec<_> = (0..=MOST_PASSED)
        .map(|_| enter(&line, short(Lane::Interactive)))
        .collect();
    assert!(passing.iter_mut().all(|it| look(it).is_none()));
    let last = passing.pop();
    drop(running);
    for mut entering in passing {
        assert!(look(&mut delivery).is_none());
        assert!(look(&mut entering).is_some(), "in turn");
    }
    assert!(look(&mut delivery).is_some(), "before the last");
    assert!(look(&mut last.unwrap()).is_some());
}

#[test]
fn delivery_has_a_quarter_of_the_places() {
    let line = line(1, 100, 8);
    let short = |lane| demand(Queue::Short, lane, 1);
    let running = try_enter(&line, short(Lane::Delivery)).unwrap();
    let mut waiting = [(); 2].map(|()| enter(&line, short(Lane::Delivery)));
    assert!(waiting.iter_mut().all(|it| look(it).is_none()));
    let refused = pin!(line.enter(short(Lane::Delivery), &Follow::default()))
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(refused, Poll::Ready(Err(Error::Busy))));
    let mut others: Vec<_> = (0..6)
        .map(|_| enter(&line, short(Lane::Interactive)))
        .collect();
    assert!(others.iter_mut().all(|it| look(it).is_none()));
    assert_eq!(line.short().waiting, 8, "the other places are theirs");
    drop((others, waiting, running));
    assert!(try_enter(&line, short(Lane::Delivery)).is_some());
}

#[test]
fn one_more_than_may_wait_is_busy_and_who_left_does_not_count() {
    let line = line(1, 100, 1);
    let running = try_enter(&line, long(1)).unwrap();
    let mut first = enter(&line, long(1));
    assert!(look(&mut first).is_none());
    let refused =
        pin!(line.enter(long(1), &Follow::default())).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(refused, Poll::Ready(Err(Error::Busy))));
    let short = demand(Queue::Short, Lane::Batch, 1);
    assert!(try_enter(&line, short).is_some(), "it need not wait");
    drop(first);
    assert_eq!(line.long().waiting, 0);
    let mut second = enter(&line, long(1));
    assert!(look(&mut second).is_none());
    drop(running);
    assert!(look(&mut second).is_some());
    assert_eq!(line.long(), QueueStatus::default());
}

#[test]
fn a_permit_given_to_one_who_leaves_goes_to_the_next() {
    let line = line(1, 100, 10);
    let running = try_enter(&line, long(1)).unwrap();
    let mut leaving = enter(&line, long(1));
    let mut staying = enter(&line, long(1));
    assert!(look(&mut leaving).is_none());
    assert!(look(&mut staying).is_none());
    drop(running);
    drop(leaving);
    assert!(look(&mut staying).is_some());
}

#[tokio::test]
async fn those_who_wait_are_reported_each_place() {
    let line = line(1, 100, 10);
    let running = try_enter(&line, long(1)).unwrap();
    let mut first = enter(&line, long(1));
    assert!(look(&mut first).is_none());
    let (reports, places) = mpsc::channel();
    let follow = Follow::new(move |report| drop(reports.send(report)));
    let mut second = tokio::spawn({
        let line = line.clone();
        async move { line.enter(long(1), &follow).await.is_ok() }
    });
    let mut next_place = async || {
        tokio::select! {
            report = async { loop {
                match places.try_recv() {
                    Ok(report) => break report,
                    Err(_) => tokio::task::yield_now().await,
                }
            } } => report,
            _ = &mut second => panic!("it was not its turn"),
        }
    };
    assert_eq!(next_place().await, Report::Waiting { place: 2 });
    drop(first);
    assert_eq!(next_place().await, Report::Waiting { place: 1 });
    drop(running);
    assert!(second.await.unwrap());
}
