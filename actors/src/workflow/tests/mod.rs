//! Runs over a real store and faked workers: interrupted work continues, and nothing is doubled.

mod crashes;
mod drains;
mod dry_runs;
mod ends;
mod fake;
mod load;
mod paths;
mod retries;
mod streams;
mod triggers;

use std::{
    io::Read as _,
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use bytes::Bytes;
use kameo::actor::ActorRef;
use serde_json::{Value, json};
use sluice_store::{
    Store,
    blob::Sealed,
    file_filter::Filter,
    file_list, files,
    folders::{self, NewFolder},
    jobs::Allowance,
    now_ms, operations,
    work::Lane,
    workflows::{
        self, NewWorkflow, Run, RunInput, RunStatus, Step, StepStatus, Submitted, Trigger, Workflow,
    },
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::fake::{Fake, content, text_in};
use super::{Request, WorkflowSettings, Workflows};
use crate::{
    component::ComponentStatuses,
    events::tests::feed,
    fixtures::{PATIENCE, account, open_store, until},
    subsystem::Subsystem as _,
    tree::{self, Root},
    video::{StreamSettings, VideoStreams},
};

/// A process with a data folder: it can be killed and started again.
struct Site {
    folder: tempfile::TempDir,
    settings: WorkflowSettings,
    store: Store,
    workers: Arc<Fake>,
    workflows: Workflows,
    root: ActorRef<Root>,
    account: Uuid,
}

impl Site {
    async fn open() -> Self {
        Self::with(WorkflowSettings::default()).await
    }

    async fn with(settings: WorkflowSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, workers) = (open_store(&folder).await, Arc::new(Fake::default()));
        let account = account(&store).await;
        let (workflows, root) = start(&settings, &store, &workers);
        Self {
            folder,
            settings,
            store,
            workers,
            workflows,
            root,
            account,
        }
    }

    /// Ends everything without a word, and starts again on the same folder.
    async fn kill_and_start(&mut self) {
        self.root.kill();
        self.root.wait_for_shutdown().await;
        self.until("nothing runs", |site| {
            site.workers.running.load(SeqCst) == 0
        })
        .await;
        self.store.close().await;
        self.store = open_store(&self.folder).await;
        (self.workflows, self.root) = start(&self.settings, &self.store, &self.workers);
    }

    async fn save(&self, definition: Value) -> Workflow {
        let (account, new) = (self.account, new_workflow(&definition));
        self.store
            .write(move |tx| {
                Box::pin(async move { workflows::create(tx, account, new, 1_000, now_ms()).await })
            })
            .await
            .unwrap()
    }

    /// Makes the definition the workflow's next version.
    async fn change(&self, workflow: &Workflow, definition: Value) {
        let (account, id, new) = (self.account, workflow.id, new_workflow(&definition));
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    workflows::replace(tx, account, id, new, None, 100, now_ms()).await
                })
            })
            .await
            .unwrap();
    }

    async fn submit(&self, workflow: &Workflow, filename: &str, text: &str) -> Run {
        match self.offer(workflow, filename, text, |_| {}).await {
            Submitted::New(run) => *run,
            other => panic!("{other:?}"),
        }
    }

    async fn offer(
        &self,
        workflow: &Workflow,
        filename: &str,
        text: &str,
        adjust: impl FnOnce(&mut Request),
    ) -> Submitted {
        let upload = self.upload_of(&content(filename, text)).await;
        let mut request = self.request(workflow, filename, &upload);
        adjust(&mut request);
        self.workflows.submit(request, Some(upload)).await.unwrap()
    }

    async fn upload_of(&self, bytes: &[u8]) -> Sealed {
        let mut spool = self.store.blobs().spool().await.unwrap();
        spool.write(Bytes::copy_from_slice(bytes)).await.unwrap();
        spool.seal().await.unwrap()
    }

    fn request(&self, workflow: &Workflow, filename: &str, upload: &Sealed) -> Request {
        Request {
            account_id: self.account,
            workflow_id: workflow.id,
            version: None,
            rerun_of: None,
            trigger: Trigger::Api,
            lane: Lane::Interactive,
            upload_source: "api".into(),
            input: RunInput {
                blob: upload.blob().hash,
                filename: filename.into(),
                size: upload.blob().size.cast_signed(),
                mime_type: "image/png".into(),
            },
            source_file_id: None,
            generation: 0,
            allowance: Allowance::default(),
        }
    }

    async fn end_of(&self, run: &Run) -> Run {
        let run = self
            .workflows
            .wait(run.id, Instant::now() + PATIENCE)
            .await
            .unwrap();
        assert!(run.status.has_ended(), "{run:?}");
        run
    }

    /// Runs a file through; it completes.
    async fn completed(&self, workflow: &Workflow, filename: &str, text: &str) -> Run {
        let run = self.submit(workflow, filename, text).await;
        let run = self.end_of(&run).await;
        assert_eq!(run.status, RunStatus::Completed, "{run:?}");
        run
    }

    async fn run(&self, id: Uuid) -> Run {
        workflows::by_id(&mut self.store.read().await.unwrap(), id)
            .await
            .unwrap()
    }

    async fn steps(&self, run: &Run) -> Vec<Step> {
        workflows::steps(&mut self.store.read().await.unwrap(), run.id)
            .await
            .unwrap()
    }

    /// The nodes of the journal with that status.
    async fn nodes(&self, run: &Run, status: StepStatus) -> Vec<String> {
        let steps = self.steps(run).await.into_iter();
        steps
            .filter(|step| step.status == status)
            .map(|step| step.node_id)
            .collect()
    }

    /// Name and text of the files that the run stored.
    async fn stored(&self, run: &Run) -> Vec<(String, String)> {
        let mut reader = self.store.read().await.unwrap();
        let mut found = workflows::stored_files(&mut reader, &[run.id])
            .await
            .unwrap();
        let mut named = Vec::new();
        for file in found.remove(&run.id).unwrap_or_default() {
            named.push((file.filename, self.text_of(&file.blob).await));
        }
        named
    }

    async fn text_of(&self, blob: &sluice_store::blob::BlobHash) -> String {
        let mut bytes = Vec::new();
        let mut file = self.store.blobs().open(blob).await.unwrap();
        file.read_to_end(&mut bytes).unwrap();
        text_in(&bytes)
    }

    async fn all_files(&self) -> u64 {
        let mut reader = self.store.read().await.unwrap();
        file_list::count(&mut reader, self.account, &Filter::default())
            .await
            .unwrap()
    }

    async fn used(&self) -> u64 {
        let mut reader = self.store.read().await.unwrap();
        operations::used(&mut reader, self.account, now_ms())
            .await
            .unwrap()
            .operations
    }

    /// Returns the events of that type, with their data.
    async fn events(&self, kind: &str) -> Vec<Value> {
        let events = feed(&self.store, self.account).await.into_iter();
        events
            .filter(|(event_type, _)| event_type == kind)
            .map(|(_, data)| data)
            .collect()
    }

    async fn new_folder(&self, name: &str) -> Uuid {
        let (account, name) = (self.account, name.to_owned());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let new = NewFolder {
                        name,
                        color: None,
                        parent_id: None,
                    };
                    folders::create(tx, account, new, now_ms()).await
                })
            })
            .await
            .unwrap()
            .id
    }

    fn scratch_of(&self, run: &Run) -> std::path::PathBuf {
        self.folder.path().join("scratch").join(run.id.to_string())
    }

    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        until(what, async || holds(self)).await;
    }

    /// Until that many steps of the run are journalled.
    async fn until_journalled(&self, run: &Run, steps: usize) {
        let what = format!("{steps} steps are journalled");
        until(&what, async || self.steps(run).await.len() >= steps).await;
    }
}

