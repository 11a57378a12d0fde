//! A service that stops: runs stop at a step and continue after the next start.

use sluice_store::work;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn runs_stop_at_their_next_step_and_continue_after_the_start() {
    let mut site = Site::open().await;
    let workflow = site.save(photos()).await;
    site.workers.hold("png200");
    let run = site.submit(&workflow, "a.png", "w=1").await;
    site.until("it is in the step", |site| {
        site.workers.running.load(SeqCst) == 1
    })
    .await;
    let waiting = {
        let (workflows, id) = (site.workflows.clone(), run.id);
        tokio::spawn(async move { workflows.wait(id, Instant::now() + PATIENCE).await })
    };
    site.workflows.drain().await;
    let answered = waiting.await.unwrap().unwrap();
    assert_eq!(
        answered.status,
        RunStatus::Processing,
        "callers that wait is answered"
    );
    let late = site.submit(&workflow, "b.png", "w=1").await;
    site.workers.release();
    tokio::time::timeout(PATIENCE, site.workflows.close())
        .await
        .unwrap();
    assert_eq!(site.steps(&run).await.len(), 2, "the present step is done");
    assert_eq!(site.workers.times("webp"), 0);
    assert_eq!(site.run(late.id).await.status, RunStatus::Queued);
    site.root.stop_gracefully().await.unwrap();
    site.root.wait_for_shutdown().await;
    let (id, now) = (run.id, now_ms());
    let lease = site
        .store
        .write(move |tx| {
            Box::pin(async move {
                let room = work::Room::for_any(10);
                let owner = Uuid::now_v7();
                let lease = Duration::from_secs(15);
                let claimed = work::claim(tx, workflows::KIND, owner, room, lease, now).await?;
                work::release_all(tx, Some(workflows::KIND), owner).await?;
                Ok(claimed.leases.into_iter().find(|lease| lease.id == id))
            })
        })
        .await
        .unwrap();
    assert_eq!(
        lease.expect("it is due at once").begins,
        0,
        "and what had begun does not count"
    );
    site.kill_and_start().await;
    for run in [run, late] {
        assert_eq!(site.end_of(&run).await.status, RunStatus::Completed);
    }
    assert_eq!(site.workers.times("png200"), 2, "no step was done twice");
}
