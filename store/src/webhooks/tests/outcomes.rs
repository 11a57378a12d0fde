//! Tests of outcomes of delivery attempts: the next state, lost claims, interruptions, odd answers.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_moves_the_delivery_on() {
    use DeliveryStatus::{Delivered, Failed, Retrying};
    let at = NOW + 5_000;
    let cases = [
        (Next::Delivered, Delivered, 0, NOW, Some(NOW + 50)),
        (Next::RetryAt(at), Retrying, 1, at, None),
        (Next::Wait, Retrying, 0, NOW, None),
        (Next::Failed, Failed, 1, NOW, Some(NOW + 50)),
    ];
    for (next, status, failures, due_at, ended_at) in cases {
        let world = World::new().await;
        let id = world.endpoint(&["*"]).await;
        world.event(NOW).await;
        let claimed = world.claim_one(id, NOW).await;
        assert_eq!(world.record(vec![ended(&claimed, next)]).await, 1);
        let delivery = world.delivery(claimed.delivery_id).await;
        let facts = (
            delivery.status,
            delivery.failures,
            delivery.due_at,
            delivery.ended_at,
        );
        assert_eq!(facts, (status, failures, due_at, ended_at), "{next:?}");
        let is_success = next == Next::Delivered;
        assert_eq!(delivery.delivered_at, ended_at.filter(|_| is_success));
        assert_eq!(
            delivery.http_status,
            Some(if is_success { 200 } else { 503 })
        );
        assert_eq!(delivery.response_preview.as_deref(), Some("an answer"));
        assert_eq!(delivery.error.is_none(), is_success);
        assert_eq!(
            delivery.next_attempt_at(),
            (status == Retrying).then_some(due_at)
        );
        let attempt = world.attempts(delivery.id).await.remove(0);
        let expected = match is_success {
            true => AttemptStatus::Delivered,
            false => AttemptStatus::Failed,
        };
        assert_eq!(
            (attempt.status, attempt.ended_at),
            (expected, Some(NOW + 50))
        );
        assert_eq!(attempt.http_status, delivery.http_status);
        assert_eq!(attempt.error, delivery.error);
        let again = world.record(vec![ended(&claimed, Next::Failed)]).await;
        assert_eq!(again, 0, "an outcome counts once");
        assert_eq!(world.delivery(delivery.id).await, delivery);
    }
}

/// Its attempt was in flight when its endpoint was deleted.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_waits_for_a_deleted_endpoint() {
    use DeliveryStatus::{Delivered, Failed};
    for (next, status) in [
        (Next::Delivered, Delivered),
        (Next::RetryAt(NOW + 5_000), Failed),
        (Next::Wait, Failed),
        (Next::Failed, Failed),
    ] {
        let world = World::new().await;
        let id = world.endpoint(&["*"]).await;
        world.event(NOW).await;
        let claimed = world.claim_one(id, NOW).await;
        world.delete(id).await;
        assert_eq!(world.record(vec![ended(&claimed, next)]).await, 1);
        let delivery = world.deliveries().await.remove(0);
        let facts = (delivery.status, delivery.ended_at);
        assert_eq!(facts, (status, Some(NOW + 50)), "{next:?}");
        assert_eq!(delivery.next_attempt_at(), None);
    }
}

