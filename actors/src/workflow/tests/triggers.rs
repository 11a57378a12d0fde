//! Files that begin runs by being stored.

use sluice_store::files::{File, NewFile, Role};

use super::*;

impl Site {
    /// Stores a file as an upload does, with the runs that it begins.
    async fn upload(&self, folder_id: Option<Uuid>, text: &str, allowance: Allowance) -> Vec<Run> {
        let upload = self.upload_of(&content("a.png", text)).await;
        let (account, workflows) = (self.account, self.workflows.clone());
        let runs = self
            .store
            .write(move |tx| {
                Box::pin(async move {
                    let now = now_ms();
                    sluice_store::blobs::record(tx, &upload, now).await?;
                    let new = NewFile {
                        folder_id,
                        filename: "a.png".into(),
                        mime_type: "image/png".into(),
                        size_bytes: upload.blob().size,
                        blob: upload.blob().hash,
                        role: Role::Uploaded,
                        width: None,
                        height: None,
                        duration_ms: None,
                        generation: 0,
                    };
                    let file: File = files::create(tx, account, new, now).await?;
                    workflows.stored(tx, &file, allowance, now).await
                })
            })
            .await
            .unwrap();
        self.workflows.announce();
        runs
    }

    async fn runs_of(&self, workflow: &Workflow) -> Vec<Run> {
        let mut reader = self.store.read().await.unwrap();
        workflows::list_runs(&mut reader, self.account, workflow.id, 1_000)
            .await
            .unwrap()
    }
}

/// Runs on files of one folder, and stores into another.
fn between(from: Uuid, to: Uuid) -> Value {
    let mut definition = flow(
        &[
            ("in", "upload", json!({})),
            ("small", "resize", json!({"resizeWidth": 9})),
            ("keep", "storage", json!({"folderId": to})),
        ],
        "in>small small>keep",
    );
    definition["trigger"] = json!({"folderId": from});
    definition
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_the_folder_of_a_workflow_begins_a_run() {
    let site = Site::open().await;
    let (here, there) = (site.new_folder("in").await, site.new_folder("out").await);
    let workflow = site.save(between(here, there)).await;
    for folder in [None, Some(there)] {
        assert!(
            site.upload(folder, "x", Allowance::default())
                .await
                .is_empty()
        );
    }
    let runs = site.upload(Some(here), "a", Allowance::default()).await;
    assert_eq!(runs.len(), 1);
    let run = site.end_of(&runs[0]).await;
    assert_eq!(
        (run.status, run.trigger, run.upload_source.as_str()),
        (RunStatus::Completed, Trigger::Folder, "folder")
    );
    assert_eq!(run.workflow_id, workflow.id);
    assert_eq!(site.stored(&run).await[0].1, "a>png9");
}

#[tokio::test(flavor = "multi_thread")]
async fn generations_end_a_circle_of_workflows() {
    for (max_generation, expected) in [(0, [1, 0]), (1, [1, 1]), (4, [3, 2])] {
        let settings = WorkflowSettings {
            max_generation,
            ..WorkflowSettings::default()
        };
        let site = Site::with(settings).await;
        let (here, there) = (site.new_folder("in").await, site.new_folder("out").await);
        let to = site.save(between(here, there)).await;
        let back = site.save(between(there, here)).await;
        site.upload(Some(here), "a", Allowance::default()).await;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let runs = [site.runs_of(&to).await, site.runs_of(&back).await];
            let counts = [runs[0].len(), runs[1].len()];
            let have_ended = runs.iter().flatten().all(|run| run.status.has_ended());
            if counts == expected && have_ended {
                break;
            }
            assert!(Instant::now() < deadline, "{counts:?} of {expected:?}");
            assert!(counts[0] <= expected[0] && counts[1] <= expected[1]);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let files = 1 + expected.iter().sum::<usize>() as u64;
        assert_eq!(site.all_files().await, files);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_be_charged_says_so_and_the_file_stays() {
    let site = Site::open().await;
    let (here, there) = (site.new_folder("in").await, site.new_folder("out").await);
    site.save(between(here, there)).await;
    let allowance = Allowance {
        operations: 1,
        ..Allowance::default()
    };
    let first = site.upload(Some(here), "a", allowance).await;
    site.end_of(&first[0]).await;
    let second = site.upload(Some(here), "b", allowance).await;
    assert_eq!(
        (second[0].status, second[0].error_code.as_deref()),
        (RunStatus::Failed, Some("operations_used_up"))
    );
    assert_eq!((site.used().await, site.all_files().await), (1, 3));
    assert_eq!(site.events("workflow.failed").await.len(), 1);
}
