//! Registry of one kind of durable work (jobs, runs, video streams, recordings): claims due rows by lease, runs an owner for
//! each, sends heartbeats.
//!
//! A new background entity implements [`Entity`], and its handle, which holds a
//! [`RegistryHandle`](crate::durable::registry_handle::RegistryHandle), implements
//! [`Subsystem`](crate::subsystem::Subsystem). The row is the truth: a registry scans for due rows, claims as many as it has
//! room for, and holds one child for each; a child ends when it has ended its row or given it back. A child that crashes
//! leaves its lease, which the registry gives back with a pause; a row whose work began too often is given up by the entity
//! ([`sluice_store::work`]).
//!
//! Mailbox 64. A nudge that finds it full is dropped, and a scan follows within [`SCAN_EVERY`]. Leases are held in the name
//! of the store's owner ([`Store::owner`]): a registry that starts again frees its predecessor's, whose children are killed,
//! and [`Store::close`] frees all of them.
//!
//! In a cluster nodes with the role `worker` claim what they can start soon, a few rows at a time, so that a node with a full
//! queue leaves the rest to others ([`Registry::room`]). On PostgreSQL a claim is a unit beside those of others, and what follows
//! from it for an entity is a unit of its account: a lease whose second unit fails expires.

mod nodes;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, future::ready, ops::ControlFlow, sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, join_all};
use kameo::{
    Actor,
    actor::{ActorId, ActorRef, Spawn as _, WeakActorRef},
    error::{ActorStopReason, Infallible},
    mailbox,
    message::{Context, Message},
};
use sluice_store::{
    Engine, Error, Store, Tx, Work,
    cluster::{Node, NodeState, Role},
    now_ms,
    work::{self, Claimed, Lane, Lease, Room},
};
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, error, warn};
use uuid::Uuid;

use crate::{
    component::ActorHandle,
    durable::{
        elsewhere::SharedProgress,
        in_flight::TaskShares,
        shutdown::{ShutdownTracker, WorkGuard},
        step_error::with_patience_for,
    },
    tree::OwnedActor,
};

pub(crate) const MAILBOX: usize = 64;
/// Pause between two scans for due rows that no nudge announced.
pub(crate) const SCAN_EVERY: Duration = Duration::from_secs(1);
/// One in so many children is kept for rows with a waiting caller, where there are as many.
const KEPT_FREE_OF_BATCH: usize = 4;
/// Heartbeats within one lease.
const HEARTBEATS_PER_LEASE: u32 = 3;
/// Rows of a claim at most while other nodes claim too.
const MOST_AT_ONCE: usize = 2;
/// Looks at the leases of all nodes without a child's row, after which it has lost it: the first may have been before its
/// claim, or at its end.
const MISSES: u8 = 2;

/// A kind of durable work, whose rows each get an actor of their own.
pub(crate) trait Entity: Clone + Send + Sync + 'static {
    /// Kind of its rows in [`work`].
    const KIND: &'static str;
    /// Works on one row until it is ended or given back, then stops normally. It writes with its lease only.
    type Owner: Actor;

    /// The arguments of the actor that owns a claimed row; it holds `guard` until the row has ended or is given back.
    fn owner(&self, lease: Lease, guard: WorkGuard) -> <Self::Owner as Actor>::Args;

    /// Notes under the lease that the row has an owner; attempts are counted later, by [`work::begin`].
    fn begin<'t>(&self, tx: &'t mut Tx<'_>, id: Uuid, now_ms: i64) -> Work<'t, ()>;

    /// Ends the entity of a row whose work began too often, in the transaction that takes the row out.
    fn give_up<'t>(&self, tx: &'t mut Tx<'_>, id: Uuid, now_ms: i64) -> Work<'t, ()>;

    /// Returns the number of rows that this node can start soon: while other nodes claim too, more are left to them.
    fn startable(&self) -> usize {
        usize::MAX
    }

    /// Returns the progress that nodes of a cluster exchange; `None` for a kind without.
    fn progress(&self) -> Option<&dyn SharedProgress> {
        None
    }

    /// Returns the shares of the running tasks of a row that this node works on.
    fn shares(&self, id: Uuid) -> Option<TaskShares> {
        self.progress()?.shares(id)
    }

    /// Returns the only rows that this node of a cluster can work on; `None`: any.
    fn here(&self) -> BoxFuture<'_, Result<Option<Vec<Uuid>>, Error>> {
        Box::pin(ready(Ok(None)))
    }
}

