//! Tests of claimed deliveries: their order, due times, probes, lanes and counts.

use super::*;

fn names(claimed: &[Claimed]) -> Vec<Uuid> {
    claimed.iter().map(|claimed| claimed.event_id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_due_goes_by_time_and_then_in_the_order_of_the_events() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    let mut events = Vec::new();
    for created_at in [NOW, NOW, NOW - 5, NOW + 1] {
        events.push(world.event(created_at).await);
    }
    let order =
        |indexes: &[usize]| -> Vec<Uuid> { indexes.iter().map(|i| events[*i].id).collect() };
    assert!(world.claim(What::Due, id, 0, NOW).await.is_empty());
    let first = world.claim(What::Due, id, 2, NOW).await;
    assert_eq!(names(&first), order(&[2, 0]));
    assert_eq!(&*first[0].body, events[2].body);
    let facts: Vec<_> = first
        .iter()
        .map(|one| {
            (
                one.fence,
                one.number,
                one.failures,
                one.is_replay,
                one.is_probe,
            )
        })
        .collect();
    assert_eq!(facts, [(1, 1, 0, false, false); 2]);
    assert_eq!(
        names(&world.claim(What::Due, id, 9, NOW).await),
        order(&[1])
    );
    assert!(world.claim(What::Due, id, 9, NOW).await.is_empty());
    assert_eq!(
        names(&world.claim(What::Due, id, 9, NOW + 1).await),
        order(&[3])
    );
    let attempts = world.attempts(first[0].delivery_id).await;
    assert_eq!(attempts.len(), 1);
    assert_eq!(
        (
            attempts[0].number,
            attempts[0].status,
            attempts[0].started_at
        ),
        (1, AttemptStatus::Running, NOW)
    );
    let delivery = world.delivery(first[0].delivery_id).await;
    assert_eq!(delivery.status, DeliveryStatus::Delivering);
    assert_eq!(
        (
            delivery.attempts,
            delivery.last_attempt_at,
            delivery.next_attempt_at()
        ),
        (1, Some(NOW), None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_endpoint_gets_as_many_as_it_may() {
    let world = World::new().await;
    let mut endpoints = Vec::new();
    for _ in 0..4 {
        endpoints.push(world.endpoint(&["*"]).await);
    }
    for _ in 0..5 {
        world.event(NOW).await;
    }
    let wanted = |rows: [u32; 4]| -> Vec<ClaimRequest> {
        let each = endpoints.iter().zip(rows);
        each.map(|(endpoint_id, rows)| ClaimRequest {
            endpoint_id: *endpoint_id,
            rows,
            what: What::Due,
        })
        .collect()
    };
    for (rows, expected) in [
        ([4, 1, 0, 4], [4, 1, 0, 4]),
        ([4, 1, 4, 4], [1, 1, 4, 1]),
        ([0, 9, 9, 0], [0, 3, 1, 0]),
    ] {
        let claimed = world.claim_as(Uuid::now_v7(), wanted(rows), NOW).await;
        let counts: Vec<usize> = endpoints
            .iter()
            .map(|id| claimed.iter().filter(|one| one.endpoint_id == *id).count())
            .collect();
        assert_eq!(counts, expected, "{rows:?}");
    }
}

/// The states of an endpoint and what can be claimed of one delivery that waits and one that is replayed.
#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_the_endpoint_says_what_is_claimed() {
    let cases = [
        (EndpointStatus::Active, [1, 0, 1]),
        (EndpointStatus::Suspended, [0, 1, 1]),
        (EndpointStatus::Paused, [0, 0, 1]),
    ];
    for (status, expected) in cases {
        for (what, expected) in [What::Due, What::Probe, What::Replay]
            .into_iter()
            .zip(expected)
        {
            let world = World::new().await;
            let (account, id) = (world.account, world.endpoint(&["*"]).await);
            world.event(NOW).await;
            let replayed = world
                .write(move |tx| Box::pin(test(tx, account, id, NOW)))
                .await
                .unwrap();
            match status {
                EndpointStatus::Active => {}
                EndpointStatus::Suspended => drop(world.suspend(id).await),
                EndpointStatus::Paused => drop(world.switch(id, false).await),
            }
            let claimed = world.claim(what, id, 4, NOW).await;
            assert_eq!(claimed.len(), expected, "{status:?} {what:?}");
            for one in claimed {
                assert_eq!(one.is_replay, what == What::Replay);
                assert_eq!(one.delivery_id == replayed.id, what == What::Replay);
                assert_eq!(one.is_probe, what == What::Probe);
                let attempts = world.attempts(one.delivery_id).await;
                assert_eq!(attempts[0].is_probe, what == What::Probe);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_is_the_oldest_event_that_waits_even_when_it_is_not_due() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    let first = world.event(NOW).await;
    let claimed = world.claim_one(id, NOW).await;
    world.event(NOW).await;
    world
        .record(vec![ended(&claimed, Next::RetryAt(NOW + 60_000))])
        .await;
    world.suspend(id).await;
    let probe = world.claim(What::Probe, id, 1, NOW + 1).await;
    assert_eq!(names(&probe), [first.id]);
    assert_eq!((probe[0].number, probe[0].failures), (2, 1));
}

/// Checks that a clock that was an hour ahead, and is corrected, delays nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_due_time_beyond_the_horizon_is_due_after_the_others() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    let far = world.event(HORIZON + 1).await;
    world.event(HORIZON).await;
    let near = world.event(NOW).await;
    let claimed = world.claim(What::Due, id, 4, NOW).await;
    let mut found = names(&claimed);
    found.sort();
    let mut expected = vec![near.id, far.id];
    expected.sort();
    assert_eq!(found, expected);
    let far = world.event(HORIZON + 1).await;
    let near = world.event(NOW).await;
    assert_eq!(names(&world.claim(What::Due, id, 1, NOW).await), [near.id]);
    assert_eq!(names(&world.claim(What::Due, id, 1, NOW).await), [far.id]);
}

/// Checks deliveries from a process whose clock was ahead: for the next one none is in the future, and a nearer retry
/// hides none.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_makes_due_what_only_a_clock_that_was_ahead_put_off() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    let ahead = NOW + 1_800_000;
    let mut events = Vec::new();
    for created_at in [NOW, NOW, NOW, ahead, HORIZON + 1] {
        events.push(world.event(created_at).await);
    }
    let claimed = world.claim(What::Due, id, 3, NOW).await;
    assert_eq!(claimed.len(), 3);
    let change = |index: usize, values: &str| {
        let row = claimed[index].delivery_id.simple();
        world.run(format!(
            "UPDATE webhook_deliveries SET status = 'retrying', lease_owner = NULL, lease_expires_at = NULL, {values}
             WHERE id = unhex('{row}')"
        ))
    };
    // A retry of now, one that was planned while the clock was ahead, and an attempt that was cut short then.
    let retry = format!("failures = 1, due_at = {}", NOW + 5_000);
    change(0, &retry).await.unwrap();
    let planned = format!(
        "failures = 1, last_attempt_at = {ahead}, due_at = {}",
        ahead + 5_000
    );
    change(1, &planned).await.unwrap();
    change(2, &format!("due_at = {ahead}")).await.unwrap();
    let mend = async |rows| {
        world
            .write(move |tx| Box::pin(mend_due_times(tx, rows, HORIZON, NOW)))
            .await
            .unwrap()
    };
    assert_eq!((mend(3).await, mend(3).await, mend(3).await), (3, 1, 0));
    let mut found = names(&world.claim(What::Due, id, 9, NOW).await);
    found.sort();
    let mut expected: Vec<Uuid> = events[1..].iter().map(|event| event.id).collect();
    let retried = claimed.iter().map(|one| one.event_id).next().unwrap();
    if retried != events[0].id {
        expected.retain(|id| *id != retried);
        expected.push(events[0].id);
    }
    expected.sort();
    assert_eq!(found, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_name_the_endpoints_that_have_something_to_do() {
    let world = World::new().await;
    let (account, idle) = (world.account, world.endpoint(&["conversion.failed"]).await);
    let waiting = world.endpoint(&["*"]).await;
    let find = async |also: &[Uuid]| lanes(&mut world.read().await, also).await.unwrap();
    assert_eq!(find(&[]).await, []);
    world.event(NOW + 3).await;
    world.event(NOW + 2).await;
    let lane = find(&[]).await;
    assert_eq!(lane.len(), 1);
    assert_eq!(lane[0].endpoint, world.get(waiting).await);
    assert_eq!(
        (lane[0].next_due_at, lane[0].replay_due_at),
        (Some(NOW + 2), None)
    );
    world
        .write(move |tx| Box::pin(test(tx, account, idle, NOW)))
        .await
        .unwrap();
    let lane = find(&[]).await;
    let other = lane.iter().find(|lane| lane.endpoint.id == idle).unwrap();
    assert_eq!((other.next_due_at, other.replay_due_at), (None, Some(NOW)));
    world.claim(What::Replay, idle, 1, NOW).await;
    let ids =
        |lanes: Vec<Lane>| -> Vec<Uuid> { lanes.iter().map(|lane| lane.endpoint.id).collect() };
    assert_eq!(ids(find(&[]).await), [waiting]);
    let mut both = ids(find(&[idle, idle, waiting]).await);
    both.sort();
    assert_eq!(both, [idle, waiting], "asked for, each once");
    world.switch(idle, false).await;
    world.switch(idle, true).await;
    assert_eq!(find(&[]).await.len(), 2, "its release is not finished");
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_include_what_is_open() {
    let world = World::new().await;
    let id = world.endpoint(&["*"]).await;
    let other = world.endpoint(&["file.uploaded"]).await;
    for at in [NOW, NOW + 1, NOW + 2] {
        world.event(at).await;
    }
    let retrying = world.claim_one(id, NOW).await;
    world
        .record(vec![ended(&retrying, Next::RetryAt(NOW + 9))])
        .await;
    let failed = world.claim_one(id, NOW + 1).await;
    world.record(vec![ended(&failed, Next::Failed)]).await;
    world.claim_one(id, NOW + 2).await;
    world.suspend(other).await;
    let expected = Counts {
        pending: 3,
        delivering: 1,
        retrying: 1,
        suspended_endpoints: 1,
        paused_endpoints: 0,
        held: 3,
        oldest_due_at: Some(NOW + 9),
    };
    assert_eq!(counts(&mut world.read().await).await.unwrap(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_of_which_another_node_holds_a_delivery_is_not_claimable() {
    let world = World::new().await;
    let mut endpoints = [world.endpoint(&["*"]).await, world.endpoint(&["*"]).await];
    endpoints.sort_unstable();
    world.event(NOW).await;
    let (own, other) = (Uuid::now_v7(), Uuid::now_v7());
    let wanted = |endpoint_id| ClaimRequest {
        endpoint_id,
        rows: 1,
        what: What::Due,
    };
    let find = async |owner: Uuid| {
        let found =
            world.write(move |tx| Box::pin(async move { claimable(tx, owner, &endpoints).await }));
        let mut found = found.await.unwrap();
        found.sort_unstable();
        found
    };
    assert_eq!(find(own).await, endpoints);
    world.claim_as(own, vec![wanted(endpoints[0])], NOW).await;
    let claimed = world.claim_as(other, vec![wanted(endpoints[1])], NOW).await;
    assert_eq!(find(own).await, endpoints[..1]);
    assert_eq!(find(other).await, endpoints[1..]);
    let held = held_elsewhere(&mut world.read().await, own).await.unwrap();
    assert_eq!(held, endpoints[1..]);
    world
        .record(vec![ended(&claimed[0], Next::Delivered)])
        .await;
    assert_eq!(find(own).await, endpoints);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_unknown_owner_holds_is_free_once_its_lease_is_over() {
    let world = World::new().await;
    let endpoint = world.endpoint(&["*"]).await;
    for _ in 0..2 {
        world.event(NOW).await;
    }
    let live = Uuid::now_v7();
    let wanted = ClaimRequest {
        endpoint_id: endpoint,
        rows: 1,
        what: What::Due,
    };
    world.claim_as(live, vec![wanted], NOW).await;
    let lost = world.claim_one(endpoint, NOW).await;
    let free = async |now_ms: i64| {
        let freed = world.write(move |tx| {
            Box::pin(async move { interrupt_expired(tx, &[live], 9, now_ms).await })
        });
        freed.await.unwrap()
    };
    let over = NOW + 30_000;
    assert_eq!(free(over - 1).await, 0);
    assert_eq!(free(over).await, 1);
    let delivery = world.delivery(lost.delivery_id).await;
    assert_eq!(delivery.status, DeliveryStatus::Retrying);
    let attempts = world.attempts(lost.delivery_id).await;
    assert_eq!(attempts[0].status, AttemptStatus::Interrupted);
    assert_eq!(free(over).await, 0, "the other one's owner lives");
}
