//! Runs that do not complete, and what they leave.

use sluice_media::task::FailureCode;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_fails_ends_the_run_with_its_name() {
    let site = Site::open().await;
    let workflow = site.save(photos()).await;
    for (label, code, word, done) in [
        ("png200", FailureCode::Undecodable, "undecodable", 1),
        ("webp", FailureCode::TimedOut, "timed_out", 2),
    ] {
        site.workers.fail(label, code);
        let run = site.submit(&workflow, "a.png", "w=1").await;
        let run = site.end_of(&run).await;
        assert_eq!(
            (run.status, run.error_code.as_deref()),
            (RunStatus::Failed, Some(word))
        );
        let node = ["in", "small", "webp"][done];
        assert_eq!(run.error_node.as_deref(), Some(node));
        assert_eq!(
            run.error.unwrap(),
            format!("step `The {node}` ({node}): a test asked for this failure")
        );
        let steps = site.steps(&site.run(run.id).await).await;
        assert_eq!(steps[done].status, StepStatus::Failed);
        assert_eq!(steps[done].message, "a test asked for this failure");
        for step in &steps[done + 1..] {
            assert_eq!(step.status, StepStatus::Skipped);
            assert_eq!(
                step.message,
                format!("not reached, because `The {node}` failed")
            );
        }
        assert_eq!(steps.len(), 6);
        site.workers.mend();
    }
    assert_eq!((site.used().await, site.all_files().await), (0, 0));
    assert!(site.events("workflow.completed").await.is_empty());
    let events = site.events("workflow.failed").await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["status"], "failed");
    let counts = site.workflows.counts();
    assert_eq!(
        (counts.failed["undecodable"], counts.failed["timed_out"]),
        (1, 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_is_no_image_or_gone_fails_the_first_step_that_reads_it() {
    let site = Site::open().await;
    let workflow = site.save(photos()).await;
    let unknown = site.upload_of(b"no image").await;
    let gone = {
        let upload = site.upload_of(&content("a.png", "gone")).await;
        let name = upload.blob().hash.to_string();
        let folder = site.folder.path().join("blobs").join(&name[..2]);
        (upload, folder.join(&name[2..]))
    };
    for (upload, file, code) in [
        (unknown, None, "unsupported_type"),
        (gone.0, Some(gone.1), "internal"),
    ] {
        let request = site.request(&workflow, "a", &upload);
        // No one begins it before the file is gone.
        let submitted = match file {
            None => site.workflows.submit(request, Some(upload)).await.unwrap(),
            Some(file) => {
                let engine = site.workflows.clone();
                let submitted = site
                    .store
                    .write(move |tx| {
                        Box::pin(async move {
                            let submitted = engine.submit_in(tx, request, Some(&upload)).await?;
                            std::fs::remove_file(file).unwrap();
                            Ok(submitted)
                        })
                    })
                    .await
                    .unwrap();
                site.workflows.announce();
                submitted
            }
        };
        let Submitted::New(run) = submitted else {
            panic!();
        };
        let run = site.end_of(&run).await;
        assert_eq!(
            (run.error_code.as_deref(), run.error_node.as_deref()),
            (Some(code), Some("small"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storage_that_is_full_fails_the_storage_step_and_keeps_what_was_stored() {
    let site = Site::open().await;
    let definition = flow(
        &[
            ("in", "upload", json!({})),
            ("raw", "storage", json!({})),
            ("webp", "convert", json!({"format": "webp"})),
            ("keep", "storage", json!({})),
            ("tell", "webhook", json!({})),
        ],
        "in>raw raw>webp webp>keep keep>tell",
    );
    let workflow = site.save(definition).await;
    // The upload fits, its conversion not any more.
    let room = content("a.png", "a").len() as u64 + 5;
    let small = |request: &mut Request| request.allowance.storage_bytes = room;
    let Submitted::New(run) = site.offer(&workflow, "a.png", "a", small).await else {
        panic!();
    };
    let run = site.end_of(&run).await;
    assert_eq!(
        (run.error_code.as_deref(), run.error_node.as_deref()),
        (Some("storage_used_up"), Some("keep"))
    );
    assert_eq!(
        site.nodes(&run, StepStatus::Completed).await,
        ["in", "raw", "webp"]
    );
    assert_eq!(site.nodes(&run, StepStatus::Skipped).await, ["tell"]);
    assert_eq!((site.all_files().await, site.used().await), (1, 0));
    let events = site.events("workflow.failed").await;
    assert_eq!(events[0]["outputs"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_hangs_fails_by_its_watchdog() {
    let settings = WorkflowSettings {
        step_timeout: Duration::from_millis(50),
        ..WorkflowSettings::default()
    };
    let site = Site::with(settings).await;
    let workflow = site.save(photos()).await;
    site.workers.hold("webp");
    let run = site.submit(&workflow, "a.png", "a").await;
    let run = site.end_of(&run).await;
    assert_eq!(
        (run.error_code.as_deref(), run.error_node.as_deref()),
        (Some("timed_out"), Some("webp"))
    );
    site.until("its task is ended", |site| {
        site.workers.running.load(SeqCst) == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_waits_for_its_turn_in_the_workers_does_not_hang() {
    let settings = WorkflowSettings {
        step_timeout: Duration::from_millis(20),
        ..WorkflowSettings::default()
    };
    let site = Site::with(settings).await;
    let workflow = site.save(photos()).await;
    site.workers.hold("webp");
    site.workers.others_end.store(true, SeqCst);
    let run = site.submit(&workflow, "a.png", "a").await;
    site.until("the watchdog looked several times", |site| {
        site.workers.ended.load(SeqCst) > 10
    })
    .await;
    site.workers.gate.add_permits(1);
    let run = site.end_of(&run).await;
    assert_eq!((run.status, run.error), (RunStatus::Completed, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_cancelled_in_every_state() {
    let settings = WorkflowSettings {
        max_active_per_workflow: 1,
        ..WorkflowSettings::default()
    };
    let site = Site::with(settings).await;
    let workflow = site.save(photos()).await;
    site.workers.hold("webp");
    let in_flight = site.submit(&workflow, "a.png", "a").await;
    let waiting = site.submit(&workflow, "b.png", "b").await;
    site.until_journalled(&in_flight, 2).await;
    site.until("it is in the step", |site| {
        site.workers.running.load(SeqCst) == 1
    })
    .await;
    assert!(!site.run(waiting.id).await.is_admitted);
    for (run, done) in [(&waiting, 0), (&in_flight, 2)] {
        let waited = site.workflows.wait(run.id, Instant::now() + PATIENCE);
        let cancelled = site.workflows.cancel(site.account, run.id);
        let (waited, cancelled) = tokio::join!(waited, cancelled);
        assert_eq!(cancelled.unwrap().status, RunStatus::Cancelled);
        assert_eq!(waited.unwrap().status, RunStatus::Cancelled);
        let steps = site.steps(&site.run(run.id).await).await;
        assert_eq!(steps.len(), 6);
        for (position, step) in steps.iter().enumerate() {
            let expected = match position < done {
                true => StepStatus::Completed,
                false => StepStatus::Skipped,
            };
            assert_eq!(step.status, expected, "{step:?}");
        }
        let last = &steps[5].message;
        assert_eq!(last, "not reached, because the run was cancelled");
        let again = site.workflows.cancel(site.account, run.id).await;
        assert!(matches!(
            again,
            Err(crate::Error::Store(sluice_store::Error::Conflict(_)))
        ));
    }
    site.until("its task is ended", |site| {
        site.workers.running.load(SeqCst) == 0
    })
    .await;
    assert_eq!((site.used().await, site.all_files().await), (0, 0));
    let events = site.events("workflow.failed").await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["status"], "cancelled");
    assert_eq!(site.workflows.counts().cancelled, 2);
    // The workflow has room again.
    site.workers.release();
    site.completed(&workflow, "c.png", "c").await;
    let ended = site.workflows.cancel(site.account, in_flight.id).await;
    assert!(ended.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_workflow_ends_its_runs_and_leaves_its_files() {
    let settings = WorkflowSettings {
        max_active_per_workflow: 2,
        ..WorkflowSettings::default()
    };
    let site = Site::with(settings).await;
    let workflow = site.save(photos()).await;
    site.completed(&workflow, "kept.png", "kept").await;
    site.workers.hold("png200");
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(site.submit(&workflow, "a.png", "a").await);
    }
    site.until("two run", |site| site.workers.running.load(SeqCst) == 2)
        .await;
    site.workflows
        .delete(site.account, workflow.id)
        .await
        .unwrap();
    for run in &runs {
        assert_eq!(site.run(run.id).await.status, RunStatus::Cancelled);
    }
    site.until("nothing runs", |site| {
        site.workers.running.load(SeqCst) == 0
    })
    .await;
    assert_eq!((site.used().await, site.all_files().await), (1, 1));
    assert_eq!(site.events("workflow.failed").await.len(), 5);
    let again = site.workflows.delete(site.account, workflow.id).await;
    assert!(again.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_continues_when_no_one_waits_for_it() {
    const RUNS: usize = 350;
    let site = Site::open().await;
    let workflow = site.save(photos()).await;
    site.workers.hold("png200");
    let upload = site.upload_of(&content("a.png", "a")).await;
    let (engine, request) = (
        site.workflows.clone(),
        site.request(&workflow, "a.png", &upload),
    );
    site.store
        .write(move |tx| {
            Box::pin(async move {
                for _ in 0..RUNS {
                    engine.submit_in(tx, request.clone(), Some(&upload)).await?;
                }
                Ok(())
            })
        })
        .await
        .unwrap();
    let first_are_told = async {
        while site.events("workflow.failed").await.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        () = first_are_told => {}
        deleted = site.workflows.delete(site.account, workflow.id) => deleted.unwrap(),
    }
    site.until("all are cancelled", |site| {
        site.workflows.counts().cancelled >= RUNS as u64
    })
    .await;
    assert_eq!(site.used().await, 0);
    site.until("nothing runs", |site| {
        site.workers.running.load(SeqCst) == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_definition_is_not_read_any_more_is_given_up() {
    let site = Site::open().await;
    let (account, mut new) = (site.account, new_workflow(&photos()));
    new.definition = json!({"nodes": [], "edges": []}).to_string();
    let saved = site.store.write(move |tx| {
        Box::pin(async move { workflows::create(tx, account, new, 1_000, now_ms()).await })
    });
    let run = site.submit(&saved.await.unwrap(), "a.png", "a").await;
    let run = site.end_of(&run).await;
    assert_eq!(
        (run.status, run.error_code.as_deref()),
        (RunStatus::Failed, Some("crashed"))
    );
    assert_eq!(site.used().await, 0);
}
