//! Tests of how runs end, and of refunds.

use super::*;
use crate::webhooks::tests::add_account;

#[tokio::test]
async fn a_run_completes_with_its_output() {
    let bench = Bench::new().await;
    let (run, lease) = bench.begun().await;
    assert_eq!(run.status, RunStatus::Processing);
    assert_eq!(run.started_at, Some(CLAIMED_AT));
    let blob = record(&bench.world, b"output").await;
    let output = NewOutput {
        blob,
        filename: "photo.webp".into(),
        mime_type: "image/webp".into(),
        size: 6,
        width: Some(2),
        height: None,
    };
    let completion = Completion {
        gate: Some(true),
        output: Some(output),
        steps: vec![step(3, StepStatus::Completed), step(4, StepStatus::Skipped)],
    };
    let run = bench.complete(&lease, completion).await.unwrap();
    assert_eq!(run.status, RunStatus::Completed);
    assert_eq!((run.gate, run.is_admitted), (Some(true), false));
    assert_eq!(run.completed_at, Some(NOW + 2_000));
    assert_eq!(run.expires_at, Some(NOW + 2_000 + KEEP_MS));
    assert_eq!(bench.steps(run.id).await.len(), 2);
    assert_eq!(bench.used().await, 1, "charged");
    let found = output_of(&bench, run.id).await.unwrap();
    assert_eq!((found.blob, found.size, found.width), (blob, 6, Some(2)));
    assert!(bench.complete(&lease, Completion::default()).await.is_err());
}

async fn output_of(bench: &Bench, id: Uuid) -> Result<Output, Error> {
    output(&mut bench.world.read().await, id).await
}

#[tokio::test]
async fn a_gate_that_is_not_met_is_charged() {
    let bench = Bench::new().await;
    let (run, lease) = bench.begun().await;
    let completion = Completion {
        gate: Some(false),
        ..Completion::default()
    };
    let run_after = bench.complete(&lease, completion).await.unwrap();
    assert_eq!(run_after.gate, Some(false));
    assert_eq!(bench.used().await, 1);
    let none = output_of(&bench, run.id).await;
    assert!(matches!(none, Err(Error::NotFound("output"))));
}

#[tokio::test]
async fn what_a_run_cost_is_given_back_once() {
    for ways in [
        ["fail", "cancel"],
        ["cancel", "fail"],
        ["give up", "cancel"],
    ] {
        let bench = Bench::new().await;
        let (run, lease) = bench.begun().await;
        bench.run(1).await;
        for (n, way) in ways.into_iter().enumerate() {
            let ended = match way {
                "fail" => bench.fail(&lease, Vec::new()).await.is_ok(),
                "cancel" => bench.cancel(run.id).await.is_ok(),
                _ => give_up_run(&bench, run.id).await.is_some(),
            };
            assert_eq!(ended, n == 0, "{ways:?}");
            assert_eq!(bench.used().await, 1, "{ways:?}");
        }
        assert_eq!(give_up_run(&bench, run.id).await, None, "{ways:?}");
        assert_eq!(bench.used().await, 1, "{ways:?}");
    }
}

async fn give_up_run(bench: &Bench, id: Uuid) -> Option<Run> {
    bench
        .write(move |tx| Box::pin(give_up(tx, id, TERMS, NOW + 2_000)))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_failed_run_says_where_and_why() {
    let bench = Bench::new().await;
    let (_, lease) = bench.begun().await;
    let run = bench.fail(&lease, vec![step(0, StepStatus::Failed)]).await;
    let run = run.unwrap();
    assert_eq!(run.status, RunStatus::Failed);
    assert_eq!(run.error_node.as_deref(), Some("resize"));
    assert_eq!(run.error_code.as_deref(), Some("decode_failed"));
    assert_eq!(run.error, Some(failure(Vec::new()).message));
    assert_eq!(run.gate, Some(true), "it was let in before");
    assert!(run.input().is_some(), "it can be tried again");
}

#[tokio::test]
async fn a_run_whose_owner_kept_dying_is_given_up() {
    let bench = Bench::new().await;
    let run = bench.run(0).await;
    for claims in 1..=4 {
        let claimed = bench.claim().await;
        let expected = if claims <= 3 { (1, 0) } else { (0, 1) };
        let found = (claimed.leases.len(), claimed.given_up.len());
        assert_eq!(found, expected, "claim {claims}");
        for lease in claimed.leases {
            bench
                .write(move |tx| {
                    Box::pin(async move { work::retry_after_crash(tx, &lease, 0).await })
                })
                .await
                .unwrap();
        }
    }
    let run = give_up_run(&bench, run.id).await.unwrap();
    assert_eq!(run.error_code.as_deref(), Some("crashed"));
    assert_eq!(bench.used().await, 0);
    assert_eq!(give_up_run(&bench, Uuid::now_v7()).await, None);
}

#[tokio::test]
async fn beginning_again_changes_nothing() {
    let bench = Bench::new().await;
    let (run, _) = bench.begun().await;
    let waiting = {
        bench.run(1).await;
        bench.run(2).await
    };
    for id in [run.id, waiting.id, Uuid::now_v7()] {
        let begun = bench.write(move |tx| Box::pin(begin(tx, id, NOW + 9_000)));
        assert_eq!(begun.await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_foreign_run_cannot_be_cancelled() {
    let bench = Bench::new().await;
    let other = add_account(&bench.world.store).await;
    let run = bench.run(0).await;
    for (account, id) in [(other, run.id), (bench.account, Uuid::now_v7())] {
        let rejected = bench
            .write(move |tx| Box::pin(cancel(tx, account, id, TERMS, NOW)))
            .await;
        assert!(matches!(rejected, Err(Error::NotFound("run"))));
    }
}

#[tokio::test]
async fn the_unfinished_runs_of_a_deleted_workflow_are_cancelled() {
    let bench = Bench::new().await;
    let (kept, lease) = bench.begun().await;
    bench.complete(&lease, Completion::default()).await.unwrap();
    for n in 0..6 {
        bench.run(n).await;
    }
    let lease = bench.claim().await.leases.remove(0);
    assert_eq!(bench.used().await, 7);
    // Four wait, two are admitted.
    let first = bench.delete(3).await.unwrap();
    assert_eq!(first.len(), 3);
    let owner_is_late = bench.complete(&lease, Completion::default()).await;
    assert!(
        matches!(owner_is_late, Err(Error::Conflict(_))),
        "what is in progress ends at once"
    );
    assert_eq!(
        bench.number("SELECT count(*) FROM work").await,
        0,
        "no run is admitted any more"
    );
    let workflow = bench.workflow;
    let more = |rows| {
        bench.write(move |tx| Box::pin(cancel_deleted(tx, workflow, rows, TERMS, NOW + 3_000)))
    };
    assert_eq!(more(1).await.unwrap().len(), 1);
    assert_eq!(more(9).await.unwrap().len(), 2);
    assert_eq!(more(9).await.unwrap().len(), 0);
    assert_eq!(bench.used().await, 1, "the one that completed");
    assert_eq!(bench.number("SELECT count(*) FROM work").await, 0);
    let hidden = get_run(&mut bench.world.read().await, bench.account, kept.id).await;
    assert!(matches!(hidden, Err(Error::NotFound("run"))));
    assert!(first.iter().all(|run| run.status == RunStatus::Cancelled));
    let owner_is_late = bench.fail(&lease, Vec::new()).await;
    assert!(matches!(owner_is_late, Err(Error::Conflict(_))));
}
