//! Workflow runs over a restore.

use std::{io::Read, time::Duration};

use bytes::Bytes;
use sluice_store::{
    Store,
    backup::{self, Transfer},
    blobs,
    jobs::Allowance,
    work::{self, Lane, Room},
    workflows::{
        self, NewRun, NewWorkflow, Run, RunInput, RunLimits, Step, StepStatus, Submitted, Trigger,
    },
};
use uuid::Uuid;

use crate::support::{NOW, add_account, sqlite_settings, sqlite_store};

const INPUT: &[u8] = b"what a run works on";

async fn run(store: &Store, account_id: Uuid) -> Run {
    let mut spool = store.blobs().spool().await.unwrap();
    spool.write(Bytes::from_static(INPUT)).await.unwrap();
    let upload = spool.seal().await.unwrap();
    let workflow = NewWorkflow {
        name: "photos".into(),
        is_active: true,
        definition: "{}".into(),
        template: None,
        output_format: None,
        compression_mode: None,
        trigger_folder_id: None,
        webhook_urls: Vec::new(),
    };
    let submit = store.write(move |tx| {
        Box::pin(async move {
            let workflow = workflows::create(tx, account_id, workflow, 10, NOW).await?;
            let new = NewRun {
                account_id,
                workflow_id: workflow.id,
                version: None,
                trigger: Trigger::Api,
                lane: Lane::Batch,
                generation: 0,
                upload_source: "api".into(),
                input: RunInput {
                    blob: upload.blob().hash,
                    filename: "a.png".into(),
                    size: INPUT.len() as i64,
                    mime_type: "image/png".into(),
                },
                source_file_id: None,
                rerun_of: None,
                allowance: Allowance::default(),
            };
            let limits = RunLimits {
                max_active: 1,
                max_queued: 1,
            };
            blobs::record(tx, &upload, NOW).await?;
            workflows::submit(tx, &new, limits, None, NOW).await
        })
    });
    match submit.await.unwrap() {
        Submitted::New(run) => *run,
        other => panic!("{other:?}"),
    }
}

async fn claim(store: &Store) -> work::Claimed {
    let claim = store.write(|tx| {
        let (owner, room) = (Uuid::now_v7(), Room::for_any(9));
        let lease = Duration::from_secs(15);
        Box::pin(work::claim(tx, workflows::KIND, owner, room, lease, NOW))
    });
    claim.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_run_continues_after_a_restore() {
    let (store, _folder) = sqlite_store().await;
    let account = add_account(&store, "Default").await.unwrap();
    let made = run(&store, account).await;
    let lease = claim(&store).await.leases.remove(0);
    let done = Step {
        position: 0,
        node_id: "upload".into(),
        kind: "upload".into(),
        title: "Upload".into(),
        status: StepStatus::Completed,
        branch: None,
        message: String::new(),
        skip_reason: None,
        skipped_by: None,
        facts: None,
        started_at: None,
        finished_at: None,
        bytes_in: None,
        bytes_out: None,
        output: None,
        stored_file_id: None,
    };
    store
        .write(move |tx| {
            Box::pin(async move { workflows::record_steps(tx, &lease, &[done]).await })
        })
        .await
        .unwrap();
    let scratch = store.blobs().scratch(made.id, 0).await.unwrap();
    scratch.seal().await.unwrap();
    let (place, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    backup::backup(&store, place.path(), Transfer::default(), NOW)
        .await
        .unwrap();
    backup::restore(place.path(), data.path(), false, Transfer::default(), NOW)
        .await
        .unwrap();
    let restored = Store::open(&sqlite_settings(data.path())).await.unwrap();
    let again = claim(&restored).await;
    assert_eq!(again.leases[0].id, made.id);
    let mut reader = restored.read().await.unwrap();
    let steps = workflows::steps(&mut reader, made.id).await.unwrap();
    assert_eq!(steps.len(), 1, "the journal is there, scratch is not");
    assert!(!place.path().join("scratch").exists());
    let mut bytes = Vec::new();
    let input = workflows::by_id(&mut reader, made.id).await.unwrap();
    let blob = input.input_blob.unwrap();
    let mut input = restored.blobs().open(&blob).await.unwrap();
    input.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, INPUT);
}
