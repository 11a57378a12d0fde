//! Tests of webhook endpoints: creation, patches, secrets, pauses, health and deletion.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_its_accounts_and_has_a_secret() {
    let world = World::new().await;
    let (account, other) = (world.account, add_account(&world.store).await);
    let mut new = new_endpoint(&["file.uploaded", "*", "file.uploaded"]);
    new.description = Some("ours".into());
    let (endpoint, secret) = world
        .write(move |tx| Box::pin(create(tx, account, new, 1, NOW)))
        .await
        .unwrap();
    assert_eq!(endpoint.event_types, ["file.uploaded", "*"], "once each");
    assert_eq!(endpoint.status, EndpointStatus::Active);
    assert!(endpoint.is_active && endpoint.status_reason.is_none());
    assert_eq!(endpoint.secret, secret);
    assert!(secret.expose().starts_with("whsec_"));
    assert_eq!(endpoint.secret_prefix(), &secret.expose()[..12]);
    assert!(!format!("{endpoint:?}").contains(secret.expose()));
    assert_eq!(world.get(endpoint.id).await, endpoint);
    for (account, id) in [(other, endpoint.id), (account, Uuid::now_v7())] {
        let found = get(&mut world.read().await, account, id).await;
        assert!(matches!(found, Err(Error::NotFound("webhook"))));
    }
    let one_more = world
        .write(move |tx| Box::pin(create(tx, account, new_endpoint(&["*"]), 1, NOW)))
        .await;
    let message = one_more.unwrap_err().to_string();
    assert!(message.contains("webhooks.max_endpoints"), "{message}");
    world.delete(endpoint.id).await;
    world
        .write(move |tx| Box::pin(create(tx, account, new_endpoint(&["*"]), 1, NOW)))
        .await
        .expect("a deleted one takes no room");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_made_paused_says_so() {
    let world = World::new().await;
    let account = world.account;
    let mut new = new_endpoint(&["*"]);
    new.is_active = false;
    let (endpoint, _) = world
        .write(move |tx| Box::pin(create(tx, account, new, 1, NOW)))
        .await
        .unwrap();
    assert!(!endpoint.is_active);
    assert_eq!(endpoint.status, EndpointStatus::Paused);
    assert_eq!(
        endpoint.status_reason.as_deref(),
        Some("paused by its owner")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn both_secrets_sign_for_a_while() {
    let world = World::new().await;
    let (account, id) = (world.account, world.endpoint(&["*"]).await);
    let first = world.get(id).await.secret;
    let mut secrets = vec![first];
    for _ in 0..2 {
        let (endpoint, secret) = world
            .write(move |tx| Box::pin(rotate_secret(tx, account, id, 1_000, NOW)))
            .await
            .unwrap();
        assert_eq!(endpoint.secret, secret);
        secrets.push(secret);
    }
    let endpoint = world.get(id).await;
    let cases: [(i64, &[usize]); 3] = [(NOW, &[2, 1]), (NOW + 999, &[2, 1]), (NOW + 1_000, &[2])];
    for (now_ms, signing) in cases {
        let expected: Vec<&Secret> = signing.iter().map(|i| &secrets[*i]).collect();
        assert_eq!(endpoint.secrets(now_ms), expected, "{now_ms}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_changes_what_it_names() {
    let world = World::new().await;
    let id = world.endpoint(&["file.uploaded"]).await;
    let before = world.get(id).await;
    assert_eq!(
        world.patch(id, EndpointPatch::default()).await,
        before,
        "nothing named"
    );
    let changed = world
        .patch(
            id,
            EndpointPatch {
                url: Some("https://example.net/".into()),
                description: Some(Some("new".into())),
                event_types: Some(vec!["conversion.failed".into()]),
                is_active: None,
            },
        )
        .await;
    assert_eq!(changed.url, "https://example.net/");
    assert_eq!(changed.description.as_deref(), Some("new"));
    assert_eq!(changed.event_types, ["conversion.failed"]);
    world.event(NOW).await;
    assert_eq!(world.deliveries().await.len(), 0, "not subscribed any more");
    let cleared = EndpointPatch {
        description: Some(None),
        ..EndpointPatch::default()
    };
    assert_eq!(world.patch(id, cleared).await.description, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn resuming_clears_the_failures_and_releases_what_waits() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    let active = world.get(id).await;
    assert_eq!(world.switch(id, true).await, active, "it was active");
    for is_paused in [false, true] {
        let mut health = world.get(id).await.health();
        health.status = EndpointStatus::Suspended;
        health.status_reason = Some("10 failures in a row".into());
        health.consecutive_failures = 10;
        health.first_failure_at = Some(NOW);
        health.next_probe_at = Some(NOW);
        world.set_health(id, health).await;
        if is_paused {
            let paused = world.switch(id, false).await;
            assert_eq!(paused.status, EndpointStatus::Paused);
            assert!(!paused.is_active && !paused.is_releasing);
            assert_eq!(world.switch(id, false).await, paused, "again");
        }
        let resumed = world.switch(id, true).await;
        assert_eq!(resumed.status, EndpointStatus::Active);
        assert!(resumed.is_active && resumed.is_releasing);
        assert_eq!(
            (
                resumed.status_reason,
                resumed.consecutive_failures,
                resumed.first_failure_at,
                resumed.next_probe_at
            ),
            (None, 0, None, None)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_endpoint_that_moves_is_probed_at_once() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    world.suspend(id).await;
    let patch = |url: &str| EndpointPatch {
        url: Some(url.into()),
        ..EndpointPatch::default()
    };
    let same = world.patch(id, patch("https://example.org/hook")).await;
    assert_eq!(same.next_probe_at, None, "it did not move");
    let moved = world.patch(id, patch("https://example.net/")).await;
    assert_eq!(
        (moved.status, moved.next_probe_at),
        (EndpointStatus::Suspended, Some(NOW))
    );
    assert!(moved.revision > same.revision);
}

/// Checks that the result of an attempt to the old address does not count for the new one.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_moves_is_judged_again() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    let patch = EndpointPatch {
        url: Some("https://example.net/".into()),
        ..EndpointPatch::default()
    };
    let gone = EndpointHealth {
        status: EndpointStatus::Paused,
        ..world.get(id).await.health()
    };
    world.patch(id, patch).await;
    let after = world.set_health(id, gone).await;
    assert_eq!(after.status, EndpointStatus::Active);
}

/// Checks that results of attempts from before the owner's decision do not undo it.
#[tokio::test(flavor = "multi_thread")]
async fn a_health_gives_way_to_the_owner() {
    type Decide = fn(&World, Uuid) -> futures_of::Decision<'_>;
    let decisions: [(&str, bool, Decide); 3] = [
        ("none", true, |_, _| Box::pin(async {})),
        ("pause", false, |world, id| {
            Box::pin(async move { drop(world.switch(id, false).await) })
        }),
        ("resume", false, |world, id| {
            Box::pin(async move { drop(world.switch(id, true).await) })
        }),
    ];
    for (decision, is_taken, decide) in decisions {
        let world = World::new().await;
        let id = world.endpoint(&["*"]).await;
        let seen = world.suspend(id).await;
        decide(&world, id).await;
        let decided = world.get(id).await;
        let found = EndpointHealth {
            consecutive_failures: 11,
            last_failure_at: Some(NOW + 7),
            ..seen.health()
        };
        let after = world.set_health(id, found.clone()).await;
        assert_eq!(after.health() == found, is_taken, "{decision}");
        assert_eq!(after.last_failure_at, Some(NOW + 7), "{decision}");
        if !is_taken {
            assert_eq!(after.status, decided.status, "{decision}");
            assert_eq!(after.consecutive_failures, 0, "{decision}");
        }
    }
}

mod futures_of {
    use std::pin::Pin;

    pub(super) type Decision<'w> = Pin<Box<dyn Future<Output = ()> + Send + 'w>>;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_status_is_an_update_and_another_failure_is_none() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    for (status, failed_at, updated_at) in [
        (EndpointStatus::Active, NOW + 3, NOW),
        (EndpointStatus::Suspended, NOW + 5, NOW + 5),
        (EndpointStatus::Suspended, NOW + 7, NOW + 5),
        (EndpointStatus::Paused, NOW + 9, NOW + 9),
    ] {
        let health = EndpointHealth {
            status,
            last_failure_at: Some(failed_at),
            ..world.get(id).await.health()
        };
        let after = world.set_health(id, health).await;
        assert_eq!(after.updated_at, updated_at, "{status:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_of_health_do_not_go_back() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    for (success, failure, expected) in [
        (None, None, (None, None)),
        (Some(5), None, (Some(5), None)),
        (Some(4), Some(9), (Some(5), Some(9))),
        (None, Some(8), (Some(5), Some(9))),
    ] {
        let health = EndpointHealth {
            last_success_at: success,
            last_failure_at: failure,
            ..world.get(id).await.health()
        };
        let after = world.set_health(id, health).await;
        assert_eq!((after.last_success_at, after.last_failure_at), expected);
    }
}

/// Checks that the owner no longer sees the endpoint; its deliveries can still be read, and none is claimed.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_endpoint_leaves_its_deliveries() {
    let world = World::new().await;
    let (account, id) = (world.account, world.endpoint(&["*"]).await);
    world.event(NOW).await;
    world.delete(id).await;
    assert!(get(&mut world.read().await, account, id).await.is_err());
    let again = world
        .write(move |tx| Box::pin(delete(tx, account, id, NOW)))
        .await;
    assert!(matches!(again, Err(Error::NotFound("webhook"))));
    let page = crate::Page::first(10);
    let listed = list(&mut world.read().await, account, page).await.unwrap();
    assert!(listed.is_empty());
    let kept = world.deliveries().await;
    assert_eq!(kept[0].endpoint_url, "https://example.org/hook");
    assert_eq!(kept[0].status, DeliveryStatus::Failed, "it waits no more");
    assert_eq!(kept[0].error.as_deref(), Some("the webhook was deleted"));
    assert_eq!(kept[0].next_attempt_at(), None);
    for what in [What::Due, What::Probe, What::Replay] {
        assert!(world.claim(what, id, 4, NOW).await.is_empty());
    }
    assert!(
        lanes(&mut world.read().await, &[id])
            .await
            .unwrap()
            .is_empty()
    );
    world.event(NOW).await;
    assert_eq!(world.deliveries().await.len(), 1, "no new ones");
}