/// Checks that an outcome of a lost claim changes nothing, and that those beside it in the same batch are recorded.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_claim_is_passed_over() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    for _ in 0..2 {
        world.event(NOW).await;
    }
    let claimed = world.claim(What::Due, id, 2, NOW).await;
    let [mine, lost] = &claimed[..] else {
        panic!("{claimed:?}")
    };
    let unknown = Attempted {
        delivery_id: Uuid::now_v7(),
        ..ended(mine, Next::Delivered)
    };
    let old_fence = Attempted {
        fence: lost.fence - 1,
        ..ended(lost, Next::Delivered)
    };
    let batch = vec![unknown, ended(mine, Next::Delivered), old_fence];
    assert_eq!(world.record(batch).await, 1);
    assert_eq!(
        world.delivery(mine.delivery_id).await.status,
        DeliveryStatus::Delivered
    );
    assert_eq!(
        world.delivery(lost.delivery_id).await.status,
        DeliveryStatus::Delivering
    );
    assert_eq!(
        world.attempts(lost.delivery_id).await[0].status,
        AttemptStatus::Running
    );

    let taken_away = world
        .write(|tx| Box::pin(interrupt(tx, None, 10, NOW + 1)))
        .await;
    assert_eq!(taken_away.unwrap(), 1);
    assert_eq!(world.record(vec![ended(lost, Next::Delivered)]).await, 0);
    let again = world.claim_one(id, NOW + 2).await;
    assert_eq!((again.fence, again.number), (lost.fence + 1, 2));
    assert_eq!(world.record(vec![ended(lost, Next::Failed)]).await, 0);
    let states: Vec<_> = world
        .attempts(lost.delivery_id)
        .await
        .into_iter()
        .map(|attempt| attempt.status)
        .collect();
    assert_eq!(states, [AttemptStatus::Interrupted, AttemptStatus::Running]);
    assert_eq!(world.record(vec![ended(&again, Next::Delivered)]).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_attempt_does_not_count_and_is_made_again_at_once() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    for _ in 0..5 {
        world.event(NOW).await;
    }
    let (gone, alive) = (Uuid::now_v7(), Uuid::now_v7());
    let wanted = |rows| {
        vec![ClaimRequest {
            endpoint_id: id,
            rows,
            what: What::Due,
        }]
    };
    let lost = world.claim_as(gone, wanted(3), NOW).await;
    let kept = world.claim_as(alive, wanted(2), NOW).await;
    let turn = async |owner, rows| {
        let turn = world.write(move |tx| Box::pin(interrupt(tx, owner, rows, NOW + 1)));
        turn.await.unwrap()
    };
    assert_eq!(turn(Some(gone), 2).await, 2);
    assert_eq!(turn(Some(gone), 2).await, 1);
    assert_eq!(turn(Some(gone), 2).await, 0);
    for one in &lost {
        let delivery = world.delivery(one.delivery_id).await;
        let facts = (
            delivery.status,
            delivery.attempts,
            delivery.failures,
            delivery.due_at,
        );
        assert_eq!(facts, (DeliveryStatus::Retrying, 1, 0, NOW));
        let attempt = world.attempts(one.delivery_id).await.remove(0);
        assert_eq!(
            (attempt.status, attempt.ended_at),
            (AttemptStatus::Interrupted, Some(NOW + 1))
        );
    }
    let again = world.claim(What::Due, id, 9, NOW).await;
    let events =
        |claimed: &[Claimed]| -> Vec<Uuid> { claimed.iter().map(|one| one.event_id).collect() };
    assert_eq!(events(&again), events(&lost), "in the same order");
    for one in &kept {
        let delivery = world.delivery(one.delivery_id).await;
        assert_eq!(
            delivery.status,
            DeliveryStatus::Delivering,
            "not that owner's"
        );
    }
    assert_eq!(turn(None, 100).await, 5, "other owners' as well");
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_answers_are_kept_as_far_as_they_can_be() {
    let long = "ü".repeat(1_001);
    let cases = [
        ("", "".to_owned()),
        ("a\0b", "a\u{fffd}b".to_owned()),
        (
            "\"'\\ \u{7f} \u{2028} 🐎 null",
            "\"'\\ \u{7f} \u{2028} 🐎 null".to_owned(),
        ),
        (&long, "ü".repeat(1_000)),
    ];
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    let empty = kept_bytes(&mut world.read().await).await.unwrap();
    for (answer, expected) in cases {
        world.event(NOW).await;
        let before = kept_bytes(&mut world.read().await).await.unwrap();
        let claimed = world.claim_one(id, NOW).await;
        let outcome = Attempted {
            response_preview: Some(answer.to_owned()),
            error: None,
            ..ended(&claimed, Next::Delivered)
        };
        assert_eq!(world.record(vec![outcome]).await, 1);
        let delivery = world.delivery(claimed.delivery_id).await;
        assert_eq!(delivery.response_preview.as_deref(), Some(&*expected));
        let after = kept_bytes(&mut world.read().await).await.unwrap();
        assert_eq!(
            after - before,
            64 + expected.len() as u64,
            "an attempt and an answer"
        );
    }
    let all = world.run("DELETE FROM webhook_deliveries; DELETE FROM events");
    all.await.unwrap();
    assert_eq!(kept_bytes(&mut world.read().await).await.unwrap(), empty);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_to_record_is_fine() {
    let world = World::new().await;
    assert_eq!(world.record(Vec::new()).await, 0);
    world
        .write(|tx| Box::pin(async move { set_healths(tx, &[]).await }))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_very_many_attempts_the_last_are_shown() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    world.event(NOW).await;
    let claimed = world.claim_one(id, NOW).await;
    let more = world.run(
        "WITH RECURSIVE n (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM n WHERE n < 1500)
         INSERT INTO webhook_attempts (delivery_seq, number, status, is_probe, started_at)
         SELECT seq, n, 'failed', TRUE, 0 FROM n, webhook_deliveries",
    );
    more.await.unwrap();
    let shown = world.attempts(claimed.delivery_id).await;
    let numbers: Vec<u32> = shown.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, (501..=1_500).collect::<Vec<u32>>());
}
