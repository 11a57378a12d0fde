//! Tests of lists of deliveries: filters, pages, and query plans.

use super::*;
use crate::{Listed, Page, statement::Builder};

/// Every combination of filters over deliveries of two types, two endpoints and all states.
#[tokio::test(flavor = "multi_thread")]
async fn filters_combine_and_pages_join() {
    let world = World::new().await;
    let endpoints = [
        world
            .endpoint(&["file.uploaded", "conversion.failed"])
            .await,
        world
            .endpoint(&["file.uploaded", "conversion.failed"])
            .await,
    ];
    for n in 0..8 {
        let event_type = ["file.uploaded", "conversion.failed"][n % 2];
        let new = NewEvent {
            event_type,
            ..file_uploaded(world.account)
        };
        world.append(new, NOW + n as i64 / 3).await.unwrap();
    }
    for endpoint in endpoints {
        let claimed = world.claim(What::Due, endpoint, 6, NOW + 9).await;
        let nexts = [
            Next::Delivered,
            Next::Failed,
            Next::RetryAt(NOW),
            Next::Delivered,
        ];
        let outcomes = claimed.iter().zip(nexts);
        let outcomes = outcomes.map(|(one, next)| ended(one, next)).collect();
        world.record(outcomes).await;
    }
    // A second status of the class of the failed ones.
    world
        .run("UPDATE webhook_deliveries SET http_status = 500 WHERE status = 'failed' AND seq % 2 = 0")
        .await
        .unwrap();
    let mut all = world.deliveries().await;
    all.reverse();
    assert_eq!(all.len(), 16);
    let event_id = all[5].event_id;
    assert!(all.is_sorted_by_key(|one| std::cmp::Reverse((one.created_at, one.id))));
    let plain = filters(endpoints[0]);
    let of_event = with(&plain, |filter| filter.event_id = Some(event_id));
    let by_answer = [(503, 504), (500, 600), (200, 300), (400, 500)]
        .map(|codes| with(&plain, |filter| filter.http_status = Some(codes)));
    let both = with(&of_event, |filter| filter.http_status = Some((200, 600)));
    let mut filters: Vec<DeliveryFilter> = [plain, of_event, both].concat();
    filters.extend(by_answer.concat());
    let timed = with(&filters, |filter| {
        (filter.since, filter.until) = (Some(NOW + 1), Some(NOW + 2));
    });
    filters.extend(timed);
    for filter in &filters {
        let expected: Vec<&Delivery> = all
            .iter()
            .filter(|one| filter.status.is_none_or(|status| one.status == status))
            .filter(|one| {
                filter
                    .event_type
                    .as_ref()
                    .is_none_or(|name| one.event_type == *name)
            })
            .filter(|one| filter.endpoint_id.is_none_or(|id| one.endpoint_id == id))
            .filter(|one| filter.event_id.is_none_or(|id| one.event_id == id))
            .filter(|one| filter.since.is_none_or(|since| one.created_at >= since))
            .filter(|one| filter.until.is_none_or(|until| one.created_at < until))
            .filter(|one| {
                let codes = filter.http_status.map(|(from, to)| from..to);
                codes.is_none_or(|codes| one.http_status.is_some_and(|it| codes.contains(&it)))
            })
            .collect();
        let mut found: Vec<Delivery> = Vec::new();
        loop {
            let page = Page {
                limit: 3,
                after: found.last().map(Listed::cursor),
            };
            let mut db = world.read().await;
            let rows = deliveries(&mut db, world.account, filter, page)
                .await
                .unwrap();
            let is_last = rows.len() < 3;
            found.extend(rows);
            if is_last {
                break;
            }
        }
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{filter:?}");
    }
    let other = add_account(&world.store).await;
    for filter in &filters {
        let foreign = deliveries(&mut world.read().await, other, filter, Page::first(9)).await;
        assert!(foreign.unwrap().is_empty(), "{filter:?}");
    }
}

fn filters(endpoint: Uuid) -> Vec<DeliveryFilter> {
    let statuses = DeliveryStatus::ALL.into_iter().map(Some).chain([None]);
    let mut filters = Vec::new();
    for status in statuses {
        for event_type in [None, Some("file.uploaded".to_owned())] {
            for endpoint_id in [None, Some(endpoint)] {
                filters.push(DeliveryFilter {
                    status,
                    event_type: event_type.clone(),
                    endpoint_id,
                    ..DeliveryFilter::default()
                });
            }
        }
    }
    filters
}

/// The filters, each with one more condition.
fn with(filters: &[DeliveryFilter], change: impl Fn(&mut DeliveryFilter)) -> Vec<DeliveryFilter> {
    let mut filters = filters.to_vec();
    filters.iter_mut().for_each(change);
    filters
}

