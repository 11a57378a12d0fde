//! Files that start runs.

use super::*;

const TRIGGER_LIMITS: TriggerLimits = TriggerLimits {
    allowance: Allowance {
        files: 0,
        operations: 0,
        file_bytes: 0,
        storage_bytes: 0,
    },
    runs: LIMITS,
    max_generation: 0,
    keep_ms: KEEP_MS,
};

impl Bench {
    async fn bound(&self, folder: Uuid) -> Workflow {
        let new = NewWorkflow {
            trigger_folder_id: Some(folder),
            ..new_workflow("bound")
        };
        create_in(&self.world, self.account, new).await
    }

    /// A file that is stored, with the runs that it starts.
    async fn stored(
        &self,
        folder: Option<Uuid>,
        generation: u32,
        limits: TriggerLimits,
    ) -> Vec<Run> {
        let file = self.file(folder, generation).await;
        self.write(move |tx| Box::pin(async move { triggered(tx, &file, &limits, NOW).await }))
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn a_file_starts_the_workflows_of_its_folder() {
    let bench = Bench::new().await;
    let (folder, empty) = (
        bench.folder(bench.account).await,
        bench.folder(bench.account).await,
    );
    let [first, paused, gone, last] = [
        bench.bound(folder).await,
        bench.bound(folder).await,
        bench.bound(folder).await,
        bench.bound(folder).await,
    ]
    .map(|workflow| workflow.id);
    let account = bench.account;
    bench
        .write(move |tx| {
            Box::pin(async move {
                set_active(tx, account, paused, false, NOW).await?;
                delete(tx, account, gone, 9, TERMS, NOW).await
            })
        })
        .await
        .unwrap();
    let loops = TriggerLimits {
        max_generation: 1,
        ..TRIGGER_LIMITS
    };
    for (folder_of, generation, limits, expected) in [
        (Some(folder), 0, TRIGGER_LIMITS, vec![first, last]),
        (Some(folder), 1, TRIGGER_LIMITS, vec![]),
        (Some(folder), 1, loops, vec![first, last]),
        (Some(folder), 2, loops, vec![]),
        (Some(empty), 0, TRIGGER_LIMITS, vec![]),
        (None, 0, TRIGGER_LIMITS, vec![]),
    ] {
        let before = bench.used().await;
        let runs = bench.stored(folder_of, generation, limits).await;
        let started: Vec<Uuid> = runs.iter().map(|run| run.workflow_id).collect();
        assert_eq!(started, expected, "{folder_of:?} {generation}");
        assert_eq!(bench.used().await - before, expected.len() as u64);
        for run in runs {
            assert_eq!(run.trigger, Trigger::Folder);
            assert_eq!(run.upload_source, "folder");
            assert_eq!(run.generation, generation);
            assert_eq!(run.input_blob, Some(bench.input));
            assert!(run.source_file_id.is_some());
        }
    }
}

#[tokio::test]
async fn a_file_that_is_rolled_back_starts_nothing() {
    let bench = Bench::new().await;
    let folder = bench.folder(bench.account).await;
    bench.bound(folder).await;
    let (account, new) = (bench.account, bench.new_file(Some(folder), 0));
    let undone: Result<(), Error> = bench
        .write(move |tx| {
            Box::pin(async move {
                let file = files::create(tx, account, new, NOW).await?;
                assert_eq!(triggered(tx, &file, &TRIGGER_LIMITS, NOW).await?.len(), 1);
                Err(Error::Conflict("the change is rejected".into()))
            })
        })
        .await;
    assert!(undone.is_err());
    let facts = (
        bench.number("SELECT count(*) FROM files").await,
        bench.number("SELECT count(*) FROM workflow_runs").await,
        bench.number("SELECT count(*) FROM work").await,
        bench
            .number("SELECT CAST(sum(run_count) AS BIGINT) FROM workflows")
            .await,
        bench.used().await,
    );
    assert_eq!(facts, (0, 0, 0, 0, 0));
}

#[tokio::test]
async fn a_run_that_cannot_be_made_is_in_the_history() {
    let bench = Bench::new().await;
    let folder = bench.folder(bench.account).await;
    let workflow = bench.bound(folder).await;
    let none_waits = TriggerLimits {
        runs: RunLimits {
            max_active: 0,
            max_queued: 0,
        },
        ..TRIGGER_LIMITS
    };
    let used_up = TriggerLimits {
        allowance: Allowance {
            operations: 1,
            ..TRIGGER_LIMITS.allowance
        },
        ..TRIGGER_LIMITS
    };
    bench.run(0).await;
    for (limits, code, number) in [
        (none_waits, "too_many_runs", 1),
        (used_up, "operations_used_up", 2),
    ] {
        let runs = bench.stored(Some(folder), 0, limits).await;
        let [run] = runs.as_slice() else {
            panic!("{runs:?}");
        };
        assert_eq!(run.status, RunStatus::Failed);
        assert_eq!(run.error_code.as_deref(), Some(code));
        assert_eq!(run.number, number);
        assert_eq!(run.completed_at, Some(NOW));
        assert!(run.input().is_some(), "it can be tried again");
        assert_eq!(bench.used().await, 1, "not charged");
        assert_eq!(bench.number("SELECT count(*) FROM work").await, 1);
        let listed = list_runs(&mut bench.world.read().await, bench.account, workflow.id, 1).await;
        assert_eq!(listed.unwrap()[0].id, run.id);
    }
}
