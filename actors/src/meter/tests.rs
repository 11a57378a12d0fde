//! The meter over a real store: caps under many threads, kills, clean stops, plans that change.

use std::{path::Path, time::Duration};

use futures_util::future::join_all;
use sluice_store::{
    Store, StoreSettings, accounts, deliveries,
    delivery_keys::{self, NewDeliveryKey},
    now_ms,
    usage_history::{self, KeyDay},
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Account, Caps, CountDelivery as _, Delivered, Meter, Rejection};
use crate::{
    component::ComponentStatuses,
    tree::{self, Root},
};

struct Site {
    store: Store,
    account_id: Uuid,
    meter: Meter,
    root: kameo::actor::ActorRef<Root>,
    _folder: tempfile::TempDir,
}

fn caps() -> Caps {
    [("tiny", 150), ("small", 3_000), ("unlimited", 0)]
        .map(|(name, cap)| (name.to_owned(), cap))
        .into()
}

fn start(store: &Store) -> (Meter, kameo::actor::ActorRef<Root>) {
    let meter = Meter::new(store.clone(), caps());
    let root = Root::start(tree::Args {
        components: vec![meter.component()],
        component_statuses: ComponentStatuses::default(),
        lost: CancellationToken::new(),
    });
    (meter, root)
}

impl Site {
    async fn open(plan: &'static str) -> Self {
        Self::open_with(plan, StoreSettings::without_reserve).await
    }

    async fn open_with(plan: &'static str, settings: fn(&Path) -> StoreSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&settings(folder.path())).await.unwrap();
        let account_id = store
            .write(move |tx| {
                Box::pin(async move {
                    let account = accounts::create(tx, "Default", now_ms()).await?;
                    accounts::set_plan(tx, account.id, plan, now_ms()).await?;
                    Ok(account.id)
                })
            })
            .await
            .unwrap();
        let (meter, root) = start(&store);
        Self {
            store,
            account_id,
            meter,
            root,
            _folder: folder,
        }
    }

    async fn taken(&self) -> u64 {
        deliveries::standing(
            &mut self.store.read().await.unwrap(),
            self.account_id,
            now_ms(),
        )
        .await
        .unwrap()
        .taken
    }

    async fn stop(&self) {
        self.meter.close().await;
        let _ = self.root.stop_gracefully().await;
        self.root.wait_for_shutdown().await;
    }

    /// Without a goodbye: what is held in memory is lost.
    async fn kill(&mut self) {
        self.root.kill();
        self.root.wait_for_shutdown().await;
        (self.meter, self.root) = start(&self.store);
    }

