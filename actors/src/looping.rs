//! `Looping`: an actor that is one loop, begun again after a panic (listeners, pulls, outputs).
//!
//! Survives a restart: the parts of the loop, which the maker of the component keeps (its handles to the world, above
//! all). May be lost: the loop's own state. Its one message says that the loop panicked, which it passes on to its
//! supervisor. A loop that ends by itself is over; one whose actor ends is aborted.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use kameo::{
    Actor,
    actor::{ActorRef, WeakActorRef},
    error::{ActorStopReason, Infallible},
    message::{Context, Message},
};
use tokio::task::AbortHandle;

/// Arguments of the actor, the same after each restart.
#[derive(Clone)]
pub(crate) struct Args {
    pub(crate) name: &'static str,
    /// Begins the loop.
    pub(crate) begin: Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
}

/// The actor; see the module documentation.
#[derive(Debug)]
pub(crate) struct Looping {
    name: &'static str,
    running: AbortHandle,
}

impl Drop for Looping {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Actor for Looping {
    type Args = Args;
    type Error = Infallible;

    async fn on_start(args: Args, me: ActorRef<Self>) -> Result<Self, Infallible> {
        let running = tokio::spawn((args.begin)());
        let handle = running.abort_handle();
        // Ends with the loop, which is aborted with the actor; until then it keeps `me` (see `component`).
        tokio::spawn(async move {
            if let Err(error) = running.await
                && !error.is_cancelled()
            {
                let _ = me.tell(Crashed(error.to_string())).await;
            }
        });
        Ok(Self {
            name: args.name,
            running: handle,
        })
    }

    async fn on_stop(
        &mut self,
        _: WeakActorRef<Self>,
        _: ActorStopReason,
    ) -> Result<(), Infallible> {
        self.running.abort();
        Ok(())
    }
}

/// The loop panicked.
struct Crashed(String);

impl Message<Crashed> for Looping {
    type Reply = ();

    async fn handle(&mut self, Crashed(reason): Crashed, _: &mut Context<Self, ()>) {
        panic!("the loop of {} ended: {reason}", self.name);
    }
}
