//! Tests of what is deleted, and when.

use serde_json::Value;

use super::*;
use crate::{
    lineage::{self, Derived, DerivedKind, Lineage},
    workflows::sweep_scratch,
};

const KEEP: crate::workflows::Retention = crate::workflows::Retention {
    keep_runs: Duration::from_millis(10 * KEEP_MS as u64),
    max_active: MAX_ACTIVE,
};
const END: i64 = NOW + 2_000;

impl Bench {
    async fn sweep(&self, now_ms: i64) {
        self.world.store.sweep_runs(&KEEP, now_ms).await.unwrap();
        sweep_scratch(&self.world.store).await.unwrap();
    }

    /// A run with an output, of which the lineage is known.
    async fn completed(&self) -> Run {
        let (run, lease) = self.begun().await;
        let blob = record(&self.world, b"output").await;
        let completion = Completion {
            output: Some(NewOutput {
                blob,
                filename: "o.png".into(),
                mime_type: "image/png".into(),
                size: 6,
                width: None,
                height: None,
            }),
            steps: vec![step(0, StepStatus::Completed); 1],
            ..Completion::default()
        };
        self.complete(&lease, completion).await.unwrap();
        let made = Lineage {
            derived_kind: DerivedKind::RunOutput,
            derived_id: run.id.to_string(),
            source_file_id: None,
            operation: Value::Null,
            created_at: NOW,
        };
        self.write(move |tx| Box::pin(lineage::record(tx, made)))
            .await
            .unwrap();
        self.get(run.id).await
    }

    async fn has_lineage(&self, run: Uuid) -> bool {
        let derived = Derived {
            kind: DerivedKind::RunOutput,
            id: run.to_string(),
        };
        let of = lineage::of(&mut self.world.read().await, &derived).await;
        !of.unwrap().is_empty()
    }

    async fn scratch(&self, run: Uuid) {
        let blobs = self.world.store.blobs();
        let scratch = blobs.scratch(run, 0).await.unwrap();
        scratch.seal().await.unwrap();
    }

    async fn scratch_folders(&self) -> Vec<Uuid> {
        self.world.store.blobs().scratch_folders().await.unwrap()
    }
}

#[tokio::test]
async fn buffers_go_first_and_the_record_later() {
    let bench = Bench::new().await;
    let run = bench.completed().await;
    bench.sweep(END + KEEP_MS - 1).await;
    assert!(bench.get(run.id).await.output().is_some());
    bench.sweep(END + KEEP_MS).await;
    let expired = bench.get(run.id).await;
    assert_eq!((expired.input(), expired.output()), (None, None));
    assert_eq!(expired.output_name, run.output_name, "its name is kept");
    assert!(!bench.has_lineage(run.id).await);
    bench.sweep(END + 10 * KEEP_MS).await;
    assert_eq!(bench.number("SELECT count(*) FROM workflow_runs").await, 1);
    bench.sweep(END + 10 * KEEP_MS + 1).await;
    assert_eq!(bench.number("SELECT count(*) FROM workflow_runs").await, 0);
    assert_eq!(bench.number("SELECT count(*) FROM workflow_steps").await, 0);
}

#[tokio::test]
async fn unfinished_runs_stay_however_old() {
    let bench = Bench::new().await;
    let runs = [bench.run(0).await, bench.run(1).await, bench.run(2).await];
    bench.claim().await;
    for run in &runs {
        bench.scratch(run.id).await;
    }
    bench.sweep(NOW + 1_000 * KEEP_MS).await;
    for run in runs {
        assert!(bench.get(run.id).await.input().is_some());
    }
    assert_eq!(bench.scratch_folders().await.len(), 3);
}

#[tokio::test]
async fn scratch_stays_while_a_run_may_continue() {
    let bench = Bench::new().await;
    let completed = bench.completed().await;
    let (failed, lease) = bench.begun().await;
    bench.fail(&lease, Vec::new()).await.unwrap();
    for run in [completed.id, failed.id, Uuid::now_v7()] {
        bench.scratch(run).await;
    }
    bench.sweep(END).await;
    assert_eq!(bench.scratch_folders().await, [failed.id]);
    bench.sweep(END + KEEP_MS).await;
    assert!(bench.scratch_folders().await.is_empty());
}

#[tokio::test]
async fn a_turn_counts_steps_too() {
    let bench = Bench::new().await;
    for _ in 0..2 {
        let (_, lease) = bench.begun().await;
        let steps = (0..3).map(|n| step(n, StepStatus::Completed)).collect();
        bench.fail(&lease, steps).await.unwrap();
    }
    let turns = bench.write(|tx| {
        Box::pin(async move {
            let mut turns = Vec::new();
            for _ in 0..4 {
                turns.push(super::super::retention::delete_ended_before(tx, i64::MAX, 3).await?);
            }
            Ok(turns)
        })
    });
    assert_eq!(turns.await.unwrap(), [3, 3, 2, 0]);
}

#[tokio::test]
async fn a_deleted_workflow_goes_with_all_its_rows_and_no_files() {
    let bench = Bench::new().await;
    let stored = bench.file(None, 1).await;
    let (_, lease) = bench.begun().await;
    let keeping = Step {
        stored_file_id: Some(stored.id),
        ..step(0, StepStatus::Completed)
    };
    bench.record_steps(&lease, vec![keeping]).await.unwrap();
    bench.complete(&lease, Completion::default()).await.unwrap();
    for n in 0..5 {
        bench.run(n).await;
    }
    // The process dies before it has cancelled the others.
    assert_eq!(bench.delete(1).await.unwrap().len(), 1);
    bench.sweep(END).await;
    for table in [
        "SELECT count(*) FROM workflows",
        "SELECT count(*) FROM workflow_versions",
        "SELECT count(*) FROM workflow_runs",
        "SELECT count(*) FROM workflow_steps",
        "SELECT count(*) FROM work",
    ] {
        assert_eq!(bench.number(table).await, 0, "{table}");
    }
    assert_eq!(bench.number("SELECT count(*) FROM files").await, 1);
    assert_eq!(bench.used().await, 1, "the one that completed");
}
