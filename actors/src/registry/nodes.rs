//! Rows of one kind that the nodes of a cluster work on: writes down the progress of this node's, notes that of the others', and
//! finds what this node has lost.
//!
//! A task beside the registry of each node, also of one that claims nothing. It reads the leases each [`LOOK_EVERY`], so that
//! a row that another node cancelled, or gave away, is left within two looks, and follows the changes of rows for what is to
//! be known at once. A node that is alone has no such task.

use std::time::Duration;

use kameo::actor::ActorRef;
use sluice_store::{
    Error,
    changes::{Action, Change, Everything},
    work::{self, Held, TaskProgress},
};
use tracing::debug;
use uuid::Uuid;

use super::{Args, Entity, HeldRows, Nudge, Registry};
use crate::durable::elsewhere::unwritten;

/// Interval of reads of the leases. Progress is seen on another node after twice as long.
const LOOK_EVERY: Duration = Duration::from_millis(750);

/// Runs until it is aborted.
pub(super) async fn run<E: Entity>(args: Args<E>, registry: ActorRef<Registry<E>>) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut changes = args.store.follow_everything();
    let mut nodes = args.store.cluster().changed();
    // Rows that others held at the last look.
    let mut others = 0;
    loop {
        tokio::select! {
            _ = looks.tick() => match look(&args, &registry).await {
                Ok(now) => {
                    // Some have ended, which may admit further ones, or their node has.
                    if now < others {
                        let _ = registry.tell(Nudge).try_send();
                    }
                    others = now;
                }
                Err(error) => debug!(kind = E::KIND, %error, "the leases of all nodes are read again in a moment"),
            },
            // A node whose work is free now may be among those that are gone. The sender lives in the store.
            _ = nodes.changed() => {
                let _ = registry.tell(Nudge).try_send();
            }
            changed = changes.next() => if heard(&args.entity, changed) {
                let _ = registry.tell(Nudge).try_send();
            },
        }
    }
}

/// Reads the leases of all nodes; returns how many others hold.
async fn look<E: Entity>(args: &Args<E>, registry: &ActorRef<Registry<E>>) -> Result<usize, Error> {
    let held = work::held(&mut args.store.read().await?, E::KIND).await?;
    let node = args.store.cluster().node_id();
    let (own, others): (Vec<Held>, Vec<Held>) =
        held.into_iter().partition(|row| row.lease_owner == node);
    let rows = own.iter().map(|row| (row.id, row.fence)).collect();
    let _ = registry.tell(HeldRows(rows)).try_send();
    let written: Vec<TaskProgress> = own
        .iter()
        .filter_map(|row| unwritten(row, args.entity.shares(row.id)?))
        .collect();
    if !written.is_empty() {
        args.store
            .write_beside(move |tx| {
                Box::pin(async move { work::report(tx, E::KIND, &written).await })
            })
            .await?;
    }
    let count = others.len();
    if let Some(progress) = args.entity.progress() {
        progress.note_elsewhere(others).await;
    }
    Ok(count)
}

/// Has the followers of changed rows look again; returns whether rows may have become due.
fn heard<E: Entity>(entity: &E, changes: Everything) -> bool {
    let Some(progress) = entity.progress() else {
        return false;
    };
    let changes: Vec<(Uuid, Change)> = match changes {
        Everything::Changes(changes) => changes,
        Everything::Lost => {
            progress.look_again(None);
            return true;
        }
    };
    let mut is_due = false;
    for (_, change) in changes {
        if change.kind == progress.kind() {
            progress.look_again(change.id);
            is_due |= change.action == Action::Created;
        }
    }
    is_due
}
