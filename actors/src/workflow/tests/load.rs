//! Many runs at once: all of them end, in bounds.

use std::collections::HashSet;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_runs_at_once_all_complete() {
    let site = Site::open().await;
    let workflow = site.save(photos()).await;
    let mut runs = Vec::new();
    for number in 0..200 {
        runs.push(
            site.submit(&workflow, "a.png", &format!("w=1 {number}"))
                .await,
        );
    }
    let mut texts = HashSet::new();
    for run in &runs {
        let run = site.end_of(run).await;
        assert_eq!(run.status, RunStatus::Completed);
        for (_, text) in site.stored(&run).await {
            assert!(texts.insert(text));
        }
    }
    assert_eq!(texts.len(), 200);
    assert_eq!((site.used().await, site.all_files().await), (200, 200));
    // A run is counted a moment after its row has ended.
    site.until("no one works any more, and all are counted", |site| {
        let counts = site.workflows.counts();
        (counts.active, counts.completed) == (0, 200)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_has_only_so_many_runs_and_leaves_room_for_others() {
    let settings = WorkflowSettings {
        max_active_per_workflow: 2,
        max_queued: 3,
        ..WorkflowSettings::default()
    };
    let site = Site::with(settings).await;
    let (busy, other) = (site.save(photos()).await, site.save(photos()).await);
    site.workers.hold("png200");
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(site.submit(&busy, "a.png", "w=1").await);
    }
    assert!(matches!(
        site.offer(&busy, "a.png", "w=1", |_| {}).await,
        Submitted::Full
    ));
    site.until("two run", |site| site.workers.running.load(SeqCst) == 2)
        .await;
    let one = site.submit(&other, "a.png", "w=1").await;
    site.until("another workflow's runs beside", |site| {
        site.workers.running.load(SeqCst) == 3
    })
    .await;
    site.workers.release();
    for run in runs.iter().chain([&one]) {
        assert_eq!(site.end_of(run).await.status, RunStatus::Completed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_see_where_a_run_is() {
    let site = Site::open().await;
    let workflow = site.save(photos()).await;
    site.workers.hold("png200");
    site.workers.hold("webp");
    let run = site.submit(&workflow, "a.png", "w=1").await;
    site.until("it is in the step", |site| {
        site.workers.running.load(SeqCst) == 1
    })
    .await;
    let early = site.workflows.wait(run.id, Instant::now()).await.unwrap();
    assert!(!early.status.has_ended());
    let mut follower = site.workflows.follow(run.id).unwrap();
    let mut seen: Vec<(u32, u32, Option<String>)> = Vec::new();
    loop {
        let progress = follower.next().await.unwrap();
        let current = progress.current.as_deref().map(str::to_owned);
        seen.push((progress.steps_done, progress.steps_total, current));
        if progress.status.has_ended() {
            break;
        }
        site.workers.gate.add_permits(1);
    }
    assert!(
        seen.contains(&(2, 6, Some("The webp".to_owned()))),
        "{seen:?}"
    );
    assert_eq!(seen.last().unwrap(), &(6, 6, None));
    let unknown = site
        .workflows
        .wait(Uuid::now_v7(), Instant::now() + PATIENCE)
        .await;
    assert!(unknown.is_err());
}
