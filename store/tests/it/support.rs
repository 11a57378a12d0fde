//! A store in a folder of its own, and waiting for conditions.

pub(crate) mod relay;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use sluice_store::{Error, Store, StoreSettings, accounts};
use tempfile::TempDir;
use uuid::Uuid;

/// 21 November 2026.
pub(crate) const NOW: i64 = 1_795_219_200_000;

pub(crate) fn settings(data_dir: &Path) -> StoreSettings {
    StoreSettings::without_reserve(data_dir)
}

/// For what is SQLite's own: its file, its locks, copies of it.
pub(crate) fn sqlite_settings(data_dir: &Path) -> StoreSettings {
    StoreSettings::on_sqlite(data_dir)
}

/// Returns whether [`settings`] keep the rows on PostgreSQL.
pub(crate) fn on_postgres() -> bool {
    settings(Path::new("data")).is_on_postgres()
}

/// Returns an empty store; the folder is removed with the guard.
pub(crate) async fn store() -> (Store, TempDir) {
    open_in_new_folder(settings).await
}

pub(crate) async fn sqlite_store() -> (Store, TempDir) {
    open_in_new_folder(sqlite_settings).await
}

async fn open_in_new_folder(settings: fn(&Path) -> StoreSettings) -> (Store, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&settings(folder.path())).await.unwrap();
    (store, folder)
}

pub(crate) async fn add_account(store: &Store, name: &str) -> Result<Uuid, Error> {
    let name = name.to_owned();
    store
        .write(move |tx| Box::pin(async move { Ok(accounts::create(tx, &name, NOW).await?.id) }))
        .await
}

pub(crate) async fn count_accounts(store: &Store) -> i64 {
    accounts::count(&mut store.read().await.unwrap())
        .await
        .unwrap()
}

/// Waits until the condition holds; fails the test when it does not within 20 s.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds().await {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Holds the writer inside a unit of work, so that later units queue up behind it.
pub(crate) struct Held {
    release: tokio::sync::oneshot::Sender<()>,
    unit: tokio::task::JoinHandle<Result<(), Error>>,
}

impl Held {
    pub(crate) async fn hold(store: &Store) -> Self {
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (release, released) = tokio::sync::oneshot::channel();
        let store = store.clone();
        let unit = tokio::spawn(async move {
            store
                .write(move |_| {
                    Box::pin(async move {
                        let _ = begun.send(());
                        let _ = released.await;
                        Ok(())
                    })
                })
                .await
        });
        has_begun.await.unwrap();
        Self { release, unit }
    }

    pub(crate) async fn release(self) {
        let _ = self.release.send(());
        self.unit.await.unwrap().unwrap();
    }
}
