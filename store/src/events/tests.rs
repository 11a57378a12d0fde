//! Tests of the event log on a real database: envelopes, sequence numbers, endpoints that get an event, the feed.

use serde_json::{Map, Value, json};

use super::*;
use crate::{
    Error, Page,
    webhooks::{
        Delivery, DeliveryFilter, delete, deliveries, get, set_healths,
        tests::{NOW, World, add_account, file_uploaded},
    },
};

impl World {
    async fn feed(&self, after_seq: i64, limit: u32) -> Vec<Event> {
        after(&mut self.read().await, self.account, after_seq, limit)
            .await
            .unwrap()
    }

    async fn sent(&self, account: Uuid) -> Vec<Delivery> {
        let (filter, page) = (DeliveryFilter::default(), Page::first(10_000));
        deliveries(&mut self.read().await, account, &filter, page)
            .await
            .unwrap()
    }

    async fn drop_event(&self, seq: i64) {
        let delete = format!("DELETE FROM events WHERE seq = {seq}");
        self.run(delete).await.unwrap();
    }
}

fn about(world: &World, resource: &str, place: EventPosition) -> NewEvent {
    NewEvent {
        resource: resource.into(),
        place,
        ..file_uploaded(world.account)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_is_made_once_and_never_changes() {
    let world = World::new().await;
    let data = json!({"filename": "a \"b\"\u{2028}é🐎.png", "size": 9_007_199_254_740_993_u64, "folderId": null});
    let new = NewEvent {
        data: data.as_object().unwrap().clone(),
        ..file_uploaded(world.account)
    };
    let event = world.append(new, NOW + 999).await.unwrap();
    let start = format!(
        r#"{{"id":"evt_{}","type":"file.uploaded","created":{},"data":{{"#,
        event.id,
        NOW / 1000
    );
    assert!(event.body.starts_with(&start), "{}", event.body);
    let envelope: Value = serde_json::from_str(&event.body).unwrap();
    let mut expected = data;
    expected["sequence"] = 1.into();
    assert_eq!(envelope["data"], expected);
    assert_eq!(envelope["id"], event.name());
    assert_eq!(
        world.feed(0, 9).await,
        [event],
        "as it was answered, byte for byte"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn times_before_1970_round_down() {
    let world = World::new().await;
    let event = world.event(-1).await;
    assert!(event.body.contains(r#""created":-1,"#), "{}", event.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_a_resource_are_numbered() {
    use EventPosition::{Last, Next, Only};
    let world = World::new().await;
    let steps = [
        ("job:1", Next, 1),
        ("job:1", Next, 2),
        ("job:2", Next, 1),
        ("file:1", Only, 1),
        ("file:1", Only, 1),
        ("job:1", Last, 3),
        ("job:2", Next, 2),
        ("job:3", Last, 1),
    ];
    for (n, (resource, place, expected)) in steps.into_iter().enumerate() {
        let event = world
            .append(about(&world, resource, place), NOW)
            .await
            .unwrap();
        let envelope: Value = serde_json::from_str(&event.body).unwrap();
        assert_eq!(
            envelope["data"]["sequence"], expected,
            "step {n}: {resource} {place:?}"
        );
    }
    let remembered = async || -> Vec<String> {
        query_scalar("SELECT resource FROM event_sequences ORDER BY resource")
            .fetch_all(&mut world.read().await)
            .await
            .unwrap()
    };
    assert_eq!(remembered().await, ["job:2"]);
}

/// Checks which endpoints get an event: by subscription, by state, by account.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_goes_to_those_who_are_to_get_it() {
    let world = World::new().await;
    let account = world.account;
    let stranger = add_account(&world.store).await;
    let named = world
        .endpoint(&["file.uploaded", "conversion.failed"])
        .await;
    let all = world.endpoint(&["*"]).await;
    let both = world.endpoint(&["*", "file.uploaded"]).await;
    let other = world.endpoint(&["conversion.failed"]).await;
    let suspended = world.endpoint(&["*"]).await;
    let (paused, deleted) = (world.endpoint(&["*"]).await, world.endpoint(&["*"]).await);
    world.endpoint_of(stranger, &["*"]).await;
    world
        .write(move |tx| {
            Box::pin(async move {
                for (id, status) in [
                    (suspended, crate::webhooks::EndpointStatus::Suspended),
                    (paused, crate::webhooks::EndpointStatus::Paused),
                ] {
                    let mut health = get(tx, account, id).await?.health();
                    health.status = status;
                    set_healths(tx, &[(id, health)]).await?;
                }
                delete(tx, account, deleted, NOW).await
            })
        })
        .await
        .unwrap();
    let cases: [(Audience, &[Uuid]); 6] = [
        (Audience::Everyone, &[named, all, both, suspended]),
        (Audience::ThoseWhoNameIt, &[named, both]),
        (Audience::Endpoint(other), &[other]),
        (Audience::Endpoint(paused), &[paused]),
        (Audience::Endpoint(deleted), &[]),
        (Audience::Endpoint(Uuid::nil()), &[]),
    ];
    for (audience, expected) in cases {
        let new = NewEvent {
            audience,
            ..file_uploaded(account)
        };
        let appended = world.append(new, NOW).await;
        if expected.is_empty() {
            assert!(
                matches!(appended, Err(Error::NotFound("webhook"))),
                "{audience:?}"
            );
            continue;
        }
        let event = appended.unwrap();
        let mut found: Vec<Uuid> = Vec::new();
        for delivery in world.sent(account).await {
            if delivery.event_id == event.id {
                assert_eq!((delivery.due_at, delivery.created_at), (NOW, NOW));
                assert_eq!(delivery.status, crate::webhooks::DeliveryStatus::Pending);
                assert_eq!(
                    delivery.is_replay,
                    matches!(audience, Audience::Endpoint(_))
                );
                found.push(delivery.endpoint_id);
            }
        }
        let mut expected = expected.to_vec();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{audience:?}");
    }
    assert_eq!(world.sent(stranger).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_endpoints_get_one_each() {
    let world = World::new().await;
    let account = world.account;
    world
        .write(move |tx| {
            Box::pin(async move {
                for _ in 0..1_000 {
                    let new = crate::webhooks::NewEndpoint {
                        url: "https://example.org/".into(),
                        event_types: vec!["*".into()],
                        description: None,
                        is_active: true,
                    };
                    crate::webhooks::create(tx, account, new, 1_000, NOW).await?;
                }
                Ok(())
            })
        })
        .await
        .unwrap();
    world.event(NOW).await;
    let mut endpoints: Vec<Uuid> = Vec::new();
    for delivery in world.sent(account).await {
        endpoints.push(delivery.endpoint_id);
    }
    endpoints.sort();
    endpoints.dedup();
    assert_eq!(endpoints.len(), 1_000);
}

/// Checks that a unit that fails leaves neither an event nor a delivery nor a number, and publishes none.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_shares_the_fate_of_its_change() {
    let world = World::new().await;
    let account = world.account;
    world.endpoint(&["*"]).await;
    let newest = world.store.newest_event();
    assert_eq!(*newest.borrow(), 0);
    let new = about(&world, "job:1", EventPosition::Next);
    let failed: Result<(), Error> = world
        .write(move |tx| {
            Box::pin(async move {
                append(tx, new, NOW).await?;
                Err(Error::Conflict("the change is rejected".into()))
            })
        })
        .await;
    assert!(failed.is_err());
    assert_eq!((*newest.borrow(), world.feed(0, 9).await.len()), (0, 0));
    assert_eq!(world.sent(account).await, []);
    let event = world
        .append(about(&world, "job:1", EventPosition::Next), NOW)
        .await
        .unwrap();
    assert_eq!(*newest.borrow(), event.seq);
    assert!(event.body.contains(r#""sequence":1"#), "{}", event.body);
}

/// Checks that an event is published after the commit, so that followers can read it. The last of a unit and of a
/// group counts.
#[tokio::test(flavor = "multi_thread")]
async fn the_newest_event_is_reported_once_it_can_be_read() {
    let world = World::new().await;
    let account = world.account;
    let mut newest = world.store.newest_event();
    let reader = async {
        let mut seen = 0;
        while seen < 60 {
            newest.changed().await.unwrap();
            let reported = *newest.borrow_and_update();
            let feed = world.feed(seen, 100).await;
            assert!(reported > seen, "it only rises");
            assert!(
                feed.iter().any(|event| event.seq == reported),
                "{reported} can be read"
            );
            seen = reported;
        }
    };
    let writers = (0..20).map(|_| {
        let store = world.store.clone();
        tokio::spawn(async move {
            store
                .write(move |tx| {
                    Box::pin(async move {
                        for _ in 0..3 {
                            append(tx, file_uploaded(account), NOW).await?;
                        }
                        Ok(())
                    })
                })
                .await
        })
    });
    let writers: Vec<_> = writers.collect();
    tokio::time::timeout(std::time::Duration::from_secs(20), reader)
        .await
        .expect("every event is delivered");
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_is_the_accounts_and_goes_by_commits() {
    let world = World::new().await;
    let stranger = add_account(&world.store).await;
    let mut mine = Vec::new();
    for time in [NOW, NOW - 60_000, NOW + 60_000] {
        mine.push(world.event(time).await);
        world.append(file_uploaded(stranger), NOW).await.unwrap();
    }
    assert_eq!(world.feed(0, 9).await, mine, "whatever the clock said");
    assert_eq!(world.feed(0, 2).await, mine[..2]);
    assert_eq!(world.feed(mine[0].seq, 9).await, mine[1..]);
    assert_eq!(world.feed(mine[2].seq, 9).await, []);
    assert_eq!(world.feed(i64::MAX, 9).await, []);
    let newest = newest(&mut world.read().await, world.account).await;
    assert_eq!(newest.unwrap(), mine[2].seq);
    assert_eq!(
        super::newest(&mut world.read().await, Uuid::nil())
            .await
            .unwrap(),
        0
    );
}

/// Checks that another account's loss is not this one's, and that a number is not given twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_feed_knows_how_far_it_was_cut() {
    let world = World::new().await;
    let stranger = add_account(&world.store).await;
    let first = world.event(NOW).await;
    let second = world.event(NOW).await;
    let theirs = world.append(file_uploaded(stranger), NOW).await.unwrap();
    let facts = async |account| {
        let mut db = world.read().await;
        (
            dropped_up_to(&mut db, account).await.unwrap(),
            newest(&mut db, account).await.unwrap(),
        )
    };
    assert_eq!(facts(world.account).await, (0, second.seq));
    world.drop_event(theirs.seq).await;
    assert_eq!(facts(stranger).await, (theirs.seq, theirs.seq));
    assert_eq!(facts(world.account).await, (0, second.seq));
    world.drop_event(second.seq).await;
    let cut = (second.seq, second.seq);
    assert_eq!(facts(world.account).await, cut, "though the first is kept");
    world.drop_event(first.seq).await;
    assert_eq!(facts(world.account).await, cut);
    assert!(world.event(NOW).await.seq > theirs.seq);
}

/// Checks that retention deletes an event only when no delivery names it.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_stays_while_a_delivery_names_it() {
    let world = World::new().await;
    let lonely = world.event(NOW).await;
    for _ in 0..2 {
        world.endpoint(&["*"]).await;
    }
    let event = world.event(NOW).await;
    let rejected = world.run(format!("DELETE FROM events WHERE seq = {}", event.seq));
    assert!(rejected.await.is_err());
    let unnamed = async || -> Vec<i64> {
        query_scalar("SELECT seq FROM events WHERE deliveries = 0 ORDER BY seq")
            .fetch_all(&mut world.read().await)
            .await
            .unwrap()
    };
    assert_eq!(unnamed().await, [lonely.seq]);
    for delivery in world.sent(world.account).await {
        assert_eq!(unnamed().await, [lonely.seq]);
        let id = delivery.id.simple();
        let delete = format!("DELETE FROM webhook_deliveries WHERE id = unhex('{id}')");
        world.run(delete).await.unwrap();
    }
    assert_eq!(unnamed().await, [lonely.seq, event.seq]);
    world.drop_event(event.seq).await;
}

#[test]
fn data_that_names_a_sequence_is_overruled() {
    let data = Map::from_iter([("sequence".to_owned(), Value::from("x"))]);
    let body = envelope(Uuid::nil(), "a.b", 7, data, 1_999).unwrap();
    let expected = r#"{"id":"evt_00000000-0000-0000-0000-000000000000","type":"a.b","created":1,"data":{"sequence":7}}"#;
    assert_eq!(body, expected);
}
