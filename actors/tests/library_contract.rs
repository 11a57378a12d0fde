//! Facts about kameo that the tree relies on. When one of these fails after an upgrade, the rule
//! beside it has to be looked at again.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use kameo::{
    Actor,
    actor::{ActorId, ActorRef, Spawn, WeakActorRef},
    error::{ActorStopReason, Infallible, SendError},
    mailbox,
    message::{Context, Message},
};
use parking_lot::Mutex;

/// Counts what happens to it; panics on demand.
struct Child {
    starts: Arc<AtomicU32>,
    handled: Arc<AtomicU32>,
}

#[derive(Clone, Default)]
struct Counters {
    starts: Arc<AtomicU32>,
    handled: Arc<AtomicU32>,
    fail_start: bool,
}

impl Actor for Child {
    type Args = Counters;
    type Error = Infallible;

    async fn on_start(counters: Counters, _: ActorRef<Self>) -> Result<Self, Infallible> {
        counters.starts.fetch_add(1, SeqCst);
        assert!(!counters.fail_start, "asked to fail");
        Ok(Self {
            starts: counters.starts,
            handled: counters.handled,
        })
    }
}

struct Panic;
impl Message<Panic> for Child {
    type Reply = ();
    async fn handle(&mut self, _: Panic, _: &mut Context<Self, ()>) {
        panic!("asked to panic");
    }
}

struct Count;
impl Message<Count> for Child {
    type Reply = u32;
    async fn handle(&mut self, _: Count, _: &mut Context<Self, u32>) -> u32 {
        self.handled.fetch_add(1, SeqCst);
        self.starts.load(SeqCst)
    }
}

struct Fail;
impl Message<Fail> for Child {
    type Reply = Result<(), String>;
    async fn handle(&mut self, _: Fail, _: &mut Context<Self, Self::Reply>) -> Self::Reply {
        Err("a handler's error".into())
    }
}

struct Slow(Duration);
impl Message<Slow> for Child {
    type Reply = ();
    async fn handle(&mut self, Slow(duration): Slow, _: &mut Context<Self, ()>) {
        tokio::time::sleep(duration).await;
        self.handled.fetch_add(1, SeqCst);
    }
}

/// Supervises one child and remembers that it lost it.
struct Parent {
    lost: Arc<AtomicU32>,
}

impl Actor for Parent {
    type Args = Arc<AtomicU32>;
    type Error = Infallible;

    async fn on_start(lost: Arc<AtomicU32>, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(Self { lost })
    }

    async fn on_link_died(
        &mut self,
        _: WeakActorRef<Self>,
        _: ActorId,
        _: ActorStopReason,
    ) -> Result<ControlFlow<ActorStopReason>, Infallible> {
        self.lost.fetch_add(1, SeqCst);
        Ok(ControlFlow::Continue(()))
    }
}

async fn supervised(
    counters: &Counters,
    lost: &Arc<AtomicU32>,
    restarts: u32,
) -> (ActorRef<Parent>, ActorRef<Child>) {
    let parent = Parent::spawn(lost.clone());
    let child = Child::supervise(&parent, counters.clone())
        .restart_limit(restarts, Duration::from_secs(60))
        .spawn()
        .await;
    (parent, child)
}

/// Waits for a condition; fails the test after ten seconds.
async fn eventually(what: &str, met: impl Fn() -> bool) {
    let waiting = async {
        while !met() {
            tokio::task::yield_now().await;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_secs(10), waiting)
            .await
            .is_ok(),
        "{what}"
    );
}

#[tokio::test]
async fn a_restart_keeps_the_reference_and_the_queued_messages_and_rebuilds_self() {
    let (counters, lost) = (Counters::default(), Arc::default());
    let (_parent, child) = supervised(&counters, &lost, 5).await;
    child.wait_for_startup().await;
    child.tell(Panic).await.unwrap();
    for _ in 0..10 {
        child.tell(Count).await.unwrap();
    }
    eventually("the messages behind the panic are handled", || {
        counters.handled.load(SeqCst) == 10
    })
    .await;
    assert_eq!(
        child.ask(Count).await.unwrap(),
        2,
        "the same reference, the second life"
    );
}

/// Publishes the references that its present life was given.
struct Published;

type References = Arc<Mutex<Vec<(WeakActorRef<Published>, Option<ActorRef<Published>>)>>>;

impl Actor for Published {
    type Args = (References, bool);
    type Error = Infallible;

    async fn on_start(
        (references, keeps): Self::Args,
        me: ActorRef<Self>,
    ) -> Result<Self, Infallible> {
        let mut references = references.lock();
        references.push((me.downgrade(), keeps.then_some(me)));
        Ok(Self)
    }
}

