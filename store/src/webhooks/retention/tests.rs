//! Tests of `webhooks.keep` and `webhooks.keep_bytes`: what is deleted first, what stays, and the indexes of the sweep.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::*;
use crate::{
    events,
    rows::hex,
    statement::query_as,
    webhooks::tests::{NOW, World},
};

const DAY: i64 = 24 * 60 * 60 * 1000;
const KEEP: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const BY_AGE: Retention = Retention {
    keep: KEEP,
    keep_bytes: u64::MAX,
};

/// A store with an account and three endpoints, whose ids are 1, 2 and 3 sixteen times over.
struct Fixture {
    world: World,
}

const ACTIVE: u8 = 1;
const SUSPENDED: u8 = 2;
const PAUSED: u8 = 3;

impl Fixture {
    async fn new() -> Self {
        Self::of(World::new().await).await
    }

    async fn of(world: World) -> Self {
        let fixture = Self { world };
        for (endpoint, status) in [
            (ACTIVE, "active"),
            (SUSPENDED, "suspended"),
            (PAUSED, "paused"),
        ] {
            let id = endpoint_id(endpoint);
            fixture
                .run(format!(
                    "INSERT INTO webhook_endpoints (id, account_id, url, event_types, status, secret, created_at, updated_at)
                     SELECT {id}, id, 'http://a/', '[]', '{status}', 's', 0, 0 FROM accounts"
                ))
                .await;
        }
        fixture
    }

    async fn run(&self, statements: impl Into<String>) {
        self.world.run(statements).await.unwrap();
    }

    /// An event of that type which no delivery names.
    async fn event(&self, event_type: &str, age_days: i64) {
        let (id, created_at) = (new_id(), NOW - age_days * DAY);
        self.run(format!(
            "INSERT INTO events (id, account_id, event_type, is_listed, deliveries, created_at, body)
             SELECT {id}, id, '{event_type}', TRUE, 0, {created_at}, '{{\"type\":\"{event_type}\"}}' FROM accounts"
        ))
        .await;
    }

    /// An event of that type with one delivery, which took two attempts and ended at once if it has.
    async fn delivery(&self, event_type: &str, endpoint: u8, status: &str, age_days: i64) {
        self.event(event_type, age_days).await;
        let ended_at = match status {
            "delivered" | "failed" => "created_at + 1",
            _ => "NULL",
        };
        let owner = match status {
            "delivering" => new_id(),
            _ => "NULL".to_owned(),
        };
        let (id, endpoint_id) = (new_id(), endpoint_id(endpoint));
        self.run(format!(
            "INSERT INTO webhook_deliveries (id, account_id, endpoint_id, event_seq, event_type, status, due_at, created_at,
                 ended_at, lease_owner)
             SELECT {id}, account_id, {endpoint_id}, seq, event_type, '{status}', created_at, created_at, {ended_at}, {owner}
             FROM events ORDER BY seq DESC LIMIT 1;
             UPDATE webhook_deliveries SET error = 'é', response_preview = 'no' WHERE seq = (SELECT max(seq) FROM webhook_deliveries);
             UPDATE events SET deliveries = 1 WHERE seq = (SELECT max(seq) FROM events);
             INSERT INTO webhook_attempts (delivery_seq, number, status, is_probe, started_at)
             SELECT max(seq), column1, 'failed', FALSE, 0 FROM webhook_deliveries, (VALUES (1), (2)) numbers GROUP BY column1;
             UPDATE webhook_attempts SET error = 'é' WHERE number = 1"
        ))
        .await;
    }

    /// Sweeps, and checks that the total of bytes is the sum of the remaining rows.
    async fn sweep(&self, retention: Retention) {
        self.world
            .store
            .sweep_events(&retention, NOW)
            .await
            .unwrap();
        let mut db = self.world.read().await;
        let counted: i64 = query_scalar(
            "SELECT (SELECT coalesce(sum(160 + octet_length(body)), 0) FROM events)
                 + (SELECT coalesce(sum(640 + coalesce(octet_length(response_preview), 0) + coalesce(octet_length(error), 0)), 0)
                    FROM webhook_deliveries)
                 + (SELECT coalesce(sum(64 + coalesce(octet_length(error), 0)), 0) FROM webhook_attempts)",
        )
        .fetch_one(&mut db)
        .await
        .unwrap();
        assert_eq!(kept_bytes(&mut db).await.unwrap(), counted.unsigned_abs());
        let lost: i64 = query_scalar(
            "SELECT count(*) FROM events WHERE deliveries <>
                 (SELECT count(*) FROM webhook_deliveries d WHERE d.event_seq = events.seq)",
        )
        .fetch_one(&mut db)
        .await
        .unwrap();
        assert_eq!(lost, 0, "events count their deliveries");
    }

    async fn bytes(&self) -> u64 {
        kept_bytes(&mut self.world.read().await).await.unwrap()
    }

    async fn texts(&self, statement: &'static str) -> Vec<String> {
        query_scalar(statement)
            .fetch_all(&mut self.world.read().await)
            .await
            .unwrap()
    }

    /// `event:<type>` and `<status>:<type>` of everything that is left.
    async fn left(&self) -> BTreeSet<String> {
        let rows = self.texts(
            "SELECT 'event:' || event_type FROM events UNION ALL SELECT status || ':' || event_type FROM webhook_deliveries",
        );
        rows.await.into_iter().collect()
    }
}

