//! Changes as their followers get them: after the commit, of their account, and none missed without a word.

use std::time::Duration;

use sluice_store::{
    ClusterSettings, Error, Store, StoreSettings, api_keys,
    api_keys::Scope,
    changes::{Action, Change, Everything, EverythingFollower, Follower, Kind},
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

async fn next(follower: &mut EverythingFollower) -> Everything {
    timeout(SOON, follower.next()).await.unwrap()
}

/// Waits until the follower has one of the changes of a key, in whichever message.
async fn until_noted(follower: &mut EverythingFollower, account_id: Uuid, change: Change) {
    loop {
        match next(follower).await {
            Everything::Changes(changes) if changes.contains(&(account_id, change)) => return,
            Everything::Changes(_) => {}
            Everything::Lost => panic!("nothing was lost"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_of_everything_has_all_accounts() {
    let (store, _folder) = store().await;
    let here = add_account(&store, "here").await.unwrap();
    let there = add_account(&store, "there").await.unwrap();
    let mut follower = store.follow_everything();
    assert_eq!(next(&mut follower).await, Everything::Lost, "at first");
    for account in [here, there] {
        let key = add_key(&store, account).await;
        until_noted(&mut follower, account, of_key(key, Action::Created)).await;
        store
            .write(move |tx| Box::pin(api_keys::revoke(tx, account, key, NOW)))
            .await
            .unwrap();
        until_noted(&mut follower, account, of_key(key, Action::Deleted)).await;
    }
    let other = store.follow_everything();
    drop((follower, other));
    assert_eq!(store.changes().followers(), 0);
    add_key(&store, here).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_of_everything_that_lags_has_lost_it() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "account").await.unwrap();
    let mut follower = store.follow_everything();
    assert_eq!(next(&mut follower).await, Everything::Lost, "at first");
    let mut prompt = store.follow_everything();
    assert_eq!(next(&mut prompt).await, Everything::Lost, "at first");
    for _ in 0..40 {
        // Each in a message of its own, as the other follower has it before the next.
        let key = add_key(&store, account).await;
        until_noted(&mut prompt, account, of_key(key, Action::Created)).await;
    }
    assert_eq!(next(&mut follower).await, Everything::Lost);
    // Its channel is still full: one more message may be lost again, and what comes after is not.
    let key = add_key(&store, account).await;
    let noted = (account, of_key(key, Action::Created));
    let mut messages = 0;
    while !matches!(next(&mut follower).await, Everything::Changes(changes) if changes.contains(&noted))
    {
        messages += 1;
        assert!(messages <= 40, "it has begun again");
    }
}

/// On SQLite what a command beside the service commits may be anything; on PostgreSQL the log names it.
#[tokio::test(flavor = "multi_thread")]
async fn a_follower_of_everything_learns_of_other_processes() {
    let (store, folder) = store().await;
    let account = add_account(&store, "account").await.unwrap();
    let settings = StoreSettings::without_reserve(folder.path());
    let beside = Store::open_beside(&settings).await.unwrap();
    let mut follower = store.follow_everything();
    assert_eq!(next(&mut follower).await, Everything::Lost, "at first");
    for _ in 0..20 {
        let key = add_key(&beside, account).await;
        if on_postgres() {
            let committed = std::time::Instant::now();
            until_noted(&mut follower, account, of_key(key, Action::Created)).await;
            assert!(committed.elapsed() < Duration::from_secs(2));
        } else {
            store.notice_foreign_commits().await.unwrap();
            assert_eq!(next(&mut follower).await, Everything::Lost);
        }
    }
    beside.close().await;
}

/// Checks that nodes learn of each other's commits in time, and at once of their own.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_follow_each_other() {
    if !on_postgres() {
        return;
    }
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let settings = StoreSettings::without_reserve(folders[0].path());
    let mut nodes = Vec::new();
    for folder in &folders {
        let settings = StoreSettings {
            data_dir: folder.path().to_owned(),
            ..settings.clone()
        };
        let cluster = ClusterSettings {
            listen: "127.0.0.1:9".into(),
            ..ClusterSettings::default()
        };
        nodes.push(Store::open_node(&settings, &cluster).await.unwrap());
    }
    let account = add_account(&nodes[0], "account").await.unwrap();
    let mut followers: Vec<_> = nodes.iter().map(Store::follow_everything).collect();
    for follower in &mut followers {
        assert_eq!(next(follower).await, Everything::Lost, "at first");
    }
    for turn in 0..20 {
        let key = add_key(&nodes[turn % 2], account).await;
        let committed = std::time::Instant::now();
        for follower in &mut followers {
            until_noted(follower, account, of_key(key, Action::Created)).await;
        }
        assert!(committed.elapsed() < Duration::from_secs(2));
    }
    for node in nodes {
        node.close().await;
    }
}
