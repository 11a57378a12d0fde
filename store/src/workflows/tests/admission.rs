//! Tests of which runs are worked on, and which wait.

use super::*;
use crate::{webhooks::tests::add_account, workflows::admission};

impl Bench {
    /// The runs that are admitted, by number.
    async fn admitted(&self) -> Vec<i64> {
        let runs = list_runs(
            &mut self.world.read().await,
            self.account,
            self.workflow,
            100,
        )
        .await;
        let mut numbers: Vec<i64> = runs
            .unwrap()
            .iter()
            .filter(|run| run.is_admitted)
            .map(|run| run.number)
            .collect();
        numbers.sort_unstable();
        let in_work = self.number("SELECT count(*) FROM work WHERE kind = 'run'");
        assert_eq!(in_work.await, numbers.len() as i64, "each has its row");
        numbers
    }

    async fn counts(&self) -> RunCounts {
        count_by_status(&mut self.world.read().await).await.unwrap()
    }
}

#[tokio::test]
async fn what_cannot_be_made_changes_nothing() {
    let bench = Bench::new().await;
    let other = add_account(&bench.world.store).await;
    type Change = fn(&mut NewRun, &mut RunLimits, Uuid);
    let cases: [(&str, Change); 5] = [
        ("paused", |_, _, _| {}),
        ("unknown", |new, _, _| new.workflow_id = Uuid::now_v7()),
        ("foreign", |new, _, other| new.account_id = other),
        ("used up", |new, _, _| new.allowance.operations = 1),
        ("full", |_, limits, _| {
            limits.max_active = 1;
            limits.max_queued = 0;
        }),
    ];
    bench.run(0).await;
    for (name, change) in cases {
        bench.set_active(name != "paused").await;
        let (mut new, mut limits) = (bench.new_run(), LIMITS);
        change(&mut new, &mut limits, other);
        let outcome = bench.submit_within(limits, new, NOW).await;
        let is_rejected = match name {
            "paused" => matches!(outcome, Ok(Submitted::Paused)),
            "used up" => matches!(outcome, Ok(Submitted::UsedUp { used: 1 })),
            "full" => matches!(outcome, Ok(Submitted::Full)),
            _ => matches!(outcome, Err(Error::NotFound("workflow"))),
        };
        assert!(is_rejected, "{name}: {outcome:?}");
        let facts = (
            bench.used().await,
            bench.number("SELECT count(*) FROM workflow_runs").await,
            bench
                .number("SELECT CAST(sum(run_count) AS BIGINT) FROM workflows")
                .await,
            bench.number("SELECT count(*) FROM work").await,
        );
        assert_eq!(facts, (1, 1, 1, 1), "{name}");
    }
}

#[tokio::test]
async fn runs_are_numbered_and_the_workflow_knows_its_last() {
    let bench = Bench::new().await;
    let runs = [bench.run(1).await, bench.run(2).await, bench.run(3).await];
    assert_eq!(
        runs.map(|run| (run.number, run.is_admitted)),
        [(1, true), (2, true), (3, false)]
    );
    let workflow = get(&mut bench.world.read().await, bench.account, bench.workflow)
        .await
        .unwrap();
    assert_eq!(
        (workflow.run_count, workflow.last_run_at),
        (3, Some(NOW + 3))
    );
    let counts = RunCounts {
        waiting: 1,
        queued: 2,
        processing: 0,
    };
    assert_eq!(bench.counts().await, counts);
}

#[tokio::test]
async fn the_recorded_upload_is_kept_by_the_run() {
    let bench = Bench::new().await;
    let upload = sealed(&bench.world, b"an upload").await;
    let mut new = bench.new_run();
    new.input.blob = upload.blob().hash;
    let hash = new.input.blob;
    bench
        .write(move |tx| {
            Box::pin(async move { submit(tx, &new, LIMITS, Some(&upload), NOW).await })
        })
        .await
        .unwrap();
    let day = 24 * 60 * 60 * 1000;
    for days in 1..4 {
        bench.world.store.sweep(NOW + days * day).await.unwrap();
    }
    assert!(bench.world.store.blobs().open(&hash).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_that_end_at_once_let_two_in() {
    let bench = Bench::new().await;
    for n in 0..6 {
        bench.run(n).await;
    }
    let leases = bench.claim().await.leases;
    assert_eq!(bench.admitted().await, [1, 2]);
    let (first, second) = tokio::join!(
        bench.complete(&leases[0], Completion::default()),
        bench.fail(&leases[1], Vec::new()),
    );
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(bench.admitted().await, [3, 4]);
    let counts = RunCounts {
        waiting: 2,
        queued: 2,
        processing: 0,
    };
    assert_eq!(bench.counts().await, counts);
}

#[tokio::test]
async fn who_is_waited_for_goes_first_then_who_came_first() {
    let bench = Bench::new().await;
    bench.run(0).await;
    bench.run(0).await;
    // Made in this order.
    for (lane, after) in [(Lane::Batch, 5), (Lane::Batch, 1), (Lane::Interactive, 9)] {
        let new = NewRun {
            lane,
            ..bench.new_run()
        };
        bench.submit(new, NOW + after).await.unwrap();
    }
    for (cancelled, admitted) in [(1, [2, 5]), (2, [4, 5]), (5, [3, 4])] {
        let id = run_numbered(&bench, cancelled).await;
        bench.cancel(id).await.unwrap();
        assert_eq!(bench.admitted().await, admitted);
    }
}

async fn run_numbered(bench: &Bench, number: i64) -> Uuid {
    let runs = list_runs(
        &mut bench.world.read().await,
        bench.account,
        bench.workflow,
        9,
    )
    .await;
    let runs = runs.unwrap();
    runs.iter().find(|run| run.number == number).unwrap().id
}

#[tokio::test]
async fn cancelling_a_run_that_waits_admits_no_other() {
    let bench = Bench::new().await;
    for n in 0..3 {
        bench.run(n).await;
    }
    let waiting = run_numbered(&bench, 3).await;
    bench.run(4).await;
    let cancelled = bench.cancel(waiting).await.unwrap();
    assert_eq!(cancelled.status, RunStatus::Cancelled);
    assert_eq!(bench.admitted().await, [1, 2]);
    assert_eq!(bench.used().await, 3);
    let again = bench.cancel(waiting).await;
    assert!(matches!(again, Err(Error::Conflict(_))));
    assert_eq!(bench.used().await, 3, "given back once");
}

#[tokio::test]
async fn a_raised_bound_is_filled_by_the_sweep() {
    let bench = Bench::new().await;
    for n in 0..7 {
        bench.run(n).await;
    }
    for (max_active, admitted) in [(1, 2), (2, 2), (5, 5), (5, 5), (100, 7)] {
        let store = &bench.world.store;
        admission::refill(store, max_active, NOW).await.unwrap();
        assert_eq!(bench.admitted().await.len(), admitted, "{max_active}");
    }
    let first_lease = bench.claim().await.leases.len();
    assert_eq!(first_lease, 7);
}

#[tokio::test]
async fn a_lowered_bound_admits_no_run_until_it_is_kept() {
    let bench = Bench::new().await;
    for n in 0..4 {
        bench.run(n).await;
    }
    let leases = bench.claim().await.leases;
    let terms = EndingTerms {
        max_active: 1,
        ..TERMS
    };
    for (lease, admitted) in leases.into_iter().zip([vec![2], vec![3]]) {
        bench
            .write(move |tx| {
                Box::pin(
                    async move { complete(tx, &lease, Completion::default(), terms, NOW).await },
                )
            })
            .await
            .unwrap();
        assert_eq!(bench.admitted().await, admitted);
    }
}