/// Returns the id of an endpoint in SQL.
fn endpoint_id(endpoint: u8) -> String {
    format!("unhex('{}')", hex(Uuid::from_bytes([endpoint; 16])))
}

/// Returns an id in SQL that nothing has.
fn new_id() -> String {
    format!("unhex('{}')", hex(Uuid::new_v4()))
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn what_is_older_than_the_time_goes_unless_it_waits_for_an_endpoint_in_use() {
    let fixture = Fixture::new().await;
    for (event_type, age_days) in [("old", 31), ("young", 29)] {
        fixture.event(event_type, age_days).await;
        for (endpoint, name) in [(ACTIVE, "a"), (SUSPENDED, "s"), (PAUSED, "p")] {
            for status in ["pending", "delivering", "retrying", "delivered", "failed"] {
                let event_type = format!("{event_type}-{name}");
                fixture
                    .delivery(&event_type, endpoint, status, age_days)
                    .await;
            }
        }
    }
    let before = fixture.left().await;
    fixture.sweep(BY_AGE).await;
    let gone: BTreeSet<String> = before.difference(&fixture.left().await).cloned().collect();
    assert_eq!(
        gone,
        set(&[
            "event:old",
            "delivered:old-a",
            "delivered:old-p",
            "delivered:old-s",
            "failed:old-a",
            "failed:old-p",
            "failed:old-s",
            "pending:old-p",
            "pending:old-s",
            "retrying:old-p",
            "retrying:old-s",
        ])
    );
    let events =
        fixture.texts("SELECT event_type FROM events WHERE event_type LIKE 'old%' ORDER BY 1");
    let kept = ["old-a", "old-a", "old-a", "old-p", "old-s"];
    assert_eq!(events.await, kept, "those that a delivery names");
    fixture.sweep(BY_AGE).await;
}

#[tokio::test]
async fn what_was_asked_for_once_more_is_not_dropped() {
    let fixture = Fixture::new().await;
    fixture.delivery("again", PAUSED, "pending", 31).await;
    fixture
        .run("UPDATE webhook_deliveries SET is_replay = TRUE")
        .await;
    for keep_bytes in [u64::MAX, 0] {
        let retention = Retention {
            keep: KEEP,
            keep_bytes,
        };
        fixture.sweep(retention).await;
        assert_eq!(fixture.left().await, set(&["event:again", "pending:again"]));
    }
}

/// Asks for one byte less again and again, and checks what was deleted.
#[tokio::test]
async fn for_its_bytes_the_oldest_of_least_worth_goes_first() {
    let fixture = Fixture::new().await;
    fixture.delivery("s-old", SUSPENDED, "pending", 20).await;
    fixture.delivery("f-old", ACTIVE, "failed", 19).await;
    fixture.event("e-old", 18).await;
    fixture.delivery("d-old", PAUSED, "delivered", 17).await;
    fixture.delivery("p", PAUSED, "retrying", 16).await;
    fixture.event("e-mid", 15).await;
    fixture.delivery("d-new", ACTIVE, "delivered", 14).await;
    fixture.delivery("f-new", SUSPENDED, "failed", 13).await;
    fixture.event("e-new", 12).await;
    fixture.delivery("s-new", SUSPENDED, "retrying", 11).await;
    fixture
        .delivery("in-flight", SUSPENDED, "delivering", 10)
        .await;
    fixture.delivery("in-use", ACTIVE, "pending", 9).await;
    let mut went = Vec::new();
    let mut left = fixture.left().await;
    loop {
        let retention = Retention {
            keep: KEEP,
            keep_bytes: fixture.bytes().await - 1,
        };
        fixture.sweep(retention).await;
        let now = fixture.left().await;
        let gone: Vec<_> = left.difference(&now).cloned().collect();
        if gone.is_empty() {
            break;
        }
        went.push(gone.join(" "));
        left = now;
    }
    assert_eq!(
        went,
        [
            "event:e-old",
            "delivered:d-old event:d-old",
            "event:e-mid",
            "delivered:d-new event:d-new",
            "event:f-old failed:f-old",
            "event:f-new failed:f-new",
            "event:e-new",
            "event:s-old pending:s-old",
            "event:p retrying:p",
            "event:s-new retrying:s-new",
        ]
    );
    let untouched = [
        "delivering:in-flight",
        "event:in-flight",
        "event:in-use",
        "pending:in-use",
    ];
    assert_eq!(left, set(&untouched));
}

/// More than a page of them, of two endpoints, with others between.
#[tokio::test]
async fn as_a_last_resort_what_waits_goes_in_the_order_of_the_events() {
    let fixture = Fixture::new().await;
    let rows = (1..=900).map(|number| format!("({}, '{number:03}')", new_id()));
    let rows = rows.collect::<Vec<_>>().join(", ");
    let [active, suspended, paused] = [ACTIVE, SUSPENDED, PAUSED].map(endpoint_id);
    fixture
        .run(format!(
            "INSERT INTO events (id, account_id, event_type, is_listed, deliveries, created_at, body)
             SELECT column1, accounts.id, column2, TRUE, 1, {NOW}, '{{}}' FROM (VALUES {rows}) made, accounts ORDER BY column2;
             INSERT INTO webhook_deliveries (id, account_id, endpoint_id, event_seq, event_type, status, due_at, created_at)
             SELECT id, account_id, CASE seq % 3 WHEN 0 THEN {active} WHEN 1 THEN {suspended} ELSE {paused} END, seq, event_type,
                 'pending', created_at, created_at FROM events ORDER BY seq"
        ))
        .await;
    let each = fixture.bytes().await / 900;
    let keep_bytes = each * 500;
    let retention = Retention {
        keep: KEEP,
        keep_bytes,
    };
    fixture.sweep(retention).await;
    let bytes = fixture.bytes().await;
    assert!(keep_bytes - each < bytes && bytes <= keep_bytes, "{bytes}");
    // 400 of two endpoints: the first 600 of all three.
    let rest = fixture.texts("SELECT event_type FROM webhook_deliveries WHERE endpoint_id <> unhex('01010101010101010101010101010101') ORDER BY seq LIMIT 1");
    assert_eq!(rest.await, ["601"]);
    let in_use = fixture.texts("SELECT '' || count(*) FROM webhook_deliveries WHERE endpoint_id = unhex('01010101010101010101010101010101')");
    assert_eq!(in_use.await, ["300"]);
}

/// Checks that a turn takes no more attempts than it may of a delivery that was probed for days.
#[tokio::test]
async fn a_turn_counts_attempts_too() {
    let fixture = Fixture::new().await;
    for event_type in ["a", "b"] {
        fixture.delivery(event_type, ACTIVE, "failed", 40).await;
    }
    fixture
        .run(
            "WITH RECURSIVE n (n) AS (SELECT 3 UNION ALL SELECT n + 1 FROM n WHERE n < 20)
             INSERT INTO webhook_attempts (delivery_seq, number, status, is_probe, started_at)
             SELECT seq, n, 'failed', TRUE, 0 FROM webhook_deliveries, n",
        )
        .await;
    let turns = fixture.world.write(|tx| {
        Box::pin(async move {
            let mut turns = Vec::new();
            for _ in 0..5 {
                turns.push(delete_ended(tx, DeliveryStatus::Failed, NOW, 2).await?);
            }
            Ok(turns)
        })
    });
    let turns = turns.await.unwrap();
    assert_eq!((turns[0], turns.iter().sum::<u64>()), (16, 44));
    // The order among the deliveries is the database's; each and its event go with its last attempt.
    assert!(turns.iter().all(|rows| *rows <= 16 + 4), "{turns:?}");
    assert_eq!(turns[3..], [0, 0]);
    fixture.sweep(BY_AGE).await;
    assert_eq!(fixture.bytes().await, 0);
}

#[tokio::test]
async fn the_feed_knows_how_far_it_was_cut() {
    let fixture = Fixture::new().await;
    let dropped = async || {
        let mut db = fixture.world.read().await;
        events::dropped_up_to(&mut db, fixture.world.account)
            .await
            .unwrap()
    };
    for (event_type, age_days) in [("a", 33), ("b", 32), ("test", 31), ("young", 1)] {
        fixture.event(event_type, age_days).await;
    }
    fixture
        .run("UPDATE events SET is_listed = FALSE WHERE event_type = 'test'")
        .await;
    assert_eq!(dropped().await, 0);
    fixture.sweep(BY_AGE).await;
    assert_eq!(fixture.left().await, set(&["event:young"]));
    assert_eq!(
        dropped().await,
        2,
        "what was for one endpoint alone is in no feed"
    );
}

#[tokio::test]
async fn numbers_are_forgotten_when_nothing_continues_counting() {
    let fixture = Fixture::new().await;
    let (kept, gone) = (Uuid::now_v7(), Uuid::now_v7());
    fixture
        .run(format!(
            "INSERT INTO live_inputs (id, account_id, name, input_slug, playback_id, reconnect_window_s, record_mode, latency,
                 stream_key_hash, stream_key_prefix, created_at, updated_at)
             SELECT unhex('{}'), id, 'a', 'a', 'a', 0, 'off', 'low', 'a', 'a', 0, 0 FROM accounts",
            kept.simple()
        ))
        .await;
    for (resource, age_days) in [
        ("job:1".to_owned(), 91),
        ("job:2".to_owned(), 89),
        (format!("live-input:{kept}"), 400),
        (format!("live-input:{gone}"), 91),
        ("live-input:x".to_owned(), 91),
    ] {
        fixture
            .run(format!(
                "INSERT INTO event_sequences (resource, last, updated_at) VALUES ('{resource}', 7, {})",
                NOW - age_days * DAY
            ))
            .await;
    }
    fixture.sweep(BY_AGE).await;
    let left = fixture.texts("SELECT resource FROM event_sequences ORDER BY resource");
    assert_eq!(
        left.await,
        ["job:2".to_owned(), format!("live-input:{kept}")]
    );
}

