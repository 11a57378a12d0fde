//! A registry that panics, is stopped, killed or parked, over a real store and owners that do nothing but hold their rows.

mod nodes;

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    component::{ActorHandle, Component, ComponentStatuses},
    fixtures::{account, open_store, until},
    tree::{self, Root},
};

const KIND: &str = "errand";
const LEASE: Duration = Duration::from_secs(3);

/// Every lease under which an owner was started, in this order, and the owner.
type Started = std::sync::Arc<Mutex<Vec<(Lease, ActorRef<Runner>)>>>;

#[derive(Clone, Default)]
struct Errand(Started);

impl Errand {
    fn started(&self) -> Vec<(Lease, ActorRef<Runner>)> {
        self.0.lock().clone()
    }

    fn times(&self, row: Uuid) -> usize {
        let started = self.started();
        started.iter().filter(|(lease, _)| lease.id == row).count()
    }
}

impl Entity for Errand {
    const KIND: &'static str = KIND;
    type Owner = Runner;

    fn owner(&self, lease: Lease, _: WorkGuard) -> (Self, Lease) {
        (self.clone(), lease)
    }

    fn begin<'t>(&self, _: &'t mut Tx<'_>, _: Uuid, _: i64) -> Work<'t, ()> {
        Box::pin(async { Ok(()) })
    }

    fn give_up<'t>(&self, _: &'t mut Tx<'_>, _: Uuid, _: i64) -> Work<'t, ()> {
        Box::pin(async { Ok(()) })
    }
}

/// Holds its row.
struct Runner {
    _errand: Errand,
}

impl Actor for Runner {
    type Args = (Errand, Lease);
    type Error = Infallible;

    async fn on_start((errand, lease): Self::Args, me: ActorRef<Self>) -> Result<Self, Infallible> {
        let mut started = errand.0.lock();
        started.push((lease, me));
        drop(started);
        Ok(Self { _errand: errand })
    }
}

impl Message<Panic> for Runner {
    type Reply = ();

    async fn handle(&mut self, _: Panic, _: &mut Context<Self, ()>) {
        panic!("asked to panic");
    }
}

/// A store with a registry of at most four rows.
struct Site {
    store: Store,
    account: Uuid,
    errand: Errand,
    handle: ActorHandle<Registry<Errand>>,
    root: ActorRef<Root>,
    _folder: TempDir,
}

