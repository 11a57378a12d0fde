//! What was sent, since when an endpoint is as it is, and tries of a suspended one.

use super::*;

impl World {
    async fn request(&self, id: Uuid) -> DeliveryRequest {
        request(&mut self.read().await, self.account, id)
            .await
            .unwrap()
    }

    async fn probe(&self, id: Uuid) -> Result<Probed, Error> {
        let account = self.account;
        self.write(move |tx| Box::pin(async move { probe(tx, account, id, NOW + 5_000).await }))
            .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_request_of_a_delivery_is_the_event_and_the_time_of_the_last_attempt() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    let event = world.event(NOW).await;
    let delivery_id = world.deliveries().await[0].id;
    let before = world.request(delivery_id).await;
    assert_eq!(
        (before.body.as_str(), before.last_attempt),
        (event.body.as_str(), None)
    );
    assert_eq!(
        (before.event_id, before.event_type),
        (event.id, event.event_type)
    );
    assert_eq!(before.endpoint, world.get(id).await);

    let claimed = world.claim_one(id, NOW + 1).await;
    let during = world.request(delivery_id).await;
    assert_eq!(during.last_attempt, Some(AttemptTime::Begun(NOW + 1)));
    world.record(vec![ended(&claimed, Next::Failed)]).await;
    let after = world.request(delivery_id).await;
    assert_eq!(after.last_attempt, Some(AttemptTime::Signed(NOW + 40)));
    assert_eq!(
        world.attempts(delivery_id).await[0].signed_at,
        Some(NOW + 40)
    );

    let other = add_account(&world.store).await;
    let foreign = request(&mut world.read().await, other, delivery_id).await;
    assert!(matches!(foreign, Err(Error::NotFound("delivery"))));
    world.delete(id).await;
    assert!(world.request(delivery_id).await.is_deleted);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_found_by_its_id() {
    let world = World::new().await;
    let event = world.event(NOW).await;
    let get = async |account, id| events::get(&mut world.read().await, account, id).await;
    assert_eq!(get(world.account, event.id).await.unwrap(), event);
    let other = add_account(&world.store).await;
    for (account, id) in [(other, event.id), (world.account, Uuid::now_v7())] {
        assert!(matches!(
            get(account, id).await,
            Err(Error::NotFound("event"))
        ));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_url_and_secret_are_noted_and_no_others() {
    let world = World::new().await;
    let (account, id) = (world.account, world.endpoint(&["*"]).await);
    let patched = async |patch| world.patch(id, patch).await.request_changed_at;
    let same = EndpointPatch {
        url: Some(world.get(id).await.url),
        description: Some(Some("ours".into())),
        ..EndpointPatch::default()
    };
    assert_eq!(patched(same).await, None);
    let moved = EndpointPatch {
        url: Some("https://example.org/other".into()),
        ..EndpointPatch::default()
    };
    assert_eq!(patched(moved).await, Some(NOW));
    let rotate = world.write(move |tx| Box::pin(rotate_secret(tx, account, id, 1_000, NOW + 7)));
    rotate.await.unwrap();
    assert_eq!(world.get(id).await.request_changed_at, Some(NOW + 7));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_states_since_when_it_has_its_status() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    assert_eq!(world.get(id).await.status_since, NOW);
    let mut health = world.get(id).await.health();
    health.consecutive_failures = 3;
    health.last_failure_at = Some(NOW + 10);
    assert_eq!(
        world.set_health(id, health.clone()).await.status_since,
        NOW,
        "it is active still"
    );
    health.status = EndpointStatus::Suspended;
    health.last_failure_at = Some(NOW + 20);
    assert_eq!(
        world.set_health(id, health.clone()).await.status_since,
        NOW + 20
    );
    health.last_failure_at = Some(NOW + 30);
    assert_eq!(world.set_health(id, health).await.status_since, NOW + 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_counted_by_endpoint() {
    let world = World::new().await;
    let (busy, idle) = (
        world.endpoint(&["*"]).await,
        world.endpoint(&["conversion.failed"]).await,
    );
    for _ in 0..3 {
        world.event(NOW).await;
    }
    let claimed = world.claim_one(busy, NOW).await;
    world.record(vec![ended(&claimed, Next::Delivered)]).await;
    let waiting = waiting(&mut world.read().await, &[busy, idle])
        .await
        .unwrap();
    assert_eq!((waiting[&busy], waiting[&idle]), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_endpoint_is_tried_at_once_with_the_oldest_that_waits() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    for _ in 0..2 {
        world.event(NOW).await;
    }
    let oldest = world.deliveries().await[0].clone();
    let rejected = world.probe(id).await.unwrap_err().to_string();
    assert!(rejected.contains("active"), "{rejected}");
    let mut health = world.suspend(id).await.health();
    health.next_probe_at = Some(NOW + 60_000);
    world.set_health(id, health).await;
    let probed = world.probe(id).await.unwrap();
    assert_eq!(probed.delivery, oldest);
    assert_eq!(probed.endpoint.next_probe_at, Some(NOW + 5_000));
    assert_eq!(
        world.claim(What::Probe, id, 1, NOW).await[0].delivery_id,
        oldest.id
    );

    world.switch(id, false).await;
    let rejected = world.probe(id).await.unwrap_err().to_string();
    assert!(rejected.contains("isActive"), "{rejected}");
    assert!(matches!(
        world.probe(Uuid::now_v7()).await,
        Err(Error::NotFound("webhook"))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_endpoint_without_deliveries_is_sent_a_test() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    world.suspend(id).await;
    let probed = world.probe(id).await.unwrap();
    assert_eq!(probed.delivery.event_type, "webhook.test");
    assert_eq!(world.claim(What::Replay, id, 1, NOW + 5_000).await.len(), 1);
}