/// Arguments of a registry, the same after each restart.
#[derive(Clone)]
pub(crate) struct Args<E> {
    pub entity: E,
    pub store: Store,
    /// Children at a time; long batch rows take three quarters of them at most.
    pub max_active: usize,
    pub lease: Duration,
    /// No row is claimed once it has begun.
    pub shutdown: Arc<ShutdownTracker>,
}

/// The actor; see the module documentation.
pub(crate) struct Registry<E: Entity> {
    args: Args<E>,
    /// Kept, since a weak one would die ([`crate::component`]).
    me: ActorRef<Self>,
    children: HashMap<Uuid, Child<E>>,
    by_actor: HashMap<ActorId, Uuid>,
    /// A claim is on its way.
    is_claiming: bool,
    /// Someone asked for a claim while one was on its way.
    claims_again: bool,
    /// The predecessor's leases are still to be freed.
    is_first: bool,
    _clock: AbortOnDropHandle<()>,
    /// Exchange with other nodes, in a cluster.
    _nodes: Option<AbortOnDropHandle<()>>,
}

struct Child<E: Entity> {
    lease: Lease,
    /// Looks since its row was last seen among those that this node holds.
    missed: u8,
    _actor: OwnedActor<E::Owner>,
}

impl<E: Entity> Actor for Registry<E> {
    type Args = Args<E>;
    type Error = Infallible;

    async fn on_start(args: Args<E>, me: ActorRef<Self>) -> Result<Self, Infallible> {
        let clock = tokio::spawn(tick(me.clone(), args.lease / HEARTBEATS_PER_LEASE));
        let is_solo = args.store.cluster().is_solo();
        let nodes = (!is_solo).then(|| tokio::spawn(nodes::run(args.clone(), me.clone())));
        Ok(Self {
            args,
            me,
            children: HashMap::new(),
            by_actor: HashMap::new(),
            is_claiming: false,
            claims_again: false,
            is_first: true,
            _clock: AbortOnDropHandle::new(clock),
            _nodes: nodes.map(AbortOnDropHandle::new),
        })
    }

    async fn on_link_died(
        &mut self,
        _: WeakActorRef<Self>,
        id: ActorId,
        reason: ActorStopReason,
    ) -> Result<ControlFlow<ActorStopReason>, Infallible> {
        let Some(row) = self.by_actor.remove(&id) else {
            return Ok(ControlFlow::Continue(()));
        };
        let child = self.children.remove(&row);
        if let Some(child) = child
            && !matches!(reason, ActorStopReason::Normal)
        {
            error!(kind = E::KIND, id = %row, %reason, "the owner of a row crashed; it is tried again after a pause");
            self.give_back(child.lease);
        }
        self.claim();
        Ok(ControlFlow::Continue(()))
    }
}

/// Asks for the actors that live, each with its row.
#[cfg(test)]
pub(crate) struct Owners;

#[cfg(test)]
impl<E: Entity> Message<Owners> for Registry<E> {
    type Reply = HashMap<ActorId, Uuid>;

    async fn handle(&mut self, _: Owners, _: &mut Context<Self, Self::Reply>) -> Self::Reply {
        self.by_actor.clone()
    }
}

impl<E: Entity> Registry<E> {
    /// Looks for due rows off the loop, when there is room for one more.
    fn claim(&mut self) {
        if self.args.shutdown.has_begun() || !self.may_claim() {
            return;
        }
        if self.is_claiming {
            self.claims_again = true;
            return;
        }
        let room = self.room();
        if room.rows == 0 {
            return;
        }
        self.is_claiming = true;
        let (args, is_first, me) = (self.args.clone(), self.is_first, self.me.clone());
        tokio::spawn(async move {
            let claimed = claim(args, room, is_first).await;
            let _ = me.tell(ClaimFinished { claimed, is_first }).await;
        });
    }

