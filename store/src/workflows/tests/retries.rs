//! Doing a run again.

use super::*;

const RETRY: Retry = Retry {
    version: None,
    kept_positions: u32::MAX,
    lane: Lane::Interactive,
    allowance: Allowance {
        files: 0,
        operations: 0,
        file_bytes: 0,
        storage_bytes: 0,
    },
    limits: LIMITS,
};

impl Bench {
    async fn retry(&self, id: Uuid, wanted: Retry) -> Result<Retried, Error> {
        let account = self.account;
        self.write(move |tx| {
            Box::pin(async move { retry(tx, account, id, &wanted, NOW + 5_000).await })
        })
        .await
    }

    /// A run that failed at its third step.
    async fn failed(&self) -> (Run, Lease) {
        let (run, lease) = self.begun().await;
        let done = vec![
            step(0, StepStatus::Completed),
            step(1, StepStatus::Completed),
        ];
        self.record_steps(&lease, done).await.unwrap();
        let rest = vec![step(2, StepStatus::Failed), step(3, StepStatus::Skipped)];
        self.fail(&lease, rest).await.unwrap();
        (run, lease)
    }
}

#[tokio::test]
async fn a_retry_is_charged_and_keeps_what_was_done() {
    for (kept_positions, kept) in [(u32::MAX, 2), (2, 2), (1, 1), (0, 0)] {
        let bench = Bench::new().await;
        let (run, _) = bench.failed().await;
        assert_eq!(bench.used().await, 0);
        let wanted = Retry {
            kept_positions,
            ..RETRY
        };
        let Retried::Queued(again) = bench.retry(run.id, wanted).await.unwrap() else {
            panic!("there is room");
        };
        assert_eq!(bench.used().await, 1);
        assert_eq!(again.status, RunStatus::Queued);
        assert_eq!(again.lane, Lane::Interactive);
        assert_eq!(
            (again.id, again.number, again.created_at, again.queued_at),
            (run.id, run.number, run.created_at, NOW + 5_000)
        );
        assert_eq!(
            (again.error, again.completed_at, again.expires_at),
            (None, None, None)
        );
        assert_eq!(bench.steps(run.id).await.len(), kept, "{kept_positions}");
        let twice = bench.retry(run.id, wanted).await;
        assert!(matches!(twice, Err(Error::Conflict(_))));
        assert_eq!(bench.used().await, 1);
    }
}

#[tokio::test]
async fn an_owner_from_before_the_retry_holds_nothing() {
    let bench = Bench::new().await;
    let (run, old) = bench.begun().await;
    bench.cancel(run.id).await.unwrap();
    bench.retry(run.id, RETRY).await.unwrap();
    let new = bench.claim().await.leases.remove(0);
    assert_eq!((new.id, new.begins), (run.id, 0));
    assert!(new.fence > old.fence);
    let late = bench.record_steps(&old, vec![step(0, StepStatus::Completed)]);
    assert!(matches!(late.await, Err(Error::Conflict(_))));
    let late = bench.complete(&old, Completion::default()).await;
    assert!(matches!(late, Err(Error::Conflict(_))));
    bench.complete(&new, Completion::default()).await.unwrap();
}

#[tokio::test]
async fn a_retry_may_do_another_version() {
    let bench = Bench::new().await;
    let (run, _) = bench.failed().await;
    let (account, id) = (bench.account, bench.workflow);
    bench
        .write(move |tx| Box::pin(replace(tx, account, id, new_workflow("new"), None, 1, NOW)))
        .await
        .unwrap();
    for (version, done) in [(Some(7), None), (Some(2), Some(2)), (None, Some(2))] {
        let wanted = Retry { version, ..RETRY };
        match (bench.retry(run.id, wanted).await, done) {
            (Ok(Retried::Queued(again)), Some(done)) => {
                assert_eq!(again.workflow_version, done);
                bench.cancel(run.id).await.unwrap();
            }
            (Err(Error::NotFound("version")), None) => {}
            (outcome, _) => panic!("{version:?}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn a_retry_takes_its_turn() {
    let bench = Bench::new().await;
    let (run, _) = bench.failed().await;
    for n in 0..3 {
        bench.run(n).await;
    }
    let Retried::Queued(again) = bench.retry(run.id, RETRY).await.unwrap() else {
        panic!("it may wait");
    };
    assert!(!again.is_admitted);
    assert_eq!(bench.number("SELECT count(*) FROM work").await, 2);
    let next = bench.claim().await.leases.remove(0);
    bench.complete(&next, Completion::default()).await.unwrap();
    assert!(
        bench.get(run.id).await.is_admitted,
        "it does not wait for admission"
    );
    let lease = bench.claim().await.leases.remove(0);
    assert!(lease.fence > 1 << 32);
}

#[tokio::test]
async fn what_cannot_be_done_again_stays_as_it_is() {
    let bench = Bench::new().await;
    let (run, _) = bench.failed().await;
    let full = Retry {
        limits: RunLimits {
            max_active: 0,
            max_queued: 0,
        },
        ..RETRY
    };
    assert_eq!(bench.retry(run.id, full).await.unwrap(), Retried::Full);
    let other = bench.run(0).await;
    let capped = Retry {
        allowance: Allowance {
            operations: 1,
            ..RETRY.allowance
        },
        ..RETRY
    };
    let used_up = bench.retry(run.id, capped).await.unwrap();
    assert_eq!(used_up, Retried::UsedUp { used: 1 });
    let unfinished = bench.retry(other.id, RETRY).await;
    assert!(matches!(unfinished, Err(Error::Conflict(_))));
    bench.set_active(false).await;
    let paused = bench.retry(run.id, RETRY).await;
    assert!(matches!(paused, Err(Error::Conflict(why)) if why.contains("paused")));
    bench.set_active(true).await;
    let later = NOW + 2_000 + KEEP_MS;
    let keep = crate::workflows::Retention {
        keep_runs: Duration::from_secs(90 * 24 * 3_600),
        max_active: MAX_ACTIVE,
    };
    bench.world.store.sweep_runs(&keep, later).await.unwrap();
    let expired = bench.retry(run.id, RETRY).await;
    assert!(matches!(expired, Err(Error::Conflict(why)) if why.contains("input")));
    let unknown = bench.retry(Uuid::now_v7(), RETRY).await;
    assert!(matches!(unknown, Err(Error::NotFound("run"))));
    assert_eq!(bench.used().await, 1);
    assert_eq!(bench.steps(run.id).await.len(), 4);
    assert_eq!(bench.get(run.id).await.status, RunStatus::Failed);
}