impl Site {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = open_store(&folder).await;
        let account = account(&store).await;
        Self::over(folder, store, account, LEASE)
    }

    fn over(folder: TempDir, store: Store, account: Uuid, lease: Duration) -> Self {
        let (errand, handle) = (Errand::default(), ActorHandle::default());
        let args = Args {
            entity: errand.clone(),
            store: store.clone(),
            max_active: 4,
            lease,
            shutdown: Arc::default(),
        };
        let root = Root::start(tree::Args {
            components: vec![Component::new("errands", args, MAILBOX, handle.clone())],
            component_statuses: ComponentStatuses::default(),
            lost: CancellationToken::new(),
        });
        Self {
            store,
            account,
            errand,
            handle,
            root,
            _folder: folder,
        }
    }

    async fn put(&self) -> Uuid {
        self.put_rows(1).await[0]
    }

    /// Puts rows in without a nudge.
    async fn put_rows(&self, count: usize) -> Vec<Uuid> {
        let ids: Vec<Uuid> = (0..count).map(|_| Uuid::now_v7()).collect();
        let (put, account) = (ids.clone(), self.account);
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    for id in put {
                        let lane = Lane::Interactive;
                        work::enqueue(tx, KIND, id, account, lane, now_ms()).await?;
                    }
                    Ok(())
                })
            })
            .await
            .unwrap();
        ids
    }

    async fn is_due(&self, at_ms: i64) -> bool {
        let mut reader = self.store.read().await.unwrap();
        work::is_due(&mut reader, KIND, Room::for_any(1), at_ms)
            .await
            .unwrap()
    }

    async fn started(&self, what: &str, row: Uuid, times: usize) {
        until(what, async || self.errand.times(row) >= times).await;
    }

    async fn panic(&self) {
        let registry = self.handle.get().expect("it runs");
        let _ = registry.tell(Panic).await;
    }

    /// Counts the live registries and owners.
    fn shares(&self) -> usize {
        std::sync::Arc::strong_count(&self.errand.0)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_registry_scans_prolongs_and_gives_back() {
    let site = Site::open().await;
    let first = site.put().await;
    site.started("the row has an owner", first, 1).await;
    site.panic().await;
    site.started("the predecessor's lease is freed", first, 2)
        .await;

    // The restarted registry has one look behind it, for which it needed no clock.
    let second = site.put().await;
    site.started("the clock advances", second, 1).await;
    let expired_ms = now_ms() + LEASE.as_millis() as i64 + 1;
    assert!(site.is_due(expired_ms).await, "leases are short");
    until("leases are prolonged", async || {
        !site.is_due(expired_ms).await
    })
    .await;
    assert_eq!(
        (site.errand.times(first), site.errand.times(second)),
        (2, 1),
        "none was lost meanwhile"
    );

    let (_, owner) = site.errand.started().pop().unwrap();
    owner.tell(Panic).await.unwrap();
    site.started("a crashed owner's row is tried again", second, 2)
        .await;
    let (lease, _) = site.errand.started().pop().unwrap();
    assert_eq!(lease.begins, 1, "given back, which counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawal_that_comes_late_costs_the_next_owner_nothing() {
    let site = Site::open().await;
    let row = site.put().await;
    site.started("it is worked on", row, 1).await;
    // As of the time before: the row is in `work`.
    site.handle.withdraw(row);
    site.started("it is worked on again", row, 2).await;
    let leases = site.errand.started();
    assert_eq!(leases[1].0.begins, 0, "{leases:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_fallen_registry_had_found_does_not_keep_its_leases() {
    let site = Site::open().await;
    let row = site.put().await;
    site.started("the row has an owner", row, 1).await;
    let (stale, _) = site.errand.started().pop().unwrap();
    let registry = site.handle.get().unwrap();
    let found = |leases| ClaimFinished {
        claimed: Ok(Claimed {
            leases,
            given_up: Vec::new(),
        }),
        is_first: false,
    };
    registry.tell(Panic).await.unwrap();
    registry.tell(found(Vec::new())).await.unwrap();
    site.started("the lease is freed", row, 2).await;
    let (lease, _) = site.errand.started().pop().unwrap();
    assert_eq!(lease.begins, 0, "the registry died, not the owner");

    registry.tell(found(vec![stale])).await.unwrap();
    let second = site.put().await;
    site.started("it continues", second, 1).await;
    assert_eq!(site.errand.times(row), 2, "its newer owner continues");
}

/// Nothing else counts the incarnations: their clocks and their own references go with them.
struct Me;

impl Message<Me> for Registry<Errand> {
    type Reply = WeakActorRef<Self>;

    async fn handle(&mut self, _: Me, _: &mut Context<Self, Self::Reply>) -> Self::Reply {
        self.me.downgrade()
    }
}

impl Site {
    /// The reference of the registry that runs now, once it is a restarted one with the one row's owner, and nothing else
    /// lives.
    async fn at_rest(&self, row: Uuid, times: usize) -> WeakActorRef<Registry<Errand>> {
        self.started("the row has an owner", row, times).await;
        // This test's, the component's, its supervisor's, the registry's and the owner's.
        until("one registry and one owner live", async || {
            self.shares() == 5
        })
        .await;
        self.handle.get().unwrap().ask(Me).await.unwrap()
    }
}

async fn gone(what: &str, registry: &WeakActorRef<Registry<Errand>>) {
    until(what, async || registry.strong_count() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_stays_of_a_registry_that_fell_was_parked_stopped_or_killed() {
    for kills in [false, true] {
        let site = Site::open().await;
        let row = site.put().await;
        site.at_rest(row, 1).await;
        site.panic().await;
        let second = site.at_rest(row, 2).await;
        assert!(second.upgrade().is_some(), "its own reference is good");
        site.panic().await;
        gone("the fallen registry is gone", &second).await;
        let third = site.at_rest(row, 3).await;

        until("it is parked", async || match site.handle.get() {
            Some(registry) => registry.tell(Panic).try_send().is_err(),
            None => true,
        })
        .await;
        gone("the parked registry is gone", &third).await;
        until("it is started again", async || site.handle.get().is_some()).await;
        let before = site.errand.times(row);
        site.at_rest(row, before.max(4)).await;
        site.panic().await;
        let last = site.at_rest(row, before.max(4) + 1).await;

        match kills {
            true => site.root.kill(),
            false => site.root.stop_gracefully().await.unwrap(),
        }
        site.root.wait_for_shutdown().await;
        gone("the last registry is gone", &last).await;
        until("and what it was made of", async || site.shares() == 1).await;
    }
}