    /// Returns whether this node works on rows: in a cluster, one with the role that does not drain.
    fn may_claim(&self) -> bool {
        let cluster = self.args.store.cluster();
        if cluster.is_solo() {
            return true;
        }
        let node = cluster.this();
        node.has_role(Role::Worker) && node.state != NodeState::Draining
    }

    /// Returns whether other nodes work on rows too, or are about to: one that starts must not take the whole backlog.
    fn is_shared(&self) -> bool {
        let cluster = self.args.store.cluster();
        let claims = |node: &Node| node.has_role(Role::Worker) && node.state != NodeState::Draining;
        let nodes = cluster.nodes();
        nodes
            .iter()
            .any(|node| node.id != cluster.node_id() && claims(node))
    }

    fn room(&self) -> Room {
        let (all, max_active) = (self.children.len(), self.args.max_active);
        let max_batch = max_active - max_active / KEPT_FREE_OF_BATCH;
        let is_batch = |child: &&Child<E>| child.lease.lane == Lane::Batch;
        let batch = self.children.values().filter(is_batch).count();
        let mut room = Room {
            rows: max_active.saturating_sub(all),
            batch: max_batch.saturating_sub(batch),
        };
        if self.is_shared() {
            let startable = self.args.entity.startable();
            // Workers take interactive tasks first, so batch rows keep none of them from being started.
            let interactive = startable.saturating_sub(all - batch);
            room.rows = room.rows.min(interactive).min(MOST_AT_ONCE);
            room.batch = room.batch.min(startable.saturating_sub(all));
        }
        room
    }

    async fn start(&mut self, lease: Lease) {
        let prepared = E::Owner::prepare_with_mailbox(mailbox::bounded(MAILBOX));
        let actor = prepared.actor_ref().clone();
        self.me.link(&actor).await;
        let guard = self.args.shutdown.guard();
        prepared.spawn(self.args.entity.owner(lease.clone(), guard));
        self.by_actor.insert(actor.id(), lease.id);
        let child = Child {
            lease,
            missed: 0,
            _actor: OwnedActor::new(actor),
        };
        self.children.insert(child.lease.id, child);
    }

    /// Kills a child whose row is no longer its own, and returns its lease.
    fn end(&mut self, row: Uuid) -> Option<Lease> {
        let child = self.children.remove(&row)?;
        self.by_actor.retain(|_, of| *of != row);
        Some(child.lease)
    }

    /// Frees a lease that no one works under, if it is still held.
    fn release(&self, lease: Lease) {
        let (store, me) = (self.args.store.clone(), self.me.clone());
        tokio::spawn(async move {
            let released = store
                .write_beside(move |tx| Box::pin(async move { work::release(tx, &lease).await }));
            if released.await.is_ok() {
                let _ = me.tell(Nudge).try_send();
            }
        });
    }

    fn give_back(&self, lease: Lease) {
        let store = self.args.store.clone();
        tokio::spawn(async move {
            let given = store
                .write_beside(move |tx| {
                    Box::pin(async move { work::retry_after_crash(tx, &lease, now_ms()).await })
                })
                .await;
            // A lease that is not given back expires.
            if let Err(error) = given {
                debug!(kind = E::KIND, %error, "a crashed owner's row was not given back");
            }
        });
    }
}

async fn claim<E: Entity>(args: Args<E>, room: Room, is_first: bool) -> Result<Claimed, Error> {
    let (store, owner) = (args.store.clone(), args.store.owner());
    if !is_first && !work::is_due(&mut store.read().await?, E::KIND, room, now_ms()).await? {
        return Ok(Claimed::default());
    }
    if store.engine() == Engine::Postgres {
        return claim_beside(args, room, is_first).await;
    }
    store
        .write(move |tx| {
            Box::pin(async move {
                let now = now_ms();
                if is_first {
                    work::release_all(tx, Some(E::KIND), owner).await?;
                }
                let claimed = work::claim(tx, E::KIND, owner, room, args.lease, now).await?;
                for lease in &claimed.leases {
                    args.entity.begin(tx, lease.id, now).await?;
                }
                for id in &claimed.given_up {
                    args.entity.give_up(tx, *id, now).await?;
                }
                Ok(claimed)
            })
        })
        .await
}