/// Returns SQLite's query plan of a statement, a line for each step.
async fn plan(world: &World, statement: String) -> Vec<String> {
    plan_of(
        world,
        Builder::new(format!("EXPLAIN QUERY PLAN {statement}")),
    )
    .await
}

async fn plan_of(world: &World, mut statement: Builder) -> Vec<String> {
    world
        .write(move |tx| {
            Box::pin(async move {
                let steps: Vec<(i64, i64, i64, String)> =
                    statement.build_query_as().fetch_all(tx).await?;
                Ok(steps.into_iter().map(|(_, _, _, step)| step).collect())
            })
        })
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_list_goes_along_an_index() {
    let world = World::on_sqlite().await;
    for filter in filters(Uuid::nil()) {
        let index = match &filter {
            DeliveryFilter {
                endpoint_id: Some(_),
                status: None | Some(DeliveryStatus::Delivered),
                ..
            } => "webhook_deliveries_by_endpoint (",
            DeliveryFilter {
                endpoint_id: Some(_),
                ..
            } => "webhook_deliveries_by_endpoint_and_status (",
            DeliveryFilter {
                status: Some(_), ..
            } => "webhook_deliveries_by_status (",
            DeliveryFilter {
                event_type: Some(_),
                ..
            } => "webhook_deliveries_by_type (",
            _ => "webhook_deliveries_by_account (",
        };
        let list = deliveries::listing("EXPLAIN QUERY PLAN ", Uuid::nil(), &filter, Page::first(9));
        let steps = plan_of(&world, list).await;
        assert!(
            steps[0].contains(&format!("SEARCH d USING INDEX {index}")),
            "{filter:?}: {steps:#?}"
        );
        assert_eq!(steps.len(), 3, "no sorting: {filter:?}: {steps:#?}");
        let timed = DeliveryFilter {
            since: Some(NOW),
            until: Some(NOW + 1),
            ..filter
        };
        let list = deliveries::listing("EXPLAIN QUERY PLAN ", Uuid::nil(), &timed, Page::first(9));
        let steps = plan_of(&world, list).await;
        assert!(steps[0].contains("created_at>?"), "{timed:?}: {steps:#?}");
        assert_eq!(steps.len(), 3, "no sorting: {timed:?}: {steps:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_an_event_and_by_answer_seek() {
    let world = World::on_sqlite().await;
    for filter in filters(Uuid::nil()) {
        let of_event = DeliveryFilter {
            event_id: Some(Uuid::nil()),
            ..filter.clone()
        };
        let by_answer = DeliveryFilter {
            http_status: Some((500, 600)),
            since: Some(NOW),
            ..filter
        };
        for filter in [of_event, by_answer] {
            let list =
                deliveries::listing("EXPLAIN QUERY PLAN ", Uuid::nil(), &filter, Page::first(9));
            let steps = plan_of(&world, list).await;
            let of_rows = steps.iter().filter(|step| {
                step.contains("webhook_") || step.contains("events") || step.contains(" d ")
            });
            for step in of_rows {
                assert!(step.starts_with("SEARCH"), "{filter:?}: {steps:#?}");
            }
            let is_along = |index: &str| steps.iter().any(|step| step.contains(index));
            match filter.event_id {
                Some(_) => {
                    assert!(is_along("events_by_id ("), "{steps:#?}");
                    assert!(is_along("(event_seq=?"), "{steps:#?}");
                }
                None => assert!(
                    is_along("webhook_deliveries_by_http_status (account_id=? AND http_status=?"),
                    "{steps:#?}"
                ),
            }
        }
    }
}

/// Checks that the statements of every turn seek; none walks over deliveries or events that it does not need.
#[tokio::test(flavor = "multi_thread")]
async fn no_turn_scans_a_table() {
    let world = World::on_sqlite().await;
    let mut statements = vec![turns::LANES.to_owned()];
    statements.extend([What::Due, What::Probe, What::Replay].map(turns::taking));
    statements.extend(attempts::recording());
    let others = [
        health::SET_HEALTHS,
        health::REWIND,
        replay::RECOVER,
        replay::OLDEST_WAITING,
        counts::WAITING,
        subscriptions::AUDIENCE,
    ];
    statements.extend(others.map(str::to_owned));
    for statement in statements {
        let steps = plan(&world, statement.clone()).await;
        for step in &steps {
            let is_scan = step.starts_with("SCAN");
            let is_of_rows = ["webhook_", "events"]
                .iter()
                .any(|table| step.contains(table));
            let is_min = step.contains("webhook_endpoints_releasing");
            assert!(!is_scan || !is_of_rows || is_min, "{statement}\n{steps:#?}");
        }
    }
}
