//! Tests of facts about actix's `SyncArbiter` that the image workers rely on.
//!
//! When one of these fails after an upgrade, the rule beside it has to be checked again.

use std::{
    collections::HashSet,
    sync::mpsc::{self, Receiver, Sender},
    thread::{self, ThreadId},
    time::Duration,
};

use actix::{Actor, Addr, Handler, Message, SyncArbiter, SyncContext, System};

const DEADLINE: Duration = Duration::from_secs(10);
const THREADS: usize = 2;

struct Worker {
    ended: Sender<ThreadId>,
}

struct Work {
    panic: bool,
}

impl Actor for Worker {
    type Context = SyncContext<Self>;
}

impl Message for Work {
    type Result = Option<ThreadId>;
}

impl Handler<Work> for Worker {
    type Result = Option<ThreadId>;

    fn handle(&mut self, work: Work, _: &mut Self::Context) -> Self::Result {
        assert!(!work.panic, "the message asked for it");
        Some(thread::current().id())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The test may be over.
        let _ = self.ended.send(thread::current().id());
    }
}

fn start() -> (Addr<Worker>, Receiver<ThreadId>) {
    let (ended, ends) = mpsc::channel();
    let workers = SyncArbiter::start(THREADS, move || Worker {
        ended: ended.clone(),
    });
    (workers, ends)
}

/// So the handler of [`Perform`](super::worker::Perform) catches what unwinds.
#[test]
fn a_panic_in_a_handler_ends_its_thread_for_good() {
    System::new().block_on(async {
        let (workers, _ends) = start();
        assert!(workers.send(Work { panic: true }).await.is_err());
        let mut threads = HashSet::new();
        for _ in 0..200 {
            let thread = workers.send(Work { panic: false }).await;
            threads.insert(thread.expect("the other thread works on"));
        }
        assert_eq!(threads.len(), THREADS - 1);
    });
}

/// So worker processes, which the actors own, end with the last handle of the pool.
#[test]
fn actors_are_dropped_with_the_last_address() {
    let ends = System::new().block_on(async {
        let (workers, ends) = start();
        let other = workers.clone();
        drop(workers);
        assert!(other.send(Work { panic: false }).await.is_ok());
        drop(other);
        // The arbiter looks once more before it lets its threads go.
        tokio::task::spawn_blocking(move || {
            (0..THREADS)
                .filter_map(|_| ends.recv_timeout(DEADLINE).ok())
                .count()
        })
        .await
    });
    assert_eq!(ends.expect("it was not cancelled"), THREADS);
}
