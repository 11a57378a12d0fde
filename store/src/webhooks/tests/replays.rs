//! Tests of replays, recovery of failed deliveries, and test events.

use super::*;

impl World {
    async fn replay(&self, id: Uuid, now_ms: i64) -> Result<Delivery, Error> {
        let account = self.account;
        self.write(move |tx| Box::pin(replay(tx, account, id, now_ms)))
            .await
    }

    async fn recover(&self, id: Uuid, since: i64, rows: u32, now_ms: i64) -> Result<u64, Error> {
        let account = self.account;
        self.write(move |tx| Box::pin(recover(tx, account, id, since, rows, now_ms)))
            .await
    }

    /// Events whose deliveries to the endpoint have failed.
    async fn failed(&self, id: Uuid, times: &[i64]) -> Vec<Uuid> {
        let mut failed = Vec::new();
        for at in times {
            self.event(*at).await;
            let claimed = self.claim_one(id, *at).await;
            self.record(vec![ended(&claimed, Next::Failed)]).await;
            failed.push(claimed.delivery_id);
        }
        failed
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_makes_one_attempt() {
    for (first, second) in [
        (Next::Failed, Next::Delivered),
        (Next::Failed, Next::Failed),
        (Next::Delivered, Next::Failed),
        (Next::Delivered, Next::Delivered),
    ] {
        let world = World::new().await;
        let id = world.endpoint(&["*"]).await;
        let event = world.event(NOW).await;
        let claimed = world.claim_one(id, NOW).await;
        world.record(vec![ended(&claimed, first)]).await;
        let delivery = world.replay(claimed.delivery_id, NOW + 100).await.unwrap();
        assert_eq!(delivery.status, DeliveryStatus::Retrying);
        assert!(delivery.is_replay && delivery.ended_at.is_none());
        assert_eq!(delivery.next_attempt_at(), Some(NOW + 100));
        assert!(world.claim(What::Due, id, 9, HORIZON).await.is_empty());
        let again = world.claim(What::Replay, id, 9, NOW + 100).await;
        assert_eq!((again.len(), again[0].number), (1, 2));
        assert!(again[0].is_replay);
        assert_eq!(*again[0].body, *event.body, "the same bytes");
        assert_eq!(again[0].event_id, event.id);
        world.record(vec![ended(&again[0], second)]).await;
        let delivery = world.delivery(delivery.id).await;
        let expected = match second {
            Next::Delivered => DeliveryStatus::Delivered,
            _ => DeliveryStatus::Failed,
        };
        assert_eq!((delivery.status, delivery.is_replay), (expected, false));
        let arrived = first == Next::Delivered || second == Next::Delivered;
        assert_eq!(delivery.delivered_at.is_some(), arrived);
        for what in [What::Due, What::Replay] {
            assert!(world.claim(what, id, 9, HORIZON).await.is_empty());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_replay_is_made_again() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    let failed = world.failed(id, &[NOW]).await;
    world.replay(failed[0], NOW).await.unwrap();
    world.claim(What::Replay, id, 1, NOW).await;
    world
        .write(|tx| Box::pin(interrupt(tx, None, 9, NOW)))
        .await
        .unwrap();
    let again = world.claim(What::Replay, id, 1, NOW).await;
    assert_eq!((again.len(), again[0].number), (1, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_of_what_waits_only_brings_it_forward() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    world.event(NOW).await;
    let pending = world.deliveries().await.remove(0);
    let forward = world.replay(pending.id, NOW + 5).await.unwrap();
    assert_eq!(forward, pending, "it is due already");
    let claimed = world.claim_one(id, NOW).await;
    let rejected = world.replay(pending.id, NOW).await.unwrap_err();
    assert!(matches!(rejected, Error::Conflict(_)), "{rejected:?}");
    world
        .record(vec![ended(&claimed, Next::RetryAt(NOW + 60_000))])
        .await;
    let forward = world.replay(pending.id, NOW + 70).await.unwrap();
    assert_eq!(
        (
            forward.status,
            forward.due_at,
            forward.is_replay,
            forward.failures
        ),
        (DeliveryStatus::Retrying, NOW + 70, false, 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_replayed_says_why() {
    let world = World::new().await;
    let (account, id) = (world.account, world.endpoint(&["*"]).await);
    let failed = world.failed(id, &[NOW]).await[0];
    let unknown = world.replay(Uuid::now_v7(), NOW).await;
    assert!(matches!(unknown, Err(Error::NotFound("delivery"))));
    let other = add_account(&world.store).await;
    let foreign = world
        .write(move |tx| Box::pin(replay(tx, other, failed, NOW)))
        .await;
    assert!(matches!(foreign, Err(Error::NotFound("delivery"))));
    world.delete(id).await;
    let deleted = world.replay(failed, NOW).await.unwrap_err();
    assert!(matches!(deleted, Error::Conflict(_)), "{deleted:?}");
    let recovered = world.recover(id, 0, 9, NOW).await;
    assert!(matches!(recovered, Err(Error::NotFound("webhook"))));
    let tested = world
        .write(move |tx| Box::pin(test(tx, account, id, NOW)))
        .await;
    assert!(matches!(tested, Err(Error::NotFound("webhook"))));
}

#[tokio::test(flavor = "multi_thread")]
async fn recovering_takes_each_failed_one_once_and_the_oldest_first() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    let times: Vec<i64> = (0..6).map(|n| NOW - 1_000 + n * 100).collect();
    let failed = world.failed(id, &times).await;
    let other = world.endpoint(&["*"]).await;
    world.event(NOW - 400).await;
    for endpoint in [id, other] {
        let claimed = world.claim_one(endpoint, NOW).await;
        let next = match endpoint == id {
            true => Next::Delivered,
            false => Next::Failed,
        };
        world.record(vec![ended(&claimed, next)]).await;
    }
    world.suspend(id).await;
    let asked_at = NOW + 100;
    let recover = async |rows| world.recover(id, times[1], rows, asked_at).await.unwrap();
    assert_eq!(recover(2).await, 2);
    let first = world.claim(What::Replay, id, 9, asked_at).await;
    let ids =
        |claimed: &[Claimed]| -> Vec<Uuid> { claimed.iter().map(|one| one.delivery_id).collect() };
    assert_eq!(ids(&first), failed[1..3]);
    let outcomes = first
        .iter()
        .map(|one| Attempted {
            ended_at: asked_at + 1,
            ..ended(one, Next::Failed)
        })
        .collect();
    world.record(outcomes).await;
    assert_eq!(recover(2).await, 2);
    assert_eq!(recover(2).await, 1, "not those that failed since");
    assert_eq!(recover(2).await, 0);
    let rest = world.claim(What::Replay, id, 9, asked_at).await;
    assert_eq!(ids(&rest), failed[3..6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_by_a_clock_that_was_ahead_is_recovered() {
    const MONTH: i64 = 30 * 24 * 3_600_000;
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    world.event(NOW).await;
    let claimed = world.claim_one(id, NOW).await;
    let outcome = Attempted {
        ended_at: NOW + MONTH,
        ..ended(&claimed, Next::Failed)
    };
    world.record(vec![outcome]).await;
    assert_eq!(world.recover(id, NOW, 9, NOW + 100).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_goes_to_one_endpoint_and_into_no_feed() {
    let world = World::new().await;
    let (account, id) = (world.account, world.endpoint(&["conversion.failed"]).await);
    world.endpoint(&["*"]).await;
    world.switch(id, false).await;
    let delivery = world
        .write(move |tx| Box::pin(test(tx, account, id, NOW)))
        .await
        .unwrap();
    assert_eq!(
        (
            delivery.endpoint_id,
            &*delivery.event_type,
            delivery.status,
            delivery.is_replay
        ),
        (id, "webhook.test", DeliveryStatus::Pending, true)
    );
    assert_eq!(world.deliveries().await.len(), 1);
    let feed = events::after(&mut world.read().await, account, 0, 9).await;
    assert!(feed.unwrap().is_empty());
    let claimed = world.claim(What::Replay, id, 9, NOW).await;
    let body: Value = serde_json::from_str(&claimed[0].body).unwrap();
    assert_eq!(body["type"], "webhook.test");
    assert_eq!(body["data"]["webhookId"], id.to_string());
    assert_eq!(body["data"]["sequence"], 1);
}