impl Message<Panic> for Published {
    type Reply = ();
    async fn handle(&mut self, _: Panic, _: &mut Context<Self, ()>) {
        panic!("asked to panic");
    }
}

/// The reference of a restarted actor is one of its own: no one holds it but anyone who is given it. So what an actor spawns to
/// wake itself holds a strong one, and is aborted with the actor.
#[tokio::test]
async fn a_weak_reference_that_a_restarted_actor_is_given_is_dead_unless_a_strong_one_is_kept() {
    for keeps in [false, true] {
        let (references, lost) = (References::default(), Arc::default());
        let parent = Parent::spawn(lost);
        let child = Published::supervise(&parent, (references.clone(), keeps))
            .restart_limit(5, Duration::from_secs(60))
            .spawn()
            .await;
        child.wait_for_startup().await;
        let is_alive = |life: usize| references.lock()[life].0.upgrade().is_some();
        assert!(is_alive(0), "the one that everybody has");
        child.tell(Panic).await.unwrap();
        eventually("the child starts again", || references.lock().len() == 2).await;
        eventually("nothing else holds its reference", || is_alive(1) == keeps).await;
        assert!(child.is_alive(), "though the old reference is good");
    }
}

#[tokio::test]
async fn messages_that_came_before_the_first_start_was_over_are_lost_with_a_panic() {
    let (counters, lost) = (Counters::default(), Arc::default());
    let (_parent, child) = supervised(&counters, &lost, 5).await;
    child.tell(Panic).await.unwrap();
    child.tell(Count).await.unwrap();
    eventually("the child starts again", || {
        counters.starts.load(SeqCst) == 2
    })
    .await;
    assert_eq!(child.ask(Count).await.unwrap(), 2);
    assert_eq!(
        counters.handled.load(SeqCst),
        1,
        "so nothing that matters is only in a mailbox"
    );
}

#[tokio::test]
async fn restarts_have_no_back_off_and_a_spent_budget_is_reported_once() {
    let counters = Counters {
        fail_start: true,
        ..Counters::default()
    };
    let lost = Arc::<AtomicU32>::default();
    let (_parent, _child) = supervised(&counters, &lost, 5).await;
    eventually("the parent hears of the loss", || lost.load(SeqCst) == 1).await;
    assert_eq!(
        counters.starts.load(SeqCst),
        6,
        "one start and a budget of five, burnt without a pause"
    );
}

#[tokio::test]
async fn a_tell_whose_handler_fails_stops_the_actor_and_an_ask_does_not() {
    let counters = Counters::default();
    let child = Child::spawn(counters.clone());
    assert!(matches!(
        child.ask(Fail).await,
        Err(SendError::HandlerError(_))
    ));
    assert!(child.is_alive());
    child.tell(Fail).await.unwrap();
    child.wait_for_shutdown().await;
    assert!(!child.is_alive(), "so handlers of tells return ()");
}

#[tokio::test]
async fn an_ask_that_timed_out_still_runs() {
    let counters = Counters::default();
    let child = Child::spawn(counters.clone());
    let asked = child
        .ask(Slow(Duration::from_millis(50)))
        .reply_timeout(Duration::from_millis(1))
        .await;
    assert!(matches!(asked, Err(SendError::Timeout(_))));
    eventually("the message is handled after its caller left", || {
        counters.handled.load(SeqCst) == 1
    })
    .await;
}

#[tokio::test]
async fn a_linked_child_is_not_stopped_with_a_parent_that_stops_normally() {
    let (counters, lost) = (Counters::default(), Arc::default());
    let parent = Parent::spawn(lost);
    let child = Child::spawn_link(&parent, counters).await;
    parent.stop_gracefully().await.unwrap();
    parent.wait_for_shutdown().await;
    assert!(
        child.is_alive(),
        "so dynamic children are held in Owned, which kills on drop"
    );
    child.kill();
}

#[tokio::test]
async fn a_full_mailbox_gives_the_message_back() {
    let counters = Counters::default();
    let child = Child::spawn_with_mailbox(counters.clone(), mailbox::bounded(1));
    child.tell(Slow(Duration::from_millis(100))).await.unwrap();
    let mut refused = false;
    for _ in 0..3 {
        refused |= matches!(
            child.tell(Slow(Duration::ZERO)).try_send(),
            Err(SendError::MailboxFull(_))
        );
    }
    assert!(refused, "a bounded mailbox says that it is full");
}

#[test]
fn an_actor_runs_on_the_runtime_of_anyone_spawns_it() {
    let tree = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let handler = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let child = handler.block_on(async { Child::spawn(Counters::default()) });
    drop(handler);
    tree.block_on(async {
        let asked = child.ask(Count).reply_timeout(Duration::from_secs(1)).await;
        assert!(
            asked.is_err(),
            "it died with the caller's runtime, so handlers never spawn actors"
        );
    });
}
