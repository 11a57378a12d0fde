//! Runs that are tried again.

use sluice_media::task::FailureCode;
use sluice_store::workflows::Retried;

use super::*;
use crate::workflow::RetryVersion;

impl Site {
    async fn retry(&self, run: &Run, version: RetryVersion) -> Result<Retried, crate::Error> {
        self.workflows
            .retry(
                self.account,
                run.id,
                version,
                Lane::Interactive,
                Allowance::default(),
            )
            .await
    }

    /// Tries it again, to its end.
    async fn retried(&self, run: &Run, version: RetryVersion) -> Run {
        match self.retry(run, version).await.unwrap() {
            Retried::Queued(again) => assert_eq!(again.id, run.id),
            other => panic!("{other:?}"),
        }
        self.end_of(run).await
    }

    async fn failed_at(&self, workflow: &Workflow, label: &str) -> Run {
        self.workers.fail(label, FailureCode::Undecodable);
        let run = self.submit(workflow, "a.png", "a").await;
        let run = self.end_of(&run).await;
        assert_eq!(run.status, RunStatus::Failed);
        self.workers.mend();
        run
    }
}

/// Stores the upload, then makes it smaller and another format, and stores that.
fn steps(width: u32) -> Value {
    flow(
        &[
            ("in", "upload", json!({})),
            ("raw", "storage", json!({})),
            ("small", "resize", json!({"resizeWidth": width})),
            ("same", "resize", json!({"resizeWidth": 7})),
            ("webp", "convert", json!({"format": "webp"})),
            ("keep", "storage", json!({})),
            ("tell", "webhook", json!({})),
        ],
        "in>raw raw>small small>same same>webp webp>keep keep>tell",
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_continues_at_the_first_step_that_is_not_done() {
    let site = Site::open().await;
    let workflow = site.save(steps(5)).await;
    let run = site.failed_at(&workflow, "webp").await;
    assert_eq!((site.used().await, site.all_files().await), (0, 1));
    let run = site.retried(&run, RetryVersion::Ran).await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}");
    assert_eq!((run.error.as_ref(), run.error_node.as_ref()), (None, None));
    assert_eq!((site.used().await, site.all_files().await), (1, 2));
    let times = ["png5", "png7", "webp"].map(|label| site.workers.times(label));
    assert_eq!(times, [1, 1, 1], "what was done is not done again");
    assert_eq!(site.steps(&run).await.len(), 7);
    let sequence = |event: &Value| event["sequence"].as_u64().unwrap();
    assert_eq!(sequence(&site.events("workflow.failed").await[0]), 1);
    assert_eq!(sequence(&site.events("workflow.completed").await[0]), 2);
    assert!(
        site.retry(&run, RetryVersion::Ran).await.is_err(),
        "it is done"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_with_the_current_version_keeps_what_that_does_alike() {
    let site = Site::open().await;
    let workflow = site.save(steps(5)).await;
    let run = site.failed_at(&workflow, "webp").await;
    site.change(&workflow, steps(6)).await;
    let run = site.retried(&run, RetryVersion::Current).await;
    assert_eq!(
        (run.status, run.workflow_version),
        (RunStatus::Completed, 2)
    );
    let times = ["png5", "png6", "png7", "webp"].map(|label| site.workers.times(label));
    assert_eq!(times, [1, 1, 2, 1]);
    assert_eq!(site.all_files().await, 2, "the upload was stored before");
    let stored = site.stored(&run).await;
    assert_eq!(stored[1].1, "a>png6>png7>webp");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_behind_another_gate_begins_again() {
    let site = Site::open().await;
    let gated = |mime: &str| {
        let mut definition = steps(5);
        definition["uploadGate"] =
            json!({"conditions": [{"field": "mime", "operator": "equals", "value": mime}]});
        definition
    };
    let workflow = site.save(gated("image/png")).await;
    let run = site.failed_at(&workflow, "webp").await;
    assert_eq!(run.gate, Some(true), "it was let in before it failed");
    site.change(&workflow, gated("image/jpeg")).await;
    let run = site.retried(&run, RetryVersion::Current).await;
    assert_eq!((run.status, run.gate), (RunStatus::Completed, Some(false)));
    assert_eq!(site.nodes(&run, StepStatus::Skipped).await.len(), 7);
    assert_eq!(site.workers.times("webp"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_can_be_tried_again_and_followed() {
    let site = Site::open().await;
    let workflow = site.save(steps(5)).await;
    site.workers.hold("webp");
    let run = site.submit(&workflow, "a.png", "a").await;
    site.until_journalled(&run, 4).await;
    let mut follower = site.workflows.follow(run.id).unwrap();
    site.workflows.cancel(site.account, run.id).await.unwrap();
    while !follower.next().await.unwrap().status.has_ended() {}
    site.until("nothing runs", |site| {
        site.workers.running.load(SeqCst) == 0
    })
    .await;
    site.retry(&run, RetryVersion::Ran).await.unwrap();
    let again = follower.next().await.unwrap();
    assert!(!again.status.has_ended(), "{again:?}");
    site.workers.release();
    let last = loop {
        let progress = follower.next().await.unwrap();
        if progress.status.has_ended() {
            break progress;
        }
    };
    assert_eq!(
        (last.status, last.steps_done, last.steps_total),
        (RunStatus::Completed, 7, 7)
    );
    assert_eq!(site.workers.times("png7"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_scratch_lost_meanwhile_is_made_again() {
    let site = Site::open().await;
    let workflow = site.save(steps(5)).await;
    let run = site.failed_at(&workflow, "webp").await;
    std::fs::remove_dir_all(site.scratch_of(&run)).unwrap();
    let run = site.retried(&run, RetryVersion::Ran).await;
    assert_eq!(run.status, RunStatus::Completed);
    let times = ["png5", "png7", "webp"].map(|label| site.workers.times(label));
    assert_eq!(times, [2, 2, 1]);
    assert_eq!(site.all_files().await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_workflow_tries_nothing_again() {
    let site = Site::open().await;
    let workflow = site.save(steps(5)).await;
    let run = site.failed_at(&workflow, "png5").await;
    let (account, id) = (site.account, workflow.id);
    site.store
        .write(move |tx| {
            Box::pin(async move { workflows::set_active(tx, account, id, false, now_ms()).await })
        })
        .await
        .unwrap();
    for version in [RetryVersion::Ran, RetryVersion::Current] {
        assert!(matches!(
            site.retry(&run, version).await,
            Err(crate::Error::Store(sluice_store::Error::Conflict(_)))
        ));
    }
    assert!(matches!(
        site.offer(&workflow, "a.png", "a", |_| {}).await,
        Submitted::Paused
    ));
}