    /// Spends until the cap, at most `most`; how many that were.
    async fn spend(&self, most: usize) -> usize {
        let account = self.meter.account(self.account_id);
        let mut spent = 0;
        while spent < most {
            match self.meter.spend(&account).await {
                Ok(one) => drop(one.keep()),
                Err(Rejection::UsedUp(_)) => break,
                Err(Rejection::Busy) => panic!("the database is idle"),
            }
            spent += 1;
        }
        spent
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_spenders_together_reach_the_cap_exactly() {
    let site = Site::open("small").await;
    let counts = join_all((0..16).map(|_| site.spend(usize::MAX))).await;
    assert_eq!(counts.iter().sum::<usize>(), 3_000);
    let account = site.meter.account(site.account_id);
    let quota = site.meter.quota(&account).await.unwrap();
    assert_eq!(
        (quota.limit, quota.used, quota.remaining()),
        (Some(3_000), 3_000, Some(0))
    );
    assert_eq!(site.taken().await, 3_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_stop_gives_the_rest_back() {
    let mut site = Site::open("small").await;
    assert_eq!(site.spend(17).await, 17);
    let account = site.meter.account(site.account_id);
    drop(site.meter.spend(&account).await.unwrap());
    site.stop().await;
    assert_eq!(site.taken().await, 17);
    (site.meter, site.root) = start(&site.store);
    assert_eq!(site.spend(usize::MAX).await, 3_000 - 17);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_counts_the_rest_of_a_block_and_never_passes_the_cap() {
    let mut site = Site::open("small").await;
    let mut delivered = 0;
    for _ in 0..5 {
        delivered += site.spend(7).await;
        site.kill().await;
        let lost = site.taken().await - delivered as u64;
        // At most one block of 1 % is lost each time.
        assert!(lost <= 5 * 30, "{lost}");
    }
    delivered += site.spend(usize::MAX).await;
    assert!((3_000 - 5 * 30..=3_000).contains(&delivered), "{delivered}");
    assert_eq!(site.taken().await, 3_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_back_can_be_delivered() {
    let site = Site::open("tiny").await;
    let account = site.meter.account(site.account_id);
    let mut held = Vec::new();
    while let Ok(spent) = site.meter.spend(&account).await {
        held.push(spent);
    }
    assert_eq!(held.len(), 150);
    held.truncate(140);
    assert_eq!(site.spend(usize::MAX).await, 10);
    for spent in held {
        spent.keep();
    }
    assert_eq!(site.meter.quota(&account).await.unwrap().used, 150);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_cap_everything_is_counted_and_nothing_refused() {
    let site = Site::open("unlimited").await;
    assert_eq!(site.spend(5_000).await, 5_000);
    let account = site.meter.account(site.account_id);
    account.delivered(Delivered::Hit, 100);
    account.delivered(Delivered::Miss, 50);
    let quota = site.meter.quota(&account).await.unwrap();
    assert_eq!((quota.limit, quota.used), (None, 5_000));
    site.stop().await;
    assert_eq!(site.taken().await, 5_000);
    let days = deliveries::days(&mut site.store.read().await.unwrap(), site.account_id, 0)
        .await
        .unwrap();
    assert_eq!((days[0].hits, days[0].misses, days[0].bytes), (1, 1, 150));
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_counted_by_key_and_old_days_are_dropped() {
    let site = Site::open("unlimited").await;
    let account_id = site.account_id;
    let (key, _) = site
        .store
        .write(move |tx| {
            Box::pin(async move {
                let new = NewDeliveryKey {
                    name: "Shop".into(),
                    ..NewDeliveryKey::default()
                };
                let forgotten = KeyDay {
                    account_id,
                    key_id: Uuid::nil(),
                    day: deliveries::Day {
                        day: 1,
                        hits: 1,
                        ..deliveries::Day::default()
                    },
                };
                usage_history::add_to_key_days(tx, &[forgotten]).await?;
                delivery_keys::create(tx, account_id, new, now_ms()).await
            })
        })
        .await
        .unwrap();
    let counts = site.meter.key(account_id, key.id);
    counts.add(Delivered::Hit, 100);
    counts.add(Delivered::Miss, 50);
    site.meter.flush().await;
    counts.add(Delivered::Hit, 1);
    site.stop().await;
    let mut db = site.store.read().await.unwrap();
    let totals = usage_history::key_totals(&mut db, account_id, 0, None, 10)
        .await
        .unwrap();
    assert_eq!(totals.len(), 1);
    assert_eq!(
        (totals[0].name.as_str(), totals[0].is_revoked),
        ("Shop", false)
    );
    assert_eq!(
        (totals[0].hits, totals[0].misses, totals[0].bytes),
        (2, 1, 151)
    );
    let days = usage_history::key_days(&mut db, account_id, 0, &[key.id, Uuid::nil()])
        .await
        .unwrap();
    assert_eq!(days.iter().map(|it| it.day.hits).sum::<i64>(), 2);
    drop((db, counts));
    site.meter.flush().await;
    assert!(
        site.meter.shared.keys.read().is_empty(),
        "of a key that is gone"
    );
}

/// Settled counts survive the kill, once; a later flush does not count them again.
#[tokio::test(flavor = "multi_thread")]
async fn kills_neither_lose_nor_double_what_was_settled_without_a_cap() {
    let mut site = Site::open("unlimited").await;
    for kill in 1..=5 {
        assert_eq!(site.spend(400).await, 400);
        site.meter.settle_uncapped().await.unwrap();
        // The meter's own turn may have taken them, and its change is queued.
        while site.taken().await < kill * 400 {
            tokio::task::yield_now().await;
        }
        site.kill().await;
        assert_eq!(site.taken().await, kill * 400);
    }
    site.stop().await;
    assert_eq!(site.taken().await, 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_larger_plan_opens_a_cap_that_was_reached() {
    let site = Site::open("tiny").await;
    assert_eq!(site.spend(usize::MAX).await, 150);
    let id = site.account_id;
    site.store
        .write(move |tx| {
            Box::pin(async move { accounts::set_plan(tx, id, "small", now_ms()).await })
        })
        .await
        .unwrap();
    let account: std::sync::Arc<Account> = site.meter.account(id);
    let opened = async {
        while site
            .meter
            .spend(&account)
            .await
            .map(super::Spent::keep)
            .is_err()
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), opened)
        .await
        .unwrap();
    assert_eq!(site.spend(usize::MAX).await, 3_000 - 151);
}

/// A delivery and the quota of its rejection each waited for the whole patience, one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_takes_no_changes_no_one_waits_for_a_block() {
    // On PostgreSQL no process keeps the others from changes for so long.
    let site = Site::open_with("small", StoreSettings::on_sqlite).await;
    let account = site.meter.account(site.account_id);
    let beside = StoreSettings::on_sqlite(site.store.data_dir());
    let beside = Store::open_beside(&beside).await.unwrap();
    let (locked, is_locked) = oneshot::channel();
    let (release, released) = oneshot::channel::<()>();
    let holding = tokio::spawn(async move {
        let held = beside.write(move |_| {
            Box::pin(async move {
                let _ = locked.send(());
                let _ = released.await;
                Ok(())
            })
        });
        held.await.unwrap();
        beside.close().await;
    });
    is_locked.await.unwrap();
    assert!(matches!(
        site.meter.spend(&account).await,
        Err(Rejection::Busy)
    ));
    assert!(
        site.store.write_failure().is_some(),
        "the first to wait has learnt of it"
    );

    let answered = async {
        for _ in 0..100 {
            assert!(matches!(
                site.meter.spend(&account).await,
                Err(Rejection::Busy)
            ));
            assert!(site.meter.quota(&account).await.is_none());
        }
    };
    assert!(
        tokio::time::timeout(super::PATIENCE, answered)
            .await
            .is_ok(),
        "a hundred rejections take less than one patience"
    );

    release.send(()).unwrap();
    holding.await.unwrap();
    while site.store.write_failure().is_some() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(site.spend(10).await, 10);
    site.stop().await;
}
