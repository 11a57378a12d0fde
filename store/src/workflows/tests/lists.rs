//! Runs of all workflows: order by duration, and the cost of a page of 100 000 runs:
//! `cargo test --release -p sluice-store measure_run_list -- --ignored --nocapture`.

#![allow(clippy::print_stdout, reason = "a measurement prints what it found")]

use std::time::Instant;

use super::{
    super::{
        run_list::{self, RunFilter, RunOrder, RunSlice},
        run_statistics,
    },
    *,
};
use crate::{Direction, Sorted as _, statement::query};

fn slice(order: RunOrder, limit: u32) -> RunSlice {
    RunSlice {
        order,
        direction: Direction::Descending,
        limit,
        after: None,
    }
}

impl Bench {
    async fn list(&self, filter: &RunFilter, slice: &RunSlice) -> Vec<Run> {
        run_list::list(&mut self.world.read().await, self.account, filter, slice)
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn the_slowest_runs_come_first_and_pages_meet() {
    let bench = Bench::new().await;
    for after in 0..5 {
        bench.run(after).await;
    }
    // Two have not ended; the others took 0 to 2 ms.
    bench
        .write(|tx| {
            Box::pin(async move {
                query(
                    "UPDATE workflow_runs SET status = 'completed', is_admitted = FALSE, started_at = $1,
                         completed_at = $1 + number - 1 WHERE number <= 3",
                )
                .bind(NOW)
                .execute(tx)
                .await?;
                Ok(())
            })
        })
        .await
        .unwrap();
    let filter = RunFilter::default();
    let whole = bench.list(&filter, &slice(RunOrder::Duration, 10)).await;
    let numbers: Vec<i64> = whole.iter().map(|run| run.number).collect();
    assert_eq!(numbers, [3, 2, 1, 5, 4]);
    for order in [RunOrder::Created, RunOrder::Duration] {
        let whole = bench.list(&filter, &slice(order, 10)).await;
        let (mut paged, mut page) = (Vec::new(), slice(order, 2));
        loop {
            let rows = bench.list(&filter, &page).await;
            let Some(last) = rows.last() else { break };
            page.after = Some(last.position(order));
            paged.extend(rows);
        }
        assert_eq!(paged, whole, "{order:?}");
    }
}

#[tokio::test]
async fn statistics_count_paths_and_failures_of_the_newest_runs() {
    let bench = Bench::new().await;
    for (number, branch) in [(1, true), (2, false), (3, true)] {
        let (_, lease) = bench.begun().await;
        let taken = Step {
            branch: Some(branch),
            ..step(0, StepStatus::Completed)
        };
        if number == 3 {
            let steps = vec![taken, step(1, StepStatus::Failed)];
            bench.fail(&lease, steps).await.unwrap();
        } else {
            let steps = vec![taken, step(1, StepStatus::Completed)];
            let completion = Completion {
                steps,
                ..Completion::default()
            };
            bench.complete(&lease, completion).await.unwrap();
        }
    }
    let last = bench.run(9).await;
    let mut db = bench.world.read().await;
    let recent = run_statistics::recent_runs(&mut db, &[bench.workflow])
        .await
        .unwrap();
    let expected = run_statistics::RecentRuns {
        workflow_id: bench.workflow,
        ended: 3,
        failed: 1,
        last_run_id: Some(last.id),
        last_status: Some(RunStatus::Queued),
    };
    assert_eq!(recent, [expected]);
    let counts = run_statistics::by_node(&mut db, bench.workflow, Some(1))
        .await
        .unwrap();
    let counts: Vec<_> = counts
        .iter()
        .map(|node| {
            (
                node.node_id.as_str(),
                [node.completed, node.failed, node.skipped],
                [node.took_true, node.took_false],
            )
        })
        .collect();
    assert_eq!(
        counts,
        [("n0", [3, 0, 0], [2, 1]), ("n1", [2, 1, 0], [0, 0])]
    );
    let of_another = run_statistics::by_node(&mut db, bench.workflow, Some(2)).await;
    assert_eq!(of_another.unwrap(), []);
}

#[tokio::test]
#[ignore = "a measurement"]
async fn measure_run_list() {
    const RUNS: i64 = 100_000;
    let bench = Bench::on_sqlite().await;
    bench.run(0).await;
    bench.world.write(|tx| {
        Box::pin(async move {
            query(
                "INSERT INTO workflow_runs (id, account_id, workflow_id, workflow_name, workflow_version, number, status,
                     \"trigger\", lane, is_admitted, generation, upload_source, input_blob, input_filename, input_size,
                     input_mime, allowance, month, created_at, queued_at, started_at, completed_at, expires_at)
                 WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
                 SELECT randomblob(16), account_id, workflow_id, workflow_name, workflow_version, i,
                     CASE WHEN i % 33 = 0 THEN 'failed' WHEN i % 100 = 1 THEN 'cancelled' ELSE 'completed' END, \"trigger\", lane,
                     0, generation, upload_source, input_blob, 'IMG_' || i || '.jpg', input_size, input_mime, allowance, month,
                     created_at + i * 1000, queued_at, created_at, created_at + abs(random()) % 9000, created_at
                 FROM n CROSS JOIN workflow_runs r WHERE r.number = 1",
            )
            .bind(RUNS)
            .execute(tx)
            .await?;
            Ok(())
        })
    })
    .await
    .unwrap();
    let with = |change: fn(&mut RunFilter)| {
        let mut filter = RunFilter::default();
        change(&mut filter);
        filter
    };
    let workflow_id = Some(bench.workflow);
    let mut of_workflow = with(|filter| filter.status = Some(RunStatus::Failed));
    of_workflow.workflow_id = workflow_id;
    for (name, filter) in [
        ("all", RunFilter::default()),
        (
            "failed",
            with(|filter| filter.status = Some(RunStatus::Failed)),
        ),
        (
            "processing",
            with(|filter| filter.status = Some(RunStatus::Processing)),
        ),
        ("failed of a workflow", of_workflow),
        (
            "from the middle",
            with(|filter| filter.until = Some(NOW + 50_000_000)),
        ),
        (
            "by text",
            with(|filter| filter.text = Some("IMG_777.".into())),
        ),
        (
            "by a text that none has",
            with(|filter| filter.text = Some("zzz".into())),
        ),
    ] {
        for order in [RunOrder::Created, RunOrder::Duration] {
            let mut times = Vec::new();
            for _ in 0..20 {
                let begun = Instant::now();
                bench.list(&filter, &slice(order, 51)).await;
                times.push(begun.elapsed());
            }
            times.sort();
            let begun = Instant::now();
            let mut db = bench.world.read().await;
            let counts = run_list::count(&mut db, bench.account, &filter)
                .await
                .unwrap();
            let counted = begun.elapsed();
            println!(
                "{name}, {order:?}: median {:?}, p95 {:?}; counted in {counted:?}: {counts:?}",
                times[10], times[19]
            );
        }
    }
}