fn new_workflow(definition: &Value) -> NewWorkflow {
    let checked = sluice_media::workflow::check(definition);
    let checked = checked
        .definition
        .unwrap_or_else(|| panic!("{:?}", checked.problems));
    NewWorkflow {
        name: "photos".into(),
        is_active: true,
        definition: definition.to_string(),
        template: None,
        output_format: None,
        compression_mode: None,
        trigger_folder_id: checked.trigger_folder,
        webhook_urls: Vec::new(),
    }
}

fn start(
    settings: &WorkflowSettings,
    store: &Store,
    workers: &Arc<Fake>,
) -> (Workflows, ActorRef<Root>) {
    // No one works on streams here: that they are made is a run's, what becomes of them is theirs.
    let streams = VideoStreams::over(
        StreamSettings::default(),
        store.clone(),
        workers.clone(),
        String::new(),
    );
    let clean = |name: &str| name.replace('!', "");
    let workflows = Workflows::over(
        settings.clone(),
        store.clone(),
        workers.clone(),
        streams,
        clean,
    );
    let root = Root::start(tree::Args {
        components: workflows.components(),
        component_statuses: ComponentStatuses::default(),
        lost: CancellationToken::new(),
    });
    (workflows, root)
}

/// A definition: nodes as `id`, kind and configuration, edges as `a>b` or `a>true>b`.
fn flow(nodes: &[(&str, &str, Value)], edges: &str) -> Value {
    let nodes: Vec<Value> = nodes
        .iter()
        .map(|(id, kind, config)| {
            json!({"id": id, "data": {"kind": kind, "title": format!("The {id}"), "config": config}})
        })
        .collect();
    let edges: Vec<Value> = edges
        .split_whitespace()
        .map(|edge| match edge.split('>').collect::<Vec<_>>()[..] {
            [source, target] => json!({"source": source, "target": target}),
            [source, kind, target] => {
                json!({"source": source, "target": target, "kind": kind})
            }
            _ => panic!("{edge}"),
        })
        .collect();
    json!({"nodes": nodes, "edges": edges})
}

/// resize → convert → rename → storage → webhook.
fn photos() -> Value {
    flow(
        &[
            ("in", "upload", json!({})),
            ("small", "resize", json!({"resizeWidth": 200})),
            ("webp", "convert", json!({"format": "webp"})),
            ("name", "rename", json!({"pattern": "{original}-{width}"})),
            ("keep", "storage", json!({})),
            ("tell", "webhook", json!({"url": "http://127.0.0.1:9/hook"})),
        ],
        "in>small small>webp webp>name name>keep keep>tell",
    )
}
