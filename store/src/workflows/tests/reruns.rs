//! A new run on the input of an ended one.

use super::*;
use crate::statement::query;

const RERUN: Rerun = Rerun {
    keeps_version: true,
    trigger: Trigger::Api,
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
    async fn rerun(&self, id: Uuid, wanted: Rerun) -> Result<Submitted, Error> {
        let (account, workflow) = (self.account, self.workflow);
        self.write(move |tx| {
            Box::pin(async move { rerun(tx, account, workflow, id, &wanted, NOW + 5_000).await })
        })
        .await
    }
}

#[tokio::test]
async fn a_rerun_is_another_run_with_the_same_input() {
    let bench = Bench::new().await;
    let (run, lease) = bench.begun().await;
    let rejected = bench.rerun(run.id, RERUN).await;
    assert!(matches!(rejected, Err(Error::Conflict(_))), "{rejected:?}");
    let completion = Completion {
        steps: vec![step(0, StepStatus::Completed)],
        ..Completion::default()
    };
    bench.complete(&lease, completion).await.unwrap();
    let (account, id, new) = (bench.account, bench.workflow, new_workflow("second"));
    bench
        .write(move |tx| Box::pin(async move { replace(tx, account, id, new, None, 9, NOW).await }))
        .await
        .unwrap();
    for (keeps_version, version, number) in [(true, 1, 2), (false, 2, 3)] {
        let wanted = Rerun {
            keeps_version,
            ..RERUN
        };
        let Submitted::New(again) = bench.rerun(run.id, wanted).await.unwrap() else {
            panic!("there is room");
        };
        assert_eq!(
            (again.workflow_version, again.number, again.rerun_of),
            (version, number, Some(run.id))
        );
        assert_eq!(again.status, RunStatus::Queued);
        assert_eq!(again.input(), run.input());
        assert_eq!(again.created_at, NOW + 5_000);
        assert_eq!(bench.used().await, u64::try_from(number).unwrap());
        assert_eq!(bench.steps(again.id).await, []);
    }
    assert_eq!(bench.get(run.id).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn there_is_no_rerun_without_the_input_or_of_a_paused_workflow() {
    let bench = Bench::new().await;
    let run = bench.run(0).await;
    bench.cancel(run.id).await.unwrap();
    bench.set_active(false).await;
    assert_eq!(bench.rerun(run.id, RERUN).await.unwrap(), Submitted::Paused);
    bench.set_active(true).await;
    let unknown = bench.rerun(Uuid::now_v7(), RERUN).await;
    assert!(matches!(unknown, Err(Error::NotFound("run"))));
    bench
        .write(|tx| {
            Box::pin(async move {
                query("UPDATE workflow_runs SET input_blob = NULL, expires_at = NULL")
                    .execute(tx)
                    .await?;
                Ok(())
            })
        })
        .await
        .unwrap();
    let expired = bench.rerun(run.id, RERUN).await;
    assert!(matches!(expired, Err(Error::Conflict(_))), "{expired:?}");
    assert_eq!(bench.used().await, 0);
}