/// Claims as [`claim`] does, in a unit for all rows and one of its account for each.
async fn claim_beside<E: Entity>(
    args: Args<E>,
    room: Room,
    is_first: bool,
) -> Result<Claimed, Error> {
    let (owner, lease) = (args.store.owner(), args.lease);
    let here = match args.store.cluster().is_solo() {
        true => None,
        false => args.entity.here().await?,
    };
    let leases = args
        .store
        .write_beside(move |tx| {
            Box::pin(async move {
                if is_first {
                    work::release_all(tx, Some(E::KIND), owner).await?;
                }
                let only = here.as_deref();
                work::claim_beside(tx, E::KIND, owner, room, only, lease, now_ms()).await
            })
        })
        .await?;
    let mut units = Vec::new();
    for lease in &leases {
        units.push(take_up(&args, lease.clone()));
    }
    let taken_up = join_all(units).await;
    let mut claimed = Claimed::default();
    for (lease, taken_up) in leases.into_iter().zip(taken_up) {
        match taken_up {
            Ok(()) if lease.is_exhausted() => claimed.given_up.push(lease.id),
            Ok(()) => claimed.leases.push(lease),
            Err(error) => {
                debug!(kind = E::KIND, id = %lease.id, %error, "a claimed row was not begun: it has ended, or its lease expires");
            }
        }
    }
    Ok(claimed)
}

/// Notes for the entity of a claimed row that it has an owner, or that it is given up. `Error::Conflict` when the lease is lost.
async fn take_up<E: Entity>(args: &Args<E>, lease: Lease) -> Result<(), Error> {
    let entity = args.entity.clone();
    args.store
        .write_for(lease.account_id, move |tx| {
            Box::pin(async move {
                let now = now_ms();
                if lease.is_exhausted() {
                    work::finish(tx, &lease).await?;
                    return entity.give_up(tx, lease.id, now).await;
                }
                work::hold(tx, &lease).await?;
                entity.begin(tx, lease.id, now).await
            })
        })
        .await
}

/// Sends the registry its scans and heartbeats; aborted with it.
async fn tick<E: Entity>(registry: ActorRef<Registry<E>>, heartbeat_interval: Duration) {
    let mut scans = tokio::time::interval(SCAN_EVERY);
    let mut heartbeats = tokio::time::interval(heartbeat_interval);
    loop {
        let is_heartbeat = tokio::select! {
            _ = scans.tick() => false,
            _ = heartbeats.tick() => true,
        };
        let _ = match is_heartbeat {
            true => registry.tell(Heartbeat).try_send().map_err(drop),
            false => registry.tell(Nudge).try_send().map_err(drop),
        };
    }
}

impl<E: Entity> ActorHandle<Registry<E>> {
    /// Announces that rows may be due. May be lost: the registry scans.
    pub(crate) fn nudge(&self) {
        if let Some(registry) = self.get() {
            let _ = registry.tell(Nudge).try_send();
        }
    }

    /// Removes the owner of a row that was taken out of `work`. May be lost: the owner learns it with its next
    /// heartbeat or change.
    pub(crate) fn withdraw(&self, row: Uuid) {
        if let Some(registry) = self.get() {
            let _ = registry.tell(Withdrawn(row)).try_send();
        }
    }
}

/// Rows may be due.
pub(crate) struct Nudge;

impl<E: Entity> Message<Nudge> for Registry<E> {
    type Reply = ();

    async fn handle(&mut self, _: Nudge, _: &mut Context<Self, ()>) {
        self.claim();
    }
}

/// The row was taken out of `work`: its owner must stop at once.
pub(crate) struct Withdrawn(Uuid);

impl<E: Entity> Message<Withdrawn> for Registry<E> {
    type Reply = ();

    async fn handle(&mut self, Withdrawn(row): Withdrawn, _: &mut Context<Self, ()>) {
        if let Some(lease) = self.end(row) {
            // This may come late, when the row was put in again and that was the next owner: then it is due once more.
            self.release(lease);
        }
        self.claim();
    }
}

/// Result of a claim; the registry that began it may have panicked meanwhile.
struct ClaimFinished {
    claimed: Result<Claimed, Error>,
    /// The predecessor's leases were freed before it.
    is_first: bool,
}

impl<E: Entity> Message<ClaimFinished> for Registry<E> {
    type Reply = ();

