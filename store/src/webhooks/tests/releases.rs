//! Tests of deliveries that waited for a paused or suspended endpoint and are released.

use super::*;

impl World {
    async fn rewind(&self, id: Uuid, rows: u32) -> u64 {
        self.write(move |tx| Box::pin(rewind(tx, id, rows)))
            .await
            .unwrap()
    }

    async fn finish_release(&self, id: Uuid) -> bool {
        self.write(move |tx| Box::pin(finish_release(tx, id)))
            .await
            .unwrap()
    }
}

/// Deliveries that failed before the suspension, with due times in the wrong order, and one that was never tried.
#[tokio::test(flavor = "multi_thread")]
async fn what_waited_goes_in_the_order_of_its_events() {
    let world = World::new().await;
    let (id, other) = (world.endpoint(&["*"]).await, world.endpoint(&["*"]).await);
    let mut events = Vec::new();
    for n in 0..5 {
        events.push(world.event(NOW + n).await.id);
    }
    for endpoint in [id, other] {
        let claimed = world.claim(What::Due, endpoint, 4, NOW + 9).await;
        let outcomes = claimed
            .iter()
            .zip([90_000, 10_000, 60_000, 30_000])
            .map(|(one, pause)| ended(one, Next::RetryAt(NOW + pause)))
            .collect();
        world.record(outcomes).await;
    }
    world.suspend(id).await;
    world.switch(id, true).await;
    let claimed = world.claim(What::Due, id, 9, NOW + 9).await;
    assert!(claimed.is_empty(), "not before the release is finished");
    assert!(!world.finish_release(id).await, "something is left");
    assert_eq!(world.rewind(id, 3).await, 3);
    assert_eq!(world.rewind(id, 3).await, 1);
    assert_eq!(world.rewind(id, 3).await, 0);
    assert!(world.finish_release(id).await);
    assert!(!world.get(id).await.is_releasing);
    let order: Vec<Uuid> = world
        .claim(What::Due, id, 9, NOW + 9)
        .await
        .iter()
        .map(|one| one.event_id)
        .collect();
    assert_eq!(order, events);
    let others = world.claim(What::Due, other, 9, NOW + 9).await;
    assert_eq!(others.len(), 1, "another endpoint's stay as they were");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_is_not_rewound() {
    let world = World::new().await;
    let (account, id) = (world.account, world.endpoint(&["*"]).await);
    world.event(NOW).await;
    let claimed = world.claim_one(id, NOW).await;
    world.record(vec![ended(&claimed, Next::Failed)]).await;
    let delivery = claimed.delivery_id;
    world
        .write(move |tx| Box::pin(replay(tx, account, delivery, NOW + 9)))
        .await
        .unwrap();
    assert_eq!(world.rewind(id, 9).await, 0);
    assert!(world.finish_release(id).await);
}
