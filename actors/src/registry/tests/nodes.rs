//! Registries of two nodes of a cluster. Where the rows are on SQLite, these tests end at once.

use sluice_store::{
    StoreSettings,
    cluster::{ClusterSettings, NodeState, Role},
};
use tokio::sync::oneshot;

use super::*;

/// So long that no heartbeat comes within a test.
const LONG_LEASE: Duration = Duration::from_secs(300);

impl Site {
    /// Opens two nodes that know each other; `None` where the rows are on SQLite.
    async fn pair() -> Option<[Self; 2]> {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::without_reserve(folder.path());
        if !settings.is_on_postgres() {
            return None;
        }
        let schema = settings.database_schema.as_str();
        let (one_folder, one) = open_node(schema).await;
        let (other_folder, other) = open_node(schema).await;
        let account = account(&one).await;
        let pair = [
            Self::over(one_folder, one, account, LONG_LEASE),
            Self::over(other_folder, other, account, LONG_LEASE),
        ];
        until("the nodes know each other", async || {
            pair.iter()
                .all(|node| node.store.cluster().live_count(Role::Worker) == 2)
        })
        .await;
        Some(pair)
    }

    async fn rows(&self) -> Vec<Uuid> {
        let registry = self.handle.get().expect("it runs");
        let owners = registry.ask(Owners).await.unwrap();
        owners.into_values().collect()
    }
}

/// Opens the store of a node, with its folder.
async fn open_node(schema: &str) -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let settings = StoreSettings {
        database_schema: schema.to_owned(),
        ..StoreSettings::without_reserve(folder.path())
    };
    let cluster = ClusterSettings {
        listen: "127.0.0.1:1".into(),
        ..ClusterSettings::default()
    };
    let store = Store::open_node(&settings, &cluster).await.unwrap();
    store.cluster().set_state(NodeState::Up);
    (folder, store)
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_take_what_they_have_room_for_and_each_row_once() {
    let Some([one, other]) = Site::pair().await else {
        return;
    };
    let mut put = one.put_rows(8).await;
    one.handle.nudge();
    until("every row has an owner", async || {
        one.rows().await.len() == 4 && other.rows().await.len() == 4
    })
    .await;
    let mut taken = [one.rows().await, other.rows().await].concat();
    put.sort_unstable();
    taken.sort_unstable();
    assert_eq!(taken, put);
    let started = one.errand.started().len() + other.errand.started().len();
    assert_eq!(started, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_another_node_takes_out_is_left() {
    let Some([one, other]) = Site::pair().await else {
        return;
    };
    let row = one.put().await;
    let holder = async || one.rows().await.contains(&row) || other.rows().await.contains(&row);
    until("it has an owner", async || holder().await).await;
    other
        .store
        .write(move |tx| Box::pin(work::withdraw(tx, KIND, row)))
        .await
        .unwrap();
    until("it has none any more", async || !holder().await).await;
}

/// The row is locked for longer than a unit beside others waits for one.
#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_that_finds_a_row_locked_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_store(&folder).await;
    if store.engine() != Engine::Postgres {
        return;
    }
    let (row, account, owner) = (Uuid::now_v7(), account(&store).await, store.owner());
    let claimed = store.write(move |tx| {
        Box::pin(async move {
            let now = now_ms();
            work::enqueue(tx, KIND, row, account, Lane::Interactive, now).await?;
            work::claim(tx, KIND, owner, Room::for_any(1), LONG_LEASE, now).await
        })
    });
    let lease = claimed.await.unwrap().leases.remove(0);
    let held = vec![(lease.id, lease.fence)];
    let (lock, is_locked) = oneshot::channel();
    let holder = store.clone();
    let holding = tokio::spawn(async move {
        let locked = holder.write_for(account, move |tx| {
            Box::pin(async move {
                work::hold(tx, &lease).await?;
                let _ = lock.send(());
                tokio::time::sleep(Duration::from_secs(3)).await;
                Ok(())
            })
        });
        locked.await
    });
    is_locked.await.unwrap();
    let lost = prolong(&store, KIND, held, LONG_LEASE).await.unwrap();
    assert_eq!(lost, []);
    holding.await.unwrap().unwrap();
    store.close().await;
}
