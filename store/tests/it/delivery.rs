//! Delivery keys, presets, the monthly meter and the days' statistics.

use sluice_store::{
    Error, Month, Page, Store, credentials,
    deliveries::{self, Day, MeterState},
    delivery_keys::{self, DeliveryKey, DeliveryKeyPatch, NewDeliveryKey},
    derived::DerivedTokens,
    presets,
};
use uuid::Uuid;

use crate::support::{NOW, add_account, store};

const DAY: i64 = 24 * 60 * 60 * 1000;

async fn add_key(
    store: &Store,
    account_id: Uuid,
    alias: Option<&str>,
) -> Result<(DeliveryKey, sluice_store::Secret), Error> {
    let new = NewDeliveryKey {
        name: "shop".into(),
        alias: alias.map(str::to_owned),
        presets_only: false,
    };
    store
        .write(move |tx| Box::pin(delivery_keys::create(tx, account_id, new, NOW)))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_keeps_its_hash_and_its_alias_is_unique_until_it_is_revoked() {
    let (store, _folder) = store().await;
    let here = add_account(&store, "here").await.unwrap();
    let there = add_account(&store, "there").await.unwrap();
    let (key, token) = add_key(&store, here, Some("shop")).await.unwrap();
    assert!(credentials::is_delivery_key(token.expose()));
    assert_eq!(key.key_hash, credentials::hash(token.expose()));
    assert_eq!(key.key_prefix, token.expose()[..12]);

    for alias in ["Shop", "ab", "svc_pub_abc"] {
        assert!(matches!(
            add_key(&store, here, Some(alias)).await,
            Err(Error::Invalid(_))
        ));
    }
    assert!(matches!(
        add_key(&store, there, Some("shop")).await,
        Err(Error::Conflict(_))
    ));
    let revoke = async |account| -> Result<DeliveryKey, Error> {
        store
            .write(move |tx| {
                Box::pin(async move { delivery_keys::revoke(tx, account, key.id, NOW).await })
            })
            .await
    };
    assert!(matches!(revoke(there).await, Err(Error::NotFound(_))));
    revoke(here).await.unwrap();
    assert!(matches!(revoke(here).await, Err(Error::NotFound(_))));

    let mut reader = store.read().await.unwrap();
    assert!(
        delivery_keys::is_alias_free(&mut reader, "shop")
            .await
            .unwrap()
    );
    assert_eq!(delivery_keys::all(&mut reader).await.unwrap(), []);
    drop(reader);
    let (second, _) = add_key(&store, there, Some("shop")).await.unwrap();
    store
        .write(move |tx| {
            Box::pin(async move {
                delivery_keys::touch(tx, &[(second.id, NOW + 2), (second.id, NOW + 1)]).await
            })
        })
        .await
        .unwrap();
    let listed = delivery_keys::list(&mut store.read().await.unwrap(), there, Page::first(9))
        .await
        .unwrap();
    assert_eq!(listed[0].last_used_at, Some(NOW + 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_presets_name_is_unique_in_its_account() {
    let (store, _folder) = store().await;
    let here = add_account(&store, "here").await.unwrap();
    let there = add_account(&store, "there").await.unwrap();
    let create = async |account, name: &'static str| {
        store
            .write(move |tx| Box::pin(presets::create(tx, account, name, "w=100", NOW)))
            .await
    };
    let hero = create(here, "hero").await.unwrap();
    create(there, "hero").await.unwrap();
    let card = create(here, "card").await.unwrap();
    assert!(matches!(
        create(here, "hero").await,
        Err(Error::Conflict(_))
    ));
    let patch = async |id, name: Option<&str>, params: Option<&str>| {
        let (name, params) = (name.map(str::to_owned), params.map(str::to_owned));
        store
            .write(move |tx| Box::pin(presets::patch(tx, here, id, name, params, NOW + 1)))
            .await
    };
    assert!(matches!(
        patch(card.id, Some("hero"), None).await,
        Err(Error::Conflict(_))
    ));
    let changed = patch(hero.id, Some("hero"), Some("w=200")).await.unwrap();
    assert_eq!(
        (changed.params.as_str(), changed.updated_at),
        ("w=200", NOW + 1)
    );
    assert!(matches!(
        store
            .write(move |tx| Box::pin(presets::delete(tx, there, hero.id)))
            .await,
        Err(Error::NotFound(_))
    ));
    assert_eq!(
        presets::all(&mut store.read().await.unwrap())
            .await
            .unwrap()
            .len(),
        3
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_shrink_towards_the_cap_and_never_pass_it() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let take = async |limit, held, now| -> MeterState {
        store
            .write(move |tx| Box::pin(deliveries::take(tx, account, limit, held, now)))
            .await
            .unwrap()
    };
    let month = Month::of(NOW);
    let first = take(250, None, NOW).await;
    assert_eq!((first.month, first.taken, first.granted), (month, 2, 2));
    // One of the two is still there: the block is filled up, not doubled.
    assert_eq!(take(250, Some((month, 1)), NOW).await.granted, 1);
    let mut taken = 3;
    loop {
        let standing = take(250, None, NOW).await;
        taken += standing.granted;
        assert_eq!(standing.taken, taken);
        assert!(standing.granted <= 2 && taken <= 250);
        if standing.granted == 0 {
            break;
        }
    }
    assert_eq!(taken, 250);

    store
        .write(move |tx| Box::pin(deliveries::give_back(tx, account, month, 5)))
        .await
        .unwrap();
    let standing = deliveries::standing(&mut store.read().await.unwrap(), account, NOW)
        .await
        .unwrap();
    assert_eq!(standing.taken, 245);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_set_back_reopens_no_month() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let (november, december) = (NOW, NOW + 30 * DAY);
    let count = async |delivered, now| -> MeterState {
        store
            .write(move |tx| Box::pin(deliveries::count(tx, account, delivered, now)))
            .await
            .unwrap()
    };
    assert_eq!(count(7, november).await.taken, 7);
    assert_eq!(count(1, december).await.taken, 1);
    let back = count(1, november).await;
    assert_eq!((back.month, back.taken), (Month::of(december), 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn days_add_up_newest_first() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let today = Day::of(NOW);
    for (day, hits) in [(today - 1, 1), (today, 2), (today, 3), (today - 40, 9)] {
        let added = Day {
            day,
            hits,
            misses: 1,
            bytes: 10,
        };
        store
            .write(move |tx| Box::pin(deliveries::add_to_day(tx, account, added)))
            .await
            .unwrap();
    }
    let days = deliveries::days(&mut store.read().await.unwrap(), account, today - 30)
        .await
        .unwrap();
    let expected = [(today, 5, 2, 20), (today - 1, 1, 1, 10)];
    let found: Vec<_> = days
        .iter()
        .map(|day| (day.day, day.hits, day.misses, day.bytes))
        .collect();
    assert_eq!(found, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_shown_again_unless_the_key_is_older_than_that() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let tokens = DerivedTokens::of(&mut store.read().await.unwrap())
        .await
        .unwrap();
    let (key, token) = add_key(&store, account, None).await.unwrap();
    assert_eq!(key.token(&tokens), Some(token));
    let older = DeliveryKey {
        key_hash: credentials::hash("svc_pub_00000000000000000000000000000000"),
        ..key
    };
    assert_eq!(older.token(&tokens), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_changed_in_what_is_named() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let other = add_account(&store, "there").await.unwrap();
    let (key, _) = add_key(&store, account, Some("shop")).await.unwrap();
    add_key(&store, account, Some("taken")).await.unwrap();
    let patch = |account, patch: DeliveryKeyPatch| {
        store.write(move |tx| Box::pin(delivery_keys::patch(tx, account, key.id, patch)))
    };
    let alias = |alias: Option<&str>| DeliveryKeyPatch {
        alias: Some(alias.map(str::to_owned)),
        ..DeliveryKeyPatch::default()
    };
    let unchanged = patch(account, DeliveryKeyPatch::default()).await.unwrap();
    assert_eq!(unchanged.delivery_alias.as_deref(), Some("shop"));
    let limited = DeliveryKeyPatch {
        presets_only: Some(true),
        ..DeliveryKeyPatch::default()
    };
    let limited = patch(account, limited).await.unwrap();
    assert_eq!(
        (limited.presets_only, limited.name),
        (true, "shop".to_owned())
    );
    let taken = patch(account, alias(Some("taken"))).await;
    assert!(matches!(taken, Err(Error::Conflict(_))), "{taken:?}");
    let odd = patch(account, alias(Some("Shop"))).await;
    assert!(matches!(odd, Err(Error::Invalid(_))), "{odd:?}");
    let freed = patch(account, alias(None)).await.unwrap();
    assert_eq!(freed.delivery_alias, None);
    let next = add_key(&store, account, Some("shop")).await;
    next.expect("the alias is free");
    let foreign = patch(other, alias(None)).await;
    assert!(matches!(foreign, Err(Error::NotFound("delivery key"))));
}
