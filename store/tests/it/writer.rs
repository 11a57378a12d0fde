//! Grouped commits, savepoints, the bound of the queue, the end.

use sluice_store::{Error, Store, StoreSettings, accounts};

use crate::support::{
    Held, NOW, add_account, count_accounts, on_postgres, settings, sqlite_settings, store, until,
};

/// Queues a number of units behind a held writer, releases it, and returns how many commits they took.
async fn commits_of(units: usize, commit_group: usize) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&StoreSettings {
        commit_group,
        ..settings(folder.path())
    })
    .await
    .unwrap();
    let held = Held::hold(&store).await;
    let before = store.statistics();
    let writes: Vec<_> = (0..units)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { add_account(&store, &n.to_string()).await })
        })
        .collect();
    until("all units are queued", async || {
        store.statistics().waiting == units as u64
    })
    .await;
    held.release().await;
    for write in writes {
        write.await.unwrap().unwrap();
    }
    let after = store.statistics();
    assert_eq!(count_accounts(&store).await, units as i64);
    assert_eq!(
        after.units - before.units,
        units as u64 + 1,
        "and the held one"
    );
    store.close().await;
    after.commits - before.commits - 1
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_units_share_commits() {
    // On PostgreSQL the locks of a group are held until its last unit has run.
    let most = if on_postgres() { 32 } else { 4_096 };
    for (units, commit_group) in [(1_usize, 256), (100, 256), (100, 10), (5, 1), (257, 256)] {
        let commits = units.div_ceil(most.min(commit_group));
        assert_eq!(
            commits_of(units, commit_group).await,
            commits as u64,
            "{units} units in groups of {commit_group}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_fails_undoes_only_itself() {
    let (store, _folder) = store().await;
    let held = Held::hold(&store).await;
    let spawn = |name: &'static str| {
        let store = store.clone();
        tokio::spawn(async move {
            store
                .write(move |tx| {
                    Box::pin(async move {
                        let account = accounts::create(tx, name, NOW).await?;
                        match name {
                            "fails" => Err(Error::Conflict("as asked".into())),
                            "panics" => panic!("as asked"),
                            _ => Ok(account.id),
                        }
                    })
                })
                .await
        })
    };
    let writes = ["first", "fails", "panics", "last"].map(|name| (name, spawn(name)));
    until("all units are queued", async || {
        store.statistics().waiting == 4
    })
    .await;
    let commits = store.statistics().commits;
    held.release().await;

    for (name, write) in writes {
        let result = write.await.unwrap();
        match name {
            "fails" => assert!(matches!(result, Err(Error::Conflict(_))), "{result:?}"),
            "panics" => assert_eq!(
                result.unwrap_err().to_string(),
                "internal error: a unit of work panicked: as asked"
            ),
            _ => assert!(result.is_ok(), "{name}: {result:?}"),
        }
    }
    assert_eq!(
        store.statistics().commits - commits,
        2,
        "the held unit, then the four together"
    );
    assert_eq!(count_accounts(&store).await, 2);
    assert_eq!(store.write_failure(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&StoreSettings {
        writer_queue: 2,
        ..sqlite_settings(folder.path())
    })
    .await
    .unwrap();
    let held = Held::hold(&store).await;
    let queued = ["a", "b"].map(|name| {
        let store = store.clone();
        tokio::spawn(async move { add_account(&store, name).await })
    });
    until("the queue is full", async || {
        store.statistics().waiting == 2
    })
    .await;
    let refused = add_account(&store, "c").await.unwrap_err();
    assert!(refused.is_retryable(), "{refused}");
    held.release().await;
    for write in queued {
        write.await.unwrap().unwrap();
    }
    add_account(&store, "c").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_runs_though_its_caller_has_left() {
    let (store, _folder) = store().await;
    let held = Held::hold(&store).await;
    let left = {
        let store = store.clone();
        tokio::spawn(async move { add_account(&store, "left").await })
    };
    until("the unit is queued", async || {
        store.statistics().waiting == 1
    })
    .await;
    left.abort();
    held.release().await;
    until("the unit is committed", async || {
        count_accounts(&store).await == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_commits_what_is_queued_and_refuses_what_comes_later() {
    let (store, folder) = store().await;
    let held = Held::hold(&store).await;
    let writes: Vec<_> = (0..50)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { add_account(&store, &n.to_string()).await })
        })
        .collect();
    until("all units are queued", async || {
        store.statistics().waiting == 50
    })
    .await;
    let closing = {
        let store = store.clone();
        tokio::spawn(async move { store.close().await })
    };
    held.release().await;
    for write in writes {
        write.await.unwrap().unwrap();
    }
    closing.await.unwrap();
    assert!(
        add_account(&store, "late")
            .await
            .unwrap_err()
            .is_retryable()
    );
    assert!(store.read().await.is_err());
    store.close().await;

    let log = folder.path().join("sluice.db-wal");
    assert!(!log.exists(), "the log was written back");
    let again = Store::open(&settings(folder.path())).await.unwrap();
    assert_eq!(count_accounts(&again).await, 50);
}
