//! Changes as their followers get them: after the commit, of their account, and none missed without a word.

use std::time::Duration;

use sluice_store::{
    Error, Store, StoreSettings, api_keys,
    api_keys::Scope,
    changes::{Action, Change, Follower, Kind},
    folders,
    folders::NewFolder,
};
use tokio::time::timeout;
use uuid::Uuid;

use crate::support::{NOW, add_account, on_postgres, sqlite_store, store};

const SOON: Duration = Duration::from_secs(10);

async fn add_key(store: &Store, account_id: Uuid) -> Uuid {
    let made = store.write(move |tx| {
        Box::pin(async move { api_keys::create(tx, account_id, "key", Scope::Read, NOW).await })
    });
    made.await.unwrap().0.id
}

async fn changes(follower: &mut Follower) -> Vec<Change> {
    timeout(SOON, follower.changed()).await.unwrap();
    let batch = follower.take();
    assert_eq!(batch.lost, [], "{batch:?}");
    batch.changes
}

fn of_key(id: Uuid, action: Action) -> Change {
    Change {
        kind: Kind::ApiKey,
        id: Some(id),
        action,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_committed_change_comes_to_its_account_alone() {
    let (store, _folder) = store().await;
    let here = add_account(&store, "here").await.unwrap();
    let there = add_account(&store, "there").await.unwrap();
    add_key(&store, here).await;
    let mut follower = store.follow_changes(here).await.unwrap();
    let mut stranger = store.follow_changes(there).await.unwrap();
    let key = add_key(&store, here).await;
    assert_eq!(
        changes(&mut follower).await,
        [of_key(key, Action::Created)],
        "what was there before is no change"
    );
    let undone: Result<(), Error> = store
        .write(move |tx| {
            Box::pin(async move {
                api_keys::revoke(tx, here, key, NOW).await?;
                Err(Error::NotFound("on purpose"))
            })
        })
        .await;
    assert!(undone.is_err() && follower.take().is_empty(), "undone");
    let revoked =
        store.write(move |tx| Box::pin(async move { api_keys::revoke(tx, here, key, NOW).await }));
    revoked.await.unwrap();
    assert_eq!(changes(&mut follower).await, [of_key(key, Action::Deleted)]);
    assert!(stranger.take().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_changes_much_is_of_whole_kinds() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "busy").await.unwrap();
    let mut follower = store.follow_changes(account).await.unwrap();
    let made = store.write(move |tx| {
        Box::pin(async move {
            for number in 0..1_100 {
                let folder = NewFolder {
                    name: format!("folder {number}"),
                    color: None,
                    parent_id: None,
                };
                folders::create(tx, account, folder, NOW).await?;
            }
            Ok(())
        })
    });
    made.await.unwrap();
    timeout(SOON, follower.changed()).await.unwrap();
    let batch = follower.take();
    assert_eq!(batch.lost, [Kind::Folder]);
    assert_eq!(batch.changes, []);
    let key = add_key(&store, account).await;
    assert_eq!(changes(&mut follower).await, [of_key(key, Action::Created)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_another_process_may_have_changed_everything() {
    let (store, folder) = sqlite_store().await;
    let account = add_account(&store, "account").await.unwrap();
    let mut follower = store.follow_changes(account).await.unwrap();
    for _ in 0..50 {
        add_key(&store, account).await;
        changes(&mut follower).await;
    }
    let settings = StoreSettings::on_sqlite(folder.path());
    let beside = Store::open_beside(&settings).await.unwrap();
    add_key(&beside, account).await;
    beside.close().await;
    store.notice_foreign_commits().await.unwrap();
    timeout(SOON, follower.changed()).await.unwrap();
    assert_eq!(follower.take().lost, Kind::ALL);
    store.notice_foreign_commits().await.unwrap();
    assert!(follower.take().is_empty());
}

/// On PostgreSQL the log of changes is in the database.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_another_process_is_named_on_postgres() {
    if !on_postgres() {
        return;
    }
    let (store, folder) = store().await;
    let account = add_account(&store, "account").await.unwrap();
    let settings = StoreSettings::without_reserve(folder.path());
    let beside = Store::open_beside(&settings).await.unwrap();
    let mut follower = store.follow_changes(account).await.unwrap();
    for _ in 0..20 {
        let key = add_key(&beside, account).await;
        let mut seen = Vec::new();
        while !seen.contains(&of_key(key, Action::Created)) {
            seen.extend(changes(&mut follower).await);
        }
    }
    beside.close().await;
}
