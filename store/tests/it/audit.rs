//! The audit log.

use sluice_store::{
    Listed, Page, api_keys,
    audit::{self, Actor, Entry, Filter, NewEntry, Target},
};
use uuid::Uuid;

use crate::support::{NOW, add_account, store};

fn entry(account_id: Uuid, actor: Actor, action: &'static str) -> NewEntry {
    NewEntry {
        account_id,
        actor,
        action,
        target: Some(Target {
            kind: "liveInput",
            id: "7".into(),
            name: Some("é".repeat(501)),
        }),
        network: Some("203.0.113.7".into()),
        detail: Some("d".repeat(501)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_listed_by_account_narrowed_and_swept() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let other = add_account(&store, "there").await.unwrap();
    let (user, key) = store
        .write(move |tx| {
            Box::pin(async move {
                let scope = api_keys::Scope::Admin;
                let (key, _) = api_keys::create(tx, account, "CI", scope, NOW).await?;
                let (user, key) = (Actor::User(Uuid::now_v7()), Actor::Key(key.id));
                for (at_ms, account, actor, action) in [
                    (NOW, account, key, "live.input.key_rotated"),
                    (NOW, account, user, "live.input.key_revealed"),
                    (NOW + 10, account, key, "session.ended"),
                    (NOW + 20, other, key, "live.input.key_rotated"),
                ] {
                    audit::append(tx, entry(account, actor, action), at_ms).await?;
                }
                Ok((user, key))
            })
        })
        .await
        .unwrap();
    let list = async |filter: Filter, page: Page| -> Vec<Entry> {
        let mut db = store.read().await.unwrap();
        audit::list(&mut db, account, &filter, page).await.unwrap()
    };
    let actions = async |filter: Filter| -> Vec<String> {
        let entries = list(filter, Page::first(100)).await;
        entries.into_iter().map(|entry| entry.action).collect()
    };
    let all = list(Filter::default(), Page::first(100)).await;
    assert_eq!(all.len(), 3);
    let newest = &all[0];
    assert_eq!((&*newest.actor_kind, &*newest.actor_name), ("key", "CI"));
    assert_eq!(
        (&*newest.action, newest.created_at),
        ("session.ended", NOW + 10)
    );
    assert_eq!(newest.target_name.as_ref().unwrap().chars().count(), 500);
    assert_eq!(newest.detail.as_ref().unwrap().len(), 500);
    let by_user = all.iter().find(|entry| entry.actor_kind == "user").unwrap();
    assert_eq!(
        by_user.actor_name, "",
        "a user that is not there has no name"
    );

    let (Actor::User(user), Actor::Key(key)) = (user, key) else {
        panic!("one of each");
    };
    let by = |actor| Filter {
        actor: Some(actor),
        ..Filter::default()
    };
    assert_eq!(actions(by(user)).await, ["live.input.key_revealed"]);
    assert_eq!(actions(by(key)).await.len(), 2);
    let of = |action: &str| Filter {
        action: Some(action.to_owned()),
        ..Filter::default()
    };
    assert_eq!(actions(of("live.input.key_rotated")).await.len(), 1);
    assert_eq!(actions(of("live.")).await.len(), 2);
    assert_eq!(actions(of("live.input")).await.len(), 0);
    let since = Filter {
        since: Some(NOW + 10),
        ..Filter::default()
    };
    assert_eq!(actions(since).await, ["session.ended"]);
    let until = Filter {
        until: Some(NOW + 10),
        ..Filter::default()
    };
    assert_eq!(actions(until).await.len(), 2);

    let first = list(Filter::default(), Page::first(2)).await;
    let rest = Page {
        limit: 2,
        after: Some(first[1].cursor()),
    };
    assert_eq!([first, list(Filter::default(), rest).await].concat(), all);

    let keep = std::time::Duration::from_millis(5);
    assert_eq!(store.sweep_audit(keep, 10, NOW + 10).await.unwrap(), 2);
    assert_eq!(actions(Filter::default()).await, ["session.ended"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_account_keeps_its_newest_entries() {
    let (store, _folder) = store().await;
    let busy = add_account(&store, "busy").await.unwrap();
    let quiet = add_account(&store, "quiet").await.unwrap();
    let user = Actor::User(Uuid::now_v7());
    store
        .write(move |tx| {
            Box::pin(async move {
                audit::append(tx, entry(quiet, user, "file.deleted"), NOW - 10).await?;
                for at_ms in NOW..NOW + 5 {
                    audit::append(tx, entry(busy, user, "file.deleted"), at_ms).await?;
                }
                Ok(())
            })
        })
        .await
        .unwrap();
    let keep = std::time::Duration::from_secs(60);
    assert_eq!(store.sweep_audit(keep, 2, NOW + 10).await.unwrap(), 3);
    let mut db = store.read().await.unwrap();
    let filter = Filter::default();
    let kept = audit::list(&mut db, busy, &filter, Page::first(10)).await;
    let times: Vec<i64> = kept.unwrap().iter().map(|entry| entry.created_at).collect();
    assert_eq!(times, [NOW + 4, NOW + 3]);
    let kept = audit::list(&mut db, quiet, &filter, Page::first(10)).await;
    assert_eq!(kept.unwrap().len(), 1);
}

/// Each statement of names fits the tables.
#[tokio::test(flavor = "multi_thread")]
async fn names_of_targets_are_those_of_the_account() {
    let (store, _folder) = store().await;
    let here = add_account(&store, "here").await.unwrap();
    let there = add_account(&store, "there").await.unwrap();
    let key = store
        .write(move |tx| {
            Box::pin(async move {
                Ok(api_keys::create(tx, here, "CI", api_keys::Scope::Read, NOW)
                    .await?
                    .0)
            })
        })
        .await
        .unwrap();
    let mut db = store.read().await.unwrap();
    for (account, expected) in [(here, Some("CI")), (there, None)] {
        let name = audit::target_name(&mut db, account, "apiKey", key.id).await;
        assert_eq!(name.unwrap().as_deref(), expected);
    }
    for kind in [
        "playbackKey",
        "deliveryKey",
        "preset",
        "liveInput",
        "file",
        "folder",
        "videoStream",
        "workflow",
        "run",
        "webhook",
        "output",
    ] {
        let name = audit::target_name(&mut db, here, kind, key.id).await;
        assert_eq!(name.unwrap(), None, "{kind}");
    }
}