    async fn handle(&mut self, found: ClaimFinished, _: &mut Context<Self, ()>) {
        self.is_claiming = false;
        match found.claimed {
            Ok(claimed) => {
                self.is_first &= !found.is_first;
                // There may be more than are claimed at once.
                self.claims_again |= self.is_shared() && !claimed.leases.is_empty();
                for id in claimed.given_up {
                    error!(kind = E::KIND, %id, "a row was given up: its owners kept dying");
                    self.end(id);
                }
                for lease in claimed.leases {
                    let is_newer = |child: &Child<E>| child.lease.fence > lease.fence;
                    if self.children.get(&lease.id).is_some_and(is_newer) {
                        continue;
                    }
                    // A child whose lease ran out meanwhile has a successor now.
                    self.end(lease.id);
                    self.start(lease).await;
                }
            }
            Err(error) => {
                warn!(kind = E::KIND, %error, "due rows are looked for again in a moment")
            }
        }
        if std::mem::take(&mut self.claims_again) {
            self.claim();
        }
    }
}

/// Rows that this node holds, with their fences, as the leases of all nodes say.
struct HeldRows(Vec<(Uuid, i64)>);

impl<E: Entity> Message<HeldRows> for Registry<E> {
    type Reply = ();

    async fn handle(&mut self, HeldRows(held): HeldRows, _: &mut Context<Self, ()>) {
        let mut lost = Vec::new();
        for (row, child) in &mut self.children {
            if held.contains(&(*row, child.lease.fence)) {
                child.missed = 0;
                continue;
            }
            child.missed += 1;
            if child.missed >= MISSES {
                lost.push(*row);
            }
        }
        for row in lost {
            debug!(kind = E::KIND, id = %row, "the row is not this node's any more");
            self.end(row);
        }
    }
}

/// Prolong the leases of the children.
struct Heartbeat;

impl<E: Entity> Message<Heartbeat> for Registry<E> {
    type Reply = ();

    async fn handle(&mut self, _: Heartbeat, _: &mut Context<Self, ()>) {
        if self.children.is_empty() {
            return;
        }
        let (store, lease) = (self.args.store.clone(), self.args.lease);
        let mut held: Vec<(Uuid, i64)> = self
            .children
            .values()
            .map(|child| (child.lease.id, child.lease.fence))
            .collect();
        // In the order in which another node locks them that voids them.
        held.sort_unstable();
        let me = self.me.clone();
        tokio::spawn(async move {
            match prolong(&store, E::KIND, held, lease).await {
                Ok(lost) => {
                    let _ = me.tell(LeasesLost(lost)).await;
                }
                Err(error) => warn!(kind = E::KIND, %error, "leases were not prolonged"),
            }
        });
    }
}

/// Prolongs leases; returns those that were lost. The unit takes the rows of several accounts, so the database may undo it for a
/// deadlock with one of an account, or because a row is locked: it is made again at once, up to the next heartbeat.
async fn prolong(
    store: &Store,
    kind: &'static str,
    held: Vec<(Uuid, i64)>,
    lease: Duration,
) -> Result<Vec<(Uuid, i64)>, Error> {
    with_patience_for(lease / HEARTBEATS_PER_LEASE, || {
        let held = held.clone();
        store.write_beside(move |tx| {
            Box::pin(async move { work::heartbeat(tx, kind, &held, lease, now_ms()).await })
        })
    })
    .await
}

/// Rows, with the fences under which they were held, that are another's now or have ended.
struct LeasesLost(Vec<(Uuid, i64)>);

impl<E: Entity> Message<LeasesLost> for Registry<E> {
    type Reply = ();

    async fn handle(&mut self, LeasesLost(rows): LeasesLost, _: &mut Context<Self, ()>) {
        for (row, fence) in rows {
            let is_same = |child: &Child<E>| child.lease.fence == fence;
            if self.children.get(&row).is_some_and(is_same) {
                self.end(row);
            }
        }
    }
}

/// Makes the actor panic.
#[cfg(test)]
struct Panic;

#[cfg(test)]
impl<E: Entity> Message<Panic> for Registry<E> {
    type Reply = ();

    async fn handle(&mut self, _: Panic, _: &mut Context<Self, ()>) {
        panic!("asked to panic");
    }
}
