//! Speed of deliveries in the database: `cargo test -p sluice-store --release measure -- --ignored --nocapture`.

#![allow(clippy::print_stdout, reason = "a measurement prints what it found")]

use std::{collections::BTreeMap, time::Instant};

use super::*;

const ENDPOINTS: usize = 100;
const EVENTS: usize = 500;
const IN_FLIGHT: usize = 512;

impl World {
    async fn endpoints(&self, count: usize) -> Vec<Uuid> {
        let account = self.account;
        self.write(move |tx| {
            Box::pin(async move {
                let mut endpoints = Vec::new();
                for _ in 0..count {
                    let new = new_endpoint(&["*"]);
                    endpoints.push(create(tx, account, new, count, NOW).await?.0.id);
                }
                Ok(endpoints)
            })
        })
        .await
        .unwrap()
    }
}

fn four_of_each(endpoints: &[Uuid]) -> Vec<ClaimRequest> {
    let wanted = |endpoint_id: &Uuid| ClaimRequest {
        endpoint_id: *endpoint_id,
        rows: 4,
        what: What::Due,
    };
    endpoints.iter().map(wanted).collect()
}

/// Turns as the actor makes them: record all, write the healths, claim four of each endpoint.
async fn turn(
    world: &World,
    owner: Uuid,
    outcomes: Vec<Attempted>,
    lanes: &[Lane],
) -> Vec<Claimed> {
    let endpoints: Vec<Uuid> = lanes
        .iter()
        .map(|lane| lane.endpoint.id)
        .take(IN_FLIGHT / 4)
        .collect();
    let healths: Vec<_> = lanes
        .iter()
        .map(|lane| (lane.endpoint.id, lane.endpoint.health()))
        .collect();
    world
        .write(move |tx| {
            Box::pin(async move {
                record(tx, &outcomes).await?;
                set_healths(tx, &healths).await?;
                claim(tx, owner, &four_of_each(&endpoints), LEASE, HORIZON, NOW).await
            })
        })
        .await
        .unwrap()
}

/// Each event is followed by the turns that deliver it, as while receivers keep up; with clients that follow changes, for
/// whom the writer records each changed row.
#[ignore = "a measurement"]
#[tokio::test(flavor = "multi_thread")]
async fn measure_a_stream() {
    for followers in [0, 1, 0, 1] {
        measure_followed(followers).await;
    }
}

async fn measure_followed(followers: usize) {
    let world = World::new().await;
    let followed = (0..followers).map(|_| world.store.changes().follow(world.account));
    let _followed: Vec<_> = followed.collect();
    world.endpoints(ENDPOINTS).await;
    let owner = Uuid::now_v7();
    let (mut outcomes, mut delivered) = (Vec::new(), 0);
    let mut spent: BTreeMap<&str, Duration> = BTreeMap::new();
    for _ in 0..EVENTS {
        let begun = Instant::now();
        world.event(NOW).await;
        *spent.entry("event").or_default() += begun.elapsed();
        let begun = Instant::now();
        let lanes = lanes(&mut world.read().await, &[]).await.unwrap();
        *spent.entry("lanes").or_default() += begun.elapsed();
        let begun = Instant::now();
        delivered += outcomes.len();
        let claimed = turn(&world, owner, std::mem::take(&mut outcomes), &lanes).await;
        *spent.entry("turn").or_default() += begun.elapsed();
        outcomes = claimed
            .iter()
            .map(|one| ended(one, Next::Delivered))
            .collect();
    }
    let took: Duration = spent.values().sum();
    let rate = f64::from(u32::try_from(delivered).unwrap()) / took.as_secs_f64();
    println!(
        "{followers} followers, {EVENTS} events to {ENDPOINTS} endpoints each: {delivered} delivered in {took:?}, {rate:.0} a second, {spent:?}"
    );
}

#[ignore = "a measurement"]
#[tokio::test(flavor = "multi_thread")]
async fn measure_a_backlog() {
    for (endpoints, events) in [(1_000, 100), (10, 10_000)] {
        let world = World::new().await;
        let account = world.account;
        let ids = world.endpoints(endpoints).await;
        world
            .write(move |tx| {
                Box::pin(async move {
                    for _ in 0..events {
                        events::append(tx, file_uploaded(account), NOW).await?;
                    }
                    Ok(())
                })
            })
            .await
            .unwrap();
        let spent = async |what: &str, begun: Instant| {
            println!(
                "{endpoints} endpoints, {events} events: {what} {:?}",
                begun.elapsed()
            )
        };
        for _ in 0..3 {
            let begun = Instant::now();
            let found = lanes(&mut world.read().await, &[]).await.unwrap();
            assert_eq!(found.len(), endpoints);
            spent("lanes", begun).await;
        }
        let begun = Instant::now();
        let claimed = world
            .claim_as(
                Uuid::now_v7(),
                four_of_each(&ids[..endpoints.min(128)]),
                NOW,
            )
            .await;
        spent(&format!("claim of {}", claimed.len()), begun).await;
        let outcomes = claimed
            .iter()
            .map(|one| ended(one, Next::RetryAt(NOW + 5_000)))
            .collect();
        let begun = Instant::now();
        world.record(outcomes).await;
        spent("record", begun).await;
        let begun = Instant::now();
        counts(&mut world.read().await).await.unwrap();
        spent("counts", begun).await;
        let begun = Instant::now();
        let (filter, page) = (DeliveryFilter::default(), crate::Page::first(100));
        let listed = deliveries(&mut world.read().await, account, &filter, page).await;
        assert_eq!(listed.unwrap().len(), 100);
        spent("a page of 100", begun).await;
    }
}