#[tokio::test]
async fn a_deleted_endpoint_goes_when_no_delivery_names_it() {
    let fixture = Fixture::new().await;
    fixture.delivery("old", ACTIVE, "failed", 31).await;
    fixture.delivery("young", SUSPENDED, "failed", 29).await;
    fixture.delivery("waiting", SUSPENDED, "pending", 1).await;
    fixture
        .delivery("in-flight", SUSPENDED, "delivering", 1)
        .await;
    fixture
        .run("UPDATE webhook_endpoints SET deleted_at = 1 WHERE status <> 'paused'")
        .await;
    fixture.sweep(BY_AGE).await;
    fixture.sweep(BY_AGE).await;
    let statuses = "SELECT status FROM webhook_endpoints ORDER BY id";
    assert_eq!(fixture.texts(statuses).await, ["suspended", "paused"]);
    let rows = fixture.texts(
        "SELECT status || ':' || event_type || ':' || error FROM webhook_deliveries ORDER BY seq",
    );
    assert_eq!(
        rows.await,
        [
            "failed:young:é",
            "failed:waiting:the webhook was deleted",
            "delivering:in-flight:é"
        ]
    );
    fixture
        .run(format!(
            "UPDATE webhook_deliveries SET status = 'failed', lease_owner = NULL, ended_at = {}",
            NOW - 40 * DAY
        ))
        .await;
    fixture.sweep(BY_AGE).await;
    fixture.sweep(BY_AGE).await;
    assert_eq!(fixture.texts(statuses).await, ["paused"]);
}

/// Checks that statements use indexes: one that read every delivery would hold the writer for as long as there are
/// many.
#[tokio::test]
async fn statements_go_by_indexes() {
    let fixture = Fixture::of(World::on_sqlite().await).await;
    for statement in [
        FIRST_END,
        ENDED_BEFORE,
        WAITING_BEFORE,
        WITHOUT_ENDPOINT,
        DELETE_UNNAMED,
    ] {
        let explained = format!("EXPLAIN QUERY PLAN {statement}");
        let plan: Vec<(i64, i64, i64, String)> = query_as(explained)
            .fetch_all(&mut fixture.world.read().await)
            .await
            .unwrap();
        for (_, _, _, step) in plan {
            let is_of_many = step.contains("webhook_deliveries") || step.contains(" events");
            assert!(
                !is_of_many || step.contains(" USING "),
                "{step}: {statement}"
            );
        }
    }
}
