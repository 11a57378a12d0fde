//! Components below the root of the supervision tree: restart budget after panics, parking, pauses before a parked one
//! starts again, state in `/readyz`.
//!
//! A component that keeps panicking must never end its neighbours. [`Supervisor`] supervises exactly one child and ends when
//! that child's restart budget is gone; [`Root`](crate::tree::Root) then parks the component and starts a new supervisor with
//! back-off. Because the supervisor dies with its child's specification, nothing accumulates however often this happens.
//!
//! A restarted actor is given a reference of its own, which no other has; those that others hold lead to it all the same. A
//! weak one made from it is dead when `on_start` is over, and so is the one that `on_link_died` is given. An actor that is
//! supervised therefore keeps `me` in itself, and in tasks that end with it, and relies on no weak reference to itself
//! (docs/decisions/0015).

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use futures_util::future::BoxFuture;
use kameo::{
    Actor,
    actor::{ActorId, ActorRef, Spawn as _, WeakActorRef},
    error::{ActorStopReason, Infallible},
    mailbox,
};
use parking_lot::RwLock;
use serde::Serialize;

use crate::looping::{self, Looping};

/// Restarts inside [`RESTART_WINDOW`] before a component is parked.
pub const RESTART_BUDGET: u32 = 5;
/// Life of a child since its last restart after which it has its whole budget again.
pub const RESTART_WINDOW: Duration = Duration::from_secs(10);
/// The first and the longest time for which a component stays parked.
pub const PARK_FIRST: Duration = Duration::from_secs(1);
pub const PARK_LONGEST: Duration = Duration::from_secs(60);
/// Mailbox of an actor that is one loop, which sends it one message.
const LOOP_MAILBOX: usize = 8;

/// Spawns the component's actor, supervised by the supervisor it is given.
pub type Start = Arc<dyn Fn(ActorRef<Supervisor>) -> BoxFuture<'static, ()> + Send + Sync>;

/// Waits until the component's actor has ended, its `on_stop` included: a supervisor ends before that.
pub type WaitUntilStopped = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// A fixed branch below the root.
#[derive(Clone)]
pub struct Component {
    pub name: &'static str,
    /// The process ends when this component's budget is spent (LiveInputs only).
    pub vital: bool,
    pub start: Start,
    pub stopped: WaitUntilStopped,
}

impl Component {
    /// Makes a branch whose one actor is restarted from `args`; `handle` leads to it for as long as it runs.
    pub fn new<A>(name: &'static str, args: A::Args, mailbox: usize, handle: ActorHandle<A>) -> Self
    where
        A: Actor,
        A::Args: Clone + Send + Sync + 'static,
    {
        let latest = handle.clone();
        let ended: WaitUntilStopped = Arc::new(move || {
            let actor = latest.0.load_full();
            Box::pin(async move {
                if let Some(actor) = actor {
                    actor.wait_for_shutdown().await;
                }
            })
        });
        let start: Start = Arc::new(move |supervisor| {
            let (args, handle) = (args.clone(), handle.clone());
            Box::pin(async move {
                let actor = A::supervise(&supervisor, args)
                    .restart_limit(RESTART_BUDGET, RESTART_WINDOW)
                    .spawn_with_mailbox(mailbox::bounded(mailbox))
                    .await;
                handle.0.store(Some(Arc::new(actor)));
            })
        });
        Self {
            name,
            vital: false,
            start,
            stopped: ended,
        }
    }

    /// Makes a branch that is one loop, which is begun again after a panic.
    pub fn of_task<F>(name: &'static str, begin: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let begin = Arc::new(move || -> BoxFuture<'static, ()> { Box::pin(begin()) });
        let args = looping::Args { name, begin };
        Self::new::<Looping>(name, args, LOOP_MAILBOX, ActorHandle::default())
    }
}

/// Reference to a component's actor: made before it starts, valid over its restarts, empty while it is parked.
pub struct ActorHandle<A: Actor>(Arc<ArcSwapOption<ActorRef<A>>>);

impl<A: Actor> ActorHandle<A> {
    /// Returns the actor; `None` before the first start and while the component is parked.
    pub fn get(&self) -> Option<Arc<ActorRef<A>>> {
        self.0.load_full().filter(|actor| actor.is_alive())
    }
}

impl<A: Actor> Default for ActorHandle<A> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<A: Actor> Clone for ActorHandle<A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Status of a component in `/readyz`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentStatus {
    pub name: &'static str,
    pub running: bool,
    /// Reason why it is parked: the text of its last panic.
    pub reason: Option<String>,
    /// Number of times that it has been parked since the service started.
    pub parked_times: u32,
}

/// The published states of all components; read without a mailbox.
#[derive(Clone, Debug, Default)]
pub struct ComponentStatuses(Arc<RwLock<BTreeMap<&'static str, ComponentStatus>>>);

impl ComponentStatuses {
    pub fn states(&self) -> Vec<ComponentStatus> {
        self.0.read().values().cloned().collect()
    }

    pub(crate) fn running(&self, name: &'static str) {
        let mut states = self.0.write();
        let state = states.entry(name).or_default();
        state.name = name;
        state.running = true;
        state.reason = None;
    }

    /// Marks the component as parked; returns how often that has happened.
    pub(crate) fn parked(&self, name: &'static str, reason: String) -> u32 {
        let mut states = self.0.write();
        let state = states.entry(name).or_default();
        state.name = name;
        state.running = false;
        state.reason = Some(reason);
        state.parked_times += 1;
        state.parked_times
    }
}

/// Supervises the one child of a component; ends when that child ends for good.
#[derive(Debug)]
pub struct Supervisor;

impl Actor for Supervisor {
    type Args = Start;
    type Error = Infallible;

    async fn on_start(start: Start, supervisor: ActorRef<Self>) -> Result<Self, Infallible> {
        start(supervisor).await;
        Ok(Self)
    }

    async fn on_link_died(
        &mut self,
        _: WeakActorRef<Self>,
        _: ActorId,
        reason: ActorStopReason,
    ) -> Result<ControlFlow<ActorStopReason>, Infallible> {
        Ok(ControlFlow::Break(reason))
    }
}

/// Returns how long to stay parked: doubles from [`PARK_FIRST`] to [`PARK_LONGEST`].
pub(crate) fn park_for(times: u32) -> Duration {
    doubled(PARK_FIRST, PARK_LONGEST, times)
}

/// Returns the pause after so many failures: doubles from `first` to `longest`.
pub(crate) fn doubled(first: Duration, longest: Duration, failures: u32) -> Duration {
    first
        .saturating_mul(1 << failures.saturating_sub(1).min(16))
        .min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parking_doubles_up_to_a_minute() {
        let seconds: Vec<u64> = (1..=9).map(|times| park_for(times).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }
}
