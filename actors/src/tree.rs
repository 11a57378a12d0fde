//! Root of the supervision tree: starts components, parks those whose restart budget is spent, ends the process when live
//! inputs are lost, waits at the stop.
//!
//! Root owns one [`Supervisor`] per component. It holds no state that matters: what a component needs after a restart is in
//! the component's own arguments. Mailbox 64; only the start of the service, timers and ended links write to it.

use std::{collections::HashMap, ops::ControlFlow, time::Duration};

use kameo::{
    Actor,
    actor::{ActorId, ActorRef, Spawn, WeakActorRef},
    error::{ActorStopReason, Infallible},
    mailbox,
    message::{Context, Message},
};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::component::{Component, ComponentStatuses, Supervisor, park_for};

const MAILBOX: usize = 64;
/// Longest wait of the service's end for the ends of its components; longer than each of them takes at most.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Arguments of the root.
#[derive(Clone)]
pub struct Args {
    pub components: Vec<Component>,
    pub component_statuses: ComponentStatuses,
    /// Cancelled when a vital component is lost: the process must end.
    pub lost: CancellationToken,
}

/// The root actor; see the module documentation.
pub struct Root {
    args: Args,
    supervisors: HashMap<ActorId, (usize, OwnedActor<Supervisor>)>,
}

/// A dynamic child that dies with its owner: a restarted owner must not leave orphans behind.
#[derive(Debug)]
pub struct OwnedActor<A: Actor>(Option<ActorRef<A>>);

impl<A: Actor> OwnedActor<A> {
    pub fn new(actor: ActorRef<A>) -> Self {
        Self(Some(actor))
    }

    pub fn get(&self) -> &ActorRef<A> {
        self.0.as_ref().expect("only release takes it, with self")
    }

    /// Lets the child live on without this owner.
    pub fn release(mut self) -> ActorRef<A> {
        self.0.take().expect("only release takes it, with self")
    }
}

impl<A: Actor> Drop for OwnedActor<A> {
    fn drop(&mut self) {
        if let Some(actor) = &self.0 {
            actor.kill();
        }
    }
}

impl Root {
    /// Starts the tree on the current runtime.
    pub fn start(args: Args) -> ActorRef<Self> {
        Self::spawn_with_mailbox(args, mailbox::bounded(MAILBOX))
    }

    async fn start_component(&mut self, index: usize, root: &ActorRef<Self>) {
        let component = &self.args.components[index];
        let supervisor = Supervisor::prepare();
        let actor = supervisor.actor_ref().clone();
        root.link(&actor).await;
        supervisor.spawn(component.start.clone());
        self.args.component_statuses.running(component.name);
        self.supervisors
            .insert(actor.id(), (index, OwnedActor::new(actor)));
    }
}

impl Actor for Root {
    type Args = Args;
    type Error = Infallible;

    async fn on_start(args: Args, root: ActorRef<Self>) -> Result<Self, Infallible> {
        let count = args.components.len();
        let mut this = Self {
            args,
            supervisors: HashMap::new(),
        };
        for index in 0..count {
            this.start_component(index, &root).await;
        }
        Ok(this)
    }

    async fn on_link_died(
        &mut self,
        root: WeakActorRef<Self>,
        id: ActorId,
        reason: ActorStopReason,
    ) -> Result<ControlFlow<ActorStopReason>, Infallible> {
        let Some((index, _)) = self.supervisors.remove(&id) else {
            return Ok(ControlFlow::Continue(()));
        };
        let component = &self.args.components[index];
        let times = self
            .args
            .component_statuses
            .parked(component.name, reason.to_string());
        if component.vital {
            error!(component = component.name, %reason, "a vital component is lost; the service ends");
            self.args.lost.cancel();
            return Ok(ControlFlow::Continue(()));
        }
        let pause = park_for(times);
        error!(component = component.name, %reason, times, ?pause, "component parked: its restart budget is spent");
        if let Some(root) = root.upgrade() {
            root.tell(Revive(index)).send_after(pause);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Ends the branches and waits for them: they free their leases in the store, which is closed behind the tree.
    async fn on_stop(
        &mut self,
        _: WeakActorRef<Self>,
        _: ActorStopReason,
    ) -> Result<(), Infallible> {
        self.supervisors.clear();
        let ended = self
            .args
            .components
            .iter()
            .map(|component| (component.stopped)());
        let all = futures_util::future::join_all(ended);
        if tokio::time::timeout(STOP_TIMEOUT, all).await.is_err() {
            warn!(timeout = ?STOP_TIMEOUT, "the end of a component takes too long and is not waited for");
        }
        Ok(())
    }
}

/// Adds a branch; the set is fixed once the service has started.
pub struct Add(pub Component);

impl Message<Add> for Root {
    type Reply = ();

    async fn handle(&mut self, Add(component): Add, context: &mut Context<Self, ()>) {
        self.args.components.push(component);
        self.start_component(self.args.components.len() - 1, &context.actor_ref().clone())
            .await;
    }
}

/// A parked component's pause is over.
struct Revive(usize);

impl Message<Revive> for Root {
    type Reply = ();

    async fn handle(&mut self, Revive(index): Revive, context: &mut Context<Self, ()>) {
        info!(
            component = self.args.components[index].name,
            "starting a parked component again"
        );
        self.start_component(index, &context.actor_ref().clone())
            .await;
    }
}
