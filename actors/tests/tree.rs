//! A component that keeps crashing is parked and comes back; its neighbours notice nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use kameo::{
    Actor,
    actor::{ActorRef, Spawn},
    error::Infallible,
    message::{Context, Message},
};
use sluice_actors::{
    component::{Component, ComponentStatuses, RESTART_BUDGET, RESTART_WINDOW, Start},
    tree::{Add, Args, Root},
};
use tokio_util::sync::CancellationToken;

/// Fails at its start while the switch is on.
struct Worker {
    ticks: Arc<AtomicU32>,
}

#[derive(Clone, Default)]
struct WorkerArgs {
    broken: Arc<AtomicBool>,
    starts: Arc<AtomicU32>,
    ticks: Arc<AtomicU32>,
}

impl Actor for Worker {
    type Args = WorkerArgs;
    type Error = Infallible;

    async fn on_start(args: WorkerArgs, me: ActorRef<Self>) -> Result<Self, Infallible> {
        args.starts.fetch_add(1, SeqCst);
        assert!(!args.broken.load(SeqCst), "a poisoned row");
        let _ = me.tell(Beat).try_send();
        Ok(Self { ticks: args.ticks })
    }
}

struct Beat;
impl Message<Beat> for Worker {
    type Reply = ();
    async fn handle(&mut self, _: Beat, context: &mut Context<Self, ()>) {
        self.ticks.fetch_add(1, SeqCst);
        context
            .actor_ref()
            .tell(Beat)
            .send_after(Duration::from_millis(5));
    }
}

fn component(name: &'static str, vital: bool, args: &WorkerArgs) -> Component {
    let args = args.clone();
    let start: Start = Arc::new(move |supervisor| {
        let args = args.clone();
        Box::pin(async move {
            Worker::supervise(&supervisor, args)
                .restart_limit(RESTART_BUDGET, RESTART_WINDOW)
                .spawn()
                .await;
        })
    });
    Component {
        name,
        vital,
        start,
        stopped: Arc::new(|| Box::pin(async {})),
    }
}

async fn eventually(what: &str, met: impl Fn() -> bool) {
    let waiting = async {
        while !met() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_secs(20), waiting)
            .await
            .is_ok(),
        "{what}"
    );
}

fn is_running(statuses: &ComponentStatuses, name: &str) -> bool {
    statuses
        .states()
        .iter()
        .any(|state| state.name == name && state.running)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_whose_budget_is_spent_is_parked_and_comes_back_while_others_continue() {
    let (poisoned, healthy) = (WorkerArgs::default(), WorkerArgs::default());
    poisoned.broken.store(true, SeqCst);
    let component_statuses = ComponentStatuses::default();
    let lost = CancellationToken::new();
    let root = Root::start(Args {
        components: Vec::new(),
        component_statuses: component_statuses.clone(),
        lost: lost.clone(),
    });
    root.ask(Add(component("healthy", true, &healthy)))
        .await
        .unwrap();
    root.ask(Add(component("poisoned", false, &poisoned)))
        .await
        .unwrap();

    eventually("the poisoned component is parked", || {
        !is_running(&component_statuses, "poisoned")
    })
    .await;
    let state = component_statuses
        .states()
        .into_iter()
        .find(|state| state.name == "poisoned")
        .unwrap();
    assert!(
        state
            .reason
            .is_some_and(|reason| reason.contains("poisoned row")),
        "the panic's words are kept"
    );
    assert_eq!(poisoned.starts.load(SeqCst), RESTART_BUDGET + 1);
    let ticks = healthy.ticks.load(SeqCst);
    eventually("the neighbour continues", || {
        healthy.ticks.load(SeqCst) > ticks + 3
    })
    .await;
    assert_eq!(healthy.starts.load(SeqCst), 1, "and was never restarted");

    poisoned.broken.store(false, SeqCst);
    eventually("the component comes back by itself", || {
        is_running(&component_statuses, "poisoned") && poisoned.ticks.load(SeqCst) > 0
    })
    .await;
    assert!(!lost.is_cancelled());
    root.stop_gracefully().await.unwrap();
    root.wait_for_shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_loss_of_a_vital_concern_is_reported_to_the_process() {
    let args = WorkerArgs::default();
    args.broken.store(true, SeqCst);
    let lost = CancellationToken::new();
    let root = Root::start(Args {
        components: Vec::new(),
        component_statuses: ComponentStatuses::default(),
        lost: lost.clone(),
    });
    root.ask(Add(component("vital", true, &args)))
        .await
        .unwrap();
    tokio::time::timeout(Duration::from_secs(20), lost.cancelled())
        .await
        .expect("the loss is reported");
}
